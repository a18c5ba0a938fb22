"""Transposed convolutions: outputs of one phase are a convolution of their own.

An output reads the taps of its kernel that fall on inputs, and not on zeros between them. Which
ones these are repeats with the stride. So all outputs at the same place in a stride are a
convolution with stride 1, and the layer writes them where they lie in the map.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np

from weft.models.ir import Gemm
from weft.models.network_core.layers import NetworkLayer, Refusal
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.products import NetworkCoreProduct

__all__ = ["transposed"]

# The fields that `NetworkCoreProduct` and `OperatorBuilder.layer` have.
_FIELDS = "layout", "groups", "bias", "x_zero", "zero", "low", "high"


def transposed(
    builder: OperatorBuilder, gemm: Gemm, product_of: Callable[[Gemm], NetworkCoreProduct]
) -> tuple[int, tuple[NetworkLayer, ...]]:
    """Return the map and the layers of a transposed convolution.

    Parameters
    ----------
    builder : OperatorBuilder
    gemm : Gemm
        With a window that spreads its input.
    product_of : callable
        Returns the layer of a Gemm.
    """
    window = gemm.window
    if window.stride != (1, 1) or window.dilation != (1, 1):
        raise Refusal("a transposed convolution must have no dilation and no second stride")
    columns = gemm.weights.shape[0] * gemm.weights.shape[2]
    channels = math.prod(builder.tensor(0).shape) // math.prod(window.input)
    x = builder.read(0, (*window.input, channels))
    target, maps = builder.map((*window.output, columns)), {1: x}
    phases = [
        _phases(*numbers) for numbers in zip(
            window.kernel, window.spread, window.padding[::2], window.output, strict=True
        )
    ]
    for (top, rows, *row), (left, across, *column) in itertools.product(*phases):
        (first_row, row_count), (first_column, column_count) = row, column
        part = dataclasses.replace(
            window, kernel=(len(rows), len(across)), spread=(1, 1), padding=(-top, 0, -left, 0),
            output=(row_count, column_count),
        )
        product = product_of(dataclasses.replace(
            gemm, window=part, weights=_taken(gemm.weights, window.kernel, rows, across)
        ))
        if product.copies not in maps:
            maps[product.copies] = builder.repeated(x, product.copies)
        y = target
        if window.spread != (1, 1):
            y = builder.view(
                target, (row_count, column_count, columns), row=first_row, column=first_column,
                line=(window.spread[0], 0), pixel=(0, window.spread[1]),
            )
        builder.layer(
            maps[product.copies], product.window, product.weights, y=y,
            scale=(product.multiplier, product.shift),
            **{name: getattr(product, name) for name in _FIELDS},
        )
    *layers, last = builder.finished((target,))
    macs = math.prod(window.output) * gemm.weights.size
    return target, (*layers, dataclasses.replace(last, macs=macs, left_out=gemm.left_out))


def _phases(kernel, spread, before, output):
    """Yield for each phase along an axis: where its first output begins to read the input, its
    taps, its first output, and the number of its outputs.

    A tap that the kernel lacks has weights of 0: of a phase without any tap.
    """
    for first in range(min(spread, output)):
        tap = (before - first) % spread
        taps = list(range(tap, kernel, spread)) or [None]
        yield (first + tap - before) // spread, taps, first, -(-(output - first) // spread)


def _taken(weights, kernel, rows, columns):
    """Return the weights [groups, K, N] of some rows and columns of a kernel."""
    groups, k, n = weights.shape
    whole = weights.reshape(groups, *kernel, k // math.prod(kernel), n)
    if rows == [None] or columns == [None]:
        return np.zeros((groups, len(rows) * len(columns) * whole.shape[3], n), weights.dtype)
    return whole[:, rows][:, :, columns].reshape(groups, -1, n)
