"""Golden models in numpy: the exact results of the hardware, computed in an independent way."""

from weft.golden.bf16 import clamp, matmul_bf16, to_bfloat16
from weft.golden.matmul import matmul
from weft.golden.requantize import MODES, activate, add_bias, requantize, scaled

__all__ = [
    "MODES", "activate", "add_bias", "clamp", "matmul", "matmul_bf16", "requantize", "scaled",
    "to_bfloat16",
]
