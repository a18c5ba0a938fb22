"""Rows of float32 that are quantized while a network runs; `test_hybrid` holds them to LiteRT."""

import numpy as np
import pytest

from weft.models.kernels import run

F32 = np.float32
RULES = ["xnnpack", "builtin"]


def quantize(x, rule, axes=(-1,), **attributes):
    x = np.asarray(x, F32)
    given = {"shape": x.shape, "axes": axes, "rule": rule, "padding": None} | attributes
    return run("litert.quantize_rows", [x], given)


@pytest.mark.parametrize("rule, expected", [
    ("xnnpack", [-28, -28, -26, -26, -28, -30, -30, 127, -128]),
    ("builtin", [-28, -27, -26, -25, -29, -30, -31, 127, -128]),
])
def test_ties(rule, expected):
    """The range is 255 wide, so the scale is 1, and the zero point -28."""
    [q, scale, zero] = quantize([[0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 155, -100]], rule)
    assert q.tolist() == [expected]
    assert scale.tolist() == [[1]] and zero.tolist() == [[-28]]


@pytest.mark.parametrize("rule", RULES)
def test_the_range_of_a_row_includes_0(rule):
    q, scale, zero = quantize([[1, 2, 4], [-4, -2, -1]], rule)
    assert zero.tolist() == [[-128], [127]]
    assert scale == pytest.approx(np.array([[4 / 255]] * 2), rel=1e-6)
    assert q[0, 2] == 127 and q[1, 0] == -128


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_a_row_without_a_range_has_no_values(rule, value):
    """LiteRT's results of such a row depend on the place of the value."""
    row = [1.0, value, -3e38 if value == 3e38 else 2]
    q, scale, zero = quantize([[1, 2, 3], row], rule)
    assert np.isnan(scale).tolist() == [[False], [True]]
    attributes = {
        "columns": np.zeros(1, np.int64), "scale": np.ones(1, F32), "bias": np.ones(1, F32),
        "rule": rule, "low": 0.0, "high": 6.0, "shape": (2, 1),
    }
    sums = q.sum(1, keepdims=True, dtype=np.int32)
    [y] = run("litert.float_sums", [sums, scale, zero], attributes)
    assert np.isnan(y).tolist() == [[False], [True]]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [0.0, 1e-45, -1e-40])
def test_a_row_of_almost_0_has_the_bias_as_its_results(rule, value):
    q, scale, zero = quantize([[value] * 3], rule)
    attributes = {
        "columns": np.full(1, 300), "scale": np.ones(1, F32), "bias": np.full(1, 0.5, F32),
        "rule": rule, "low": -np.inf, "high": np.inf, "shape": (1, 1),
    }
    sums = 100 * q.sum(1, keepdims=True, dtype=np.int32)
    [y] = run("litert.float_sums", [sums, scale, zero], attributes)
    assert y.tolist() == [[0.5]]


def test_maps_are_padded_with_their_zero_points():
    x = np.array([[[[1.0], [2.0]]], [[[-1.0], [-2.0]]]], F32)
    q, _, zero = quantize(
        x, "xnnpack", (1, 2, 3), padding=((1, 0), (-1, 2)), spread=(1, 2),
    )
    assert zero.ravel().tolist() == [-128, 127]
    assert q[..., 0].tolist() == [
        [[-128, -128, -128, -128], [-128, 127, -128, -128]],
        [[127, 127, 127, 127], [127, -128, 127, 127]],
    ]
