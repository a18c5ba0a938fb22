"""Golden models in numpy: what the hardware must compute, by other means than the hardware's."""

from weft.golden.bf16 import clamp, matmul_bf16, to_bfloat16
from weft.golden.matmul import matmul
from weft.golden.requantize import MODES, activate, add_bias, requantize, scaled

__all__ = [
    "MODES", "activate", "add_bias", "clamp", "matmul", "matmul_bf16", "requantize", "scaled",
    "to_bfloat16",
]
