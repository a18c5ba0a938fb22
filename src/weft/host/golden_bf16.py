"""The golden core of bf16: fused multiply-adds that start from C, then clamp and rounding."""

from ml_dtypes import bfloat16

from weft.commands import JobFlag, Region
from weft.golden import clamp, matmul_bf16, to_bfloat16
from weft.host.golden_core import GoldenCore
from weft.host.packing import LIMITS
from weft.host.transport import TransportError

__all__ = ["FloatCore"]


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
