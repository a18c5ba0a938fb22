"""The output unit: the vectors that jobs store, against the golden model, and the limits."""

import random

import pytest
from micro_results import JOB, TABLE, expected, parameters
from network_cores import MICRO
from tiers import quick

from verif.amaranth_bench import plain, put, simulate
from weft.hw.network_core.micro.output import OutputUnit
from weft.latencies import MEMORY_READ

COLS = MICRO.array.cols
LINE = 12  # parameter line of a job's first column
CAPTURE = 5  # cycles from the end of the steps of a tile to its sums
PATIENCE = 3  # cycles that a request of the memory waits at most


def vector_of(address):
    """The 4 bytes of a vector of the added map."""
    return [(address * 7 + 31 * n) % 256 for n in range(4)]


class Pixel:
    """A pixel of the output map: its vector, its vector of the added map, the sums of its tiles."""

    def __init__(self, rng, output, widths):
        self.output, self.added = output, 500 + 3 * output
        edges = [-(1 << 31), (1 << 31) - 1, 0, -1]
        self.tiles = [
            [rng.choice([*edges, rng.randint(-70000, 70000)]) for _ in range(width)]
            for width in widths
        ]

    def stores(self, kind):
        """Address, number of bytes and bytes of each vector."""
        line, address = LINE, self.output
        for number, sums in enumerate(self.tiles):
            added = vector_of(self.added + number)
            results = [
                expected(kind, each, line + n, (added[n] + 128) % 256 - 128)
                for n, each in enumerate(sums)
            ]
            line += len(sums)
            if kind == "sums":
                vectors = [list(y.to_bytes(4, "little", signed=True)) for y in results]
            else:
                vectors = [[y % 256 for y in results]]
            for vector in vectors:
                yield address, vector
                address += 1


class OutputBench:
    """Gives tiles as the step unit and the columns do; memories answer in time, the port later."""

    def __init__(self, *, idle=0.0, seed=0):
        self.dut, self.rng, self.idle = OutputUnit(MICRO), random.Random(seed), idle
        self.held = [0] * COLS
        self.lines, self.words, self.line_held = [0] * MEMORY_READ, [0] * MEMORY_READ, 0
        self.waited = {"store": 0, "read": 0}
        self.stores, self.reads, self.errors, self.taken = [], [], 0, True

    def grants(self, ctx, name):
        """Whether the port does a request in this cycle."""
        if not ctx.get(getattr(self.dut, name).valid):
            return 0
        waits = self.rng.random() < self.idle and self.waited[name] < PATIENCE
        self.waited[name] = self.waited[name] + 1 if waits else 0
        return int(not waits)

    async def cycle(self, ctx):
        dut = self.dut
        put(ctx, dut.sums, self.held[0] % (1 << 32))
        put(ctx, dut.lines.data[0], parameters(self.lines.pop(0), self.line_held))
        put(ctx, dut.table.data[0], TABLE[self.words.pop(0)])
        stores, reads = self.grants(ctx, "store"), self.grants(ctx, "read")
        put(ctx, dut.store_ready, stores)
        put(ctx, dut.read_ready, reads)
        store, read, line, word, taken, error, take, reads_multiplier = (await ctx.tick().sample(
            dut.store, dut.read.address, dut.lines.address, dut.table.address[0],
            dut.output_taken, dut.address_error, dut.take, dut.reads_multiplier,
        ))[2:]
        if take:
            self.held = [*self.held[1:], 0x5A5A5A5A]
        if stores:
            size = plain(store.enable).bit_length()
            assert store.enable == (1 << size) - 1
            vector = list(int(store.data).to_bytes(4, "little"))
            self.stores.append((store.address, vector[:size]))
        if reads:
            self.reads.append(read)
        data = vector_of(read) if reads else [0xBA, 0xD0, 0xBA, 0xD0]
        put(ctx, dut.read_data, int.from_bytes(bytes(data), "little"))
        if reads_multiplier:
            self.line_held = self.lines[0]
        self.lines.append(line)
        self.words.append(word)
        self.taken |= taken
        self.errors += error

    async def until(self, ctx, ready):
        for _ in range(400):
            if ready():
                return
            await self.cycle(ctx)
        raise TimeoutError("the output unit was not ready within 400 cycles")

    async def tile(self, ctx, pixel, sums):
        """The end of the steps of a tile, then its sums."""
        dut, first = self.dut, sums is pixel.tiles[0]
        await self.until(ctx, lambda: ctx.get(dut.may_end) and (self.taken or not first))
        await self.cycle(ctx)  # the last step
        while self.rng.random() < self.idle:
            await self.cycle(ctx)
        if first:
            self.taken = False
            put(ctx, dut.output, pixel.output)
            put(ctx, dut.added, pixel.added)
        put(ctx, dut.ends, 1)
        put(ctx, dut.cols, len(sums))
        put(ctx, dut.first, int(first))
        assert not ctx.get(dut.empty)
        await self.cycle(ctx)
        put(ctx, dut.ends, 0)
        put(ctx, dut.cols, 0)
        put(ctx, dut.first, 0)
        for _ in range(CAPTURE - 1):
            await self.cycle(ctx)
        put(ctx, dut.captured, 1)
        await self.cycle(ctx)
        put(ctx, dut.captured, 0)
        self.held = sums + [0x5A5A5A5A] * (COLS - len(sums))

    async def job(self, ctx, kind, pixels, *, base=0, limit=0xFFFF):
        """Run a job; returns the stored vectors."""
        dut, self.stores, self.reads = self.dut, [], []
        put(ctx, dut.start, 1)
        await self.cycle(ctx)
        put(ctx, dut.start, 0)
        put(ctx, dut.fields, {
            **{name: value % 256 for name, value in JOB.items()}, "add": kind == "add",
            "sums": kind == "sums", "parameter_line": LINE,
        })
        put(ctx, dut.window.base, base)
        put(ctx, dut.window.limit, limit)
        for pixel in pixels:
            for sums in pixel.tiles:
                await self.tile(ctx, pixel, sums)
                assert not ctx.get(dut.empty)
        await self.until(ctx, lambda: ctx.get(dut.empty))
        return self.stores


def pixels_of(rng, output=7):
    """Pixels with one to three tiles; the last tile of a pixel may have fewer columns."""
    pixels = []
    for tiles, last in [(1, 4), (2, 1), (1, 2), (3, 3), (1, 1), (2, 4)]:
        pixels.append(Pixel(rng, output, [COLS] * (tiles - 1) + [last]))
        output += 40
    return pixels


@pytest.mark.parametrize("idle", quick(1, [0.5, 0.0]))
def test_vectors_of_jobs(idle):
    """One job after the other, without a reset between them."""
    bench = OutputBench(idle=idle, seed=3)

    async def run(ctx):
        for kind in ("plain", "add", "sums", "add", "plain"):
            pixels = pixels_of(bench.rng)
            stores = await bench.job(ctx, kind, pixels)
            assert stores == [store for pixel in pixels for store in pixel.stores(kind)], kind
            added = [pixel.added + n for pixel in pixels for n in range(len(pixel.tiles))]
            assert bench.reads == (added if kind == "add" else [])
            assert bench.errors == 0

    simulate(bench.dut, run)


def test_vectors_beyond_the_limits_are_not_written():
    """One address before ``base``, two inside, and ``limit`` itself."""
    bench = OutputBench()

    async def run(ctx):
        pixel = Pixel(bench.rng, 99, [COLS] * 4)
        stores = await bench.job(ctx, "plain", [pixel], base=100, limit=102)
        vectors = [vector for _, vector in pixel.stores("plain")]
        assert stores == [(99, []), (100, vectors[1]), (101, vectors[2]), (102, [])]
        assert bench.errors == 2

    simulate(bench.dut, run)


def test_an_added_vector_beyond_the_limits_is_an_error():
    bench = OutputBench()

    async def run(ctx):
        pixel = Pixel(bench.rng, 20, [COLS])
        await bench.job(ctx, "add", [pixel], base=0, limit=pixel.added)
        assert bench.errors == 1

    simulate(bench.dut, run)
