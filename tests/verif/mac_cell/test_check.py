"""A MAC cell compared with golden: expected starts and sums, and the report of a mismatch."""

from dataclasses import replace

import numpy as np
import pytest

from verif.mac_cell import LONG_SUMS, Steps, check, executable, expected_sums
from verif.mac_cell.vectors import BATCH
from weft.hw.arith.bf16 import Bf16Mac

ONE, TWO, TINY = 0x3F80, 0x4000, 0x0001


@pytest.fixture
def steps():
    """A run of three steps, with a start, a bubble and a clear. Slots 1 to 7 are equal."""
    def field(dtype, *values):
        return np.array(values, dtype).reshape(1, 3, 2)[..., [0] + 7 * [1]]

    return Steps(
        a=field(np.uint16, ONE, TWO, ONE, TINY, TWO, TINY),
        b=field(np.uint16, ONE, TWO, TWO, TWO, TWO, ONE),
        c=field(np.uint32, 0x3F800000, 0x7F800001, 0, 0, 0, 0),
        en=field(bool, 1, 0, 0, 1, 1, 1),
        clear=field(bool, 0, 0, 0, 0, 0, 1),
        start=field(bool, 1, 1, 0, 0, 0, 0),
    )


def test_expected_sums(steps):
    before, after = expected_sums(steps, flush=False)
    assert [f"{x:08x}" for x in before[..., :2].flat] == [
        "3f800000", "7f800001", "40000000", "7fc00000", "40000000", "00000000",
    ]
    assert [f"{x:08x}" for x in after[..., :2].flat] == [
        "40000000", "7fc00000", "40000000", "7fc00000", "40c00000", "00010000",
    ]


def test_expected_sums_with_flush(steps):
    _, after = expected_sums(steps, flush=True)
    assert f"{after[0, 2, 1]:08x}" == "00000000"


def test_a_correct_cell_has_no_mismatch(steps):
    assert check(executable(Bf16Mac), steps, flush=False) is None


def test_a_mismatch_prints_all_values(steps):
    mismatch = check(executable(Bf16Mac), steps, flush=True)
    assert str(mismatch) == (
        "run 0, step 2, slot 1: a 0x0001, b 0x3f80, c 0x00000000, want 0x00000000, got 0x00010000"
    )
    assert "slot 1, without en: a 0x0001" in str(replace(mismatch, en=False))


def test_a_mismatch_counts_runs_from_the_first():
    vectors = np.full(BATCH + 7, ONE, np.uint16), np.full(BATCH + 7, ONE, np.uint16)
    steps = Steps.single(*vectors, np.zeros(BATCH + 7, np.uint32))
    steps.a[BATCH + 3] = TINY
    assert check(executable(Bf16Mac), steps, flush=True).run == BATCH + 3


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
