"""A model of all that surrounds the output section of a core, and of the maps it must write."""

import functools
import random

import numpy as np
from network_core_jobs import panels, random_job
from network_core_layers import scaling
from network_cores import network_core_config
from side_port import SidePort, hardware_fields
from wrapping import wrap32

from verif.amaranth_bench import checker, plain, put, simulate
from weft.golden import add_bias, requantize, scaled
from weft.hw.network_core.output.output_section import OutputSection
from weft.network_core.descriptors import join
from weft.network_core.latencies import result_read

__all__ = ["OutputBench", "OutputCase", "network_core_of", "random_case"]

BUFFER_ROWS = 16
# Elaborated once for all tests of a core.
_section = functools.cache(lambda config: OutputSection(config, buffer_rows=BUFFER_ROWS))


def network_core_of(rows, cols, depth, lanes, **fields):
    """A network core with a small memory."""
    defaults = {"words": 256, "lines": 32, "read_vectors": 2, "multiplier": "plain"}
    return network_core_config(rows, cols, depth, lanes, **defaults | fields)


def pixel_numbers(config, job, map_):
    """Number of the first vector of each pixel; int [out_height, out_width]."""
    first = getattr(job, "add_input" if map_ == "add" else map_)
    pixel, row = (
        join(getattr(job, f"{map_}_{step}_step"), config.banks) for step in ("pixel", "row")
    )
    oy, ox = np.ogrid[: job.out_height, : job.out_width]
    return join(first, config.banks) + ox * pixel + oy * (row + (job.out_width - 1) * pixel)


class OutputCase:
    """A job, random sums of its tiles, and the bytes that it must write."""

    def __init__(self, rng, case, base):
        self.config, self.job, self.base = case.buffers.config, case.job, base
        self.buffers, self.image, self.layer = case.buffers, case.image, case.layer
        job, core = self.job, self.config.array
        shape = job.out_height, job.out_width, job.columns
        self.sums = rng.integers(-1 << 31, 1 << 31, shape) >> rng.integers(0, 30, shape)
        self.pairs = rng.integers(-1 << 20, 1 << 20, shape[:2]) * core.cell.corrected
        self.expected = self._expected(case.image)

    def _expected(self, image):
        job, lanes, mode = self.job, self.config.array.lanes, self.config.array.requantize
        column = np.arange(job.columns)
        line = job.parameter_line + column // lanes
        bias, multiplier, shift = self.buffers.parameters(line, column % lanes)
        wrapped = self.sums.astype(np.int32)
        total = add_bias(wrapped, bias)
        scales = dict(multiplier=multiplier, shift=shift)
        if mode == "onnx":
            scales = {"scale": multiplier.astype("<u4").view("<f4")}
        y = requantize(
            total, **scales, mode=mode, zero_point=job.zero, low=job.low, high=job.high,
        )
        after = image.vectors().copy()
        if job.add:
            y = self._added(image, y)
        if job.sums:
            y = np.ascontiguousarray(total.astype("<i4")).view(np.int8)
        after[self._index("output", y.shape[-1])] = y
        return after

    def _added(self, image, y):
        """The sum or the product as TensorFlow Lite defines it: without the table."""
        job, mode = self.job, self.config.array.requantize
        add = self.layer.addition
        x = image.vectors()[self._index("add", job.columns)]
        total = np.zeros(x.shape, np.int64)
        terms = x.astype(int) - add.zero, y.astype(int) - job.zero
        for term, scale in zip(terms, add.scales, strict=False):
            total += scaled(term * 2**20, **scaling(mode, *scale))
        if job.multiply:
            total = terms[0] * terms[1]
        return requantize(
            total.astype(np.int32), **scaling(mode, *add.scales[2]), zero_point=job.sum_zero,
            low=job.sum_low, high=job.sum_high,
        )

    def _index(self, map_, channels):
        column, depth = np.arange(channels), self.config.array.depth
        pixels = pixel_numbers(self.config, self.job, map_)
        return pixels[..., None] + column // depth, column % depth

    def tiles(self):
        """Announced tiles, and the rows that the array writes for each one."""
        core, job = self.config.array, self.job
        all_panels = list(panels(job))
        for number, panel in enumerate(all_panels):
            for first in range(0, job.columns, core.cols):
                cols = min(core.cols, job.columns - first)
                tile_last = first + cols == job.columns
                yield {
                    "valid": 1, "rows": len(panel), "cols": cols,
                    "line": job.parameter_line + first // core.lanes, "tile_last": tile_last,
                    "last": tile_last and number == len(all_panels) - 1,
                }, [self._row(*pixel, first, cols) for pixel in panel]

    def _row(self, oy, ox, first, cols):
        """Uncorrected sums, and the pair sum."""
        pair = int(self.pairs[oy, ox])
        return [int(s) + pair for s in self.sums[oy, ox, first : first + cols]], pair


class OutputBench:
    """The memory, the array and the parameter buffer around a section; checks all writes."""

    def __init__(self, config, cases, *, stall=0.0, gap=0.0, drain=5, seed=0):
        self.config, self.jobs = config, cases
        self.rng = random.Random(seed)
        self.gap, self.drain = gap, drain
        self.dut = _section(config)
        self.port = SidePort(config, [0] * config.vectors, stall=stall, seed=seed)
        self.cycles = []  # of each job, from its start to done
        self.latencies = []  # of each job, from its first row in the result buffer to done

    def random_sum(self):
        return self.rng.randrange(-1 << 31, 1 << 31)

    async def array(self, ctx):
        """Announce tiles, write rows, and answer reads of sums and parameters."""
        dut, core = self.dut, self.config.array
        rows, latency = core.rows, result_read(core)
        ring = [None] * BUFFER_ROWS
        sums = [(None, 0)] * (latency - 1)
        lines, words = [0], [[0] * core.lanes]
        written = now = wait = 0
        most = BUFFER_ROWS // rows
        queue, free, tiles = [], most, iter(())
        while True:
            if ctx.get(dut.job.start):
                tiles = iter(list(self.jobs[self.current].tiles()))
            tile, announced = {"valid": 0}, None
            if free and not wait and self.rng.random() >= self.gap:
                tile, announced = next(tiles, (tile, None))
            if announced:
                free, wait = free - 1, rows
                announced += [None] * (rows - len(announced))
                queue += [(now + self.drain, row) for row in announced]
            put(ctx, dut.tiles, {**dict.fromkeys(("rows", "cols", "line"), 0), **tile})
            write = bool(queue) and queue[0][0] <= now
            put(ctx, dut.rows.row_written, write)
            _, _, release, address, index, line, table = await ctx.tick().sample(
                dut.release, dut.rows.address, dut.rows.index, dut.lines.address,
                dut.table.address,
            )
            free, wait, now = free + release, max(0, wait - 1), now + 1
            assert free <= most
            sums.append((ring[address], index))
            lines.append(line)
            words.append(plain(table))
            self.answer(ctx, *sums.pop(0), lines.pop(0), words.pop(0))
            if write:
                ring[written % BUFFER_ROWS] = queue.pop(0)[1]
                written += 1

    def answer(self, ctx, row, index, line, words):
        dut, lanes = self.dut, self.config.array.lanes
        values, pair = row or ([], self.random_sum())
        taken = values[index * lanes : (index + 1) * lanes]
        taken += [self.random_sum() for _ in range(lanes - len(taken))]
        put(ctx, dut.rows.sums, [wrap32(value) for value in taken])
        put(ctx, dut.rows.pair_sum, pair)
        buffers = self.jobs[self.current].buffers
        raw = buffers.lines[line].tobytes()[: 9 * lanes]
        ctx.set(dut.lines.data.as_value(), int.from_bytes(raw, "little"))
        found = [buffers.table[word, :4].tobytes() for word in words]
        put(ctx, dut.table.data, [int.from_bytes(raw, "little", signed=True) for raw in found])

    async def run(self, ctx):
        """Start each job after the one before; compare the whole memory after each."""
        dut, config = self.dut, self.config
        depth = config.array.depth
        self.current = 0
        for number, job in enumerate(self.jobs):
            self.current = number
            image = job.image
            memory = np.array(image.memory)
            self.port.vectors[:] = [
                int.from_bytes(v.tobytes(), "little") for v in memory.reshape(-1, depth)
            ]
            put(ctx, dut.window.base, job.base)
            put(ctx, dut.window.limit, config.words)
            put(ctx, dut.job.fields, hardware_fields(config, job.job, job.base))
            put(ctx, dut.job.start, 1)
            done = writes = now = 0
            first_row = None
            while not done:
                _, _, write, done, error, row = await ctx.tick().sample(
                    dut.write, dut.done, dut.address_error, dut.rows.row_written
                )
                put(ctx, dut.job.start, 0)
                if row and first_row is None:
                    first_row = now
                now += 1
                assert not error
                assert write.valid or not done
                if write.valid:
                    writes += 1
                    self.write(plain(write))
            self.cycles.append(now)
            self.latencies.append(now - 1 - first_row)
            assert writes == self.chunk_writes(job.job)
            found = b"".join(v.to_bytes(depth, "little") for v in self.port.vectors)
            skip = job.base * config.banks * depth
            assert found[:skip] == memory.tobytes()[:skip]
            assert found[skip:] == job.expected.tobytes(), job.job
        assert not (await ctx.tick().sample(dut.write.valid))[-1]

    def chunk_writes(self, job):
        """Writes of a job."""
        lanes, cols = self.config.array.lanes, self.config.array.cols
        tiles = [min(cols, job.columns - first) for first in range(0, job.columns, cols)]
        return job.out_height * job.out_width * sum(
            -(-(4 * tile if job.sums else tile) // lanes) for tile in tiles
        )

    def write(self, write):
        number = write["address"]["word"] * self.config.banks + write["address"]["bank"]
        mask = sum(255 << 8 * n for n in range(self.config.array.depth) if write["enable"] >> n & 1)
        old = self.port.vectors[number]
        self.port.vectors[number] = old & ~mask | write["data"] & mask

    def simulate(self):
        async def serve(ctx):
            await self.port.serve(ctx, self.dut)

        simulate(
            self.dut, self.run, limit=100_000,
            background=[self.array, serve, checker(self.dut.reads.request, "reads")],
        )


def random_case(rng, config, *, add, base=0, **sizes):
    """A random job; ``sizes`` are arguments of `network_core_layers.random_layer`."""
    return OutputCase(rng, random_job(rng, config, base=base, add=add, **{
        "most_pixels": 4, "most_channels": 2 * config.array.cols + 1, "most_kernel": 1, **sizes,
    }), base)
