"""The finisher against golden: every column by its own parameters, in order, at any pace."""

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib.data import StructLayout
from amaranth.utils import ceil_log2

from weft.commands import PARAMETER, Region, finishes
from weft.config import Config
from weft.geometry import memories
from weft.golden import scaled
from weft.hw.control.jobs import Job
from weft.hw.control.loader import Write
from weft.hw.control.tiler import Tile
from weft.hw.post.collector import Chunk
from weft.hw.post.finisher import Finisher
from weft.hw.post.sums import RowSums
from weft.sim.amaranth_bench import checker, put, quiet, receive, send, simulate
from weft.timing import Delays

SMALL = {"rows": 3, "cols": 5, "a_words": 64, "b_words": 64}
CONFIGS = {
    "tflite-table": Config(lanes=2, **SMALL),
    "tflite-plain": Config(lanes=1, activation="none", bytes_in=64, **SMALL),
    "tflite-zeros": Config(lanes=4, depth=2, b_zero_point="column", bytes_in=4, **SMALL),
    "single": Config(lanes=8, requantize="single", activation="none", **SMALL),
    "single-zeros": Config(lanes=1, requantize="single", b_zero_point="column", **SMALL),
    "onnx-table": Config(lanes=2, requantize="onnx", bytes_in=1, **SMALL),
    "onnx-zeros": Config(
        lanes=4, requantize="onnx", activation="none", b_zero_point="column", **SMALL
    ),
}
ALL = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def port(geometry):
    """The shape of what is loaded into a memory."""
    write = Write(
        address=ceil_log2(geometry.words // geometry.group), segments=geometry.segments,
        pages=geometry.pages, bytes_in=geometry.stream,
    )
    return StructLayout({"valid": 1, "write": write})


class Bench:
    """A finisher, what is loaded into it, and chunks with what they become."""

    def __init__(self, config, seed=1):
        self.config = config
        self.rng = np.random.default_rng(seed)
        self.geometries = memories(config)
        tile = Tile(self.geometries, Job(self.geometries, finishes(config))["finish"].shape)
        chunk = Chunk(acc=signed(32), lanes=config.lanes, tile=tile, cols=config.cols)
        inputs = {region.name.lower(): g for region, g in self.geometries.items()}
        del inputs["b"]
        self.dut = Finisher(
            geometries=self.geometries, chunk=chunk, mode=config.requantize,
            zero_points=config.b_zero_point != "none",
            writes={name: port(geometry) for name, geometry in inputs.items()},
        )
        pages = self.geometries[Region.B].pages
        self.columns = [[self.column() for _ in range(config.cols)] for _ in range(pages)]
        self.table = self.rng.integers(0, 256, 256).tolist()
        # Of a panel of A, a word a page.
        a = self.geometries[Region.A]
        self.lines = self.rng.integers(-128, 128, (a.pages, a.edge, a.depth))

    def column(self):
        """Parameters: those of golden, and the multiplier as the hardware has it."""
        rng = self.rng
        multiplier, scale = int(rng.integers(1 << 30, 1 << 31)), None
        shift = int(rng.integers(-31, 31 if rng.random() < 0.2 else -20))
        if self.config.requantize == "onnx":
            scale = np.float32(rng.integers(1 << 23, 1 << 24) * 2.0 ** (shift - 24))
            multiplier = int(scale.view(np.uint32))
        low, high = sorted(int(x) for x in rng.choice([-128, 0, 127, 255, -3, 200], 2))
        bias = rng.choice([-(1 << 31), (1 << 31) - 1, int(rng.integers(-9999, 9999)), 0])
        b_zero = int(rng.integers(-128, 128))
        zero = int(rng.integers(-128, 256))
        return (int(bias), multiplier, shift, b_zero, zero, low, high), scale

    def chunks(self, count):
        """(chunk, results due in its lanes or None) of jobs of some chunks, raw ones among them."""
        rng, config = self.rng, self.config
        while count > 0:
            job = int(rng.integers(1, 9))
            count -= job
            requantize, table = (int(x) for x in rng.integers(0, 2, 2))
            finish = {"requantize": requantize, "table": table}
            if config.activation == "none":
                del finish["table"]
            for n in range(job):
                sums = rng.integers(-(1 << 31), 1 << 31, config.lanes) >> rng.integers(0, 20)
                chunk = {
                    "sums": sums.tolist(), "row": int(rng.integers(config.rows)),
                    "chunk": int(rng.integers(-(-config.cols // config.lanes))),
                    "a_page": int(rng.integers(len(self.lines))), "b_page": 0,
                    "panel": int(rng.integers(len(self.columns))), "finish": finish,
                    "last": int(n == job - 1), "silent": 0, "status": 0,
                    "tag": int(rng.integers(1 << 16)),
                }
                kind = rng.random()
                if kind < 0.1 and chunk["last"]:
                    yield {**chunk, "status": int(rng.integers(1, 3))}, None
                elif kind < 0.2 and chunk["last"]:
                    yield {**chunk, "silent": 1}, None
                else:
                    yield chunk, self.finished(chunk)

    def finished(self, chunk):
        if not chunk["finish"]["requantize"]:
            return chunk["sums"]
        first = chunk["chunk"] * self.config.lanes
        due = []
        for lane, total in enumerate(chunk["sums"]):
            if first + lane == self.config.cols:
                break
            entry, scale = self.columns[chunk["panel"]][first + lane]
            bias, multiplier, shift, b_zero, zero, low, high = entry
            if self.config.b_zero_point == "none":
                b_zero = 0
            total += bias - b_zero * int(self.lines[chunk["a_page"]][chunk["row"]].sum())
            acc = np.array([(total + (1 << 31)) % (1 << 32) - (1 << 31)], np.int32)
            mode = self.config.requantize
            by = {"scale": scale} if scale else {"multiplier": multiplier, "shift": shift}
            y = min(max(int(scaled(acc, mode=mode, **by)[0]) + zero, low), high)
            due.append(self.table[y & 255] if chunk["finish"].get("table") else y & 255)
        return due

    def writes(self):
        """(port, write) of everything that is loaded."""
        config = self.config
        for page, panel in enumerate(self.lines):
            data = b"".join(bytes(int(x) & 255 for x in row) for row in panel)
            yield from self._lines("a", Region.A, page, [data], last=1)
        chunks = -(-config.cols // config.lanes)
        for page, columns in enumerate(self.columns):
            entries = [PARAMETER["int8"].pack(*entry) for entry, _ in columns]
            entries += [bytes(16)] * (chunks * config.lanes - len(entries))
            lanes = config.lanes
            words = [b"".join(entries[n * lanes : (n + 1) * lanes]) for n in range(chunks)]
            yield from self._lines("parameters", Region.PARAMETERS, page, words)
        if config.activation != "none":
            yield from self._lines("table", Region.TABLE, 0, [bytes([x]) for x in self.table])

    def _lines(self, port, operand, page, words, last=0):
        g = self.geometries[operand]
        for first in range(0, len(words), g.group):
            line = b"".join(words[first : first + g.group]).ljust(g.segments * g.stream, b"\0")
            for segment in range(g.segments):
                part = line[segment * g.stream : (segment + 1) * g.stream]
                yield port, {"valid": 1, "write": {
                    "line": (page * g.page + first) // g.group, "segment": segment,
                    "data": int.from_bytes(part, "little"), "page": page,
                    "begin": int(segment == 0), "end": last,
                    "page_end": last * (segment == g.segments - 1),
                }}

    async def load(self, ctx):
        for port, write in self.writes():
            put(ctx, getattr(self.dut, port), write)
            await ctx.tick()
            put(ctx, getattr(self.dut, port), {"valid": 0})
        for _ in range(RowSums.LATENCY):
            await ctx.tick()

    def check(self, got, chunk, due):
        same = [name for name in chunk if name != "sums"]
        assert {name: got[name] for name in same} == {name: chunk[name] for name in same}
        if due is not None:
            mask = 255 if chunk["finish"]["requantize"] else -1
            assert [total & mask for total in got["sums"]][: len(due)] == due


@ALL
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.9), (0.9, 0.5)])
def test_results_are_goldens_in_order(config, idle, stall):
    bench = Bench(config)
    dut, given = bench.dut, list(bench.chunks(150))

    async def source(ctx):
        await bench.load(ctx)
        await send(ctx, dut.i, [chunk for chunk, _ in given], idle=idle, seed=1)

    async def sink(ctx):
        for n, (chunk, due) in enumerate(given):
            [got] = await receive(ctx, dut.o, 1, stall=stall, seed=n)
            bench.check(got, chunk, due)
        await quiet(ctx, dut.o)

    simulate(dut, source, sink, background=[checker(dut.o, "o"), checker(dut.i, "i")])


@ALL
def test_a_chunk_a_cycle_after_the_latency(config):
    bench = Bench(config)
    dut = bench.dut
    latency = Delays.of(config).finish
    assert dut.LATENCY == latency
    kinds = [1] * 5 + [0] * 2 + [1]
    given = []
    for requantize in kinds:
        chunk = {**next(bench.chunks(1))[0], "silent": 0, "status": 0}
        chunk["finish"] = {**chunk["finish"], "requantize": requantize}
        given.append((chunk, bench.finished(chunk)))
    shown = []

    async def source(ctx):
        await bench.load(ctx)
        await ctx.tick()
        shown.clear()
        await send(ctx, dut.i, [chunk for chunk, _ in given])

    async def sink(ctx):
        ctx.set(dut.o.ready, 1)
        while sum(shown) < len(given):
            _, _, valid, got = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid:
                bench.check(got, *given[sum(shown)])
            shown.append(valid)

    simulate(dut, source, sink)
    # Raw ones enter when the last one ahead has left; and pass at once.
    wait = [0] * latency
    assert shown[-(2 * latency + len(given)) :] == [*wait, *[1] * 5, 1, 1, *wait, 1]


def test_it_waits_for_no_taker_until_its_last_stage_is_full():
    bench = Bench(CONFIGS["tflite-table"])
    dut = bench.dut
    chunk = {**next(bench.chunks(1))[0], "silent": 0, "status": 0}
    chunk["finish"] = {**chunk["finish"], "requantize": 1}
    ready = []

    async def run(ctx):
        put(ctx, dut.i.payload, chunk)
        ctx.set(dut.i.valid, 1)
        for _ in range(dut.LATENCY + 3):
            ready.append(ctx.get(dut.i.ready))
            await ctx.tick()

    simulate(dut, run)
    assert ready == [1] * dut.LATENCY + [0] * 3
