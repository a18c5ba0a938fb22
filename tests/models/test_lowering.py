"""Matrix operators as products, against numpy."""

import numpy as np
import pytest

from weft.models.errors import ModelError
from weft.models.ir import Gemm, Window
from weft.models.lowering import MatrixRows, PairRows, candidates


def gemm(weights=None, **fields):
    return Gemm(
        operator="GEMM", name="y", position=(0,), inputs=(0,), outputs=(1,), x=0, weights=weights,
        **fields,
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_of_a_batch(transposed):
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, (2, 3, 4, 5))
    rows = MatrixRows(5, 7, transposed)
    given = x.swapaxes(-1, -2) if transposed else x
    a = np.zeros((1, rows.m(given.shape), 5), int)
    rows.write(np.ascontiguousarray(given), 0, a)
    np.testing.assert_array_equal(a[0], x.reshape(-1, 5))


@pytest.mark.parametrize("x_lead, b_lead", [((), ()), ((2, 3), ()), ((2, 1), (3,)), ((3,), (2, 1))])
@pytest.mark.parametrize("x_transposed, b_transposed", [(False, True), (True, False)])
def test_two_activations(x_lead, b_lead, x_transposed, b_transposed):
    rng = np.random.default_rng(2)
    x, b = rng.integers(-9, 9, (2, *x_lead, 4, 5)), rng.integers(-9, 9, (2, *b_lead, 5, 6))
    given_x = np.ascontiguousarray(x.swapaxes(-1, -2)) if x_transposed else x
    given_b = np.ascontiguousarray(b.swapaxes(-1, -2)) if b_transposed else b
    rows = PairRows(given_x.shape[1:], given_b.shape[1:], x_transposed, b_transposed)
    a = np.zeros((2 * rows.count, rows.m(given_x.shape), rows.k), int)
    columns = np.zeros((2 * rows.count, rows.n, rows.k), int)
    rows.write(given_x, 0, a)
    rows.write_columns(given_b, columns)
    y = rows.outputs(a @ columns.swapaxes(1, 2))
    expected = np.stack([one @ other for one, other in zip(x, b, strict=True)])
    np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    assert 2 * rows.macs(given_x.shape[1:]) == expected.size * 5


def ways(cols, groups, columns, width=20):
    window = Window((1, 3), (1, 1), (1, 1), (0, 0, 1, 1), (1, width), (1, width))
    operator = gemm(np.zeros((groups, 3, columns), np.int8), window=window)
    found = candidates(operator, (1, 1, width, groups), None, cols)
    return [(way.together, way.neighbours) for way in found]


def test_depthwise_fills_the_columns_with_groups_and_neighbours():
    assert ways(8, 16, 1) == [(1, 1), (8, 1), (4, 2), (2, 4), (1, 8)]


def test_few_groups_and_narrow_maps_limit_the_ways():
    assert ways(8, 3, 1, width=2) == [(1, 1), (3, 2)]


def test_groups_with_many_columns_have_one_way():
    assert ways(8, 4, 16) == [(1, 1)]


def test_rejects_an_x_that_does_not_fit():
    with pytest.raises(ModelError, match=r"GEMM y: x \(2, 3\) does not fit K of 4"):
        candidates(gemm(np.zeros((1, 4, 2), np.int8)), (2, 3), None, 8)
