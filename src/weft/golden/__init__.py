"""Golden models in numpy: what the hardware must compute, by other means than the hardware's."""

from weft.golden.matmul import matmul
from weft.golden.requantize import MODES, activate, add_bias, requantize, scaled

__all__ = ["MODES", "activate", "add_bias", "matmul", "requantize", "scaled"]
