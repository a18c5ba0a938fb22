"""The guide: its order, its ranking, and how few runs it needs on the recorded points."""

import dataclasses

import pytest
from explore_points import DEVICE, measured, network_core, records

from weft.config import Config
from weft.explore.candidates import front
from weft.explore.findings import Guide, recorded
from weft.explore.model import (
    AreaEstimate,
    DesignEstimate,
    Figures,
    FittedModel,
    figures_of,
    leave_one_out,
)
from weft.explore.points import Point, PointOutcome
from weft.explore.workload import MatrixWorkload, WorkloadCost

PRODUCT = MatrixWorkload(32, 64, 32)
MODEL = FittedModel(records())


def estimate(config):
    area = MODEL.estimate(config, DEVICE)
    return DesignEstimate(config, area, (PRODUCT.cost(config),), area.fmax)


@pytest.fixture(scope="module")
def estimates():
    return [estimate(point.config) for point, _ in records(10, seed=5)]


def finish(guide, limit=1000):
    """Run all points of a guide; their order."""
    order = []
    while len(order) < limit and (point := guide.next()) is not None:
        order.append((point.config, point.seed))
        guide.tell(point, measured(point.config, point.seed))
    return order


def test_the_best_estimate_comes_first_and_seeds_come_last(estimates):
    guide = Guide(DEVICE, estimates, "latency", designs=6, seeds=3)
    order = finish(guide)
    best = min(estimates, key=lambda each: each.figures.latency).config
    assert order[0] == (best, 1)
    assert [seed for _, seed in order] == [1] * 6 + [2] * 3 + [3] * 3
    assert len(set(order)) == len(order)
    assert guide.next() is None
    seeded = {config for config, seed in order if seed == 3}
    assert seeded == set(guide.ranking()[:3])


def test_known_outcomes_are_not_chosen_again(estimates):
    guide = Guide(DEVICE, estimates, "area", designs=10, seeds=1)
    known = Point(DEVICE, estimates[3].config, 1)
    guide.tell(known, measured(known.config))
    assert (known.config, 1) not in finish(guide)
    assert known.config in guide.ranking()


def test_an_outcome_corrects_similar_designs(estimates):
    """Of two designs with equal estimates, the one like a slow design comes later."""
    config = estimates[0].config
    slow = dataclasses.replace(config, jobs=2)
    like_slow = dataclasses.replace(config, jobs=8)
    other = dataclasses.replace(
        config, a_words=1024, b_words=1024, bytes_in=8, jobs=4, scale_cycles=4, hop=2,
    )
    same = estimates[0]
    known = [dataclasses.replace(same, config=each) for each in (slow, like_slow, other)]
    for wrong, first in ((0.5, other), (2.0, like_slow)):
        guide = Guide(DEVICE, known, "latency", designs=3)
        outcome = measured(config)
        guide.tell(
            Point(DEVICE, slow, 1), dataclasses.replace(outcome, fmax=wrong * same.area.fmax)
        )
        assert guide.next().config == first


def made(luts, cycles, config, clock=None):
    """An estimate at 100 MHz, if the model does not know the clock."""
    cost = WorkloadCost(cycles, cycles, 0, 0, 0, 0.0)
    return DesignEstimate(config, AreaEstimate({"LUT": luts}, clock, ()), (cost,), clock or 100.0)


@pytest.mark.parametrize("failure, first", [
    ("overfull", 1), ("unroutable", 1), ("time", 1), ("memory", 1), ("crash", 3),
])
def test_designs_as_large_as_one_that_failed_come_last(failure, first):
    configs = [Config(target="ecp5", rows=rows) for rows in (4, 1, 2, 3)]
    luts, cycles = (9000, 8000, 9000, 9500), (100, 500, 400, 300)
    guide = Guide(DEVICE, list(map(made, luts, cycles, configs)), "latency", designs=4, seeds=1)
    failed = guide.next()
    assert failed.config.rows == 4
    guide.tell(failed, PointOutcome(failure=failure, detail="it needs LUT"))
    assert guide.next().config.rows == first


def test_an_unknown_clock_is_the_one_of_the_board_until_a_core_is_placed():
    """The measured clock of a core corrects the ones that are like it."""
    slow, like_slow, other = network_core(hop=8), network_core(hop=8, lines=256), network_core(
        rows=6, lines=64, hop=2
    )
    estimates = [made(9000, 100, slow), made(8900, 101, like_slow), made(8800, 110, other)]
    guide = Guide(DEVICE, estimates, "latency", designs=3, seeds=1)
    first = guide.next()
    assert first.config == slow
    guide.tell(first, PointOutcome(used={"LUT": 9000}, fmax=60.0, path="a to b"))
    assert guide.measured()[slow].latency == 100 / 60
    assert guide.next().config == other


def test_an_outcome_of_a_design_without_an_estimate_is_ignored(estimates):
    guide = Guide(DEVICE, estimates, "latency")
    unknown = Point(DEVICE, Config(target="ecp5", rows=7, cols=7))
    guide.tell(unknown, measured(unknown.config))
    assert guide.ranking() == [] and guide.outcomes == {}


def test_designs_below_the_rate_do_not_win(estimates):
    free = Guide(DEVICE, estimates, "area", designs=10, seeds=1)
    finish(free)
    figures = free.measured()
    rate = sorted(each.rate for each in figures.values())[5]
    guide = Guide(DEVICE, estimates, "area", rate=rate, designs=10, seeds=1)
    finish(guide)
    assert len(guide.ranking()) == 5
    assert all(figures[config].rate >= rate for config in guide.ranking())
    slow = next(config for config in figures if config not in guide.ranking())
    assert guide.reason(slow, guide.ranking()[0]).startswith("too slow: ")


def test_rivals_lose_for_a_reason(estimates):
    guide = Guide(DEVICE, estimates, "latency", designs=3, seeds=1)
    finish(guide, 2)
    failed = guide.next()
    guide.tell(failed, PointOutcome(failure="overfull", detail="it needs DSP 30 of 28"))
    winner, rival = guide.ranking()
    assert guide.reason(failed.config, winner) == "overfull: it needs DSP 30 of 28"
    text = guide.reason(rival, winner)
    figures = guide.measured()
    more = figures[rival].latency / figures[winner].latency - 1
    assert text.startswith(f"slower: {figures[rival].latency:,.2f} us, {more:.1%} more, at ")
    assert text.endswith("critical path: a to b, 1.0 ns in cells, 2.0 ns between them")


def test_the_front_has_all_designs_that_no_other_dominates():
    figures = {
        "fast": Figures(1, 1, 9, 5), "small": Figures(9, 9, 1, 5), "both": Figures(5, 5, 5, 5),
        "worse": Figures(6, 5, 5, 5), "equal": Figures(5, 5, 5, 5),
    }
    assert front(figures) == ["fast", "small", "both", "equal"]


def guided_best(space, estimates, objective, runs):
    """(Figure of the best point that the guide finds in ``runs`` runs, and of the best of all)."""
    outcomes = {point.config: outcome for point, outcome in space}
    costs = {each.config: each.costs for each in estimates}
    figures = {
        config: getattr(figures_of(costs[config], outcome.used, outcome.fmax), objective)
        for config, outcome in outcomes.items()
    }
    guide = Guide(space[0][0].device, estimates, objective, designs=runs, seeds=1)
    found = []
    while (point := guide.next()) is not None:
        guide.tell(point, outcomes[point.config])
        found.append(figures[point.config])
    assert len(found) == runs
    return min(found), min(figures.values())


@pytest.mark.parametrize("objective", [
    pytest.param("latency", marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.long) for name in ("area", "throughput", "energy")),
])
def test_few_runs_find_a_design_close_to_the_best(objective):
    """A fifth of the runs; each estimate is from a model that has not seen its point."""
    errors = leave_one_out([r for r in recorded("ecp5") if r[1].done])
    placed = {
        point.config: ((point, outcome), area)
        for (point, outcome), area in zip(errors.points, errors.estimates, strict=True)
        if outcome.fmax and point.device == DEVICE
    }
    space = [record for record, _ in placed.values()]
    estimates = [
        DesignEstimate(config, area, (PRODUCT.cost(config),), area.fmax)
        for config, (_, area) in placed.items()
    ]
    found, best = guided_best(space, estimates, objective, max(1, len(space) // 5))
    assert found <= 1.03 * best
