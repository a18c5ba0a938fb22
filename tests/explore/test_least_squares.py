"""Non-negative least squares and ridge regression, against their definitions."""

import itertools

import numpy as np
import pytest

from weft.explore.least_squares import non_negative, ridge


def best_of_all_subsets(matrix, values):
    """The least error over all sets of columns whose least-squares solution is not negative."""
    count, least = matrix.shape[1], float(values @ values)
    for size in range(1, count + 1):
        for chosen in itertools.combinations(range(count), size):
            x = np.linalg.lstsq(matrix[:, chosen], values, rcond=None)[0]
            if (x >= 0).all():
                least = min(least, float(((matrix[:, chosen] @ x - values) ** 2).sum()))
    return least


@pytest.mark.parametrize("seed", range(20))
def test_the_error_is_the_least(seed):
    rng = np.random.default_rng(seed)
    matrix, values = rng.random((9, 5)), rng.standard_normal(9)
    x = non_negative(matrix, values)
    assert (x >= 0).all()
    error = float(((matrix @ x - values) ** 2).sum())
    assert error == pytest.approx(best_of_all_subsets(matrix, values))


def test_finds_exact_coefficients():
    rng = np.random.default_rng(1)
    matrix, wanted = rng.random((20, 4)), np.array([3.0, 0.0, 1.5, 0.25])
    assert non_negative(matrix, matrix @ wanted) == pytest.approx(wanted, abs=1e-9)


def test_equal_columns_are_no_problem():
    matrix = np.ones((4, 3))
    assert non_negative(matrix, np.full(4, 6.0)).sum() == pytest.approx(6)


def test_ridge_holds_features_back_but_no_constant():
    matrix = np.array([[1.0, 0], [1, 1], [1, 2], [1, 3]])
    values = matrix @ [5, 2]
    assert ridge(matrix, values, 0) == pytest.approx([5, 2])
    held = ridge(matrix, values, 1.0)
    assert 0.5 < held[1] < 1.5
    assert (matrix @ held).mean() == pytest.approx(values.mean())


@pytest.mark.parametrize("seed", range(5))
def test_the_units_of_a_column_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    matrix, values = rng.random((9, 5)), rng.random(9)
    units = np.array([1e-9, 1, 1e9, 1e-6, 1e5])
    assert non_negative(matrix * units, values) * units == pytest.approx(
        non_negative(matrix, values), rel=1e-6, abs=1e-9
    )
