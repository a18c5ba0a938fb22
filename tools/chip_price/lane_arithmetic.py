"""ADD and average pools with the scaler of the lanes, as ``docs/chip.md`` proposes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.golden import scaled
from weft.quantize import quantize_multiplier

__all__ = ["POOL_WEIGHT", "add", "average"]

POOL_WEIGHT = 64  # of each input of a pool


def add(x: np.ndarray, y: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Return ``z = clamp(scale(t1 + t2) + z zero)`` in mode ``tflite``, from int8 x and y.

    ::

        t1 = scale((x - x zero) << left_shift)
        t2 = scale((y - y zero) << left_shift)

    ``attributes`` are the ones of `weft.network.ir.Host` nodes of ADD.
    """
    terms = [
        scaled(((operand.astype(np.int64) - zero) << attributes["left_shift"]).astype(np.int32),
               multiplier, shift)
        for operand, zero, multiplier, shift in zip(
            (x, y), attributes["zeros"], attributes["multipliers"], attributes["shifts"],
            strict=True,
        )
    ]
    total = scaled(terms[0] + terms[1], attributes["multiplier"], attributes["shift"])
    return np.clip(total + attributes["zero"], attributes["low"], attributes["high"])


def average(
    sums: np.ndarray, count: int, *, weight: int = POOL_WEIGHT, mode: str = "tflite",
) -> np.ndarray:
    """Return ``scale(weight * sums)`` with the scale ``1 / (count * weight)``."""
    multiplier, shift = quantize_multiplier(1 / (count * weight))
    return scaled((weight * sums).astype(np.int32), multiplier, shift, mode=mode)
