"""The collector: tiles of any shape read from a ring of rows, as the array fills it."""

import random

import pytest
from amaranth.lib.data import StructLayout

from weft.commands import Region
from weft.geometry import Operand
from weft.hw.control.tile_generator import Tile
from weft.hw.output.result_scheduler import ResultScheduler
from weft.sim.amaranth_bench import checker, plain, put, send, simulate, ticks

ROWS = 3
DEPTH = 16  # rows of the ring


def announced(cols):
    geometries = {Region.A: Operand(ROWS, 1, 64, 16), Region.B: Operand(cols, 1, 64, 16)}
    finish = StructLayout({"round": 1, "clamp": 1})
    return StructLayout({
        "tile": Tile(geometries, finish), "slot": range(4), "end": 1,
        "a_page": range(4), "b_page": range(4),
        **dict.fromkeys(("one_row", "one_chunk", "none", "silent", "single"), 1),
    })


def sized(one, lanes):
    """A tile, along with what is said of its size and its results."""
    tile = one["tile"]
    row, chunk, none = tile["rows"] == 1, tile["cols"] <= lanes, not gives([one])
    return one | {
        "one_row": int(row), "one_chunk": int(chunk), "none": int(none),
        "silent": int(tile["hold"] and not tile["status"]), "single": int(none or row and chunk),
    }


def passes(rng, cols, slots, count):
    """Passes as the sequencer announces them: lists of tiles, void and silent ones alone."""
    for tag in range(count):
        kind = rng.choice(["results", "results", "results", "void", "silent"])
        size = rng.randint(1, slots) if kind == "results" else 1
        keep = kind == "silent" or kind == "void" and rng.random() < 0.5
        shared = {
            "k": 5, "tag": tag, "accumulate": 0, "hold": int(keep),
            "a_page": 0, "b_page": rng.randrange(4),
            "status": rng.choice([1, 2]) if kind == "void" else 0,
            "epilogue": {"round": rng.randrange(2), "clamp": rng.randrange(2)},
        }
        yield [
            {
                "tile": {
                    **shared, "rows": rng.randint(1, ROWS), "cols": rng.randint(1, cols),
                    "last": int(slot == size - 1 and rng.random() < 0.5),
                },
                "slot": slot, "end": int(slot == size - 1),
                "a_page": rng.randrange(4), "b_page": rng.randrange(4),
            }
            for slot in range(size)
        ]


def gives(tiles):
    return not tiles[0]["tile"]["status"] and not tiles[0]["tile"]["hold"]


class Bench:
    """A collector, and the ring of rows that it reads, filled at random moments."""

    def __init__(self, cols, lanes, slots, seed, *, places=8, pace=1, lag=1):
        rng = random.Random(seed)
        self.cols, self.lanes, self.slots, self.seed = cols, lanes, slots, seed
        self.places, self.pace, self.lag = places, pace, lag
        self.passes = list(passes(rng, cols, slots, 30))
        self.giving = [tiles for tiles in self.passes if gives(tiles)]
        self.count = len(self.giving) * ROWS * slots
        self.dut = ResultScheduler(
            announced=announced(cols), rows=ROWS, cols=cols, lanes=lanes, slots=slots, depth=DEPTH,
            finishing=["round", "clamp"], places=places, pace=pace, lag=lag,
        )

    def chunks(self):
        """What is asked for, in order: the row of the ring, and the chunk."""
        base = 0
        for tiles in self.passes:
            for one in tiles:
                tile = one["tile"]
                common = {
                    "a_page": one["a_page"], "b_page": one["b_page"], "finish": tile["epilogue"],
                    "finishes": int(any(tile["epilogue"].values())), "panel": tile["b_page"],
                }
                mark = {
                    "status": tile["status"], "tag": tile["tag"],
                    "narrow": tile["epilogue"]["round"],
                    "silent": int(tile["hold"] and not tile["status"]),
                }
                if not gives(tiles):
                    yield None, {**common, "mark": {**mark, "last": tile["last"]}}
                    continue
                for row in range(tile["rows"]):
                    for first in range(0, tile["cols"], self.lanes):
                        end = row == tile["rows"] - 1 and first + self.lanes >= tile["cols"]
                        yield base + row * self.slots + one["slot"], {
                            **common, "row": row, "chunk": first // self.lanes,
                            "mark": {**mark, "last": int(tile["last"] and end)},
                        }
            if gives(tiles):
                base += ROWS * self.slots

    def run(self, idle, stall, fill=0.4):
        """All is asked for in order, in time, when there is a place; the cycles of it."""
        dut, times, free = self.dut, [], [self.places]

        async def source(ctx):
            given = [sized(one, self.lanes) for tiles in self.passes for one in tiles]
            await send(ctx, dut.tiles, given, idle=idle, seed=1)

        async def watch(ctx):
            rng = random.Random(self.seed)
            want, landed, released, now = list(self.chunks()), 0, 0, 0
            last = {0: -99, 1: -99}
            while want:
                room = released * ROWS * self.slots + DEPTH - landed
                lands = landed < self.count and room > 0 and rng.random() < fill
                taken = free[0] < self.places and rng.random() >= stall
                ctx.set(dut.landed, lands)
                ctx.set(dut.taken, taken)
                ports = dut.chunks.valid, dut.chunks.chunk, dut.address, dut.release
                _, _, valid, got, address, release = await ctx.tick().sample(*ports)
                released += release
                if valid:
                    got = plain(got)
                    place, due = want.pop(0)
                    assert {name: got[name] for name in due} == due
                    assert free[0] > 0
                    if place is not None:
                        assert address == place % DEPTH and place < landed
                    before = last[1] + (self.pace if due["finishes"] else self.lag + 1)
                    assert now >= before
                    last[due["finishes"]] = now
                    times.append(now)
                landed += lands
                free[0] += taken - valid
                now += 1
            assert released == len(self.giving)

        simulate(dut, source, watch, background=[checker(dut.tiles, "tiles")])
        return times


@pytest.mark.parametrize("cols, lanes, slots", [
    (1, 1, 1), (5, 1, 1), (5, 2, 1), (5, 4, 3), (3, 8, 1), (8, 4, 2),
])
@pytest.mark.parametrize("idle, stall, places, pace, lag", [
    (0, 0, 8, 1, 1), (0.5, 0, 8, 1, 7), (0, 0.5, 4, 2, 9), (0.5, 0.9, 1, 1, 3), (0.9, 0.5, 2, 4, 9),
])
def test_chunks_are_rows_by_lanes(cols, lanes, slots, idle, stall, places, pace, lag):
    bench = Bench(cols, lanes, slots, seed=cols + slots, places=places, pace=pace, lag=lag)
    bench.run(idle, stall)


def alone(**fields):
    return ResultScheduler(
        announced=announced(5), rows=ROWS, cols=5, slots=1, depth=DEPTH,
        **{"lanes": 2, "finishing": ["round"], "places": 32, "pace": 1, "lag": 5, **fields},
    )


def given(rounds=0):
    tile = {
        "k": 1, "tag": 1, "accumulate": 0, "hold": 0, "a_page": 0, "b_page": 0, "status": 0,
        "rows": 3, "cols": 5, "last": 1, "epilogue": {"round": rounds, "clamp": 0},
    }
    return {"tile": tile, "slot": 0, "end": 1, "a_page": 0, "b_page": 0}


@pytest.mark.parametrize("pace, lag", [(1, 5), (4, 9)])
def test_chunks_are_asked_for_at_their_pace(pace, lag):
    dut = alone(pace=pace, lag=lag)
    found = []

    async def source(ctx):
        for _ in range(9):
            ctx.set(dut.landed, 1)
            await ctx.tick()
        ctx.set(dut.landed, 0)
        await send(ctx, dut.tiles, [given(), given(1), given()])

    async def sink(ctx):
        for now in range(9 + 9 + 9 * pace + lag + 12):
            if (await ctx.tick().sample(dut.chunks.valid))[-1]:
                found.append(now)

    simulate(dut, source, sink)
    raw, start = list(range(9, 18)), 18
    finished = [start + n * pace for n in range(9)]
    assert found == raw + finished + [finished[-1] + lag + 1 + n for n in range(9)]


def test_a_row_is_asked_for_in_the_cycle_in_which_it_is_there():
    dut = alone(finishing=[])

    async def bench(ctx):
        put(ctx, dut.tiles.payload, given())
        ctx.set(dut.tiles.valid, 1)
        await ticks(ctx, 3)
        assert not ctx.get(dut.chunks.valid)
        ctx.set(dut.landed, 1)
        await ctx.tick()
        ctx.set(dut.landed, 0)
        valid = [(await ctx.tick().sample(dut.chunks.valid))[-1] for _ in range(5)]
        assert valid == [1, 1, 1, 0, 0]  # of one row

    simulate(dut, bench)


def test_no_more_are_asked_for_than_there_are_places():
    dut = alone(places=2)

    async def bench(ctx):
        put(ctx, dut.tiles.payload, given())
        ctx.set(dut.tiles.valid, 1)
        ctx.set(dut.landed, 1)
        await ctx.tick()
        valid = []
        for now in range(8):
            ctx.set(dut.taken, now == 4)
            valid.append((await ctx.tick().sample(dut.chunks.valid))[-1])
        assert valid == [1, 1, 0, 0, 0, 0, 1, 0]  # two cycles after one was taken

    simulate(dut, bench)
