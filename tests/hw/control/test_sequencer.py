"""The sequencer: its steps against loops over words and slots, its pace and room against rules."""

import random

import pytest

from weft.geometry import Operand
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tiler import Tile
from weft.sim.amaranth_bench import checker, plain, put, send, simulate, ticks

ROWS, DEPTH = 3, 2
A = Operand(ROWS, DEPTH, 64, 16)
B = Operand(4, DEPTH, 128, 16)


def tile(tag=0, *, k=5, last=0, a_page=0, b_page=0, status=0, accumulate=0, keep=0, finish=0):
    return {
        "a_page": a_page, "b_page": b_page, "k": k, "rows": ROWS, "cols": 4, "last": last,
        "tag": tag, "status": status, "accumulate": accumulate, "keep": keep,
        "requantize": finish & 1, "table": finish >> 1,
    }


class Bench:
    """A sequencer fed with passes: what it orders and announces, with the cycles."""

    def __init__(self, slots, room):
        self.slots = slots
        self.dut = Sequencer(
            geometries=(A, B), tile=Tile((A, B)), slots=slots, rows=ROWS, depth=DEPTH, room=room
        )
        self.steps = []  # (cycle, step) of those with en
        self.captures, self.drains, self.stalls = [], [], []
        self.results = []  # (cycle, results)

    def run(self, passes, *, cycles, releases=None, idle=0):
        """``releases``: cycles of a pulse; None for one 5 cycles behind each drain."""
        dut = self.dut

        async def source(ctx):
            padding = tile()
            payloads = [
                {
                    "tiles": [*tiles, *[padding] * (self.slots - len(tiles))],
                    "active": (1 << len(tiles)) - 1,
                }
                for tiles in passes
            ]
            await send(ctx, dut.passes, payloads, idle=idle)

        async def watch(ctx):
            for t in range(cycles):
                due = t - 5 in self.drains if releases is None else t in releases
                ctx.set(dut.release, due)
                ports = dut.step, dut.results, dut.active, dut.stalled
                _, _, *samples = await ctx.tick().sample(*ports)
                step, results, active, stalled = map(plain, samples)
                assert active == step["en"]
                if step["en"]:
                    self.steps.append((t, step))
                if step["capture"]:
                    self.captures.append(t)
                if step["drain"]:
                    self.drains.append(t)
                if stalled:
                    self.stalls.append(t)
                if results["valid"]:
                    self.results.append((t, results))

        simulate(dut, source, watch, background=[checker(dut.passes, "passes")])

    def check_steps(self, passes):
        """Every step is what the loops say; a pass's captures cover all its slots."""
        steps = iter(self.steps)
        announced = iter(self.results)
        for tiles in passes:
            if tiles[0]["status"]:
                _, result = next(announced)
                assert result["tile"] == tiles[0]
                continue
            words = -(-tiles[0]["k"] // DEPTH)
            for word in range(words):
                for slot, one in enumerate(tiles):
                    t, step = next(steps)
                    assert t % self.slots == slot
                    assert step["a"] == one["a_page"] * 16 + word
                    assert step["b"] == one["b_page"] * 16 + word
                    assert step["clear"] == (word == 0 and not one["accumulate"])
                    gives = word == words - 1 and not one["keep"]
                    assert step["capture"] == gives
                    assert step["drain"] == (gives and slot == self.slots - 1)
                    if word == words - 1:
                        at, result = next(announced)
                        assert at == t
                        assert (result["tile"], result["slot"]) == (one, slot)
                        assert result["end"] == (one is tiles[-1])
                        assert result["a_page"] == one["a_page"] + word // 16
                        assert result["b_page"] == one["b_page"] + word // 16
        assert not list(steps) and not list(announced)
        giving = [tiles for tiles in passes if not tiles[0]["status"] and not tiles[0]["keep"]]
        round_of = range(1 - self.slots, 1)
        assert self.captures == [drain + n for drain in self.drains for n in round_of]
        assert len(self.drains) == len(giving)
        gaps = [late - early for early, late in zip(self.drains, self.drains[1:], strict=False)]
        assert all(gap >= self.slots * ROWS for gap in gaps)


def random_passes(slots, seed, count):
    rng = random.Random(seed)
    for n in range(count):
        k = rng.choice([1, 2, 3, rng.randint(1, 40)])
        accumulate, keep = rng.randrange(2), rng.random() < 0.2
        status = rng.choice([0, 0, 0, 1, 2])
        size = 1 if keep or status else rng.randint(1, slots)
        yield [
            tile(n, k=k, a_page=rng.randrange(2), b_page=rng.randrange(6), last=int(x == size - 1),
                 status=status, accumulate=accumulate, keep=int(keep), finish=rng.randrange(4))
            for x in range(size)
        ]


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("idle", [0, 0.5])
@pytest.mark.parametrize("room", [1, 2, 8])
def test_steps_are_words_by_slots(slots, idle, room):
    passes = list(random_passes(slots, slots, 16))
    bench = Bench(slots, room)
    bench.run(passes, cycles=1000, idle=idle)
    bench.check_steps(passes)


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


def test_other_words_go_on_while_the_last_one_waits_its_turn():
    bench = Bench(1, 8)
    bench.run([[tile(k=1)], [tile(k=4)]], cycles=9)
    assert [t for t, _ in bench.steps] == [0, 1, 3]


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_pass_waits_for_room(room):
    bench = Bench(1, room)
    passes = [[tile(n, k=3 * DEPTH)] for n in range(room + 2)]
    bench.run(passes, cycles=80, releases=[40, 60])
    full = [3 * n + 2 for n in range(room)]
    assert bench.drains == [*full, 41, 61]
    # It stands at its last step, all the others done.
    assert bench.stalls == [*range(full[-1] + 3, 41), *range(44, 61)]


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


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_pass_that_becomes_void_ends_at_once(slots):
    bench = Bench(slots, 4)
    dut = bench.dut
    whole = [tile(7, k=100)] + [tile(7)] * (slots - 1)

    async def abort(ctx):
        put(ctx, dut.passes.payload, {"tiles": whole, "active": 1})
        ctx.set(dut.passes.valid, 1)
        await ticks(ctx, 3 * slots)
        put(ctx, dut.passes.payload, {"tiles": [tile(7, status=1, last=1)] * slots, "active": 1})
        ports = dut.passes.ready, dut.results, dut.step
        _, _, ready, results, step = await ctx.tick().sample(*ports)
        assert ready and results.valid and results.tile.status == 1 and results.end
        assert not step.en and not step.capture and not step.drain
        put(ctx, dut.passes.payload, {"tiles": [tile(8, k=2)] * slots, "active": 1})
        await ticks(ctx, slots - 1)
        _, _, step = await ctx.tick().sample(dut.step)
        assert step.en and step.clear and step.a == 0  # the next one starts from its first word

    simulate(dut, abort)
