"""The result buffer: columns write with their skew, rows are read when complete."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import StructLayout

from verif.amaranth_bench import play
from weft.hw.buffers.operands import ResultBuffer

SOUTH = StructLayout({"valid": 1, "sum": signed(32)})


def sums(rng, rows, cols):
    return [[rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(cols)] for _ in range(rows)]


def result_buffer(cols, depth, *, registered=False):
    return ResultBuffer(
        south=SOUTH, cols=cols, depth=depth, registered=registered, target="generic"
    )


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("cols, depth", [(1, 2), (3, 4), (5, 8)])
def test_complete_rows_are_read(cols, depth, registered):
    # Column c is c cycles late; each row is read in the cycle after the write of its last column.
    rng = random.Random(cols)
    rows = 11 * depth
    stored = sums(rng, rows, cols)
    script = []
    for t in range(rows + cols):
        south = [
            {"valid": 1, "sum": stored[t - c][c]} if 0 <= t - c < rows else {"valid": 0, "sum": 7}
            for c in range(cols)
        ]
        script.append({"south": south, "read_addr": max(0, t - cols) % depth})
    latency = ResultBuffer.latency(registered)
    dut = result_buffer(cols, depth, registered=registered)
    row_written, row = play(dut, script, "row_written", "row", tail=latency)
    assert row[cols + latency :] == stored
    assert row_written == [int(0 <= t - cols + 1 < rows) for t in range(rows + cols + latency)]


def test_gaps_write_nothing():
    rng = random.Random(4)
    stored = sums(rng, 4, 2)
    times = [1, 4, 5, 9]
    script = []
    for t in range(12):
        south = [{"valid": 0, "sum": 9}, {"valid": 0, "sum": 9}]
        for c in range(2):
            if t - c in times:
                south[c] = {"valid": 1, "sum": stored[times.index(t - c)][c]}
        script.append({"south": south})
    script += [{"south": [{"valid": 0}] * 2, "read_addr": n} for n in range(4)]
    row_written, row = play(result_buffer(2, 4), script, "row_written", "row", tail=1)
    assert row[-4:] == stored
    assert row_written[:12] == [int(t - 1 in times) for t in range(12)]
