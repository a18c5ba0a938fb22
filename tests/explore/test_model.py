"""The model finds the formulas of made-up points; its least squares, against their definitions."""

import dataclasses
import itertools

import numpy as np
import pytest
from explore_points import DEVICE, measured, records

from weft.boards.devices import DEVICES
from weft.config import Config
from weft.explore.features import features
from weft.explore.model import (
    FittedModel,
    TooFewPoints,
    family_of,
    leave_one_out,
    non_negative,
    ridge,
)

RECORDS = records()


def test_finds_the_formulas():
    model = FittedModel(RECORDS)
    config = Config(target="ecp5", rows=4, cols=3, depth=4, jobs=4, activation="none")
    found, expected = model.estimate(config, DEVICE), measured(config)
    assert found.used == pytest.approx(expected.used, rel=0.02)
    assert found.fmax == pytest.approx(expected.fmax, rel=0.1)
    assert model.family == "ecp5"


def test_its_errors_are_of_points_that_it_did_not_see():
    errors = leave_one_out(RECORDS)
    assert len(errors.points) == len(RECORDS)
    assert errors.typical("LUT") < 0.02 and errors.typical("fmax") < 0.05
    assert (errors.blocks_of("DSP") == 0).all()
    # A point with another area has a large error, since no other point explains it.
    (point, outcome), *others = RECORDS
    array = outcome.blocks["array"] | {"LUT": outcome.blocks["array"]["LUT"] + 5000}
    used = outcome.used | {"LUT": outcome.used["LUT"] + 5000}
    odd = dataclasses.replace(outcome, used=used, blocks=outcome.blocks | {"array": array})
    errors = leave_one_out([(point, odd), *others])
    assert abs(errors.of("LUT")[0]) > 0.3


def test_names_the_features_outside_of_the_recorded_range():
    model = FittedModel(RECORDS)
    inside = RECORDS[0][0].config
    assert model.estimate(inside, DEVICE).outside == ()
    large = Config(target="ecp5", rows=32, cols=16, activation="none")
    assert "sums in logic" in model.estimate(large, DEVICE).outside
    most = max(features(point.config)["sums in logic"] for point, _ in RECORDS)
    assert features(large)["sums in logic"] > most


def test_names_the_resources_that_a_device_lacks():
    model = FittedModel(RECORDS)
    large = Config(target="ecp5", rows=32, cols=16, activation="none")
    lacking = model.estimate(large, DEVICE).exceeds(DEVICE)
    needed, available = lacking["DSP"]
    assert needed > available == 28
    assert model.estimate(RECORDS[0][0].config, DEVICE).exceeds(DEVICE) == {}


def test_points_without_blocks_tell_the_clock_only():
    bare = [(point, dataclasses.replace(outcome, blocks={}, fmax=outcome.fmax / 2))
            for point, outcome in records(10, seed=8)]
    config = RECORDS[0][0].config
    alone, both = (
        FittedModel(each).estimate(config, DEVICE) for each in (RECORDS, RECORDS + bare)
    )
    assert both.used == alone.used
    assert both.fmax < 0.98 * alone.fmax
    errors = leave_one_out(RECORDS + bare)
    assert errors.of("LUT").size == errors.blocks_of("RAM").size == len(RECORDS)
    assert errors.of("fmax").size == len(RECORDS) + len(bare)


def test_a_config_is_left_out_with_all_its_seeds():
    (point, outcome), *others = RECORDS
    seeds = [(dataclasses.replace(point, seed=seed), outcome) for seed in (1, 2, 3)]
    errors = leave_one_out([*seeds, *others])
    unseen = FittedModel(others).estimate(point.config, DEVICE)
    assert errors.estimates[:3] == (unseen,) * 3
    assert errors.estimates[3] != unseen


def test_few_points_are_refused():
    with pytest.raises(TooFewPoints, match="^a model must have 8 recorded points .* not 7;"):
        FittedModel(RECORDS[:7])


def test_coefficients_are_not_negative():
    assert all((fitted >= 0).all() for fitted in FittedModel(RECORDS).coefficients.values())


def test_both_families_of_the_ice40_share_a_model():
    targets = "ecp5", "ice40up", "ice40hx"
    assert [family_of(Config(target=target)) for target in targets] == ["ecp5", "ice40", "ice40"]
    ice40 = records(6, DEVICES["iCE40UP5K"]) + records(6, DEVICES["iCE40HX8K"])
    found = FittedModel(ice40).estimate(ice40[0][0].config, DEVICES["iCE40UP5K"])
    assert set(found.used) == {"LUT", "FF", "DSP", "RAM"}
    assert np.isfinite(found.fmax)


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
