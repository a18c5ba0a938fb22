"""Convolutions as matrix products, against a plain loop over positions."""

import itertools
import math

import numpy as np
import pytest

from weft.offload import Window


def window(dims, **given):
    ones = (1,) * dims
    fields = {"strides": ones, "padding": ((0, 0),) * dims, "x_dilation": ones, "w_dilation": ones}
    return Window(**fields | given)


def positions_of(w, x_shape, w_shape):
    """The number of positions along each dimension, by trying one after the other."""
    sizes = []
    for d, (length, kernel) in enumerate(zip(x_shape[1:-1], w_shape[:-2], strict=True)):
        low, high = w.padding[d]
        end = (length - 1) * w.x_dilation[d] + 1 + low + high
        reach = (kernel - 1) * w.w_dilation[d] + 1
        sizes.append(len([p for p in range(0, max(0, end), w.strides[d]) if p + reach <= end]))
    return tuple(sizes)


def terms(w, x, kernel, n, p, o):
    """The pairs (value of x, weight) of one result, in the order of its sum.

    A position around x is 0; one between its values takes no part.
    """
    images = x.shape[0] // w.batch_groups
    outputs = kernel.shape[-1] // (w.groups * w.batch_groups)
    group, channels = o // outputs, kernel.shape[-2]
    if w.batch_groups > 1:
        n, first = group * images + n, 0
    else:
        first = group * channels
    for q in itertools.product(*map(range, kernel.shape[:-2])):
        places = [
            divmod(position * step + at * gap - low, apart)
            for position, at, step, gap, (low, _), apart in zip(
                p, q, w.strides, w.w_dilation, w.padding, w.x_dilation, strict=True
            )
        ]
        if any(rest for _, rest in places):
            continue
        place = [value for value, _ in places]
        inside = all(0 <= at < size for at, size in zip(place, x.shape[1:-1], strict=True))
        for c in range(channels):
            yield (x[(n, *place, first + c)] if inside else 0), kernel[(*q, c, o)]


def plain(w, x, kernel):
    size = positions_of(w, x.shape, kernel.shape)
    y = np.zeros((x.shape[0] // w.batch_groups, *size, kernel.shape[-1]), np.int64)
    for n, *p, o in itertools.product(*map(range, y.shape)):
        y[(n, *p, o)] = sum(int(a) * int(b) for a, b in terms(w, x, kernel, n, p, o))
    return y


CASES = {
    "plain": ((2, 5, 6, 3), (3, 2, 3, 4), {}),
    "one dimension": ((2, 9, 3), (4, 3, 2), {"strides": (2,), "padding": ((3, 1),)}),
    "three dimensions": (
        (1, 4, 5, 3, 2), (2, 3, 2, 2, 3),
        {"strides": (1, 2, 1), "padding": ((1, 0), (0, 2), (1, 1)), "w_dilation": (2, 1, 1)},
    ),
    "no dimension": ((3, 4), (4, 5), {}),
    "strides and padding": (
        (2, 7, 6, 2), (3, 3, 2, 3), {"strides": (2, 3), "padding": ((1, 2), (0, 4))}
    ),
    "dilated": (
        (1, 6, 5, 2), (2, 3, 2, 2),
        {"x_dilation": (2, 3), "w_dilation": (3, 2), "padding": ((2, 1), (3, 3))},
    ),
    "cropped": (
        (2, 9, 8, 1), (2, 2, 1, 2), {"padding": ((-2, -1), (-1, 3)), "x_dilation": (1, 2)}
    ),
    "cropped, dilated": (
        (1, 5, 4, 2), (2, 1, 2, 2), {"padding": ((-3, -2), (-1, -4)), "x_dilation": (3, 2)}
    ),
    "nothing left": ((1, 2, 2, 1), (2, 2, 1, 1), {"padding": ((3, 2), (-1, 4))}),
    "only zeros": ((1, 1, 1, 1), (1, 1, 1, 1), {"padding": ((-1, 3), (2, 0))}),
    "groups": ((2, 5, 5, 6), (3, 3, 2, 9), {"groups": 3, "strides": (2, 1)}),
    "depthwise": ((1, 4, 4, 5), (2, 2, 1, 10), {"groups": 5, "padding": ((1, 0), (0, 1))}),
    "batch groups": ((6, 4, 4, 2), (3, 2, 2, 6), {"batch_groups": 3, "w_dilation": (1, 2)}),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_times_columns(case):
    x_shape, w_shape, given = CASES[case]
    w = window(len(x_shape) - 2, **given)
    rng = np.random.default_rng(5)
    x = rng.integers(-99, 99, x_shape).astype(np.int16)
    kernel = rng.integers(-99, 99, w_shape).astype(np.int16)
    size = w.size(x_shape, w_shape)
    assert size == positions_of(w, x_shape, w_shape)
    y = np.zeros((x_shape[0] // w.batch_groups, *size, w_shape[-1]), np.int64)
    for phase in w.phases(x_shape, w_shape):
        count, m, k, n = phase.shape
        assert m == x_shape[0] // w.batch_groups * math.prod(phase.size)
        # The rows of a stream are a part of a larger array.
        rows = np.full((count, m + 2, k + 3), 77, np.uint16)[:, :m, :k]
        patches = phase.patches(x_shape, np.uint16)
        for values in (x[::-1], x):  # what was written before is gone
            patches.write(values.view(np.uint16))
        rows.reshape(patches.rows.shape)[...] = patches.rows
        columns = phase.columns(kernel)
        assert columns.shape == (count, n, k)
        sums = rows.view(np.int16).astype(np.int64) @ columns.swapaxes(1, 2).astype(np.int64)
        y[(slice(None), *phase.results)] = phase.unfolded(sums)
    assert np.array_equal(y, plain(w, x, kernel))


ORDERS = {
    "groups": ({"padding": ((1, 0), (0, 0)), "groups": 2}, 1),
    "strides": ({"strides": (2, 1), "padding": ((0, 0), (2, 1))}, 1),
    # Of three rows of results, two read one row of the kernel each, and one reads none.
    "dilated": ({"padding": ((2, 1), (1, 1)), "x_dilation": (3, 2)}, 4),
    "dilated, strides": (
        {"strides": (3, 1), "padding": ((2, 4), (0, 1)), "x_dilation": (2, 2),
         "w_dilation": (1, 2)}, 2,
    ),
}


@pytest.mark.parametrize("case", ORDERS)
def test_the_order_of_a_sum(case):
    """Row-major positions of the kernel, channels innermost; without zeros between values of x."""
    given, phases = ORDERS[case]
    w = window(2, **given)
    x = np.arange(1, 1 + 2 * 3 * 3 * 4, dtype=np.uint16).reshape(2, 3, 3, 4)
    kernel = np.arange(2 * 2 * 4 // w.groups * 4, dtype=np.uint16)
    kernel = kernel.reshape(2, 2, 4 // w.groups, 4)
    seen = set()
    for phase in w.phases(x.shape, kernel.shape):
        count, m, k, n = phase.shape
        rows = np.zeros((count, m, k), np.uint16)
        patches = phase.patches(x.shape, x.dtype)
        patches.write(x)
        rows.reshape(patches.rows.shape)[...] = patches.rows
        columns = phase.columns(kernel)
        positions = itertools.product(*(
            range(size)[place]
            for size, place in zip(w.size(x.shape, kernel.shape), phase.results, strict=True)
        ))
        for row, (image, p) in enumerate(itertools.product(range(2), list(positions))):
            for o in range(4):
                wanted = list(terms(w, x, kernel, image, p, o))
                found = zip(rows[o // n, row], columns[o // n, o % n], strict=True)
                assert [(int(a), int(b)) for a, b in found] == [
                    (int(a), int(b)) for a, b in wanted
                ]
                seen.add((image, *p, o))
    assert len(w.phases(x.shape, kernel.shape)) == phases
    size = w.size(x.shape, kernel.shape)
    for image, *p, o in itertools.product(range(2), *map(range, size), range(4)):
        # Results that no phase computes have no terms.
        assert ((image, *p, o) in seen) == any(True for _ in terms(w, x, kernel, image, p, o))
