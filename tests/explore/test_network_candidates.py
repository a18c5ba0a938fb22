"""The front of network cores: exact cycles, in the device, and none of the grid is better."""

import dataclasses

import pytest
from explore_points import DEVICE, network_core, network_records

from weft.explore import candidates as module
from weft.explore import space
from weft.explore.candidates import front, network_candidates, within
from weft.explore.model import Estimator, FittedModel
from weft.explore.workload import workload_of

BASE = network_core(words=512)


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
        monkeypatch.setattr(module, f"NETWORK_{name}", value)


def test_the_front_has_exact_cycles_and_fits(estimator):
    looked = []
    found = network_candidates(estimator, BASE, "latency", advance=looked.append)
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


def test_the_order_follows_the_objective_and_the_rate(estimator):
    fast = network_candidates(estimator, BASE, "latency")
    small = network_candidates(estimator, BASE, "area")
    assert {each.config for each in small} == {each.config for each in fast}
    keys = [(each.figures.area, each.figures.latency) for each in small]
    assert keys == sorted(keys) and small != fast
    rate = fast[1].figures.rate
    found = network_candidates(estimator, BASE, "area", rate=rate)
    assert 2 <= len(found) < len(fast)
    assert {each.config for each in found} == {
        each.config for each in fast if each.figures.rate >= rate
    }


def test_a_core_gets_the_words_that_its_networks_need(estimator):
    tiny = network_core(words=16)
    found = network_candidates(estimator, BASE, "latency", known=[tiny])
    words = {each.config.words for each in found if each.config.array == tiny.array}
    assert words and min(words) >= 256


def test_a_device_without_room_has_no_candidates(estimator):
    few = dataclasses.replace(DEVICE, capacity=DEVICE.capacity | {"RAM": 8})
    none = Estimator(few, estimator.workloads, estimator.model, clock=100.0)
    assert network_candidates(none, BASE, "latency") == []
