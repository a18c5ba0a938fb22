"""What the jobs of a core come to, in numpy: its buffers, the sums that it keeps, its results."""

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import Job, JobFlag, Load, Region
from weft.config import Config
from weft.geometry import memories
from weft.golden import (
    activate,
    add_bias,
    clamp,
    matmul,
    matmul_bf16,
    scaled,
    to_bfloat16,
)
from weft.host.packing import ENTRY, LIMITS
from weft.host.transport import TransportError
from weft.timing import SLOTS

__all__ = ["CORES", "FloatCore", "IntegerCore"]

_TYPES = {1: np.int8, 2: bfloat16, 4: np.float32}  # of values, by their bytes


class _Core:
    """The buffers of a core, and the jobs on what lies in them.

    A core of a dtype says how sums start and are made, and how they become results.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    memories : dict of `weft.geometry.Operand`
    """

    ENTRY: np.dtype

    def __init__(self, config: Config):
        self.config = config
        self.memories = memories(config)
        self._memory = {
            region: np.zeros((o.words, o.edge, o.depth), _TYPES[o.size])
            for region, o in self.memories.items()
        }
        sums = config.rows, SLOTS[config.dtype] * config.cols
        self._kept = np.zeros(sums, np.dtype(config.format.acc.name))

    def load(self, load: Load, payload: bytes) -> None:
        """Put the panels of a load where they belong; TransportError where that is outside."""
        operand, memory = self.memories[load.operand], self._memory[load.operand]
        behind = load.page + (load.panels - 1) * load.pitch + -(-load.words // operand.page)
        if behind > operand.pages or load.words > load.pitch * operand.page:
            raise TransportError(
                f"a load must lie within {operand.pages} pages, not {load.panels} panels of "
                f"{load.words} words every {load.pitch} pages from page {load.page} on"
            )
        lines = np.frombuffer(payload, np.uint8)
        lines = lines.reshape(load.panels, -1, operand.segments * operand.stream)
        used = np.ascontiguousarray(lines[:, :, : operand.group * operand.word_bytes])
        values = used.view(f"<u{operand.size}").astype(f"u{operand.size}").view(memory.dtype)
        words = values.reshape(load.panels, -1, operand.edge, operand.depth)
        for panel in range(load.panels):
            start = (load.page + panel * load.pitch) * operand.page
            memory[start : start + load.words] = words[panel, : load.words]

    def run(self, job: Job) -> bytes | None:
        """The results of a job as they leave, or None of one that keeps its sums.

        Raises TransportError for what a core leaves undefined.
        """
        a = self._operand(Region.A, job.m, job.k, job.a_page, job.a_pitch)
        b = self._operand(Region.B, job.n, job.k, job.b_page, job.b_pitch)
        carries_on = JobFlag.ACCUMULATE in job.flags
        sums = self._sums(job, a, b, self._kept[: job.m, : job.n] if carries_on else None)
        if JobFlag.KEEP in job.flags:
            self._kept[: job.m, : job.n] = sums
            return None
        try:
            return self._layout(self._finish(job, sums))
        except ValueError as error:
            raise TransportError(f"of a job's parameters, {error}") from error

    def _sums(self, job, a, b, kept):
        """[M, N], from ``kept`` on if there are any."""
        raise NotImplementedError

    def _finish(self, job, sums):
        """The results that a job makes of its sums; ValueError for parameters that are none."""
        raise NotImplementedError

    def _operand(self, side, size, k, page, pitch):
        """[size, k] values out of the buffer."""
        operand = self.memories[side]
        words = operand.panel_words(k)
        starts = [(page + i * pitch) * operand.page for i in range(operand.panels(size))]
        if starts[-1] + words > operand.words:
            raise TransportError(
                f"a job's operand must lie within {operand.words} words, not {starts[-1] + words}"
            )
        panels = [self._memory[side][start : start + words] for start in starts]
        # panel, word, edge, depth -> panel, edge, word, depth
        stacked = np.stack(panels).transpose(0, 2, 1, 3)
        return stacked.reshape(len(panels) * operand.edge, -1)[:size, :k]

    def _entries(self, job):
        """The parameters of a job's columns."""
        cols, geometry = self.config.cols, self.memories[Region.PARAMETERS]
        chunks, memory = -(-cols // self.config.lanes), self._memory[Region.PARAMETERS]
        starts = (
            (job.b_page + panel * job.b_pitch) * geometry.page
            for panel in range(-(-job.n // cols))
        )
        panels = [
            memory[start : start + chunks].view(self.ENTRY).reshape(-1)[:cols] for start in starts
        ]
        return np.concatenate(panels)[: job.n]

    def _layout(self, results):
        """Results in the order of the stream: tile by tile, its rows cut into padded chunks."""
        config, out = self.config, []
        bits = results.view(f"u{results.itemsize}").astype(f"<u{results.itemsize}")
        for i in range(0, bits.shape[0], config.rows):
            for j in range(0, bits.shape[1], config.cols):
                tile = bits[i : i + config.rows, j : j + config.cols]
                out.append(np.pad(tile, ((0, 0), (0, -tile.shape[1] % config.lanes))).tobytes())
        data = b"".join(out)
        return data + bytes(-len(data) % config.bytes_out)


class IntegerCore(_Core):
    """INT8: exact sums, and bytes by the parameters of B's panels and the table."""

    ENTRY = ENTRY

    def __init__(self, config: Config):
        super().__init__(config)
        self._rows = np.zeros(config.rows, np.int64)  # of A, summed; those of kept sums

    def _sums(self, job, a, b, kept):
        rows = a.sum(1, dtype=np.int64)
        if kept is not None:
            rows += self._rows[: job.m]
        if JobFlag.KEEP in job.flags:
            self._rows[: job.m] = rows
        self._row_sums = rows
        return matmul(a, b.T, start=kept)

    def _finish(self, job, sums):
        if JobFlag.REQUANTIZE not in job.flags:
            return sums
        config, entries = self.config, self._entries(job)
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
        return activate(y, self._memory[Region.TABLE].reshape(-1))


class FloatCore(_Core):
    """BF16: chains of fused multiply-adds, from C on, held between limits, rounded."""

    ENTRY = LIMITS

    def _sums(self, job, a, b, kept):
        start = self._start(job) if JobFlag.PRELOAD in job.flags else kept
        flush = self.config.flush_subnormals
        return matmul_bf16(a, b.T, start=start, flush_subnormals=flush)

    def _start(self, job):
        """C of a job: [M, N], or [1, N] for every row."""
        words = 1 if JobFlag.BROADCAST in job.flags else job.m
        held, memory = self.memories[Region.C].words, self._memory[Region.C]
        count = self.memories[Region.C].panels(job.n)
        starts = [job.c_page + panel * job.c_pitch for panel in range(count)]
        if starts[-1] + words > held:
            raise TransportError(
                f"a job's C must lie within {held} words, not {starts[-1] + words}"
            )
        return np.hstack([memory[start : start + words, :, 0] for start in starts])[:, : job.n]

    def _finish(self, job, sums):
        if JobFlag.CLAMP in job.flags:
            entries = self._entries(job)
            sums = clamp(sums, entries["low"].copy(), entries["high"].copy())
        if JobFlag.ROUND in job.flags:
            return to_bfloat16(sums)
        return sums


CORES = {"int8": IntegerCore, "bf16": FloatCore}
