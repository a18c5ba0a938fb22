"""The result scheduler: tiles of any shape, read from a ring of rows while the array fills it."""

import random

import pytest
from amaranth.lib.data import StructLayout
from tiers import quick

from verif.amaranth_bench import checker, plain, pulse, put, send, simulate, ticks
from weft.commands import Region
from weft.geometry import Operand
from weft.hw.control.tile_generator import Tile
from weft.hw.output.reorder_buffer import PendingTile
from weft.hw.output.result_scheduler import ResultScheduler

ROWS = 3
DEPTH = 16  # rows of the ring


def pending_layout(cols):
    geometries = {Region.A: Operand(ROWS, 1, 64, 16), Region.B: Operand(cols, 1, 64, 16)}
    tile = Tile(geometries, StructLayout({"round": 1, "clamp": 1}))
    return PendingTile(results=StructLayout({
        "valid": 1, "tile": tile, "slot": range(4), "end": 1,
        "a_page": range(4), "b_page": range(4),
    }))


def passes(rng, cols, lanes, slots, count):
    """Random passes, each a list of pending tiles; failed and suppressed tiles are alone."""
    for tag in range(count):
        kind = rng.choice(["results", "results", "results", "failed", "suppress"])
        size = rng.randint(1, slots) if kind == "results" else 1
        no_data, suppress = kind != "results", kind == "suppress"
        common = {
            "tag": tag, "a_page": 0, "b_page": rng.randrange(4),
            "status": rng.choice([1, 2]) if kind == "failed" else 0,
            "epilogue": {"round": rng.randrange(2), "clamp": rng.randrange(2)},
        }
        tiles = []
        for slot in range(size):
            rows, columns = rng.randint(1, ROWS), rng.randint(1, cols)
            row, chunk = rows == 1, columns <= lanes
            tiles.append({
                "tile": {
                    **common, "rows": rows, "cols": columns,
                    "last": int(slot == size - 1 and rng.random() < 0.5),
                },
                "slot": slot, "end": int(slot == size - 1),
                "a_page": rng.randrange(4), "b_page": rng.randrange(4),
                "single_row": int(row), "single_chunk": int(chunk), "no_data": int(no_data),
                "suppress": int(suppress), "single_request": int(no_data or row and chunk),
            })
        yield tiles


def has_results(tiles):
    return not tiles[0]["no_data"]


class Bench:
    """A scheduler, and the ring of rows that it reads, filled at random."""

    def __init__(
        self, cols, lanes, slots, seed, *, reorder_depth=8, interval=1, epilogue_lag=1,
        read_delay=0,
    ):
        rng = random.Random(seed)
        self.cols, self.lanes, self.slots, self.seed = cols, lanes, slots, seed
        self.reorder_depth, self.read_delay = reorder_depth, read_delay
        self.interval, self.epilogue_lag = interval, epilogue_lag
        self.passes = list(passes(rng, cols, lanes, slots, 30))
        self.releases = sum(map(has_results, self.passes))
        self.rows = self.releases * ROWS * slots
        self.dut = ResultScheduler(
            tile=pending_layout(cols), rows=ROWS, cols=cols, lanes=lanes, slots=slots,
            buffer_rows=DEPTH, epilogue_flags=["round", "clamp"], reorder_depth=reorder_depth,
            interval=interval, epilogue_lag=epilogue_lag, read_delay=read_delay,
        )

    def requests(self):
        """The expected requests in order: the row of the ring, and the chunk."""
        base = 0
        for tiles in self.passes:
            for entry in tiles:
                tile = entry["tile"]
                common = {
                    "a_page": entry["a_page"], "b_page": entry["b_page"],
                    "b_panel": tile["b_page"], "epilogue": tile["epilogue"],
                    "uses_epilogue": int(any(tile["epilogue"].values())),
                }
                meta = {
                    "status": tile["status"], "tag": tile["tag"],
                    "narrow": tile["epilogue"]["round"], "suppress": entry["suppress"],
                }
                if not has_results(tiles):
                    yield None, {**common, "meta": {**meta, "last": tile["last"]}}
                    continue
                for row in range(tile["rows"]):
                    for first in range(0, tile["cols"], self.lanes):
                        end = row == tile["rows"] - 1 and first + self.lanes >= tile["cols"]
                        yield base + row * self.slots + entry["slot"], {
                            **common, "row": row, "index": first // self.lanes,
                            "meta": {**meta, "last": int(tile["last"] and end)},
                        }
            if has_results(tiles):
                base += ROWS * self.slots

    def run(self, idle, stall, fill=0.4):
        """Check all requests: their order, their time, and that the reorder buffer has room."""
        dut, free = self.dut, self.reorder_depth

        async def source(ctx):
            await send(ctx, dut.tiles, sum(self.passes, []), idle=idle, seed=1)

        async def watch(ctx):
            nonlocal free
            rng = random.Random(self.seed)
            expected, written, released, now = list(self.requests()), 0, 0, 0
            previous = {0: -99, 1: -99}  # cycle of the last request, by ``uses_epilogue``
            reads = {}  # cycle: address and index
            while expected or reads:
                room = released * ROWS * self.slots + DEPTH - written
                write = written < self.rows and room > 0 and rng.random() < fill
                pop = free < self.reorder_depth and rng.random() >= stall
                ctx.set(dut.row_written, write)
                ctx.set(dut.popped, pop)
                ports = (
                    dut.request.valid, dut.request.chunk, dut.address, dut.index, dut.release
                )
                _, _, valid, chunk, address, index, release = await ctx.tick().sample(*ports)
                released += release
                if valid:
                    chunk = plain(chunk)
                    row, wanted = expected.pop(0)
                    assert {name: chunk[name] for name in wanted} == wanted
                    assert free > 0
                    if row is not None:
                        assert row < written
                        reads[now + self.read_delay] = row % DEPTH, wanted["index"]
                    uses_epilogue = wanted["uses_epilogue"]
                    gap = self.interval if uses_epilogue else self.epilogue_lag + 1
                    assert now >= previous[1] + gap
                    previous[uses_epilogue] = now
                if now in reads:
                    assert (address, index) == reads.pop(now)
                written += write
                free += pop - valid
                now += 1
            assert released == self.releases

        simulate(dut, source, watch, background=[checker(dut.tiles, "tiles")])


@pytest.mark.parametrize("cols, lanes, slots", quick(3, [
    (5, 2, 1), (5, 4, 3), (3, 8, 1), (1, 1, 1), (5, 1, 1), (8, 4, 2),
]))
@pytest.mark.parametrize("idle, stall, reorder_depth, interval, epilogue_lag", quick(3, [
    (0, 0, 8, 1, 1), (0.5, 0.9, 1, 1, 3), (0.9, 0.5, 2, 4, 9), (0.5, 0, 8, 1, 7), (0, 0.5, 4, 2, 9),
]))
def test_requests_are_rows_by_chunks(
    cols, lanes, slots, idle, stall, reorder_depth, interval, epilogue_lag
):
    bench = Bench(
        cols, lanes, slots, seed=cols + slots, reorder_depth=reorder_depth, interval=interval,
        epilogue_lag=epilogue_lag,
    )
    bench.run(idle, stall)


@pytest.mark.parametrize("read_delay", [1, 2, 5])
@pytest.mark.parametrize("slots", [1, 2])
def test_a_read_follows_its_request_by_the_read_delay(read_delay, slots):
    Bench(5, 2, slots, seed=read_delay, read_delay=read_delay).run(0.3, 0.3)


def scheduler(**parameters):
    return ResultScheduler(
        tile=pending_layout(5), rows=ROWS, cols=5, slots=1, buffer_rows=DEPTH,
        **{
            "lanes": 2, "epilogue_flags": ["round"], "reorder_depth": 32, "interval": 1,
            "epilogue_lag": 5, **parameters,
        },
    )


def tile(rounds=0):
    """A pending tile of 3 rows of 3 chunks."""
    fields = {
        "tag": 1, "a_page": 0, "b_page": 0, "status": 0, "rows": 3, "cols": 5, "last": 1,
        "epilogue": {"round": rounds, "clamp": 0},
    }
    return {"tile": fields, "slot": 0, "end": 1, "a_page": 0, "b_page": 0}


@pytest.mark.parametrize("interval, epilogue_lag", [(1, 5), (4, 9)])
def test_requests_are_an_interval_apart(interval, epilogue_lag):
    dut = scheduler(interval=interval, epilogue_lag=epilogue_lag)
    cycles = []

    async def source(ctx):
        for _ in range(9):
            ctx.set(dut.row_written, 1)
            await ctx.tick()
        ctx.set(dut.row_written, 0)
        await send(ctx, dut.tiles, [tile(), tile(1), tile()])

    async def sink(ctx):
        for now in range(9 + 9 + 9 * interval + epilogue_lag + 12):
            if (await ctx.tick().sample(dut.request.valid))[-1]:
                cycles.append(now)

    simulate(dut, source, sink)
    first = list(range(9, 18))
    second = [18 + n * interval for n in range(9)]
    third = [second[-1] + epilogue_lag + 1 + n for n in range(9)]
    assert cycles == first + second + third


@pytest.mark.parametrize("start", range(1, 5))
def test_requests_to_a_serial_epilogue_are_multiples_of_the_interval_apart(start):
    """While one is in flight; the count starts at any cycle after a reset."""
    dut = scheduler(interval=4, epilogue_lag=9, serial_epilogue=True)
    cycles = []

    async def bench(ctx):
        put(ctx, dut.tiles.payload, tile(1))
        ctx.set(dut.tiles.valid, 1)
        for now in range(start + 60):
            ctx.set(dut.row_written, now + 1 - start in (0, 14, 41))
            if (await ctx.tick().sample(dut.request.valid))[-1]:
                cycles.append(now - start)

    simulate(dut, bench)
    assert cycles == [0, 4, 8, 16, 20, 24, 41, 45, 49]


def test_a_row_is_requested_as_soon_as_it_is_readable():
    dut = scheduler(epilogue_flags=[])

    async def bench(ctx):
        put(ctx, dut.tiles.payload, tile())
        ctx.set(dut.tiles.valid, 1)
        await ticks(ctx, 3)
        assert not ctx.get(dut.request.valid)
        await pulse(ctx, dut.row_written)
        valid = [(await ctx.tick().sample(dut.request.valid))[-1] for _ in range(5)]
        assert valid == [1, 1, 1, 0, 0]  # one row

    simulate(dut, bench)


def test_requests_stop_when_the_reorder_buffer_is_full():
    dut = scheduler(reorder_depth=2)

    async def bench(ctx):
        put(ctx, dut.tiles.payload, tile())
        ctx.set(dut.tiles.valid, 1)
        ctx.set(dut.row_written, 1)
        await ctx.tick()
        valid = []
        for now in range(8):
            ctx.set(dut.popped, now == 4)
            valid.append((await ctx.tick().sample(dut.request.valid))[-1])
        assert valid == [1, 1, 0, 0, 0, 0, 1, 0]  # two cycles after a pop

    simulate(dut, bench)
