"""The sequencer against its model: rounds, start values, credits, drain pace, idle phases."""

import random

import pytest
from tiers import quick

from verif.sequencer_model import DEPTH, EVERY, ROWS, SequencerModel, random_passes, tile


@pytest.mark.parametrize("slots, rows", quick(2, [
    (1, 3), (8, 2), (3, 1), (1, 1), (2, 3), (3, 3),
]))
@pytest.mark.parametrize("idle", [0, 0.5, pytest.param(0.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("credits", [1, pytest.param(2, marks=pytest.mark.slow), 8])
def test_every_cycle_matches_the_model(slots, rows, idle, credits):
    rng = random.Random(slots)
    passes = list(random_passes(slots, slots + credits, 16))
    aborts = {n: rng.randrange(12 * slots) for n in range(16) if rng.random() < 0.3}
    bench = SequencerModel(slots, credits, rows=rows)
    bench.run(passes, cycles=10_000, idle=idle, aborts=aborts)
    bench.check()


@pytest.mark.parametrize("slots", [1, 3])
def test_a_sequencer_without_a_c_buffer_has_no_preload(slots):
    bench = SequencerModel(slots, 2, starts=False)
    passes = [[{**one, "preload": 0} for one in tiles] for tiles in random_passes(slots, 9, 16)]
    bench.run(passes, cycles=10_000, idle=0.3)
    bench.check()
    assert "preload" not in bench.cycles[0]["step"]


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("k", quick(5, [1, 4, 5, 8, 11, 2, 3, 6, 7, 9, 10]))
def test_passes_follow_at_full_rate(slots, k):
    # A pass takes its rounds, or the cycles that its rows need to drain if that is longer.
    words = -(-k // DEPTH)
    passes = [[tile(n, k=k)] * slots for n in range(6)]
    bench = SequencerModel(slots, 8)
    bench.run(passes, cycles=8 * max(words, ROWS) * slots)
    gap = max(words, ROWS) * slots
    assert bench.drains == [words * slots - 1 + n * gap for n in range(6)]
    assert bench.stalls == []
    bench.check()


def test_only_the_last_round_waits_for_the_drain():
    bench = SequencerModel(1, 8)
    bench.run([[tile(k=1)], [tile(k=4)]], cycles=9)
    assert [t for t, _ in bench.steps] == [0, 1, 3]
    bench.check()


@pytest.mark.parametrize("credits", [1, 2, 3])
def test_a_pass_waits_for_a_credit(credits):
    bench = SequencerModel(1, credits)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(credits + 2)]
    bench.run(passes, cycles=80, releases=[40, 60])
    full = [3 * n + 2 for n in range(credits)]
    assert bench.drains == [*full, 41, 61]
    # It waits before its last step; all other steps are done.
    assert bench.stalls == [*range(full[-1] + 3, 41), *range(44, 61)]
    bench.check()


def test_a_release_in_the_cycle_of_a_reservation_counts():
    bench = SequencerModel(1, 2)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(4)]
    bench.run(passes, cycles=40, releases=[5, 20])
    assert bench.drains == [2, 5, 8, 21]


def test_a_released_credit_is_usable_in_the_next_cycle_with_one_row():
    bench = SequencerModel(1, 2, rows=1)
    bench.run([[tile(n, k=1)] for n in range(6)], cycles=40, releases=[6, 7, 8, 20])
    assert bench.drains == [0, 1, 7, 8, 9, 21]
    bench.check()


def test_slots_wait_for_a_credit_in_whole_rounds():
    bench = SequencerModel(3, 1)
    passes = [[tile(n, k=DEPTH)] * 3 for n in range(2)]
    bench.run(passes, cycles=60, releases=[31])
    assert bench.drains == [2, 35]  # a credit from 32 on; the round of 33 takes it
    assert bench.stalls == list(range(3, 33))


def test_held_sums_need_no_credit():
    bench = SequencerModel(1, 1)
    held = [[tile(n, k=2, hold=1, accumulate=n > 0)] for n in range(4)]
    bench.run([*held, [tile(k=2, accumulate=1)]], cycles=20, releases=[])
    assert [t for t, _ in bench.steps] == [0, 1, 2, 3, 4]
    assert bench.drains == [4]
    assert [step["clear"] for _, step in bench.steps] == [1, 0, 0, 0, 0]


def test_each_row_of_c_has_a_round_before_the_first_word():
    bench = SequencerModel(2, 4)
    one = {"k": 2 * DEPTH, "preload": 1}
    bench.run([[tile(c=10, **one), tile(c=20, **one)], [tile(k=1)] * 2], cycles=99)
    assert bench.step("preload")[:12] == [1, 1, 2, 2, 4, 4, *[0] * 6]
    assert bench.step("c_addr")[:6] == [10, 20, 11, 21, 12, 22]
    assert bench.step("en")[:12] == [*[0] * 6, *[1] * 4, 0, 0]
    assert not any(bench.step("clear")[:12])
    assert bench.drains[0] == 9
    bench.check()


def test_empty_slots_have_no_steps():
    bench = SequencerModel(3, 4)
    bench.run([[tile(k=2 * DEPTH, preload=1)]], cycles=99)
    assert bench.step("en")[:16] == [*[0] * 9, 1, 0, 0, 1, 0, 0, 0]
    bench.check()


def test_a_broadcast_c_takes_no_round():
    bench = SequencerModel(2, 4)
    one = {"k": 2 * DEPTH, "preload": 1, "broadcast": 1}
    bench.run([[tile(c=10, **one), tile(c=20, **one)]], cycles=99)
    assert bench.step("preload")[:5] == [EVERY, EVERY, 0, 0, 0]
    assert bench.step("c_addr")[:2] == [10, 20]
    assert bench.step("en")[:5] == [1, 1, 1, 1, 0]
    assert not any(bench.step("clear"))
    assert bench.drains == [3]


def test_broadcast_without_preload_has_no_effect():
    bench = SequencerModel(2, 4)
    bench.run([[tile(k=1, broadcast=1)] * 2], cycles=99)
    assert not any(bench.step("preload"))
    assert bench.step("clear")[:3] == [1, 1, 0]


@pytest.mark.parametrize("fields, clears", [
    ({}, 1), ({"accumulate": 1}, 0), ({"preload": 1}, 0), ({"preload": 1, "broadcast": 1}, 0),
])
def test_sums_start_from_0_unless_they_accumulate_or_preload(fields, clears):
    bench = SequencerModel(3, 4)
    bench.run([[tile(k=3 * DEPTH, **fields)] * 3], cycles=99)
    assert sum(bench.step("clear")) == 3 * clears
    bench.check()


@pytest.mark.parametrize("slots", quick(2, [1, 3, 2]))
@pytest.mark.parametrize("preload", [0, 1])
@pytest.mark.parametrize("after", quick(5, [0, 1, 2, 5, 11, 3, 4, 6, 7, 8, 9, 10]))
def test_a_pass_that_fails_ends_at_the_next_round(slots, preload, after):
    # Within its rows of C or its words; the next pass starts with its own first round.
    passes = [[tile(n, k=12 * DEPTH, c=9 * n, preload=preload)] * slots for n in range(2)]
    bench = SequencerModel(slots, 4)
    bench.run(passes, cycles=200, aborts={0: after})
    bench.check()
    end = -(-after // slots) * slots
    failed = bench.cycles[end]
    assert failed["fire"] and failed["results"]["valid"] and failed["results"]["tile"]["status"]
    rounds = 12 + preload * ROWS
    assert bench.drains == [end + rounds * slots]


def round_starts(bench):
    """The cycles in which a round of words starts."""
    return [t for t, _ in bench.steps if bench.cycles[t]["slot"] == 0]


def test_slots_start_from_0_after_an_idle_phase():
    bench = SequencerModel(4, 4)
    bench.run([[tile(n, k=ROWS * DEPTH)] * 4 for n in range(4)], cycles=99, gaps={1: 3, 2: 2})
    # The last pass is valid in time.
    assert round_starts(bench) == [t + n for t in (0, 15, 29, 41) for n in (0, 4, 8)]
    assert [cycle["slot"] for cycle in bench.cycles[10:20]] == [2, 3, 0, 0, 0, 0, 1, 2, 3, 0]
    bench.check()


def test_slots_count_on_while_sums_are_held():
    bench = SequencerModel(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, hold=1)], [tile(k=k, accumulate=1)] * 2, [tile(k=k)]]
    bench.run(passes, cycles=99, gaps={1: 3, 2: 1})
    assert round_starts(bench) == [t + n for t in (0, 16, 29) for n in (0, 4, 8)]
    assert not any(bench.step("clear")[4:29])
    bench.check()


def test_a_failed_pass_does_not_change_held_sums():
    bench = SequencerModel(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, hold=1)], [tile(status=2, last=1)], [tile(k=k, accumulate=1)]]
    bench.run(passes, cycles=99, gaps={1: 1, 2: 2})
    assert round_starts(bench) == [t + n for t in (0, 20) for n in (0, 4, 8)]
    bench.check()


def test_a_failed_pass_takes_one_cycle():
    bench = SequencerModel(4, 4)
    failed = [tile(status=2, last=1)]
    bench.run([failed, failed, [tile(k=2)]], cycles=99)
    assert [t for t, cycle in enumerate(bench.cycles) if cycle["results"]["valid"]] == [0, 1, 2]
    bench.check()
