"""Maps in another size, bilinear: a layer of up to 4 taps for each phase.

Outputs of one phase have equal weights. Weights are powers of two and small multiples of them if
the size grows by 2, 4 or 8; their sum is a power of two, so the scale of the sum is exact. Weights
above 127 are sums of weights, of taps on the same pixel.
"""

import functools

import numpy as np

from weft.golden import scaled
from weft.models.ir import Window
from weft.models.kernels import litert, tflite
from weft.models.network_core.layers import Refusal
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.operators.grids import Cover
from weft.models.network_core.products import half_of, narrow
from weft.quantize import quantize_multiplier

__all__ = ["LOWERINGS"]

_MOST_WEIGHT = 4 * 127  # of four taps on a pixel
_MOST_JOBS = 128  # 8 phases along both axes, and the borders


def _bilinear(builder: OperatorBuilder) -> int:
    """RESIZE_BILINEAR."""
    given, x = builder.node.attributes, builder.read()
    height, width, channels = builder.size(x)
    axes = [
        _lines(builder.node.kernel, before, after, given)
        for before, after in zip((height, width), given["size"], strict=True)
    ]
    target, maps = builder.map((*given["size"], channels)), {1: x}
    kinds = [list(dict.fromkeys(weights for _, weights in lines)) for lines in axes]
    phase_of = [
        np.array([names.index(weights) for _, weights in lines])
        for names, lines in zip(kinds, axes, strict=True)
    ]
    firsts = [np.array([first for first, _ in lines]) for lines in axes]
    row, column = np.broadcast_arrays(firsts[0][:, None], firsts[1][None, :])
    for across, rows in enumerate(kinds[0]):
        for along, columns in enumerate(kinds[1]):
            members = (phase_of[0] == across)[:, None] & (phase_of[1] == along)[None, :]
            _phase(builder, maps, target, (rows, columns), members, (row, column))
    return target


def _phase(builder, maps, target, weights, members, firsts):
    """Append the layers of all outputs with the same weights, of rows and of columns.

    ``maps`` are the map, and those with copies of each pixel, by the number of copies.
    """
    *size, channels = builder.size(maps[1])
    kernel = tuple(len(line) for line in weights)
    products = np.outer(*weights)
    whole = np.gcd.reduce(products.ravel())
    factor, scale, offset = _scale(
        builder.node.kernel, int(products.sum() // whole), int(np.abs(products).max() // whole),
        half_of(builder.tensor(0).dtype), builder.mode,
    )
    taken = factor * (products // whole)
    cover = Cover(members, *firsts, np.zeros_like(members), kernel, tuple(size))
    covered = np.zeros_like(members)
    while (members & ~covered).any():
        if len(builder.layers) >= _MOST_JOBS:
            raise Refusal(f"its outputs have different weights, in more than {_MOST_JOBS} ways")
        place = cover.largest(covered)
        covered[np.ix_(*place.lines())] = True
        stride = tuple(
            step if count > 1 else 1 for step, count in zip(
                (place.line[0], place.pixel[1]), place.count, strict=True
            )
        )
        window = Window(
            kernel, stride, (1, 1), (-place.start[0], 0, -place.start[1], 0), tuple(size),
            place.count,
        )
        window, copies, parts = narrow(window, taken.reshape(-1, 1))
        if copies not in maps:
            maps[copies] = builder.repeated(maps[1], copies)
        y = builder.view(
            target, (*place.count, channels), row=place.first[0], column=place.first[1],
            line=(place.step[0], 0), pixel=(0, place.step[1]),
        )
        builder.taps(
            maps[copies], window, parts, y=y, bias=offset * int(taken.sum()), scale=scale,
            zero=-offset,
        )


def _lines(kernel, before, after, given):
    """Return for each output along an axis its first input, and the weights from that one on."""
    if kernel == "tflite.resize_bilinear":
        one, module = 1024, tflite
    else:
        one, module = 2048, litert
    lower, upper, rest = module.neighbours(before, after, given)
    if module is tflite:  # the position of the output, not the weight of the upper neighbour
        rest = rest - one * lower
    found = []
    for first, last, weight in zip(lower.tolist(), upper.tolist(), rest.tolist(), strict=True):
        if first == last or not weight:
            found.append((first, (one,)))
        elif weight == one:
            found.append((last, (one,)))
        else:
            found.append((first, (one - weight, weight)))
    return found


@functools.lru_cache(maxsize=256)
def _scale(kernel, total, largest, half, mode):
    """Return a factor of the weights, the scale, and what is added to all values.

    ``total`` is the sum of the weights, and ``largest`` the largest one. All sums that can occur
    are compared with the kernel's rounding. Raises Refusal if no factor is exact.
    """
    if largest > _MOST_WEIGHT:
        raise Refusal(
            f"its weights must be at most {_MOST_WEIGHT} / {total}, not {largest} / {total}"
        )
    sums = np.arange(-128 * total, 127 * total + 1)
    raw = sums + half * total
    if kernel == "tflite.resize_bilinear":  # ties are rounded away from 0
        expected = np.sign(raw) * ((np.abs(raw) + total // 2) // total)
    else:
        expected = (raw + total // 2) // total
    factors = *(1 << n for n in reversed(range(7))), *range(3, 128)
    fits = [factor for factor in factors if factor * largest <= _MOST_WEIGHT]
    for factor in sorted(fits, key=lambda factor: factor * largest > 127):  # one tap on a pixel
        multiplier, shift = map(int, quantize_multiplier(1 / (total * factor)))
        for offset in (0, 128):
            values = (factor * (sums + offset * total)).astype(np.int32)
            found = scaled(values, multiplier, shift, mode=mode).astype(np.int64) - offset
            if np.array_equal(found, expected - half):
                return factor, (multiplier, shift), offset
    raise Refusal(f"sums of weights over {total} are not exact with the scaler of the lanes")


LOWERINGS = {
    "tflite.resize_bilinear": _bilinear,
    "litert.resize_bilinear": _bilinear,
}
