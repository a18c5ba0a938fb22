"""Operators of two operands: ADD, SUB, MUL, PRELU, MAXIMUM, MINIMUM.

An operand is a map, or a constant. The smaller one may have one row, one column or one channel.
Constants become maps of layers whose weights are 0, or whose input is one pixel of the value 1.
"""

import math

import numpy as np

from weft.models import kernels
from weft.models.arithmetic import lane_parameters
from weft.models.ir import Window
from weft.models.network_core.additions import addition, multiplication
from weft.models.network_core.layers import Addition, Refusal, WeightLayout, WrongMap
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.models.network_core.operators.moves import MOST_JOBS
from weft.models.network_core.operators.reductions import corrected
from weft.models.network_core.pools import NO_PADDING, fitted_scale
from weft.models.network_core.products import half_of, narrow
from weft.models.program import NO_MAP_PRODUCT

__all__ = ["LOWERINGS", "PRODUCTS", "SUMS", "operand", "pair", "parameters", "spread"]

SUMS = "tflite.add", "tflite.sub", "litert.add"
PRODUCTS = "tflite.mul", "litert.mul"

_LEAST, _MOST = -128, 127
_MAX_SIZE = 255  # of a kernel
_PART = 64  # pixels of a long constant: a job takes the square of their number in steps
_BYTES = np.arange(256).astype(np.int8).astype(np.int64)  # the values of all bytes


def parameters(builder: OperatorBuilder, own: int) -> Addition:
    """Return the parameters of an operator whose input ``own`` is the layer's result.

    Raises Refusal if the results are not exact, or the core lacks the option for products.
    """
    tensors = {number: builder.tensor(n) for n, number in enumerate(builder.node.inputs)}
    if builder.node.kernel not in PRODUCTS:
        return addition(builder.node, own, tensors, builder.mode)
    found = multiplication(builder.node, own, tensors, builder.mode)
    if not builder.multiplies_maps:
        raise Refusal(NO_MAP_PRODUCT)
    return found


def operand(builder: OperatorBuilder, number: int, size: tuple[int, int, int]) -> int:
    """Return the map of an operand that can be added to a map of ``size``.

    It has all channels, and all rows and columns or one. Raises Refusal if the operand is no such
    map.
    """
    tensor = builder.tensor(number)
    target = _operand_size(builder, tensor.shape, size)
    if tensor.data is not None:
        values = tensor.data.astype(np.int64).reshape(target) - half_of(tensor.dtype)
        other = builder.stored_size(1 - number) or _one_map(builder.tensor(1 - number).shape)
        found = constant(builder, values, builder.read(1 - number, other))
    else:
        found = builder.read(number, target)
    return _all_channels(builder, found, size[2])


def _operand_size(builder, shape, size):
    """Return the size of an operand of ``shape`` beside a map of ``size``."""
    output = builder.output.shape
    whole = (1,) * (len(output) - len(shape)) + tuple(shape)
    if whole == output:
        return size
    if math.prod(whole[:-1]) == 1:
        return 1, 1, (1, *whole)[-1]
    if size != builder.map_size(output):
        raise WrongMap(f"its inputs must be maps of {builder.map_size(output)}, not {size}")
    return builder.map_size(whole)


def constant(builder: OperatorBuilder, values: np.ndarray, x: int) -> int:
    """Return a map of constant ``values`` [rows, columns, channels] of int8.

    ``x`` is any map. Values of one pixel are the bias of a layer with weights 0. Otherwise a layer
    reads one pixel of the value 1, with 0 around it: each of its pixels has it at another tap. Many
    pixels are parts, each with a layer of its own.
    """
    height, width, channels = values.shape
    if (height, width) == (1, 1):
        first = builder.view(x, (1, 1, min(builder.size(x)[2], builder.depth)))
        return builder.layer(
            first, pointwise((1, 1)), np.zeros((1, builder.size(first)[2], channels)),
            layout=WeightLayout.DENSE, bias=values.reshape(-1),
        )
    one, size = constant(builder, np.ones((1, 1, 1), np.int64), x), height * width
    if size <= _MAX_SIZE:
        return _pixels(builder, one, values)
    part = max(_PART, -(-size // MOST_JOBS))
    if part > _MAX_SIZE:
        raise Refusal(
            f"its constant must have at most {_MAX_SIZE * MOST_JOBS:,} pixels, not {size:,}"
        )
    whole, values = builder.map((1, size, channels)), values.reshape(1, size, channels)
    for first in range(0, size, part):
        pixels = values[:, first : first + part]
        _pixels(builder, one, pixels, y=builder.view(whole, pixels.shape, column=first))
    return builder.reshaped(whole, (height, width, channels))


def _pixels(builder, one, values, **fields):
    """Append a layer of constants that reads one pixel of the value 1, and return its map."""
    height, width, channels = values.shape
    window = Window(
        (height, width), (1, 1), (1, 1), (height - 1, 0, width - 1, 0), (1, 1), (height, width)
    )
    weights = values[::-1, ::-1].reshape(height * width, 1, channels)
    return builder.layer(one, window, weights, layout=WeightLayout.DENSE, **fields)


def _all_channels(builder, x, channels):
    """Return a map whose only channel is repeated, or the map itself."""
    size = builder.size(x)
    if size[2] == channels:
        return x
    if size[2] > 1:
        raise Refusal(f"its inputs must have equal channels or one, not {size[2]} and {channels}")
    return builder.layer(
        x, pointwise(size), np.ones((1, 1, channels)), layout=WeightLayout.DENSE
    )


def spread(builder: OperatorBuilder, x: int, size: tuple[int, int, int]) -> int:
    """Return a map of ``size`` that repeats the only row or column of another one.

    A layer with weights 0 has the rows and columns, and adds the map to all of them.
    """
    given = builder.size(x)
    if given == size:
        return x
    window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, given[:2], size[:2])
    return builder.sum(x, x, window, weight=0, table=np.stack([_BYTES, 0 * _BYTES]))


def _full(builder):
    """Return the number of an operand with all rows and columns, and the size of the result.

    If no map is as large as the result, it is the first map.
    """
    output = builder.output.shape
    maps = [number for number in (0, 1) if builder.tensor(number).data is None]
    for number in maps:
        if builder.tensor(number).shape == output:
            return number, builder.stored_size(number) or _one_map(output)
    return maps[0], builder.map_size(output)


def _one_map(shape):
    """Return rows, columns and channels of a tensor; those of a batch lie in one row."""
    if math.prod(shape[:-3]) == 1:
        return (1, 1, 1, *shape)[-3:]
    return 1, math.prod(shape[:-1]), shape[-1]


def pair(builder: OperatorBuilder) -> tuple[int, int, int]:
    """Return the map with all rows, columns and channels, the other one, and the number of it."""
    if builder.tensor(0).dtype != builder.tensor(1).dtype:
        raise Refusal("its inputs must have one type")
    number, size = _full(builder)
    full = spread(builder, operand(builder, number, size), size)
    return full, operand(builder, 1 - number, size), 1 - number


def _of_pair(builder):
    """ADD, SUB or MUL in a copy of the larger operand."""
    full, other, number = pair(builder)
    found = parameters(builder, 1 - number)
    return builder.copy(full, added=other, addition=found)


def _extreme(builder, least):
    """MAXIMUM or MINIMUM: a map, plus the limited difference of the other operand."""
    number, size = _full(builder)
    other, zero = builder.tensor(1 - number), _MOST if least else _LEAST
    per_channel = other.data is not None and other.data.size == size[2]
    if per_channel and _operand_size(builder, other.shape, size)[:2] == (1, 1):
        full = operand(builder, number, size)
        values = other.data.astype(np.int64).reshape(-1) - half_of(other.dtype)
        difference = builder.taps(full, pointwise(size), [-1], bias=values, zero=zero)
    else:
        full, small, _ = pair(builder)
        difference = builder.sum(full, small, zero=zero)
    return corrected(builder, full, difference, least=least)


def _channels_of(builder, number, size):
    """Return the values of a constant, one for each channel; Refusal if it has others."""
    tensor = builder.tensor(number)
    if tensor.data is None:
        raise Refusal("one of its inputs must be a constant")
    if _operand_size(builder, tensor.shape, size)[:2] != (1, 1):
        raise Refusal(f"its constant must have one value for a channel, not {tensor.shape}")
    values = tensor.data.astype(np.int64).reshape(-1)
    return np.broadcast_to(values, size[2])


def _scaled_channels(
    builder, x, factors, values, expected, *, x_zero, given, zero, low, high, **fields
):
    """Append a layer ``(x - x_zero) * factors``, scaled, and return its map.

    Parameters
    ----------
    factors : int64 [channels]
    values : int64 [N]
        All values that x can have.
    expected : int64 [N, channels]
        Their results, from ``low`` to ``high``.
    given : (int, int) or None
        The multiplier and the shift of the kernel.
    fields
        Of `OperatorBuilder.layer`.
    """
    found, limits = {}, (low - zero, high - zero)
    for factor, results in zip(factors.tolist(), expected.T - zero, strict=True):
        if factor not in found:
            sums = (values - x_zero) * factor
            found[factor] = fitted_scale(sums, results, limits, builder.mode, given)
    if None in found.values():
        raise Refusal(f"its results are not exact in mode {builder.mode}")
    scale = np.array([found[factor] for factor in factors.tolist()]).T
    size, layout, weights = builder.size(x), WeightLayout.DIAGONAL, factors[None]
    if size[2] < len(factors):  # the only channel is read for all
        layout, weights = WeightLayout.DENSE, factors[None, None]
    window, _, weights = narrow(pointwise(size), weights)
    return builder.layer(
        x, window, weights, layout=layout, bias=-x_zero * factors, scale=tuple(scale),
        x_zero=x_zero, zero=zero, low=low, high=high, **fields,
    )


def _results(builder, number, values, constants):
    """Return the kernel's results less 128 if uint8, for ``values`` of a map and constants."""
    tensor = builder.tensor(number)
    inputs = [None, None]
    inputs[number] = (values + half_of(tensor.dtype)).astype(tensor.dtype)
    inputs[1 - number] = constants.astype(tensor.dtype)
    [results] = kernels.run(builder.node.kernel, inputs, builder.node.attributes)
    return results.astype(np.int64) - half_of(results.dtype)


def _product(builder):
    """MUL by a constant for each channel: a layer of 1 x 1. Other products need the option."""
    given, (number, size) = builder.node.attributes, _full(builder)
    other = builder.tensor(1 - number)
    if other.data is None or _operand_size(builder, other.shape, size)[:2] != (1, 1):
        return _of_pair(builder)
    constants = _channels_of(builder, 1 - number, size)
    target = _operand_size(builder, builder.tensor(number).shape, size)
    x_zero, zero, low, high = (
        builder.zero(value, builder.tensor(number))
        for value in (given["zeros"][number], given["zero"], given["low"], given["high"])
    )
    multiplier = None
    if builder.node.kernel == "tflite.mul":
        multiplier = given["multiplier"], given["shift"]
    return _scaled_channels(
        builder, builder.read(number, target), constants - given["zeros"][1 - number], _BYTES,
        _results(builder, number, _BYTES[:, None], constants[None]), x_zero=x_zero,
        given=multiplier, zero=zero, low=low, high=high,
    )


def _prelu(builder):
    """PRELU: a layer has ``min(x, zero)``, the next one its products, and adds the rest of x.

    Both terms are the zero point where the other one counts.
    """
    given, size = builder.node.attributes, builder.map_size(builder.output.shape)
    slopes = _channels_of(builder, 1, size)
    x = operand(builder, 0, size)
    zero, y_zero = (
        builder.zero(value, builder.tensor(0)) for value in (given["zeros"][0], given["zero"])
    )
    below = builder.copy(x, x_zero=zero, bias=-zero, zero=_MOST)  # x - zero + 127 at most 127
    negative = np.arange(_LEAST, zero + 1)  # all values of x up to zero
    results = _results(builder, 0, negative[:, None], slopes[None])
    positive = _results(builder, 0, np.maximum(_BYTES, zero), np.array([given["zeros"][1]]))
    return _scaled_channels(
        builder, below, slopes - given["zeros"][1], negative - zero + _MOST, results, x_zero=_MOST,
        given=(given["multipliers"][1], given["shifts"][1]), zero=y_zero, low=_LEAST, high=_MOST,
        added=x,
        addition=Addition(
            np.stack([positive, _BYTES - y_zero]).astype(np.int32),
            *lane_parameters(1.0, builder.mode), 0, _LEAST, _MOST,
        ),
    )


LOWERINGS = {
    **dict.fromkeys(SUMS, _of_pair), **dict.fromkeys(PRODUCTS, _product), "tflite.prelu": _prelu,
    "maximum": lambda builder: _extreme(builder, least=False),
    "minimum": lambda builder: _extreme(builder, least=True),
}
