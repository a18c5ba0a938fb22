"""SQUARED_DIFFERENCE of two maps.

The kernel scales both operands to terms of up to 15 bits, and the result only depends on the
difference d of the terms. It rises with the distance of d from 0. So it is found in two steps, for
each sign of d, ``e = d`` or ``e = -d``::

    h = clamp(round(e / width) - 128, -128, 127)                 a bin
    l = clamp(e - width * (h + 128), -128, 127)                  the place in the bin
    y = base + sum over both signs of least[h] + (l >= place[0, h]) + (l >= place[1, h]) + ...

``least`` is how far the smallest result of a bin lies above the result for d = 0, and the places
are those from which the results of the bin are larger. l is exact: a layer computes it from maps
that have each term whole, as a multiple of the operand, or as two digits.
"""

import numpy as np

from weft.models import kernels
from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Window
from weft.models.kernels.tflite import terms
from weft.models.network_core.additions import lookup
from weft.models.network_core.layers import Addition, Refusal
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.operators.operands import pair, spread
from weft.models.network_core.pools import NO_PADDING
from weft.models.network_core.products import half_of

__all__ = ["LOWERINGS"]

_LEAST, _MOST = -128, 127
_BINS = 256
_BYTES = np.arange(256).astype(np.int8).astype(np.int64)  # the values of all bytes
_NEVER = 1 << 10  # no place in a bin
_MAX_ROWS = 255  # a dilation


class _Side:
    """The bins for one sign of the difference.

    Parameters
    ----------
    sign : int
    differences, results : int64 [256, 256]
        By the bytes of the other operand and of the full one; results above the smallest one.
    width : int
    mode : str

    Attributes
    ----------
    scale : tuple
        Multiplier and shift that divide by the width.
    least : int64 [256]
        By the bytes of h.
    places : list of int64 [256]
    """

    def __init__(self, sign, differences, results, width, mode):
        self.sign, self.width = sign, width
        self.scale = lane_parameters(1 / width, mode)
        e = sign * differences
        self.h = np.clip(
            lane_results(e.astype(np.int32), *self.scale, mode) + _LEAST, _LEAST, _MOST
        ).astype(np.int64)
        self.l = np.clip(e - width * (self.h - _LEAST), _LEAST, _MOST)
        wanted = np.where(e >= 0, results, 0)
        # The smallest result in each bin from each place on.
        from_place = np.full((_BINS, 256), _NEVER)
        np.minimum.at(from_place, (self.h.ravel() & 255, self.l.ravel() - _LEAST), wanted.ravel())
        least = from_place.min(axis=1)
        self.least = np.where(least == _NEVER, 0, least)
        most = np.where(from_place == _NEVER, -1, from_place).max(axis=1) - self.least
        self.places = []
        for more in range(1, int(most.max()) + 1):
            enough = (from_place >= (self.least + more)[:, None]) & (from_place != _NEVER)
            first = np.where(enough.any(axis=1), enough.argmax(axis=1) + _LEAST, _NEVER)
            self.places.append(first)

    @property
    def is_empty(self):
        """Whether it adds nothing."""
        return not self.places and not self.least.any()

    def results(self):
        """What the jobs compute for all pairs of bytes."""
        h = self.h & 255
        return self.least[h] + sum((self.l >= place[h]).astype(np.int64) for place in self.places)


def _squared_difference(builder: OperatorBuilder) -> int:
    """Append the layers; Refusal if they do not give the results of the kernel for all bytes."""
    node, mode = builder.node, builder.mode
    full, other, number = pair(builder)
    size = builder.size(full)
    if size[0] > _MAX_ROWS:
        raise Refusal(f"its maps must have at most {_MAX_ROWS} rows, not {size[0]}")
    tensor = builder.tensor(0)
    inputs = [None, None]
    for operand, values in ((number, _BYTES[:, None]), (1 - number, _BYTES[None])):
        inputs[operand] = (values + half_of(tensor.dtype)).astype(tensor.dtype)
    both = [np.broadcast_to(value, (256, 256)) for value in inputs]
    [expected] = kernels.run(node.kernel, both, node.attributes)
    expected = expected.astype(np.int64) - half_of(tensor.dtype)
    scaled = terms(inputs, node.attributes)
    other_terms, full_terms = scaled[number].ravel(), scaled[1 - number].ravel()
    differences = full_terms[None] - other_terms[:, None]
    base = expected.min()
    sides = _sides(differences, expected - base, mode)
    if not np.array_equal(base + sum(side.results() for side in sides), expected):
        raise Refusal(f"its results are not exact in mode {mode}")
    return _layers(builder, (full, full_terms), (other, other_terms), int(base), sides)


def _sides(differences, results, mode):
    """Return the sides that add something.

    Terms have at most 255 * 64 units, so a bin has at most 128: an int8 weight.
    """
    largest = np.abs(differences)[results == results.max()].min()
    width = max(1, -(-int(largest) // (_BINS - 1)))
    found = [_Side(sign, differences, results, width, mode) for sign in (1, -1)]
    return [side for side in found if not side.is_empty]


def _layers(builder, full, other, base, sides):
    """Append the layers, and return the map of the result."""
    (x, x_terms), (added, added_terms) = full, other
    size, width = builder.size(x), sides[0].width if sides else 1
    first, second = _parts(x_terms), _parts(-added_terms)
    whole = _stack(builder, size, len(first[0]) + len(second[0]) + len(sides))
    row = _put(builder, whole, x, first[0], size, 0)
    _put(builder, whole, spread(builder, added, size), second[0], size, row)
    weights = [weight for parts in (first, second) for _, weight in parts[0]]
    bins, rows = [], []
    for place, side in enumerate(sides):
        table = np.stack([-side.sign * added_terms, side.sign * x_terms])
        y = builder.view(whole, size, row=(len(weights) + place) * size[0])
        bins.append(builder.sum(x, added, table=table, scale=side.scale, zero=_LEAST, y=y))
        rows.append([side.sign * weight for weight in weights] + [
            -width * (other is side) for other in sides
        ])
    count = sum(len(side.places) for side in sides)
    steps = _stack(builder, size, count) if count else -1
    row = 0
    for side, h, taps in zip(sides, bins, rows, strict=True):
        bias = side.sign * (first[1] + second[1]) + width * _LEAST
        inside = builder.taps(whole, _window(size, len(taps)), taps, bias=bias)
        for place in side.places:
            y = builder.view(steps, size, row=row)
            table = np.stack([1 - place, _BYTES])
            builder.sum(inside, h, table=table, low=0, high=1, y=y)
            row += size[0]
    scale = lane_parameters(1.0, builder.mode)
    y = steps
    for number, (side, h) in enumerate(zip(sides, bins, strict=True)):
        table = np.stack([side.least, _BYTES]).astype(np.int32)
        addition = Addition(table, *scale, 0 if number else base, _LEAST, _MOST)
        taps = [1] * count if not number else [1]
        if y < 0:  # the bins are exact
            y, taps = h, [0]
        y = builder.taps(
            y, _window(size, len(taps)), taps, added=h, addition=addition
        )
    return y


def _parts(values):
    """Return digits of terms and their weights, and a constant: their sum has the terms.

    Terms that are a multiple of the operand are one digit, the operand itself: None.
    """
    by_value = np.roll(values, 128)  # from -128 on
    steps = np.unique(np.diff(by_value))
    if len(steps) == 1 and abs(steps[0]) <= _MOST:
        return [(None, int(steps[0]))], int(values[0])
    middle = (int(values.min()) + int(values.max())) // 2
    high = np.rint((by_value - middle) / _MOST).astype(np.int64)
    low = by_value - middle - _MOST * high
    return [(high, _MOST), (low, 1)], middle


def _stack(builder, size, count):
    """Return a map of ``count`` maps, one below the other."""
    return builder.map((count * size[0], *size[1:]))


def _put(builder, whole, x, parts, size, row):
    """Put the digits of a map into a stack from ``row`` on, and return the row behind them."""
    for digits, _ in parts:
        if digits is None:
            builder.into(x, whole, row=row)
        else:
            y = builder.view(whole, size, row=row)
            builder.copy(x, addition=lookup(digits, builder.mode), y=y)
        row += size[0]
    return row


def _window(size, count):
    """Return the window whose taps are the same pixel of all maps of a stack."""
    dilation = size[0] if count > 1 else 1
    return Window(
        (count, 1), (1, 1), (dilation, 1), NO_PADDING, (count * size[0], size[1]), size[:2]
    )


LOWERINGS = {"tflite.squared_difference": _squared_difference}
