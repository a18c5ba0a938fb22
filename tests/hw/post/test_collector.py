"""The collector: tiles of any shape read from a ring of rows, as the array fills it."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import StructLayout

from weft.commands import Region
from weft.geometry import Operand
from weft.hw.control.tiler import Tile
from weft.hw.post.collector import Collector
from weft.sim.amaranth_bench import checker, put, quiet, receive, send, simulate, ticks

ROWS = 3
DEPTH = 16  # rows of the ring


def announced(cols):
    geometries = {Region.A: Operand(ROWS, 1, 64, 16), Region.B: Operand(cols, 1, 64, 16)}
    finish = StructLayout({"round": 1, "clamp": 1})
    return StructLayout({
        "tile": Tile(geometries, finish), "slot": range(4), "end": 1,
        "a_page": range(4), "b_page": range(4),
    })


def passes(rng, cols, slots, count):
    """Passes as the sequencer announces them: lists of tiles, void and silent ones alone."""
    for tag in range(count):
        kind = rng.choice(["results", "results", "results", "void", "silent"])
        size = rng.randint(1, slots) if kind == "results" else 1
        keep = kind == "silent" or kind == "void" and rng.random() < 0.5
        shared = {
            "k": 5, "tag": tag, "accumulate": 0, "keep": int(keep),
            "a_page": 0, "b_page": rng.randrange(4),
            "status": rng.choice([1, 2]) if kind == "void" else 0,
            "finish": {"round": rng.randrange(2), "clamp": rng.randrange(2)},
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
    return not tiles[0]["tile"]["status"] and not tiles[0]["tile"]["keep"]


class Bench:
    """A collector, and the ring of rows that it reads, filled at random moments."""

    def __init__(self, cols, lanes, slots, seed):
        rng = random.Random(seed)
        self.cols, self.lanes, self.slots, self.seed = cols, lanes, slots, seed
        self.passes = list(passes(rng, cols, slots, 20))
        self.giving = [tiles for tiles in self.passes if gives(tiles)]
        count = len(self.giving) * ROWS * slots
        self.rows = [
            [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(cols)] for _ in range(count)
        ]
        self.dut = Collector(
            announced=announced(cols), acc=signed(32),
            rows=ROWS, cols=cols, lanes=lanes, slots=slots, written=DEPTH.bit_length() - 1 + 2,
        )
        self.released = 0
        self.reads = []  # cycles

    def chunks(self):
        """What leaves, in order."""
        base = 0
        for tiles in self.passes:
            for one in tiles:
                tile = one["tile"]
                common = {
                    "a_page": one["a_page"], "b_page": one["b_page"], "status": tile["status"],
                    "finish": tile["finish"], "panel": tile["b_page"],
                    "tag": tile["tag"], "silent": int(tile["keep"] and not tile["status"]),
                }
                if not gives(tiles):
                    yield {**common, "last": tile["last"]}
                    continue
                for row in range(tile["rows"]):
                    for first in range(0, tile["cols"], self.lanes):
                        sums = self.rows[base + row * self.slots + one["slot"]][: tile["cols"]]
                        end = row == tile["rows"] - 1 and first + self.lanes >= tile["cols"]
                        yield {
                            **common, "row": row, "chunk": first // self.lanes,
                            "sums": sums[first : first + self.lanes],
                            "last": int(tile["last"] and end),
                        }
            if gives(tiles):
                base += ROWS * self.slots

    async def ring(self, ctx):
        """Rows are written as room allows, and read a cycle after they are asked for."""
        rng = random.Random(self.seed)
        dut, written = self.dut, 0
        while True:
            ports = dut.read, dut.address, dut.release
            _, _, read, address, release = await ctx.tick().sample(*ports)
            self.released += release
            if read:
                # The ring holds a pass's rows until its release; what is not written yet is poison.
                held = [n for n in range(max(0, written - DEPTH), written) if n % DEPTH == address]
                put(ctx, dut.row, self.rows[held[0]] if held else [0x666] * self.cols)
                self.reads.append(address)
            room = self.released * ROWS * self.slots + DEPTH
            if written < min(room, len(self.rows)) and rng.random() < 0.4:
                written += 1
                put(ctx, dut.written, written % (4 * DEPTH))

    def run(self, idle, stall):
        dut = self.dut

        async def source(ctx):
            given = [one for tiles in self.passes for one in tiles]
            await send(ctx, dut.tiles, given, idle=idle, seed=1)

        async def sink(ctx):
            for n, want in enumerate(self.chunks()):
                [got] = await receive(ctx, dut.chunks, 1, stall=stall, seed=n)
                if "sums" in want:
                    got["sums"] = got["sums"][: len(want["sums"])]
                assert {name: got[name] for name in want} == want
            await quiet(ctx, dut.chunks)

        simulate(
            dut, source, sink,
            background=[self.ring, checker(dut.chunks, "chunks"), checker(dut.tiles, "tiles")],
        )
        assert self.released == len(self.giving)


@pytest.mark.parametrize("cols, lanes, slots", [
    (1, 1, 1), (5, 1, 1), (5, 2, 1), (5, 4, 3), (3, 8, 1), (8, 4, 2),
])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.9), (0.9, 0.5)])
def test_chunks_are_rows_by_lanes(cols, lanes, slots, idle, stall):
    Bench(cols, lanes, slots, seed=cols + slots).run(idle, stall)


def test_a_chunk_leaves_every_cycle():
    dut = Collector(
        announced=announced(5), acc=signed(32), rows=ROWS, cols=5, lanes=2, slots=1, written=6
    )
    tile = {
        "k": 1, "tag": 1, "accumulate": 0, "keep": 0, "a_page": 0, "b_page": 0, "status": 0,
        "rows": 3, "cols": 5, "last": 1,
    }

    async def source(ctx):
        put(ctx, dut.written, 6)
        one = {"tile": tile, "slot": 0, "end": 1, "a_page": 0, "b_page": 0}
        await send(ctx, dut.tiles, [one, one])

    async def sink(ctx):
        await ticks(ctx, 2)  # the first one does not wait until it is asked for
        assert ctx.get(dut.chunks.valid)
        ctx.set(dut.chunks.ready, 1)
        valid = [(await ctx.tick().sample(dut.chunks.valid))[-1] for _ in range(20)]
        assert valid == [*[1] * 18, 0, 0]

    simulate(dut, source, sink)


def test_a_row_is_read_in_the_cycle_in_which_it_is_there():
    dut = Collector(
        announced=announced(1), acc=signed(32), rows=ROWS, cols=1, lanes=1, slots=1, written=6
    )
    tile = {"k": 1, "tag": 1, "keep": 0, "status": 0, "rows": 2, "cols": 1, "last": 1}

    async def bench(ctx):
        put(ctx, dut.tiles.payload, {"tile": tile, "slot": 0, "end": 1})
        ctx.set(dut.tiles.valid, 1)
        await ticks(ctx, 3)
        assert not ctx.get(dut.read)
        put(ctx, dut.written, 1)
        assert ctx.get(dut.read) and ctx.get(dut.address) == 0
        await ctx.tick()
        put(ctx, dut.row, [77])
        assert ctx.get(dut.chunks.valid) and ctx.get(dut.chunks.payload.sums[0]) == 77
        assert not ctx.get(dut.read)

    simulate(dut, bench)
