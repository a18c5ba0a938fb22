"""Golden models in numpy: what the hardware must compute, by other means than the hardware's."""

from weft.golden.matmul import matmul

__all__ = ["matmul"]
