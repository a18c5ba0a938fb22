"""Convolutions as products, against direct convolutions by loops."""

import itertools

import numpy as np
import pytest

from weft.models.ir import Window
from weft.models.lowering import WindowRows


def convolution(x, weights, window, zero):
    """Sums [batch, channel, y, x] of (x - zero) [batch, channel, y, x] by the definition of Window.

    ``weights`` are [groups, K, N].
    """
    groups, _, columns = weights.shape
    channels = x.shape[1] // groups
    spread = np.full(
        (*x.shape[:2], *((size - 1) * s + 1 for size, s in zip(
            x.shape[2:], window.spread, strict=True
        ))), zero, int,
    )
    spread[:, :, :: window.spread[0], :: window.spread[1]] = x
    y = np.zeros((len(x), groups * columns, *window.output), int)
    sizes = map(range, (len(x), groups, *window.output, *window.kernel))
    for b, g, oy, ox, ky, kx in itertools.product(*sizes):
        iy = oy * window.stride[0] + ky * window.dilation[0] - window.padding[0]
        ix = ox * window.stride[1] + kx * window.dilation[1] - window.padding[2]
        if 0 <= iy < spread.shape[2] and 0 <= ix < spread.shape[3]:
            for c in range(channels):
                k = (ky * window.kernel[1] + kx) * channels + c
                value = spread[b, g * channels + c, iy, ix] - zero
                y[b, g * columns : (g + 1) * columns, oy, ox] += value * weights[g, k]
    return y


def window(kernel=(3, 3), stride=(1, 1), dilation=(1, 1), padding=(1, 1, 1, 1), size=(5, 6),
           spread=(1, 1)):
    output = tuple(
        ((size[i] - 1) * spread[i] + 1 + padding[2 * i] + padding[2 * i + 1]
         - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in range(2)
    )
    return Window(kernel, stride, dilation, padding, size, output, spread)


CASES = {
    "plain": (window(), 1, 3, 4),
    "pointwise": (window((1, 1), padding=(0, 0, 0, 0)), 1, 5, 3),
    "stride": (window(stride=(2, 3)), 1, 2, 3),
    "dilation": (window((2, 3), dilation=(2, 2), padding=(2, 0, 1, 3)), 1, 2, 3),
    "spread": (window(padding=(2, 1, 2, 2), spread=(2, 3)), 1, 2, 2),
    "crop": (window(padding=(-1, 2, -2, 0)), 1, 2, 2),
    "crop of a spread map": (window((2, 2), padding=(-3, 1, -1, -2), spread=(2, 2)), 1, 2, 2),
    "all of it outside": (window((1, 1), padding=(9, 0, 0, 0), size=(1, 2)), 1, 1, 1),
    "groups": (window(stride=(2, 1)), 3, 2, 4),
    "depthwise": (window(stride=(1, 2)), 5, 1, 1),
    "multiplier": (window((3, 2)), 3, 1, 2),
    "dilated depthwise": (window(stride=(1, 2), dilation=(1, 3)), 4, 1, 1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("together, neighbours", [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_convolution(name, together, neighbours):
    geometry, groups, channels, columns = CASES[name]
    rng = np.random.default_rng(1)
    zero, layout = -3, "NCHW" if together == 2 else "NHWC"
    x = rng.integers(-128, 128, (2, groups * channels, *geometry.input), np.int8)
    k = geometry.kernel[0] * geometry.kernel[1] * channels
    weights = rng.integers(-128, 128, (groups, k, columns), np.int8)
    rows = WindowRows(geometry, layout, groups, channels, columns, together, neighbours)

    given = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    padded = np.zeros((rows.count, rows.m(given.shape) + 3, rows.k + 5), np.int8)
    a = padded[:, : rows.m(given.shape), : rows.k]
    rows.write(given, zero, a)
    b = rows.weights(weights, np.zeros(groups * columns, int))
    assert b.shape == (rows.count, rows.k, rows.n)
    sums = (a.astype(int) - zero) @ b.astype(int)
    y = rows.arrange(rows.outputs(sums))

    expected = convolution(x, weights, geometry, zero)
    if layout == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(y, expected)
    assert rows.macs(given.shape) == expected.size * k


def test_weights_elsewhere_stand_for_zero():
    rows = WindowRows(window((1, 2), padding=(0, 0, 0, 1)), "NHWC", 2, 1, 1, together=2)
    b = rows.weights(np.array([[[1], [2]], [[3], [4]]], np.int8), np.array([7, 8]))
    # taps and groups by columns of the two groups
    np.testing.assert_array_equal(b[0], [[1, 8], [7, 3], [2, 8], [7, 4]])


def test_values_of_channels_by_columns():
    rows = WindowRows(window(), "NHWC", 3, 1, 2, together=2, neighbours=2)
    values = rows.by_columns(np.arange(6))
    np.testing.assert_array_equal(values, [[0, 1, 2, 3, 0, 1, 2, 3], [4, 5, 0, 0, 4, 5, 0, 0]])


def test_a_pointwise_map_is_not_copied():
    rows = WindowRows(window((1, 1), padding=(0, 0, 0, 0)), "NHWC", 1, 4, 8)
    x = np.zeros((1, 5, 6, 4), np.int8)
    assert rows.method == "pointwise"
    assert np.shares_memory(rows._with_border(x, 0), x)


@pytest.mark.parametrize("together, neighbours, method", [
    (1, 1, "windows"), (4, 1, "block-diagonal"), (2, 2, "toeplitz"),
])
def test_names_of_methods(together, neighbours, method):
    assert WindowRows(window(), "NHWC", 4, 1, 1, together, neighbours).method == method
