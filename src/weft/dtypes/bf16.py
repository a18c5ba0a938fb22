"""The data type bf16: chains of fused multiply-adds in float32, results rounded to bfloat16."""

import struct

from weft import latencies
from weft.commands import JobFlag
from weft.dtypes.dtype import DType, must_be
from weft.formats import Number
from weft.mac_cells import MAC_CELLS
from weft.targets import TARGETS

__all__ = ["Bf16"]

_BFLOAT16 = Number("bfloat16", 16)


class Bf16(DType):
    """bfloat16 x bfloat16 -> float32."""

    name = "bf16"
    a = b = narrow = _BFLOAT16
    acc = Number("float32", 32)
    defaults = {
        "rows": 4, "cols": 4, "c_words": 1024, "requantize": "none", "activation": "clamp",
    }
    rules = (
        must_be("depth", 1),
        must_be("multiplier", "plain"),
        must_be("drain", "overlapped"),
        must_be("requantize", "none"),
        must_be("scale_cycles", 1),
        ("activation", "none or clamp", lambda kind: kind != "table"),
        must_be("b_zero_point", "none"),
        ("bytes_in", "2 or more", lambda count: count >= 2),
    )
    parameter = struct.Struct("<ff")  # lower and upper limit of the result
    is_float = True

    def mac_cell(self, config):
        """One that keeps subnormal numbers, one that flushes them; an FPGA family may have both."""
        name = "bf16_ftz" if config.flush_subnormals else "bf16"
        of_family = f"{name}{TARGETS[config.target].mac_suffix}"
        return of_family if of_family in MAC_CELLS else name

    def epilogue_flags(self, config):
        return (JobFlag.ROUND, *([JobFlag.CLAMP] if config.activation == "clamp" else []))

    def epilogue_latency(self, config, sum_latency):
        return latencies.bf16_output(sum_latency, clamps=config.activation != "none")

    def arithmetic(self, config):
        return "chains of fused multiply-adds in float32, k ascending, rounded to nearest even"
