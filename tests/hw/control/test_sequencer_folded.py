"""The sequencer of a folded array: when it waits for a drain, and when it flushes."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import play
from verif.sequencer_model import DEPTH, ROWS, SequencerModel, random_passes, tile


@pytest.mark.parametrize("rows", quick(2, [1, 5, 2, 3]))
@pytest.mark.parametrize("idle", [0, 0.5, pytest.param(0.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("credits", [1, pytest.param(2, marks=pytest.mark.slow), 8])
def test_every_cycle_matches_the_model(rows, idle, credits):
    rng = random.Random(rows)
    passes = [
        [{**one, "preload": 0} for one in tiles] for tiles in random_passes(1, rows + credits, 40)
    ]
    aborts = {n: rng.randrange(12) for n in range(40) if rng.random() < 0.3}
    bench = SequencerModel(1, credits, rows=rows, starts=False, folded=True)
    bench.run(passes, cycles=10_000, idle=idle, aborts=aborts)
    bench.check()


def flushes(bench):
    return [t for t, flush in enumerate(bench.step("flush")) if flush]


@pytest.mark.parametrize("words", [1, 2, 3, 7])
def test_a_pass_waits_while_the_rows_drain(words):
    # ``rows`` cycles after each pass, for any number of words.
    bench = SequencerModel(1, 8, starts=False, folded=True)
    bench.run([[tile(n, k=words * DEPTH)] for n in range(5)], cycles=99)
    gap = words + ROWS
    assert [t for t, _ in bench.steps] == [n * gap + t for n in range(5) for t in range(words)]
    assert bench.drains == [words - 1 + n * gap for n in range(5)]
    assert flushes(bench) == bench.stalls == []
    bench.check()


@pytest.mark.parametrize("gap", [0, 1, 5])
def test_a_pass_on_held_sums_does_not_wait(gap):
    bench = SequencerModel(1, 8, starts=False, folded=True)
    k = 2 * DEPTH
    held = [[tile(n, k=k, hold=1, accumulate=n > 0)] for n in range(3)]
    bench.run([*held, [tile(k=k, accumulate=1)]], cycles=99, gaps={1: gap})
    assert [t for t, _ in bench.steps] == [t + gap * (t > 1) for t in range(8)]
    assert bench.drains == [7 + gap] and flushes(bench) == []
    bench.check()


@pytest.mark.parametrize("gap", [0, 1, 5])
def test_held_sums_are_flushed_before_a_pass_that_does_not_accumulate(gap):
    # The flush is in the cycle after the pass is valid; the first step waits as for a drain.
    bench = SequencerModel(1, 8, starts=False, folded=True)
    k = 2 * DEPTH
    passes = [[tile(k=k, hold=1)], [tile(k=k)], [tile(k=k)]]
    bench.run(passes, cycles=99, gaps={1: gap})
    flush = 2 + gap + 1
    assert flushes(bench) == [flush]
    first = flush + ROWS + 1
    assert [t for t, _ in bench.steps] == [0, 1, first, first + 1, first + 5, first + 6]
    bench.check()


@pytest.mark.parametrize("after", range(1, 8))
def test_the_sums_of_an_aborted_job_are_flushed(after):
    bench = SequencerModel(1, 8, starts=False, folded=True)
    bench.run([[tile(k=9 * DEPTH)], [tile(k=DEPTH)], [tile(k=DEPTH)]], cycles=99, aborts={0: after})
    assert flushes(bench) == [after + 2]
    assert bench.drains == [after + 2 + ROWS + 1, after + 2 + 2 * (ROWS + 1)]
    bench.check()


def test_a_pass_without_steps_needs_no_flush():
    bench = SequencerModel(1, 8, starts=False, folded=True)
    failed = [tile(status=1, last=1)]
    bench.run([failed, [tile(k=DEPTH)], failed, [tile(k=DEPTH)]], cycles=99, aborts={1: 0})
    assert flushes(bench) == []
    assert len(bench.drains) == 1
    bench.check()


def test_a_pass_that_accumulates_flushes_nothing():
    bench = SequencerModel(1, 8, starts=False, folded=True)
    passes = [[tile(k=4 * DEPTH)], [tile(k=DEPTH, accumulate=1)]]
    bench.run(passes, cycles=99, aborts={0: 2})
    assert flushes(bench) == []
    assert [t for t, _ in bench.steps] == [0, 1, 3]
    bench.check()


def test_the_first_pass_after_a_reset_waits_for_a_flush():
    bench = SequencerModel(1, 8, starts=False, folded=True)
    bench.run([[tile(k=DEPTH)]], cycles=99, at_once=True)
    step = play(bench.dut, [{}], "step")[0][0]
    assert step["flush"] == 1 and step["en"] == 0
    assert [t for t, _ in bench.steps] == bench.drains == [ROWS]


def test_only_a_folded_sequencer_flushes():
    bench = SequencerModel(1, 8)
    bench.run([[tile(k=1)]], cycles=99)
    assert "flush" not in bench.cycles[0]["step"]
