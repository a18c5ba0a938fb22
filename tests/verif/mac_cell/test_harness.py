"""The executable of a MAC cell: arrays of any shape in, the sums of their steps out."""

import numpy as np
import pytest
from rejects import rejects

from verif.amaranth_bench import play
from verif.mac_cell import AlignedMacCell, executable, sums
from verif.mac_cell.harness import BLOCK
from weft.hw.arith.bf16 import Bf16Mac, FlushingBf16Mac

ONE, TWO = 0x3F80, 0x4000  # bfloat16


@pytest.fixture(scope="module")
def cell():
    return executable(Bf16Mac)


def binary32(values):
    return np.asarray(values, np.float32).view(np.uint32)


def test_inputs_of_a_step_are_aligned():
    dut = AlignedMacCell(Bf16Mac)
    script = [
        {"a": ONE, "b": TWO, "c": int(binary32(3)), "en": 1, "start": 1},
        {"a": TWO, "b": TWO, "c": int(binary32(5)), "en": 1, "start": 1},
        {"a": ONE, "b": TWO, "c": int(binary32(7)), "en": 1, "start": 0, "clear": 1},
        {"en": 0, "clear": 0},
    ]
    (found,) = play(dut, script, "sum", tail=dut.LATENCY)
    assert found[dut.LATENCY :] == binary32([5, 9, 2, 0]).tolist()


def test_each_step_is_a_sum_of_its_own_by_default(cell):
    found = sums(cell, np.array([ONE, TWO]), TWO, int(binary32(0.5)))
    assert found.dtype == np.uint32
    assert found.tolist() == binary32([2.5, 4.5]).tolist()


def test_sums_continue_from_block_to_block(cell):
    rounds = BLOCK // 8 + 1000
    a = np.array([ONE, TWO] * 4)
    clear = np.arange(rounds)[:, None] == 0
    found = sums(cell, a, ONE, en=np.ones((rounds, 8), int), clear=clear, start=0)
    assert np.array_equal(found, binary32(np.outer(np.arange(rounds) + 1, [1, 2] * 4)))


def test_arguments_are_broadcast(cell):
    a, c = np.array([[[ONE]], [[TWO]]]), binary32(np.arange(8)).astype(np.int64)
    found = sums(cell, a, [[ONE], [TWO], [0]], c)
    products = np.array([1, 2])[:, None, None] * np.array([1, 2, 0])[:, None]
    assert np.array_equal(found, binary32(products + np.arange(8)))


def test_no_steps_have_no_sums(cell):
    assert sums(cell, np.zeros((0, 8), np.uint16), ONE).shape == (0, 8)


def test_an_executable_is_built_once(cell):
    before = cell.stat().st_mtime_ns
    assert executable(Bf16Mac) == cell
    assert cell.stat().st_mtime_ns == before
    assert executable(FlushingBf16Mac) != cell


@pytest.mark.parametrize("argument, value, error, text", [
    ("a", 1.0, TypeError, "a must be of integers, not of float64"),
    ("b", 1 << 16, ValueError, "b must be in 0..65535, not 65536"),
    ("c", [0, -1], ValueError, "c must be in 0..4294967295, not -1"),
    ("clear", 2, ValueError, "clear must be in 0..1, not 2"),
])
def test_rejects(cell, argument, value, error, text):
    with rejects(error, text):
        sums(cell, **{"a": ONE, "b": ONE, argument: value})


@pytest.mark.parametrize("count", [1, 1 << 20])
def test_reports_an_executable_that_ends(tmp_path, count):
    dead = tmp_path / "dead"
    dead.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    dead.chmod(0o755)
    with rejects(RuntimeError, f"{dead} ended with status 3 before it answered all steps"):
        sums(dead, np.zeros(count, np.uint16), 0)
