"""The golden core of int8: exact sums, requantized by the parameters of B's panels."""

import numpy as np

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.golden import activate, add_bias, matmul, scaled
from weft.host.golden_core import GoldenCore
from weft.host.packing import ENTRY

__all__ = ["IntegerCore"]


class IntegerCore(GoldenCore):
    """INT8: exact sums; results of 8 bits by the parameters of B's panels and the table."""

    OPERAND = np.int8
    ENTRY = ENTRY

    def __init__(self, config: Config):
        super().__init__(config)
        self._kept_row_sums = np.zeros(config.rows, np.int64)  # of A

    def sums(self, job, a, b, kept):
        rows = a.sum(1, dtype=np.int64)
        if kept is not None:
            rows += self._kept_row_sums[: job.m]
        if JobFlag.KEEP in job.flags:
            self._kept_row_sums[: job.m] = rows
        self._row_sums = rows
        return matmul(a, b.T, start=kept)

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
