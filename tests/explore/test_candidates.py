"""Candidates: they fit, they reach the rate, and none of the sample is much better."""

import itertools

import numpy as np
import pytest
from explore_points import DEVICE, records

from weft.config import Config
from weft.explore import candidates as module
from weft.explore.candidates import candidates, time_front, within
from weft.explore.estimate import DesignEstimate, Estimator
from weft.explore.model import AreaEstimate, FittedModel
from weft.explore.rough_cycles import quick_cycles
from weft.explore.space import draws
from weft.explore.workload import MatrixWorkload, WorkloadCost

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
    found = candidates(estimator, BASE, objective, advance=looked.append)
    figures = [getattr(each.figures, objective) for each in found]
    assert figures == sorted(figures)
    assert all(within(each, DEVICE) for each in found)
    assert sum(looked) > 150
    some = itertools.islice(draws(DEVICE, BASE, np.random.default_rng(7), peak=(1, 256)), 12)
    exact = [each for each in map(estimator.estimate, some) if within(each, DEVICE)]
    assert figures[0] <= min(getattr(each.figures, objective) for each in exact)


def test_candidates_reach_the_rate(estimator):
    found = candidates(estimator, BASE, "area", rate=100_000)
    assert found and all(each.figures.rate >= 100_000 for each in found)
    smallest = candidates(estimator, BASE, "area")[0]
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
