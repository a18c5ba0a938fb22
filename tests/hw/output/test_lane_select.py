"""The lanes: each sum of a row is in its chunk, at its time."""

import pytest

from weft.hw.buffers.results import ResultBuffer
from weft.hw.output.lane_select import LaneSelect
from weft.sim.amaranth_bench import play


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("cols, lanes", [(1, 1), (2, 1), (5, 2), (12, 1), (16, 4), (3, 8)])
def test_each_sum_is_in_its_chunk(cols, lanes, registered):
    dut = LaneSelect(acc=8, cols=cols, lanes=lanes, registered=registered)
    chunks = -(-cols // lanes)
    asked = [n % chunks for n in range(3 * chunks)]
    script = [{"chunk": n} for n in asked] + [{} for _ in range(5)]
    for now in range(len(asked)):
        row = [(16 * now + c) % 256 for c in range(cols)]
        script[now + ResultBuffer.latency(registered)]["row"] = row
    (found,) = play(dut, script, "sums")
    for now, chunk in enumerate(asked):
        due = [(16 * now + c) % 256 for c in range(cols)][chunk * lanes :][:lanes]
        assert found[now + LaneSelect.latency(registered)][: len(due)] == due
