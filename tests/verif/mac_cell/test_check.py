"""A MAC cell compared with golden: expected starts and sums, and the report of a mismatch."""

from dataclasses import replace

import numpy as np
import pytest

from verif.mac_cell import Steps, check, executable, expected_sums
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
