"""Least squares with non-negative coefficients, and ridge regression."""

from collections.abc import Sequence

import numpy as np

__all__ = ["non_negative", "ridge"]


def non_negative(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``x >= 0`` with the least ``|matrix @ x - values|``.

    The columns are scaled to length 1, so the units of a feature do not matter. Without this,
    rounding errors decide between similar columns.

    Source: C. Lawson and R. Hanson, "Solving Least Squares Problems", 1974, chapter 23.
    """
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0] = 1
    matrix, count = matrix / lengths, matrix.shape[1]
    if len(matrix) > count:  # as many rows as columns have the same solution
        rotation, matrix = np.linalg.qr(matrix)
        values = rotation.T @ values
    x, passive = np.zeros(count), np.zeros(count, bool)
    tolerance = 1e-10 * max(1.0, float(np.abs(matrix.T @ values).max(initial=0)))
    for _ in range(3 * count):
        gradient = matrix.T @ (values - matrix @ x)
        gradient[passive] = -np.inf
        if passive.all() or gradient.max() <= tolerance:
            break
        passive[gradient.argmax()] = True
        while True:
            solution = np.zeros(count)
            solution[passive] = np.linalg.lstsq(matrix[:, passive], values, rcond=None)[0]
            wrong = passive & (solution <= 0)
            if not wrong.any():
                x = solution
                break
            step = np.min(x[wrong] / (x[wrong] - solution[wrong]))
            x = x + step * (solution - x)
            passive &= x > tolerance * 1e-6
            x[~passive] = 0
    return x / lengths


def ridge(
    matrix: np.ndarray, values: np.ndarray, strength: float, free: Sequence[int] = ()
) -> np.ndarray:
    """``x`` with the least ``|matrix @ x - values|^2 + strength * |s * x|^2``.

    ``s`` is the spread of each column, so that the units of a feature do not matter. A constant
    column, and the columns ``free``, are not held back.
    """
    spread = matrix.std(axis=0) * np.sqrt(len(matrix))
    spread[list(free)] = 0
    held = np.vstack([matrix, np.diag(np.sqrt(strength) * spread)])
    return np.linalg.lstsq(held, np.concatenate([values, np.zeros(len(spread))]), rcond=None)[0]
