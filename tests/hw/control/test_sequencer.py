"""The sequencer against its rules in every cycle: words by slots, starts, pace, room, rests."""

import random

import pytest

from weft.sim.sequencer_model import DEPTH, EVERY, ROWS, SequencerModel, random_passes, tile


@pytest.mark.parametrize("slots, rows", [(1, 1), (1, 3), (2, 3), (3, 1), (3, 3), (8, 2)])
@pytest.mark.parametrize("idle", [0, 0.5, 0.9])
@pytest.mark.parametrize("room", [1, 2, 8])
def test_every_cycle_is_as_the_rules_say(slots, rows, idle, room):
    rng = random.Random(slots)
    passes = list(random_passes(slots, slots + room, 16))
    aborts = {n: rng.randrange(12 * slots) for n in range(16) if rng.random() < 0.3}
    bench = SequencerModel(slots, room, rows=rows)
    bench.run(passes, cycles=10_000, idle=idle, aborts=aborts)
    bench.check()


@pytest.mark.parametrize("slots", [1, 3])
def test_without_a_c_no_sum_starts_from_one(slots):
    bench = SequencerModel(slots, 2, starts=False)
    passes = [[{**one, "preload": 0} for one in tiles] for tiles in random_passes(slots, 9, 16)]
    bench.run(passes, cycles=10_000, idle=0.3)
    bench.check()
    assert "preload" not in bench.cycles[0]["step"]


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("k", range(1, 12))
def test_passes_follow_at_full_rate(slots, k):
    # A pass takes its rounds, or the cycles that its rows need to drain where those are more.
    words = -(-k // DEPTH)
    passes = [[tile(n, k=k)] * slots for n in range(6)]
    bench = SequencerModel(slots, 8)
    bench.run(passes, cycles=8 * max(words, ROWS) * slots)
    gap = max(words, ROWS) * slots
    assert bench.drains == [words * slots - 1 + n * gap for n in range(6)]
    assert bench.stalls == []
    bench.check()


def test_other_words_go_on_while_the_last_one_waits_its_turn():
    bench = SequencerModel(1, 8)
    bench.run([[tile(k=1)], [tile(k=4)]], cycles=9)
    assert [t for t, _ in bench.steps] == [0, 1, 3]
    bench.check()


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_pass_waits_for_room(room):
    bench = SequencerModel(1, room)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(room + 2)]
    bench.run(passes, cycles=80, releases=[40, 60])
    full = [3 * n + 2 for n in range(room)]
    assert bench.drains == [*full, 41, 61]
    # It stands at its last step, all the others done.
    assert bench.stalls == [*range(full[-1] + 3, 41), *range(44, 61)]
    bench.check()


def test_room_given_back_while_some_is_taken_is_kept():
    bench = SequencerModel(1, 2)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(4)]
    bench.run(passes, cycles=40, releases=[5, 20])
    assert bench.drains == [2, 5, 8, 21]


def test_room_given_back_is_there_in_the_next_cycle_of_a_single_row():
    bench = SequencerModel(1, 2, rows=1)
    bench.run([[tile(n, k=1)] for n in range(6)], cycles=40, releases=[6, 7, 8, 20])
    assert bench.drains == [0, 1, 7, 8, 9, 21]
    bench.check()


def test_slots_wait_for_room_in_whole_turns():
    bench = SequencerModel(3, 1)
    passes = [[tile(n, k=DEPTH)] * 3 for n in range(2)]
    bench.run(passes, cycles=60, releases=[31])
    assert bench.drains == [2, 35]  # room from 32 on; the turn of 33 has it
    assert bench.stalls == list(range(3, 33))


def test_a_kept_sum_takes_no_room():
    bench = SequencerModel(1, 1)
    kept = [[tile(n, k=2, hold=1, accumulate=n > 0)] for n in range(4)]
    bench.run([*kept, [tile(k=2, accumulate=1)]], cycles=20, releases=[])
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


def test_absent_tiles_have_no_step_in_any_round():
    bench = SequencerModel(3, 4)
    bench.run([[tile(k=2 * DEPTH, preload=1)]], cycles=99)
    assert bench.step("en")[:16] == [*[0] * 9, 1, 0, 0, 1, 0, 0, 0]
    bench.check()


def test_a_c_of_one_row_costs_no_round():
    bench = SequencerModel(2, 4)
    one = {"k": 2 * DEPTH, "preload": 1, "broadcast": 1}
    bench.run([[tile(c=10, **one), tile(c=20, **one)]], cycles=99)
    assert bench.step("preload")[:5] == [EVERY, EVERY, 0, 0, 0]
    assert bench.step("c_addr")[:2] == [10, 20]
    assert bench.step("en")[:5] == [1, 1, 1, 1, 0]
    assert not any(bench.step("clear"))
    assert bench.drains == [3]


def test_broadcast_is_nothing_without_a_preload():
    bench = SequencerModel(2, 4)
    bench.run([[tile(k=1, broadcast=1)] * 2], cycles=99)
    assert not any(bench.step("preload"))
    assert bench.step("clear")[:3] == [1, 1, 0]


@pytest.mark.parametrize("fields, clears", [
    ({}, 1), ({"accumulate": 1}, 0), ({"preload": 1}, 0), ({"preload": 1, "broadcast": 1}, 0),
])
def test_sums_start_from_0_but_where_they_start_from_something(fields, clears):
    bench = SequencerModel(3, 4)
    bench.run([[tile(k=3 * DEPTH, **fields)] * 3], cycles=99)
    assert sum(bench.step("clear")) == 3 * clears
    bench.check()


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("preload", [0, 1])
@pytest.mark.parametrize("after", range(12))
def test_a_pass_that_becomes_void_ends_at_the_next_turn(slots, preload, after):
    # In the midst of its rows of C, or of its words; the next one starts with its own first.
    passes = [[tile(n, k=12 * DEPTH, c=9 * n, preload=preload)] * slots for n in range(2)]
    bench = SequencerModel(slots, 4)
    bench.run(passes, cycles=200, aborts={0: after})
    bench.check()
    turn = -(-after // slots) * slots
    void = bench.cycles[turn]
    assert void["fire"] and void["results"]["valid"] and void["results"]["tile"]["status"]
    rounds = 12 + preload * ROWS
    assert bench.drains == [turn + rounds * slots]


def begins(bench):
    """The cycles in which a round of words begins."""
    return [t for t, _ in bench.steps if bench.cycles[t]["slot"] == 0]


def test_slots_start_anew_after_a_rest():
    bench = SequencerModel(4, 4)
    bench.run([[tile(n, k=ROWS * DEPTH)] * 4 for n in range(4)], cycles=99, gaps={1: 3, 2: 2})
    # The last one is there in time.
    assert begins(bench) == [t + n for t in (0, 15, 29, 41) for n in (0, 4, 8)]
    assert [seen["slot"] for seen in bench.cycles[10:20]] == [2, 3, 0, 0, 0, 0, 1, 2, 3, 0]
    bench.check()


def test_slots_go_on_where_sums_are_kept():
    bench = SequencerModel(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, hold=1)], [tile(k=k, accumulate=1)] * 2, [tile(k=k)]]
    bench.run(passes, cycles=99, gaps={1: 3, 2: 1})
    assert begins(bench) == [t + n for t in (0, 16, 29) for n in (0, 4, 8)]
    assert not any(bench.step("clear")[4:29])
    bench.check()


def test_a_void_pass_leaves_kept_sums_where_they_are():
    bench = SequencerModel(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, hold=1)], [tile(status=2, last=1)], [tile(k=k, accumulate=1)]]
    bench.run(passes, cycles=99, gaps={1: 1, 2: 2})
    assert begins(bench) == [t + n for t in (0, 20) for n in (0, 4, 8)]
    bench.check()


def test_a_void_pass_alone_takes_a_cycle():
    bench = SequencerModel(4, 4)
    void = [tile(status=2, last=1)]
    bench.run([void, void, [tile(k=2)]], cycles=99)
    assert [t for t, seen in enumerate(bench.cycles) if seen["results"]["valid"]] == [0, 1, 2]
    bench.check()
