"""Lane selection: each sum of a row is in its chunk, after the latency."""

import pytest

from verif.amaranth_bench import play
from weft.hw.buffers.operands import ResultBuffer
from weft.hw.output.lanes import LaneSelect


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("cols, lanes", [(1, 1), (2, 1), (5, 2), (12, 1), (16, 4), (3, 8)])
def test_each_sum_is_in_its_chunk(cols, lanes, registered):
    dut = LaneSelect(acc=8, cols=cols, lanes=lanes, registered=registered)
    chunks = -(-cols // lanes)
    indices = [n % chunks for n in range(3 * chunks)]
    script = [{"index": n} for n in indices] + [{} for _ in range(5)]
    for now in range(len(indices)):
        row = [(16 * now + c) % 256 for c in range(cols)]
        script[now + ResultBuffer.latency(registered)]["row"] = row
    (found,) = play(dut, script, "sums")
    for now, index in enumerate(indices):
        sums = [(16 * now + c) % 256 for c in range(cols)][index * lanes :][:lanes]
        assert found[now + LaneSelect.latency(registered)][: len(sums)] == sums
