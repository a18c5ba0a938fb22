"""The result buffer: columns that write at their own times, rows that are read when whole."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import StructLayout

from weft.hw.memory.results import ResultBuffer
from weft.sim.amaranth_bench import play

FOOT = StructLayout({"valid": 1, "sum": signed(32)})


def sums(rng, rows, cols):
    return [[rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(cols)] for _ in range(rows)]


@pytest.mark.parametrize("cols, depth", [(1, 2), (3, 4), (5, 8)])
def test_rows_come_out_whole(cols, depth):
    # Column c lags by c cycles; each row is read in the cycle after its last column's write.
    rng = random.Random(cols)
    rows = 11 * depth
    held = sums(rng, rows, cols)
    script = []
    for t in range(rows + cols):
        foot = [
            {"valid": 1, "sum": held[t - c][c]} if 0 <= t - c < rows else {"valid": 0, "sum": 7}
            for c in range(cols)
        ]
        script.append({"foot": foot, "read": t >= cols, "address": max(0, t - cols) % depth})
    buffer = ResultBuffer(foot=FOOT, cols=cols, depth=depth)
    written, row = play(buffer, script, "written", "row", tail=1)
    assert row[cols + 1 :] == held
    whole = [min(max(0, t - cols), rows) for t in range(1, rows + cols + 2)]
    assert written == [count % (4 * depth) for count in whole]


def test_gaps_write_nothing():
    rng = random.Random(4)
    held = sums(rng, 4, 2)
    times = [1, 4, 5, 9]
    script = []
    for t in range(12):
        feet = [{"valid": 0, "sum": 9}, {"valid": 0, "sum": 9}]
        for c in range(2):
            if t - c in times:
                feet[c] = {"valid": 1, "sum": held[times.index(t - c)][c]}
        script.append({"foot": feet})
    script += [{"foot": [{"valid": 0}] * 2, "read": 1, "address": n} for n in range(4)]
    written, row = play(ResultBuffer(foot=FOOT, cols=2, depth=4), script, "written", "row", tail=1)
    assert row[-4:] == held
    assert written[:12] == [0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 4]


def test_a_row_stays_until_the_next_read():
    script = [{"foot": [{"valid": 1, "sum": value}]} for value in (5, 6)]
    script += [
        {"foot": [{"valid": 0}], "read": 1, "address": 1},
        {"read": 0, "address": 0}, {}, {"read": 1}, {"read": 0},
    ]
    (row,) = play(ResultBuffer(foot=FOOT, cols=1, depth=2), script, "row")
    assert row[3:] == [[6], [6], [6], [5]]
