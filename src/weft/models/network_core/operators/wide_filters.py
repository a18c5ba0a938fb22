"""SVDF with a state and a filter in time of int16: their bytes are maps of int8.

A value of the state is two channels, and a weight of the filter in time has three digits::

    s = 256 * high + low + 128                       bytes of a job with ``pairs``
    w = 2^16 * d2 + 2^8 * d1 + d0                    each in -128..127; d2 is 0 or 1

So the sum of ``s * w`` has four parts. They are columns of a job with ``quads``, which adds them as
the runtime does, modulo 2^32::

    2^24 * sum(high * d2)
    2^16 * sum(high * d1 + low * d2)
    2^8  * sum(high * d0 + low * d1)
           sum(low * d0) + bias + 128 * sum(w)

The state has more outputs than the operator, so that its vectors and the tiles of both jobs are
whole: their weights are 0. The last job selects the columns with results.
"""

import numpy as np

from weft.models.network_core.layers import Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise, whole_map
from weft.models.network_core.wide_maps import NO_INT16

__all__ = ["first_state", "wide_filter"]

_BYTES, _DIGITS = 2, 4  # of a value of the state; columns of a result
_LOW = 128  # what the low byte of a value is less
_LIMITS = np.iinfo(np.int16)


def first_state(given, cols: int, depth: int) -> np.ndarray:
    """Return the bytes of the state before the first inference: 0, int8 [1, rank, memory, bytes].

    ``given`` are the attributes of the kernel ``tflite.svdf``.
    """
    (filters, memory), rank = given["time"].shape, given["rank"]
    shape = 1, rank, memory, _whole_units(filters // rank, cols, depth)
    return np.stack([np.zeros(shape), np.full(shape, -_LOW)], -1).astype(np.int8).reshape(
        *shape[:3], -1
    )


def _whole_units(units, cols, depth):
    """The outputs of the state: whole tiles of the last job, and whole vectors of values."""
    step = max(cols, depth // _BYTES)
    return -(-units // step) * step


def wide_filter(builder: OperatorBuilder) -> int:
    """Append the layers; Refusal if the core has no values of 16 bits."""
    config = builder.config
    if config is None or not config.int16:
        raise Refusal(NO_INT16)
    given, rank = builder.node.attributes, builder.node.attributes["rank"]
    (x, _), state, memory = builder.stored(0), builder.shifted(1), given["time"].shape[1]
    units, channels = len(given["time"]) // rank, builder.size(state)[2]
    for row in range(rank):
        newest = builder.view(state, (1, 1, channels), row=row, column=memory - 1)
        _newest(builder, x, given["features"][:, row::rank], newest)
    # From [units, rank, memory] to taps of columns.
    time = given["time"].reshape(units, rank, memory).transpose(1, 2, 0).reshape(-1, units)
    return _selected(builder, _filtered(builder, state, time), units)


def _newest(builder, x, features, y):
    """Append the layer with the newest values of a rank: the odd columns have the sums."""
    given, (height, width, channels) = builder.node.attributes, builder.size(x)
    columns = np.zeros((len(features), builder.size(y)[2]), np.int64)
    columns[:, 1 : _BYTES * features.shape[1] : _BYTES] = features
    builder.layer(
        x, whole_map((height, width)), columns.reshape(height * width, channels, -1),
        layout=WeightLayout.DENSE, bias=-given["x_zero"] * columns.sum(0), x_zero=given["x_zero"],
        scale=(given["multipliers"][0], given["shifts"][0]), y=y, digits="pairs",
        low=_LIMITS.min, high=_LIMITS.max,
    )


def _filtered(builder, state, time):
    """Append the layer with the sums over time; each result is the last one of four columns."""
    given, (rank, memory, channels) = builder.node.attributes, builder.size(state)
    units, whole = time.shape[1], channels // _BYTES
    bias = np.zeros(units, np.int64) if given["bias"] is None else given["bias"].astype(np.int64)
    biases = np.zeros((whole, _DIGITS), np.int64)
    biases[:units, -1] = (bias + _LOW * time.astype(np.int64).sum(0)).astype(np.int32)
    digits = np.zeros((len(time), whole, _DIGITS - 1), np.int64)
    digits[:, :units] = _digits(time)
    # A group of columns reads the channels of its own values: one vector, or more.
    group = max(builder.depth, builder.cols // _BYTES)
    own = group // _BYTES
    weights = np.zeros((len(time), own, _BYTES, whole, _DIGITS), np.int64)
    for unit in range(whole):
        for byte in range(_BYTES):  # the high byte, whose columns count 256 times more, is first
            weights[:, unit % own, byte, unit, byte : byte + _DIGITS - 1] = digits[:, unit]
    return builder.layer(
        state, whole_map((rank, memory)), weights.reshape(len(time), group, -1),
        layout=WeightLayout.DENSE, groups=whole // own, bias=biases.reshape(-1),
        scale=(given["multipliers"][1], given["shifts"][1]), zero=given["zero"],
        low=given["low"], high=given["high"], digits="quads",
    )


def _digits(weights):
    """The digits of weights of int16, the highest one first; int64 [..., 3]."""
    rest, found = weights.astype(np.int64), []
    for _ in range(_DIGITS - 1):
        found.append((rest + _LOW) % 256 - _LOW)
        rest = (rest - found[-1]) >> 8
    return np.stack(found[::-1], -1)


def _selected(builder, x, units):
    """Append the layer that selects the last one of four columns."""
    cols, depth, channels = builder.cols, builder.depth, builder.size(x)[2]
    groups = -(-units // cols) if depth <= _BYTES * cols else 1
    own = channels // groups
    weights = np.zeros((1, own, units), np.int8)
    columns = np.arange(units)
    weights[0, (_DIGITS * columns + _DIGITS - 1) % own, columns] = 1
    return builder.layer(
        x, pointwise(builder.size(x)), weights, layout=WeightLayout.DENSE, groups=groups
    )
