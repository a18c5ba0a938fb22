"""Operators that take many values together: pools, MEAN, SUM, REDUCE_MAX, REDUCE_MIN, SOFTMAX."""

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from weft.models.ir import Window
from weft.models.kernels.tflite import exponentials
from weft.models.network_core.layers import Addition, Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.models.network_core.pools import NO_PADDING, average_scale, mean_scale
from weft.models.network_core.products import half_of
from weft.network_core.config import MAX_SOFTMAX

__all__ = [
    "LOWERINGS", "NO_UNIT", "average_pool", "corrected", "maximum", "mean_window", "taps_along",
]

_LEAST, _MOST = -128, 127  # the least one is never a maximum of other values


def maximum(
    builder: OperatorBuilder, x: int, other: int, window: Window | None = None, **result
) -> int:
    """Return a map with the larger ones of two maps, or of pixels of x and a map.

    ``window`` has one tap; the taps outside x are less than all others. ``result`` are limits, and
    ``y``.
    """
    # What the other map is larger than x, and -128 where it is not.
    more = builder.sum(x, other, window, x_zero=_LEAST, zero=_LEAST)
    return corrected(builder, x, more, window, **result)


def corrected(
    builder: OperatorBuilder, x: int, difference: int, window: Window | None = None, *,
    least: bool = False, **result
) -> int:
    """Return x plus what another map is larger: ``x + difference + 128``.

    With ``least``, plus what it is less: ``x + difference - 127``. The layer computes ``-1 - x``,
    whose negative is added: so the table is that of a difference.
    """
    zero = -128 if least else 127
    return builder.sum(
        x, difference, window, weight=-1, bias=-1, x_zero=_LEAST, zero=zero, **result
    )


def _max_pool(builder):
    """The rows of the windows first, then their columns: a maximum of two taps after the other."""
    given, x = builder.node.attributes, builder.read()
    low, high = (builder.zero(given[name], builder.tensor(0)) for name in ("low", "high"))
    for axis in (1, 0):
        limits = {} if axis else {"low": low, "high": high}
        x = _maximum_along(
            builder, x, axis, given["kernel_size"][axis], given["stride"][axis],
            given["padding"][axis], given["output"][axis], limits,
        )
    return x


def taps_along(size, axis, stride, before, output, first, taps) -> Window:
    """Return the window of some taps along an axis of a map, from tap ``first`` on."""
    values = {
        "kernel": (1, taps), "stride": (1, stride if output > 1 else 1),
        "output": (size[1 - axis], output), "start": (0, before - first),
    }
    if axis == 0:
        values = {name: value[::-1] for name, value in values.items()}
    (top, left) = values["start"]
    return Window(
        values["kernel"], values["stride"], (1, 1), (top, 0, left, 0), size[:2], values["output"]
    )


def _maximum_along(builder, x, axis, kernel, stride, before, output, limits):
    """Return the maxima of windows along an axis of a map."""
    window = functools.partial(
        taps_along, builder.size(x), axis, stride, before, output
    )
    if kernel == 1:
        return builder.copy(x, window(0, 1), x_zero=_LEAST, **limits)
    # The second tap less the first one needs no table.
    last = kernel == 2
    more = builder.taps(x, window(0, 2), [-1, 1], x_zero=_LEAST, zero=_LEAST)
    y = corrected(builder, x, more, window(0, 1), **(limits if last else {}))
    for tap in range(2, kernel):
        last = tap == kernel - 1
        y = maximum(builder, x, y, window(tap, 1), **(limits if last else {}))
    return y




NO_UNIT = "the core has no unit for it"  # why the host computes it, if another core would


def _softmax(builder: OperatorBuilder) -> int:
    """Append the SOFTMAX of each pixel of a map: the same steps as the kernel's."""
    x = builder.tensor(0)
    if builder.config is None or not builder.config.softmax:
        raise Refusal(NO_UNIT)
    if builder.output.dtype != x.dtype:
        raise Refusal(f"its results must have 8 bits, not {8 * builder.output.dtype.itemsize}")
    number = builder.read()
    size = builder.size(number)
    if size[2] > MAX_SOFTMAX:
        raise Refusal(f"a row must have at most {MAX_SOFTMAX:,} values, not {size[2]:,}")
    table = exponentials(builder.node.attributes).astype(np.int32).reshape(1, -1)
    return builder.layer(
        number, pointwise(size), np.zeros((1, size[2]), np.int8), layout=WeightLayout.NONE,
        addition=Addition(table, 0, 0, 0, 0, 0),
    )




_MAX_SIZE = 255  # of a kernel, and of a dilation


def average_pool(
    builder: OperatorBuilder, average: Callable[[int, Window, int, int | None], None]
) -> int:
    """Append a layer for all windows with as many inputs: those at a border have fewer.

    ``average(x, window, inputs, y)`` appends it: ``inputs`` of the taps of a window are in the map.
    """
    given, x = builder.node.attributes, builder.read()
    size, output = builder.size(x), tuple(given["output"])
    runs = [
        _runs(*numbers) for numbers in zip(
            size[:2], given["kernel_size"], given["stride"], given["padding"], output, strict=True
        )
    ]
    regions = list(itertools.product(*runs))
    whole = builder.map((*output, size[2]))
    for rows, columns in regions:
        window = Window(
            (rows.taps, columns.taps),
            tuple(s if run.count > 1 else 1
                  for s, run in zip(given["stride"], (rows, columns), strict=True)),
            (1, 1), (-rows.start, 0, -columns.start, 0), size[:2], (rows.count, columns.count),
        )
        y = whole
        if len(regions) > 1:
            y = builder.view(
                whole, (rows.count, columns.count, size[2]), row=rows.first, column=columns.first
            )
        average(x, window, rows.inputs * columns.inputs, y)
    return whole


def _average_pool(builder):
    """Averages of bytes."""
    zero, low, high = (
        builder.zero(value, builder.tensor(0))
        for value in (0, *(builder.node.attributes[name] for name in ("low", "high")))
    )

    def average(x, window, inputs, y):
        scale = average_scale(inputs, builder.mode, zero)
        builder.equal(
            x, window, scale.weight, bias=-zero * math.prod(window.kernel) * scale.weight,
            scale=(scale.multiplier, scale.shift), x_zero=zero, zero=zero, low=low, high=high, y=y,
        )

    return average_pool(builder, average)


class _Run:
    """Neighbouring outputs along an axis whose windows have as many inputs.

    Attributes
    ----------
    first, count : int
        Outputs.
    start, taps : int
        The first tap of the first output, as a place in the input, and the taps of a window.
    inputs : int
        Taps of a window in the input.
    """

    def __init__(self, first, count, start, taps, inputs):
        self.first, self.count, self.start, self.taps, self.inputs = (
            first, count, start, taps, inputs
        )


def _runs(size, kernel, stride, before, output):
    """Return the runs of windows along an axis."""
    starts = [n * stride - before for n in range(output)]
    inputs = [min(start + kernel, size) - max(start, 0) for start in starts]
    found = []
    for count, group in itertools.groupby(range(output), inputs.__getitem__):
        first, *others = group
        start, taps = starts[first], kernel
        if not others:  # without the taps outside
            start, taps = max(start, 0), count
        found.append(_Run(first, 1 + len(others), start, taps, count))
    return found


def _axes(builder):
    """Return the axes of the map that the operator reduces: 0 rows, 1 columns, 2 channels."""
    rank = len(builder.tensor(0).shape)
    found = {axis % rank + 3 - rank for axis in builder.node.attributes["axes"]}
    return sorted(axis for axis in found if axis >= 0)  # the others have size 1


def mean_window(builder: OperatorBuilder) -> tuple[int, Window, bool]:
    """Return the map that a mean or a sum reads, its window, and whether it is over channels."""
    axes, size = _axes(builder), builder.map_size(builder.tensor(0).shape)
    if all(axis in axes or size[axis] == 1 for axis in (0, 1)):
        axes, size = [0, 1, *axes], _within_limits(size)
    x = builder.read(0, size)
    kernel = tuple(size[axis] if axis in axes else 1 for axis in (0, 1))
    output = tuple(1 if axis in axes else size[axis] for axis in (0, 1))
    return x, Window(kernel, (1, 1), (1, 1), NO_PADDING, size[:2], output), 2 in axes


def _mean(builder):
    """One layer, so that the sum is rounded once."""
    x, window, over_channels = mean_window(builder)
    size, tensor = builder.size(x), builder.tensor(0)
    half = half_of(tensor.dtype)
    scale = mean_scale(builder.node, tensor.shape, half, builder.mode)
    x_zero, zero = (value - half for value in builder.node.attributes["zeros"])
    taps = math.prod(window.kernel)
    fields = dict(scale=(scale.multiplier, scale.shift), x_zero=x_zero, zero=zero)
    if not over_channels:
        return builder.equal(x, window, scale.weight, bias=-x_zero * taps * scale.weight, **fields)
    return builder.layer(
        x, window, np.full((taps, size[2], 1), scale.weight), layout=WeightLayout.DENSE,
        bias=-x_zero * taps * size[2] * scale.weight, **fields,
    )


def _within_limits(size):
    """Return rows and columns that a kernel can have, with as many pixels; or the size itself."""
    pixels = size[0] * size[1]
    if max(size[:2]) > _MAX_SIZE:
        for rows in range(1, _MAX_SIZE + 1):
            if pixels % rows == 0 and pixels // rows <= _MAX_SIZE:
                return rows, pixels // rows, size[2]
    return size


def _extreme(builder, least):
    """Along each axis, the larger one of values with a distance, until one is left."""
    x = builder.read()
    for axis in _axes(builder):
        while builder.size(x)[axis] > 1:
            half = _halved_channels if axis == 2 else _halved
            x = half(builder, x, axis, least)
    # The place of a map that the host wrote is free after its last layer: a result needs its own.
    if not builder.layers and builder.stored_size(0) is None:
        return builder.copy(x)
    return x


def _halved(builder, x, axis, least):
    """Return the extremes of all pairs along an axis of pixels with a distance."""
    size = builder.size(x)
    distance = min(size[axis] // 2, _MAX_SIZE)
    output = tuple(n - distance if place == axis else n for place, n in enumerate(size[:2]))
    taps, dilation = ((2, 1), (distance, 1)) if axis == 0 else ((1, 2), (1, distance))
    pairs = Window(taps, (1, 1), dilation, NO_PADDING, size[:2], output)
    difference = builder.taps(x, pairs, [-1, 1], zero=_MOST if least else _LEAST)
    first = Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], output)
    return corrected(builder, x, difference, first, least=least)


def _halved_channels(builder, x, _, least):
    """The same along the channels: views of whole vectors, or the differences of columns."""
    height, width, channels = builder.size(x)
    distance = channels // 2
    zero = _MOST if least else _LEAST
    if distance >= builder.depth:
        distance -= distance % builder.depth
    rest = height, width, channels - distance
    first = builder.view(x, rest)
    if distance % builder.depth == 0:
        second = builder.view(x, rest, channel=distance)
        difference = builder.sum(first, second, zero=zero)
    else:
        weights = np.eye(channels, rest[2], -distance) - np.eye(channels, rest[2])
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, rest[:2], rest[:2])
        difference = builder.layer(x, window, weights[None], layout=WeightLayout.DENSE, zero=zero)
    return corrected(builder, first, difference, least=least)


LOWERINGS = {
    "tflite.max_pool": _max_pool, "tflite.softmax": _softmax,
    "tflite.average_pool": _average_pool,
    **dict.fromkeys(("tflite.mean", "tflite.sum", "litert.sum"), _mean),
    "reduce_max": lambda builder: _extreme(builder, least=False),
    "reduce_min": lambda builder: _extreme(builder, least=True),
}
