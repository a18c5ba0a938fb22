"""The result buffer: columns that write at their own times, rows that are read when whole."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import StructLayout

from weft.hw.buffers.results import ResultBuffer
from weft.sim.amaranth_bench import play

FOOT = StructLayout({"valid": 1, "sum": signed(32)})


def sums(rng, rows, cols):
    return [[rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(cols)] for _ in range(rows)]


def ring(cols, depth, *, registered=False):
    return ResultBuffer(
        foot=FOOT, cols=cols, depth=depth, registered=registered, target="generic"
    )


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("cols, depth", [(1, 2), (3, 4), (5, 8)])
def test_rows_come_out_whole(cols, depth, registered):
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
        script.append({"foot": foot, "address": max(0, t - cols) % depth})
    latency = ResultBuffer.latency(registered)
    landed, row = play(
        ring(cols, depth, registered=registered), script, "landed", "row", tail=latency
    )
    assert row[cols + latency :] == held
    assert landed == [int(0 <= t - cols + 1 < rows) for t in range(rows + cols + latency)]


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
    script += [{"foot": [{"valid": 0}] * 2, "address": n} for n in range(4)]
    landed, row = play(ring(2, 4), script, "landed", "row", tail=1)
    assert row[-4:] == held
    assert landed[:12] == [int(t - 1 in times) for t in range(12)]
