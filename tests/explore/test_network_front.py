"""The front of cores for networks: exact cycles, in the device, and none of the grid is better."""

import dataclasses

import pytest
from explore_points import DEVICE, chip, network_records

from weft.explore import network_front as module
from weft.explore import space
from weft.explore.candidates import front, within
from weft.explore.estimate import Estimator
from weft.explore.model import FittedModel
from weft.explore.network_front import distinct_front, network_candidates
from weft.explore.workload import workload_of

BASE = chip(words=512)


@pytest.fixture(scope="module")
def estimator():
    digits = workload_of("examples/digits_cnn.tflite")
    return Estimator(DEVICE, [digits], FittedModel(network_records()), clock=100.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    grid = space.GRID | {
        "rows": (1, 2, 6), "cols": (4, 8), "depth": (4,), "lanes": (1, 4), "hop": (2,),
        "b_words": (512,), "lines": (512,), "read_vectors": (2,),
    }
    monkeypatch.setattr(space, "GRID", grid)
    for name, value in (("FINALISTS", 4), ("NEARBY", 2), ("ROUNDS", 1)):
        monkeypatch.setattr(module, name, value)


def test_the_front_has_exact_cycles_and_fits(estimator):
    looked = []
    found = network_candidates(estimator, BASE, advance=looked.append)
    assert BASE in {each.config for each in found}
    assert 5 < len(found) <= 1 + 4 + 2 and sum(looked) > 12
    latencies = [each.figures.latency for each in found]
    assert latencies == sorted(latencies)
    [digits] = estimator.workloads
    for each in found:
        assert within(each, DEVICE) and each.clock == 100
        assert each.figures.latency == digits.cost(each.config).cycles / 100
    best = front({each.config: each.figures for each in found})
    assert len(best) > 1
    fastest = min(space.grid(DEVICE, BASE, digits.least_memory), key=digits.quick_cycles)
    assert latencies[0] <= estimator.estimate(fastest).figures.latency


def test_the_front_has_one_core_for_equal_figures(estimator):
    """A B of 1,024 words takes more blocks than one of 512, and no LUT in the model."""
    small, large, slow = (
        estimator.estimate(chip(words=1024, lines=512, **fields)) for fields in (
            {"b_words": 512}, {"b_words": 1024}, {"b_words": 512, "rows": 1},
        )
    )
    assert small.figures == large.figures
    assert small.area.used["RAM"] < large.area.used["RAM"]
    given = [slow, large, small]
    assert distinct_front(given, BASE) == [small, slow]
    assert distinct_front(given, large.config) == [large, slow]
    worse = estimator.estimate(chip(words=1024, lines=512, b_words=512, lanes=1))
    found = distinct_front([*given, worse], BASE)
    assert (worse in found) == (worse.figures.area < small.figures.area)


def test_a_core_gets_the_words_that_its_networks_need(estimator):
    tiny = chip(words=16)
    found = network_candidates(estimator, BASE, known=[tiny])
    words = {each.config.words for each in found if each.config.core == tiny.core}
    assert words and min(words) >= 256


def test_a_device_without_room_has_no_candidates(estimator):
    few = dataclasses.replace(DEVICE, capacity=DEVICE.capacity | {"RAM": 8})
    none = Estimator(few, estimator.workloads, estimator.model, clock=100.0)
    assert network_candidates(none, BASE) == []
