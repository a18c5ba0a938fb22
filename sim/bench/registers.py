"""The register block: it says what the hardware is, and counts what it does."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from weft.commands import Job, LoadFlag, Status
from weft.registers import COUNTERS, REGISTERS, decode, describe
from weft.sim.bench.core_testbench import A, B, CoreTestbench
from weft.sim.bench.streams import number

__all__ = ["counters", "description"]

ACTIVITY = ("words_in", "active", "starved", "stalled", "words_out", "busy")


@cocotb.test()
async def description(dut):
    """The description is that of the Config; where there is no register, there is 0."""
    s = await CoreTestbench.start(dut)
    expected = describe(s.config)
    read = [await s.register(address) for address in range(len(expected))]
    assert read == expected, f"description must be {expected}, not {read}"
    assert decode(read) == s.config
    for address in (len(REGISTERS), 128, 255):
        value = await s.register(address)
        assert value == 0, f"register {address} must be 0, not {value}"


@cocotb.test()
async def counters(dut):
    """Counters and activity agree with what the streams showed and the jobs asked for."""
    s = await CoreTestbench.start(dut, stall=30)
    seen = dict.fromkeys(ACTIVITY, 0)
    cocotb.start_soon(_count(dut, seen))
    rows, cols, k = s.config.rows, s.config.cols, min(s.most_k(tiles=2), 3 * s.config.depth + 1)
    operands = s.place(A, s.random(rows + 1, k)), s.place(B, s.random(cols + 1, k))
    s.job(*operands, feed=(A, B))
    await s.cycles(60)
    assert seen["starved"] >= 20, f"starved must come 20 times or more, not {seen['starved']}"
    assert seen["stalled"] == 0, "stalled must not come while no operands are there"
    for side in operands:
        s.load(side, flags=LoadFlag.FEED)
    s.job(*operands)
    s.send(b"\xff" * 32)
    s.send(Job(0, 1, 1, 0, 1, 1, 0, 1, 1, tag=s.tag()).pack())
    s.expect(np.empty((0, 0)), {Status.REJECTED})
    await s.finish()
    starved = seen["starved"]
    s.results.stall = 100
    for _ in range(s.config.jobs):
        s.job(*operands)
    await s.cycles(150)
    assert seen["starved"] == starved, "starved must not come while operands are there"
    s.results.stall = 0
    await s.finish()
    expected = {
        **seen,
        "active": (s.jobs - 1) * 4 * -(-k // s.config.depth),
        "words_in": s.commands.taken,
        "words_out": s.results.taken,
        "finished": s.jobs,
        "errors": 1,
    }
    for name in COUNTERS:
        value = await s.register(REGISTERS.index(name))
        assert value == expected[name], f"register {name} must be {expected[name]}, not {value}"
    for name in ACTIVITY:
        if name in COUNTERS:
            told = f"{name} in activity must come {expected[name]} times, not {seen[name]}"
            assert seen[name] == expected[name], told
    assert seen["active"] <= seen["busy"], "busy must be no less than active"


async def _count(dut, seen):
    edge = RisingEdge(dut.clk)
    while True:
        await edge
        activity = number(dut.activity)
        for bit, name in enumerate(ACTIVITY):
            seen[name] += activity >> bit & 1
