"""The long sums have bubbles, clears and starts at all times, in every slot."""

import numpy as np
import pytest

from verif.mac_cell import LONG_SUMS, expected_sums

each = pytest.mark.parametrize("name", LONG_SUMS)
random = pytest.mark.parametrize("name", [name for name in LONG_SUMS if name != "bubbles"])


@each
def test_runs_are_reproducible_and_differ_by_seed(name):
    first, second = (vars(LONG_SUMS[name]()) for _ in range(2))
    assert all(np.array_equal(first[field], second[field]) for field in first)
    assert len(np.unique(first["c"][:, 0], axis=0)) >= 100


@each
def test_runs_are_independent(name):
    steps = LONG_SUMS[name]()
    assert (steps.clear | steps.start)[:, 0].all()


@random
def test_controls_come_in_all_combinations(name):
    steps = LONG_SUMS[name]()
    controls = steps.en * 4 + steps.clear * 2 + steps.start
    for slot in range(8):
        assert np.bincount(controls[..., slot].reshape(-1), minlength=8).min() > 100


@each
def test_sums_differ_from_slot_to_slot(name):
    _, after = expected_sums(LONG_SUMS[name](), flush=False)
    assert all(len(np.unique(run, axis=1).T) == 8 for run in after)


KINDS = {
    "infinities": lambda x: x & 0x7FFFFFFF == 0x7F800000,
    "NaN":        lambda x: x == 0x7FC00000,
    "-0":         lambda x: x == 0x80000000,
    "subnormal":  lambda x: (x & 0x7F800000 == 0) & (x & 0x7FFFFF != 0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["special sums", "bubbles"])
def test_bubbles_meet(name, kind):
    steps = LONG_SUMS[name]()
    before, after = expected_sums(steps, flush=False)
    idle = ~steps.en & ~steps.start & ~steps.clear
    assert np.count_nonzero(KINDS[kind](before) & idle) > 10
    assert np.array_equal(before[idle], after[idle])
