"""Reductions of passes that follow each other as closely as the control starts them."""

import numpy as np
import pytest

from verif.amaranth_bench import play
from weft.hw.language_core.reductions import Reductions
from weft.language_core.descriptors import Reduction
from weft.language_core.latencies import CONTROL


@pytest.fixture(scope="module")
def dut():
    return Reductions(target="generic")


def _pass(kind, groups, *, masked=None, heads=1, extra=Reductions.LATENCY, least=0, mark=0):
    """The cycles of a pass, from its start on, and ``extra`` cycles after the last group."""
    count, cycles = len(groups) // heads, [
        {"start": 1, "kind": int(kind), "valid": 0, "least": least, "mark": mark}
    ]
    for n, group in enumerate(groups):
        cycles.append({
            "start": 0, "valid": 1, "results": group.tolist(), "index": 4 * (n % count),
            "masked": 0 if masked is None else int(masked[n]), "first": n % count == 0,
            "last": n % count == count - 1, "head": n // count,
        })
    return cycles + [{"valid": 0} for _ in range(extra + CONTROL - 1)]


def _numbers(rng, count, low=-32768):
    return rng.integers(low, 32768, (count, 4))


def test_squares_start_from_0_after_a_pass_without_them(dut):
    rng = np.random.default_rng(1)
    before, first, second = (_numbers(rng, count) for count in (4, 6, 3))
    first[:2] = -32768
    script = _pass(Reduction.NONE, before, extra=0)  # its groups are still on their way
    script += _pass(Reduction.SQUARES, first)
    end = len(script)
    script += _pass(Reduction.NONE, before, extra=0) + [{}] * 8
    last = len(script)
    script += _pass(Reduction.SQUARES, second)
    [squares] = play(dut, script, "squares", tail=1)
    assert squares[end] == squares[last] == (first**2).sum()
    assert squares[-1] == (second**2).sum()


@pytest.mark.parametrize("groups", [
    [[1, 5, 5, 2], [5, 1, 1, 1]], [[-9, -9, -9, -8], [-8, -7, -7, -9]],
    [[-32768] * 4, [-32768] * 4], [[0, 1, 2, 3], [9, 8, 7, 6], [5, 5, 5, 9]],
])
def test_best_is_the_first_of_the_largest(dut, groups):
    groups = np.array(groups)
    script = _pass(Reduction.BEST, np.full((2, 4), 32767))
    script += _pass(Reduction.NONE, np.full((2, 4), 32767), extra=0)
    script += _pass(Reduction.BEST, groups)
    [best] = play(dut, script, "best", tail=1)
    assert best[-1] == groups.reshape(-1).argmax()


@pytest.mark.parametrize("kind", [Reduction.MAXIMUM, Reduction.TOTAL])
def test_heads(dut, kind):
    rng = np.random.default_rng(kind)
    maximum = kind == Reduction.MAXIMUM
    groups = _numbers(rng, 12, -32768 if maximum else 0)
    masked = rng.integers(0, 15, 12) if maximum else np.zeros(12, int)
    kept = (masked[:, None] >> np.arange(4) & 1) == 0
    script = _pass(kind, groups, masked=masked, heads=4)
    script += _pass(Reduction.NONE, _numbers(rng, 4), extra=0)
    name = "maximum" if maximum else "total"
    script += [{f"{name}_head": head} for head in range(4)]
    [found] = play(dut, script, name, tail=1)
    of_heads = np.where(kept, groups, -32768).reshape(4, -1)
    expected = of_heads.max(1) if maximum else of_heads.sum(1)
    assert found[-5:-1] == expected.tolist()


def test_best_is_also_a_maximum(dut):
    """Of tokens, which no position masks."""
    groups = _numbers(np.random.default_rng(8), 5, -32768)
    script = _pass(Reduction.MAXIMUM, np.full((2, 4), 32767))
    script += _pass(Reduction.BEST, groups) + [{"maximum_head": 0}]
    [maximum] = play(dut, script, "maximum", tail=1)
    assert maximum[-1] == groups.max()


def test_a_total_leaves_out_what_is_below_the_least(dut):
    weights, least = _numbers(np.random.default_rng(9), 6, 0), 12000
    weights[0] = [least, least - 1, 0, 32767]
    script = _pass(Reduction.TOTAL, np.full((3, 4), 32767))
    script += _pass(Reduction.TOTAL, weights, least=least)
    end = len(script)
    script += _pass(Reduction.NONE, np.full((3, 4), 32767), extra=0) + [{"total_head": 0}]
    latest, total = play(dut, script, "latest_total", "total", tail=1)
    assert latest[end] == latest[-1] == total[-1] == weights[weights >= least].sum()


ONE = [[0, 0, 0, 0], [0, 0, 32767, 0], [0, 0, 0, 0]]
LAST = [[0, 0, 0, 0], [0, 0, 0, 32767]]
EQUAL = [[32767] * 4] * 3
MIXED = [[5, 0, 9, 1], [0, 32767, 0, 0], [3, 3, 3, 3], [0, 0, 0, 1]]


def _picked(weights, least, mark):
    """The first token whose running sum exceeds the mark."""
    kept = np.where(weights < least, 0, weights).reshape(-1)
    return int((kept.cumsum() > mark).argmax())


@pytest.mark.parametrize("weights, least", [
    (ONE, 0), (LAST, 0), (EQUAL, 0), (EQUAL, 32767), (MIXED, 0), (MIXED, 3), (MIXED, 32767),
], ids=["one", "last", "equal", "equal, least", "mixed", "mixed, 3", "mixed, one"])
def test_pick_at_all_edges_of_its_sums(dut, weights, least):
    """Passes that follow each other, with marks before and at each running sum."""
    weights = np.array(weights)
    sums = np.where(weights < least, 0, weights).reshape(-1).cumsum()
    edges = {0, int(sums[-1]) - 1, *sums.tolist(), *(sums - 1).tolist()}
    marks = sorted(mark for mark in edges if 0 <= mark < sums[-1])
    script, ends = [], []
    for mark in marks:
        script += _pass(Reduction.PICK, weights, least=least, mark=mark)
        ends.append(len(script))
        script += _pass(Reduction.NONE, np.full((1, 4), 32767), extra=0)
    [best] = play(dut, script, "best", tail=1)
    assert [best[end] for end in ends] == [_picked(weights, least, mark) for mark in marks]


def test_pick_of_random_weights(dut):
    rng, script, ends, expected = np.random.default_rng(10), [], [], []
    for least in (0, 0, 100, 20000):
        weights = _numbers(rng, 9, 0) >> rng.integers(0, 15, (9, 4))
        weights[4, 2] = 32767
        mark = int(rng.integers(np.where(weights < least, 0, weights).sum()))
        script += _pass(Reduction.PICK, weights, least=least, mark=mark)
        ends.append(len(script) - 1)
        expected.append(_picked(weights, least, mark))
    [best] = play(dut, script, "best", tail=1)
    assert [best[end] for end in ends] == expected


@pytest.mark.slow
def test_the_largest_sum_fits(dut):
    """4,096 groups of the largest exponentials: a total, and the last token by the last mark."""
    groups = np.full((4096, 4), 32767)
    script = _pass(Reduction.TOTAL, groups)
    end = len(script) - 1
    script += _pass(Reduction.PICK, groups, mark=int(groups.sum()) - 1)
    latest, best = play(dut, script, "latest_total", "best", tail=1)
    assert (latest[end], best[-1]) == (groups.sum(), 16383)
