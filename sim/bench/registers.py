"""The register block: the description of the Config, and the counters."""

import cocotb
from cocotb.triggers import RisingEdge

from weft.commands import LoadFlag
from weft.registers import COUNTERS, REGISTERS, decode, describe
from weft.sim.bench.core_testbench import core_test
from weft.sim.bench.streams import number
from weft.sim.scenario import A, B

__all__ = ["counters", "description"]

ACTIVITY = ("words_in", "active", "starved", "stalled", "words_out", "busy")


@core_test()
async def description(tb):
    """The registers describe the Config; unused addresses read 0."""
    expected = describe(tb.config)
    read = [await tb.register(address) for address in range(len(expected))]
    assert read == expected, f"description must be {expected}, not {read}"
    assert decode(read) == tb.config
    for address in (len(REGISTERS), 128, 255):
        value = await tb.register(address)
        assert value == 0, f"register {address} must be 0, not {value}"


@core_test(stall=30)
async def counters(tb):
    """Counters and activity agree with the streams and the jobs."""
    seen = dict.fromkeys(ACTIVITY, 0)
    cocotb.start_soon(_count(tb.dut, seen))
    rows, cols, k = tb.config.rows, tb.config.cols, min(tb.max_k(tiles=2), 3 * tb.config.depth + 1)
    operands = tb.place(A, tb.random(rows + 1, k)), tb.place(B, tb.random(cols + 1, k))
    tb.job(*operands, feed=(A, B))
    await tb.cycles(60)
    assert seen["starved"] >= 20, f"starved must be 20 cycles or more, not {seen['starved']}"
    assert seen["stalled"] == 0, "the core must not stall while operands are missing"
    tb.load(*operands, flags=LoadFlag.FEED)
    tb.job(*operands)
    tb.send(b"\xff" * 32)
    tb.reject(m=0)
    await tb.wait_done()
    starved = seen["starved"]
    tb.results.stall = 100
    for _ in range(tb.config.jobs):
        tb.job(*operands)
    await tb.cycles(150)
    assert seen["starved"] == starved, "the core must not starve with resident operands"
    tb.results.stall = 0
    await tb.wait_done()
    expected = {
        **seen,
        "active": (tb.jobs - 1) * 4 * -(-k // tb.config.depth),
        "words_in": tb.commands.taken,
        "words_out": tb.results.taken,
        "finished": tb.jobs,
        "errors": 1,
    }
    for name in COUNTERS:
        value = await tb.register(REGISTERS.index(name))
        assert value == expected[name], f"register {name} must be {expected[name]}, not {value}"
    for name in ACTIVITY:
        if name in COUNTERS:
            text = f"{name} in activity must be {expected[name]} cycles, not {seen[name]}"
            assert seen[name] == expected[name], text
    assert seen["active"] <= seen["busy"], "busy must be at least active"


async def _count(dut, seen):
    edge = RisingEdge(dut.clk)
    while True:
        await edge
        activity = number(dut.activity)
        for bit, name in enumerate(ACTIVITY):
            seen[name] += activity >> bit & 1
