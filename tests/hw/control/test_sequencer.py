"""The sequencer against its rules in every cycle: words by slots, starts, pace, room, rests."""

import random

import pytest
from amaranth.hdl import Value
from amaranth.lib.data import StructLayout

from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tiler import Tile
from weft.sim.amaranth_bench import plain, put, simulate

ROWS, DEPTH = 3, 2
A = Operand(ROWS, DEPTH, 64, 16)
B = Operand(4, DEPTH, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
EVERY = (1 << ROWS) - 1
C_FIELDS = ("c", "preload", "broadcast")


def tile(tag=0, *, k=5, last=0, a_page=0, b_page=0, status=0, accumulate=0, keep=0, finish=0,
         c=0, preload=0, broadcast=0):
    return {
        "a_page": a_page, "b_page": b_page, "k": k, "rows": ROWS, "cols": 4, "last": last,
        "tag": tag, "status": status, "accumulate": accumulate, "keep": keep,
        "finish": {"requantize": finish & 1, "table": finish >> 1},
        "c": c, "preload": preload, "broadcast": broadcast,
    }


class Bench:
    """A sequencer that is offered passes: all that it does, cycle by cycle."""

    def __init__(self, slots, room, *, starts=True, rows=ROWS):
        self.slots, self.room, self.starts, self.rows = slots, room, starts, rows
        geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
        self.tile = Tile(geometries, StructLayout({"requantize": 1, "table": 1}))
        self.dut = Sequencer(
            geometries=(A, B), tile=self.tile, slots=slots, rows=rows, depth=DEPTH, room=room
        )
        self.cycles = []  # what is offered and what is seen

    def fields(self, one):
        return one if self.starts else {k: v for k, v in one.items() if k not in C_FIELDS}

    def run(self, passes, *, cycles, releases=None, idle=0.0, gaps=None, voids=None):
        """Up to ``cycles``, all that ``passes`` need and some more.

        ``releases``: cycles of a pulse; None for one 5 cycles behind each drain. By the numbers of
        passes, ``gaps`` has the cycles without any before them, ``voids`` those that they are on
        offer until they become void.
        """
        dut, rng = self.dut, random.Random(cycles)
        gaps, voids = dict(gaps or {}), voids or {}
        ports = {
            name: getattr(dut, name) for name in ("slot", "step", "results", "active", "stalled")
        }
        raw = Value.cast(dut.passes.payload)

        async def bench(ctx):
            number, offered, void, more = 0, 0, False, 2 * self.slots + 8
            for t in range(cycles):
                more -= number == len(passes)
                if not more:
                    break
                slot = ctx.get(dut.slot)
                here = None if number == len(passes) else passes[number]
                if here and not offered:
                    gaps[number] = gaps.get(number, 0) - 1
                    here = None if gaps[number] >= 0 or rng.random() < idle else here
                if here is None:
                    ctx.set(raw, rng.getrandbits(len(raw)))
                else:
                    void = void or (slot == 0 and offered >= voids.get(number, cycles))
                    here = [{**here[0], "status": int(Status.ABORTED)}] if void else here
                    self.offer(ctx, here, slot, rng)
                    offered += 1
                ctx.set(dut.passes.valid, here is not None)
                release = t - 5 in self.drains if releases is None else t in releases
                ctx.set(dut.release, release)
                values = await ctx.tick().sample(dut.passes.ready, *ports.values())
                ready = values[2]
                seen = dict(zip(ports, map(plain, values[3:]), strict=True))
                self.cycles.append({"offer": here, "release": release, "ready": ready, **seen})
                if here and ready:
                    number, offered, void = number + 1, 0, False
            assert number == len(passes)

        simulate(dut, bench, limit=cycles + 2)

    def offer(self, ctx, tiles, slot, rng):
        payload = {
            "lead": self.fields(tiles[0]), "present": int(slot < len(tiles)),
            "end": int(slot == len(tiles) - 1),
        }
        absent = tile(rng.randrange(99), a_page=rng.randrange(4), c=rng.randrange(64))
        payload["tile"] = self.fields(tiles[slot] if slot < len(tiles) else absent)
        put(ctx, self.dut.passes.payload, payload)

    def step(self, name):
        """What a field of the step is in each cycle."""
        return [seen["step"][name] for seen in self.cycles]

    @property
    def drains(self):
        return [t for t, drain in enumerate(self.step("drain")) if drain]

    @property
    def stalls(self):
        return [t for t, seen in enumerate(self.cycles) if seen["stalled"]]

    @property
    def steps(self):
        return [(t, seen["step"]) for t, seen in enumerate(self.cycles) if seen["step"]["en"]]

    def rounds(self, lead):
        """The rounds of a pass, each a row of C or a word."""
        if lead["preload"] and not lead["broadcast"]:
            yield from (("row", row) for row in range(self.rows))
        yield from (("word", word) for word in range(-(-lead["k"] // DEPTH)))

    def check(self):
        """Every cycle is as the rules say."""
        slot, kept, room, pace = 0, False, self.room, 0
        turn, stalled, rounds = None, False, None
        for t, seen in enumerate(self.cycles):
            tiles = seen["offer"]
            lead = tiles[0] if tiles else tile()
            void = slot == 0 and lead["status"] != 0
            if tiles and rounds is None:
                rounds = list(self.rounds(lead))
            if slot == 0:
                # A round is decided on here: the last one, where it gives results, may wait.
                turn, stalled = None, False
                if tiles and not void:
                    gives = len(rounds) == 1 and not lead["keep"]
                    stalled = gives and not room
                    if not gives or (room and t >= pace):
                        turn = rounds.pop(0)
                        if gives:
                            room, pace = room - 1, t + self.slots * self.rows
            ends = turn is not None and not rounds
            taken = void or (ends and slot == self.slots - 1)
            assert (seen["slot"], seen["stalled"], seen["ready"]) == (slot, stalled, taken), t
            self.check_step(t, tiles, turn, ends)
            self.check_results(t, tiles, turn, ends, void)
            room += seen["release"]
            if taken:
                rounds, kept = None, kept if void else lead["keep"] == 1
            # It counts on while there is a pass to run, or sums that stay where they are.
            slot = (slot + 1) % self.slots if slot or (tiles and not void) or kept else 0

    def check_step(self, t, tiles, turn, ends):
        seen, step = self.cycles[t], self.cycles[t]["step"]
        slot, last_slot = seen["slot"], seen["slot"] == self.slots - 1
        kind, n = turn or (None, None)
        present = turn is not None and slot < len(tiles)
        lead = tiles[0] if turn else tile()
        gives = ends and not lead["keep"]
        assert step["en"] == seen["active"] == (kind == "word" and present), t
        assert (step["capture"], step["drain"]) == (gives, gives and last_slot), t
        if present or not turn:
            fresh = not lead["accumulate"] and not lead["preload"]
            assert step["clear"] == (turn == ("word", 0) and fresh), t
        if step["en"]:
            pages = tiles[slot]["a_page"], tiles[slot]["b_page"]
            assert (step["a"], step["b"]) == tuple(page * 16 + n for page in pages), t
        if self.starts:
            every = turn == ("word", 0) and lead["preload"] & lead["broadcast"]
            rows = 1 << n if kind == "row" else every * ((1 << self.rows) - 1)
            assert step["preload"] == rows, t
            if present and step["preload"]:
                row = n if kind == "row" else 0
                assert step["c"] == (tiles[slot]["c"] + row) % C.words, t

    def check_results(self, t, tiles, turn, ends, void):
        results, slot = self.cycles[t]["results"], self.cycles[t]["slot"]
        assert results["valid"] == (void or (ends and slot < len(tiles))), t
        if results["valid"]:
            assert (results["tile"], results["slot"]) == (self.fields(tiles[slot]), slot), t
        if results["valid"] and not void:
            assert results["end"] == (slot == len(tiles) - 1), t
            words = -(-tiles[0]["k"] // DEPTH) - 1
            for page in ("a_page", "b_page"):
                assert results[page] == tiles[slot][page] + words // 16, t


def random_passes(slots, seed, count):
    rng = random.Random(seed)
    for n in range(count):
        k = rng.choice([1, 2, 3, rng.randint(1, 40)])
        preload = rng.randrange(2)
        accumulate = 0 if preload else rng.randrange(2)
        keep, status = rng.random() < 0.3, rng.choice([0, 0, 0, 1, 2])
        size = 1 if status else rng.randint(1, slots)
        common = {
            "k": k, "accumulate": accumulate, "keep": int(keep), "preload": preload,
            "broadcast": rng.randrange(2), "status": status, "finish": rng.randrange(4),
        }
        yield [
            tile(n, a_page=rng.randrange(2), b_page=rng.randrange(6), c=rng.randrange(C.words),
                 last=int(x == size - 1), **common)
            for x in range(size)
        ]


@pytest.mark.parametrize("slots, rows", [(1, 1), (1, 3), (2, 3), (3, 1), (3, 3), (8, 2)])
@pytest.mark.parametrize("idle", [0, 0.5, 0.9])
@pytest.mark.parametrize("room", [1, 2, 8])
def test_every_cycle_is_as_the_rules_say(slots, rows, idle, room):
    rng = random.Random(slots)
    passes = list(random_passes(slots, slots + room, 16))
    voids = {n: rng.randrange(12 * slots) for n in range(16) if rng.random() < 0.3}
    bench = Bench(slots, room, rows=rows)
    bench.run(passes, cycles=10_000, idle=idle, voids=voids)
    bench.check()


@pytest.mark.parametrize("slots", [1, 3])
def test_without_a_c_no_sum_starts_from_one(slots):
    bench = Bench(slots, 2, starts=False)
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
    bench = Bench(slots, 8)
    bench.run(passes, cycles=8 * max(words, ROWS) * slots)
    gap = max(words, ROWS) * slots
    assert bench.drains == [words * slots - 1 + n * gap for n in range(6)]
    assert bench.stalls == []
    bench.check()


def test_other_words_go_on_while_the_last_one_waits_its_turn():
    bench = Bench(1, 8)
    bench.run([[tile(k=1)], [tile(k=4)]], cycles=9)
    assert [t for t, _ in bench.steps] == [0, 1, 3]
    bench.check()


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_pass_waits_for_room(room):
    bench = Bench(1, room)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(room + 2)]
    bench.run(passes, cycles=80, releases=[40, 60])
    full = [3 * n + 2 for n in range(room)]
    assert bench.drains == [*full, 41, 61]
    # It stands at its last step, all the others done.
    assert bench.stalls == [*range(full[-1] + 3, 41), *range(44, 61)]
    bench.check()


def test_room_given_back_while_some_is_taken_is_kept():
    bench = Bench(1, 2)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(4)]
    bench.run(passes, cycles=40, releases=[5, 20])
    assert bench.drains == [2, 5, 8, 21]


def test_slots_wait_for_room_in_whole_turns():
    bench = Bench(3, 1)
    passes = [[tile(n, k=DEPTH)] * 3 for n in range(2)]
    bench.run(passes, cycles=60, releases=[31])
    assert bench.drains == [2, 35]  # room from 32 on; the turn of 33 has it
    assert bench.stalls == list(range(3, 33))


def test_a_kept_sum_takes_no_room():
    bench = Bench(1, 1)
    kept = [[tile(n, k=2, keep=1, accumulate=n > 0)] for n in range(4)]
    bench.run([*kept, [tile(k=2, accumulate=1)]], cycles=20, releases=[])
    assert [t for t, _ in bench.steps] == [0, 1, 2, 3, 4]
    assert bench.drains == [4]
    assert [step["clear"] for _, step in bench.steps] == [1, 0, 0, 0, 0]


def test_each_row_of_c_has_a_round_before_the_first_word():
    bench = Bench(2, 4)
    one = {"k": 2 * DEPTH, "preload": 1}
    bench.run([[tile(c=10, **one), tile(c=20, **one)], [tile(k=1)] * 2], cycles=99)
    assert bench.step("preload")[:12] == [1, 1, 2, 2, 4, 4, *[0] * 6]
    assert bench.step("c")[:6] == [10, 20, 11, 21, 12, 22]
    assert bench.step("en")[:12] == [*[0] * 6, *[1] * 4, 0, 0]
    assert not any(bench.step("clear")[:12])
    assert bench.drains[0] == 9
    bench.check()


def test_absent_tiles_have_no_step_in_any_round():
    bench = Bench(3, 4)
    bench.run([[tile(k=2 * DEPTH, preload=1)]], cycles=99)
    assert bench.step("en")[:16] == [*[0] * 9, 1, 0, 0, 1, 0, 0, 0]
    bench.check()


def test_a_c_of_one_row_costs_no_round():
    bench = Bench(2, 4)
    one = {"k": 2 * DEPTH, "preload": 1, "broadcast": 1}
    bench.run([[tile(c=10, **one), tile(c=20, **one)]], cycles=99)
    assert bench.step("preload")[:5] == [EVERY, EVERY, 0, 0, 0]
    assert bench.step("c")[:2] == [10, 20]
    assert bench.step("en")[:5] == [1, 1, 1, 1, 0]
    assert not any(bench.step("clear"))
    assert bench.drains == [3]


def test_broadcast_is_nothing_without_a_preload():
    bench = Bench(2, 4)
    bench.run([[tile(k=1, broadcast=1)] * 2], cycles=99)
    assert not any(bench.step("preload"))
    assert bench.step("clear")[:3] == [1, 1, 0]


@pytest.mark.parametrize("fields, clears", [
    ({}, 1), ({"accumulate": 1}, 0), ({"preload": 1}, 0), ({"preload": 1, "broadcast": 1}, 0),
])
def test_sums_start_from_0_but_where_they_start_from_something(fields, clears):
    bench = Bench(3, 4)
    bench.run([[tile(k=3 * DEPTH, **fields)] * 3], cycles=99)
    assert sum(bench.step("clear")) == 3 * clears
    bench.check()


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("preload", [0, 1])
@pytest.mark.parametrize("after", range(12))
def test_a_pass_that_becomes_void_ends_at_the_next_turn(slots, preload, after):
    # In the midst of its rows of C, or of its words; the next one starts with its own first.
    passes = [[tile(n, k=12 * DEPTH, c=9 * n, preload=preload)] * slots for n in range(2)]
    bench = Bench(slots, 4)
    bench.run(passes, cycles=200, voids={0: after})
    bench.check()
    turn = -(-after // slots) * slots
    void = bench.cycles[turn]
    assert void["ready"] and void["results"]["valid"] and void["results"]["tile"]["status"]
    rounds = 12 + preload * ROWS
    assert bench.drains == [turn + rounds * slots]


def begins(bench):
    """The cycles in which a round of words begins."""
    return [t for t, _ in bench.steps if bench.cycles[t]["slot"] == 0]


def test_slots_start_anew_after_a_rest():
    bench = Bench(4, 4)
    bench.run([[tile(n, k=ROWS * DEPTH)] * 4 for n in range(4)], cycles=99, gaps={1: 3, 2: 2})
    # The last one is there in time.
    assert begins(bench) == [t + n for t in (0, 15, 29, 41) for n in (0, 4, 8)]
    assert [seen["slot"] for seen in bench.cycles[10:20]] == [2, 3, 0, 0, 0, 0, 1, 2, 3, 0]
    bench.check()


def test_slots_go_on_where_sums_are_kept():
    bench = Bench(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, keep=1)], [tile(k=k, accumulate=1)] * 2, [tile(k=k)]]
    bench.run(passes, cycles=99, gaps={1: 3, 2: 1})
    assert begins(bench) == [t + n for t in (0, 16, 29) for n in (0, 4, 8)]
    assert not any(bench.step("clear")[4:29])
    bench.check()


def test_a_void_pass_leaves_kept_sums_where_they_are():
    bench = Bench(4, 4)
    k = ROWS * DEPTH
    passes = [[tile(k=k, keep=1)], [tile(status=2, last=1)], [tile(k=k, accumulate=1)]]
    bench.run(passes, cycles=99, gaps={1: 1, 2: 2})
    assert begins(bench) == [t + n for t in (0, 20) for n in (0, 4, 8)]
    bench.check()


def test_a_void_pass_alone_takes_a_cycle():
    bench = Bench(4, 4)
    void = [tile(status=2, last=1)]
    bench.run([void, void, [tile(k=2)]], cycles=99)
    assert [t for t, seen in enumerate(bench.cycles) if seen["results"]["valid"]] == [0, 1, 2]
    bench.check()
