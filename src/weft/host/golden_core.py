"""The golden core in numpy: its buffers, its jobs, and the layout of its results."""

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import Job, JobFlag, Load, Region
from weft.config import Config
from weft.dtypes import DTYPES
from weft.geometry import memories
from weft.golden import activate, add_bias, clamp, matmul, matmul_bf16, scaled, to_bfloat16
from weft.host.packing import ENTRY, LIMITS
from weft.host.transport import TransportError

__all__ = ["CORES", "FloatCore", "GoldenCore", "IntegerCore"]


class GoldenCore:
    """The buffers of a core, and its jobs. A subclass per data type computes sums and results.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    memories : dict of `weft.geometry.Operand`
        The buffers, by `Region`.
    OPERAND : numpy type
        Type of the values of A and B.
    ENTRY : numpy.dtype
        The epilogue parameters of a column, if the data type has any.
    """

    OPERAND: type
    ENTRY: np.dtype

    def __init__(self, config: Config):
        self.config = config
        self.memories = memories(config)
        acc = np.dtype(config.data_type.acc.name)
        types = {Region.A: self.OPERAND, Region.B: self.OPERAND, Region.C: acc}
        self.memory = {
            region: np.zeros((o.words, o.edge, o.depth), types.get(region, np.int8))
            for region, o in self.memories.items()
        }
        self._bytes = {region: memory.view(np.uint8) for region, memory in self.memory.items()}
        self._kept = np.zeros((config.rows, config.cell.slots * config.cols), acc)

    def load(self, load: Load, payload: bytes) -> None:
        """Store the panels of a load; TransportError if they lie outside the buffer."""
        region = Region(load.operand)
        operand, memory = self.memories[region], self.memory[region]
        end = load.page + (load.panels - 1) * load.pitch + -(-load.words // operand.page)
        if end > operand.pages or load.words > load.pitch * operand.page:
            raise TransportError(
                f"a load must lie within {operand.pages} pages, not {load.panels} panels of "
                f"{load.words} words every {load.pitch} pages from page {load.page}"
            )
        lines = np.frombuffer(payload, np.uint8)
        lines = lines.reshape(load.panels, -1, operand.segments * operand.stream)
        used = np.ascontiguousarray(lines[:, :, : operand.group * operand.word_bytes])
        values = used.view(f"<u{operand.size}").astype(f"u{operand.size}").view(memory.dtype)
        words = values.reshape(load.panels, -1, operand.edge, operand.depth)
        panels = self.panels(load.operand, load.page, load.pitch, load.panels, load.words)
        panels[...] = words[:, : load.words]

    def run(self, job: Job) -> bytes | None:
        """Return the result bytes of a job, or None if it keeps its sums.

        Raises TransportError if the result of the job is undefined.
        """
        a = self._operand(Region.A, job.m, job.k, job.a_page, job.a_pitch)
        b = self._operand(Region.B, job.n, job.k, job.b_page, job.b_pitch)
        accumulates = JobFlag.ACCUMULATE in job.flags
        sums = self.sums(job, a, b, self._kept[: job.m, : job.n] if accumulates else None)
        if JobFlag.KEEP in job.flags:
            self._kept[: job.m, : job.n] = sums
            return None
        try:
            results = self.finish(job, sums)
        except ValueError as error:
            raise TransportError(f"parameters of a job: {error}") from error
        return self._layout(results)

    def sums(self, job: Job, a, b, kept):
        """Return the sums [M, N], which start from ``kept`` if it is not None."""
        raise NotImplementedError

    def finish(self, job: Job, sums):
        """Convert sums to results; ValueError for invalid parameters."""
        return sums

    def _operand(self, side, size, k, page, pitch):
        """Return an operand of a job from its buffer: [size, k]."""
        operand = self.memories[side]
        words, count = operand.panel_words(k), operand.panels(size)
        end = (page + (count - 1) * pitch) * operand.page + words
        if end > operand.words:
            raise TransportError(
                f"a job's operand must lie within {operand.words} words, not {end}"
            )
        # panel, word, edge, depth -> panel, edge, word, depth
        panels = self.panels(side, page, pitch, count, words).transpose(0, 2, 1, 3)
        return panels.reshape(count * operand.edge, -1)[:size, :k]

    def panels(self, region, page, pitch, count, words):
        """Return a view of the first ``words`` words of panels that start every ``pitch`` pages."""
        memory, page_words = self.memory[region], self.memories[region].page
        step = memory.strides[0]
        # numpy's as_strided has the same effect, and takes five times as long.
        return np.ndarray(
            (count, words, *memory.shape[1:]), memory.dtype, self._bytes[region],
            page * page_words * step, (pitch * page_words * step, *memory.strides),
        )

    def entries(self, job: Job) -> np.ndarray:
        """Return the parameters of a job's columns."""
        cols = self.config.cols
        count, chunks = -(-job.n // cols), -(-cols // self.config.lanes)
        panels = self.panels(Region.PARAMETERS, job.b_page, job.b_pitch, count, chunks)
        entries = np.ascontiguousarray(panels).view(self.ENTRY).reshape(count, -1)
        return entries[:, :cols].reshape(-1)[: job.n]

    def _layout(self, results):
        """Return the bytes of results in stream order: by tile, row and padded chunk."""
        config = self.config
        bits = results.view(f"u{results.itemsize}").astype(f"<u{results.itemsize}")
        whole = len(bits) - len(bits) % config.rows
        bands = [(bits[:whole], config.rows), (bits[whole:], len(bits) - whole)]
        data = b"".join(
            _tiles(band, height, config.cols, config.lanes).tobytes()
            for band, height in bands if len(band)
        )
        return data + bytes(-len(data) % config.bytes_out)


def _tiles(band, rows, cols, lanes):
    """Return the tiles of a ``band`` of tile rows, each of ``rows`` rows, in stream order.

    The tiles of ``cols`` columns move at once, then the last ones, which have fewer columns.
    """
    (height, n), parts = band.shape, []
    down, whole = height // rows, n - n % cols
    for tiles in (band[:, :whole].reshape(height, -1, cols), band[:, None, whole:]):
        if not tiles.size:
            continue
        if short := -tiles.shape[2] % lanes:
            tiles = np.pad(tiles, ((0, 0), (0, 0), (0, short)))
        # tile row, row, tile, column -> tile row, tile, row, column
        moved = tiles.reshape(down, rows, *tiles.shape[1:]).swapaxes(1, 2)
        parts.append(moved.reshape(down, -1))
    return np.hstack(parts) if len(parts) > 1 else parts[0]


class IntegerCore(GoldenCore):
    """INT8: exact sums; results of 8 bits by the parameters of B's panels and the table."""

    OPERAND = np.int8
    ENTRY = ENTRY

    def __init__(self, config: Config):
        super().__init__(config)
        self._kept_row_sums = np.zeros(config.rows, np.int64)  # of A

    def sums(self, job, a, b, kept):
        if self.config.b_zero_point != "none":
            self._sum_rows(job, a, kept)
        return matmul(a, b.T, start=kept)

    def _sum_rows(self, job, a, kept):
        """Keep the sums of the rows of A, which are multiplied with zero points of B."""
        rows = a.sum(1, dtype=np.int64)
        if kept is not None:
            rows += self._kept_row_sums[: job.m]
        if JobFlag.KEEP in job.flags:
            self._kept_row_sums[: job.m] = rows
        self._row_sums = rows

    def finish(self, job, sums):
        if JobFlag.REQUANTIZE not in job.flags:
            return sums
        config, entries = self.config, self.entries(job)
        acc = add_bias(sums, entries["bias"])
        if config.b_zero_point != "none":
            zero = entries["b_zero"].astype(np.int64)
            acc = (acc - self._row_sums[:, None] * zero).astype(np.int32)  # wraps
        given = {"multiplier": entries["multiplier"], "shift": entries["shift"]}
        if config.requantize == "onnx":
            given = {"scale": entries["multiplier"].view(np.float32)}
        y = scaled(acc, **given, mode=config.requantize).astype(np.int64) + entries["zero"]
        y = np.clip(y, entries["low"], entries["high"]).astype(np.uint8)
        if JobFlag.TABLE not in job.flags:
            return y
        return activate(y, self.memory[Region.TABLE].reshape(-1))


class FloatCore(GoldenCore):
    """BF16: chains of fused multiply-adds that start from C; then clamp and rounding."""

    OPERAND = bfloat16
    ENTRY = LIMITS

    def sums(self, job, a, b, kept):
        start = self._start(job) if JobFlag.PRELOAD in job.flags else kept
        flush = self.config.flush_subnormals
        return matmul_bf16(a, b.T, start=start, flush_subnormals=flush)

    def _start(self, job):
        """Return the C of a job: [M, N], or [1, N] for all rows."""
        words = 1 if JobFlag.BROADCAST in job.flags else job.m
        available, count = self.memories[Region.C].words, self.memories[Region.C].panels(job.n)
        end = job.c_page + (count - 1) * job.c_pitch + words
        if end > available:
            raise TransportError(f"a job's C must lie within {available} words, not {end}")
        panels = self.panels(Region.C, job.c_page, job.c_pitch, count, words)
        # panel, row, column, 1 -> row, panel, column
        return panels[..., 0].swapaxes(0, 1).reshape(words, -1)[:, : job.n]

    def finish(self, job, sums):
        if JobFlag.CLAMP in job.flags:
            entries = self.entries(job)
            sums = clamp(sums, entries["low"].copy(), entries["high"].copy())
        if JobFlag.ROUND in job.flags:
            return to_bfloat16(sums)
        return sums


# Subclasses of `weft.host.golden_core.GoldenCore`, by the name of the data type.
CORES = DTYPES.layer("golden", int8=IntegerCore, bf16=FloatCore)
