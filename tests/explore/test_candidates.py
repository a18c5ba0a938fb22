"""Candidates: they fit, they reach the rate, and none of the sample is much better."""

import itertools

import numpy as np
import pytest
from explore_points import DEVICE, network_core, network_records, records

from weft.config import Config
from weft.design import PerKind
from weft.explore import candidates as module
from weft.explore.candidates import (
    candidates,
    estimates_of,
    product_candidates,
    time_front,
    within,
)
from weft.explore.model import AreaEstimate, DesignEstimate, Estimator, FittedModel
from weft.explore.space import draws
from weft.explore.workload import MatrixWorkload, WorkloadCost, quick_cycles, workload_of

BASE = Config(target="ecp5", rows=2, cols=2, activation="none", lanes=1, jobs=4)


@pytest.fixture(scope="module")
def estimator():
    return Estimator(DEVICE, [MatrixWorkload(16, 32, 16)], FittedModel(records()), clock=100.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in (("DRAWN", 150), ("FINALISTS", 18), ("NEARBY", 8), ("ROUNDS", 2)):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("objective", ["latency", "area"])
def test_candidates_fit_and_are_sorted(estimator, objective):
    looked = []
    found = product_candidates(estimator, BASE, objective, advance=looked.append)
    figures = [getattr(each.figures, objective) for each in found]
    assert figures == sorted(figures)
    assert all(within(each, DEVICE) for each in found)
    assert sum(looked) > 150
    some = itertools.islice(draws(DEVICE, BASE, np.random.default_rng(7), peak=(1, 256)), 12)
    exact = [each for each in map(estimator.estimate, some) if within(each, DEVICE)]
    assert figures[0] <= min(getattr(each.figures, objective) for each in exact)


def test_candidates_reach_the_rate(estimator):
    found = product_candidates(estimator, BASE, "area", rate=100_000)
    assert found and all(each.figures.rate >= 100_000 for each in found)
    smallest = product_candidates(estimator, BASE, "area")[0]
    assert smallest.figures.area <= found[0].figures.area


def test_the_quick_cycles_are_close_to_the_exact_ones(estimator):
    product = MatrixWorkload(64, 64, 64)
    configs = itertools.islice(draws(DEVICE, BASE, np.random.default_rng(3), peak=(1, 64)), 15)
    ratios = [product.cost(c).interval / quick_cycles(c, 64, 64, 64) for c in configs]
    assert 0.8 < np.median(ratios) < 1.25


def test_a_design_that_is_too_large_is_not_within(estimator):
    large = estimator.estimate(Config(target="ecp5", rows=32, cols=16, activation="none"))
    assert not within(large, DEVICE)


def estimate(cycles, luts, ram=1, rows=1, **fields):
    """An estimate at 1 MHz."""
    area = AreaEstimate({"LUT": luts, "FF": 0, "RAM": ram}, None, ())
    cost = WorkloadCost(cycles, cycles, 0, 0, 0, 0.0)
    return DesignEstimate(Config(target="ecp5", rows=rows, **fields), area, (cost,), 1.0)


def test_the_front_of_time_and_luts_has_one_design_for_equal_figures():
    fast, small, worse = estimate(10, 900), estimate(30, 100, rows=2), estimate(30, 900, rows=3)
    few, many = estimate(20, 500, ram=2, rows=4), estimate(20, 500, ram=3, rows=5)
    registers = estimate(20, 500, ram=2, rows=4, hop=8)
    given = [small, worse, registers, many, few, fast]
    assert time_front(given, fast.config) == [fast, few, small]
    assert time_front(given, many.config) == [fast, many, small]
    assert time_front([], fast.config) == []


@pytest.mark.parametrize("base, name", [
    (Config(target="ecp5"), "product_candidates"), (network_core(), "network_candidates"),
])
def test_the_kind_of_core_chooses_the_candidates(monkeypatch, base, name):
    given = []
    assert module._SEARCHES.of(base) is getattr(module, name)
    kind = {"product": None, "network": None} | {
        name.removesuffix("_candidates"): lambda *args, **options: given.append((args, options))
    }
    monkeypatch.setattr(module, "_SEARCHES", PerKind(**kind))
    candidates("estimator", base, "area", rate=3.0, known=["known"], advance=print)
    assert given == [
        (("estimator", base, "area"), {"rate": 3.0, "known": ["known"], "advance": print})
    ]


def test_each_design_is_estimated_once():
    estimator = Estimator(DEVICE, [MatrixWorkload(8, 8, 8)], FittedModel(records()), clock=100.0)
    one, two = (Config(target="ecp5", rows=rows, cols=2) for rows in (2, 3))
    count = []
    found = estimates_of(estimator, [one, two, one], lambda: count.append(1))
    assert [each.config for each in found] == [one, two]
    assert len(count) == 2


def test_a_core_that_does_not_hold_the_networks_has_no_estimate():
    digits = workload_of("examples/digits_cnn.tflite")
    estimator = Estimator(DEVICE, [digits], FittedModel(network_records()), clock=100.0)
    found = estimates_of(estimator, [network_core(words=16), network_core(words=2048)])
    assert [each.config.words for each in found] == [2048]
