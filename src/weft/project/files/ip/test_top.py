"""Tests of top.v at its Wishbone bus, in cocotb: make sim."""

import cocotb
import numpy as np
from weft_link import SimulatedCore

LEDS, CYCLES, NOTHING = 0x1000, 0x1004, 0x1008


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def own_registers(dut):
    """A write sets the LEDs, cycles counts, and other addresses answer with an error."""
    top = await SimulatedCore.start(dut, seed=1)
    assert (await top.access(LEDS, 0xA5))[1]
    assert dut.leds.value.to_unsigned() == 0xA5
    assert await top.access(LEDS) == (0xA5, True)
    await top.access(CYCLES, 0)
    first, second = [(await top.access(CYCLES))[0] for _ in range(2)]
    assert 0 < first < second < 100
    for value in (None, 1):
        assert not (await top.access(NOTHING, value))[1]
    assert await top.access(LEDS) == (0xA5, True)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def products(dut):
    """The core behind the bus of top.v computes what NumPy computes, between your accesses."""
    top, rng = await SimulatedCore.start(dut, seed=2, pause=0.2), np.random.default_rng(2)
    for number, (m, k, n) in enumerate([(1, 1, 1), (5, 9, 7), (8, 16, 8)]):
        a = rng.integers(-128, 128, (m, k), np.int8)
        b = rng.integers(-128, 128, (k, n), np.int8)
        assert np.array_equal(await top.multiply(a, b), a.astype(int) @ b.astype(int))
        await top.access(LEDS, number)
        assert await top.read("jobs_done") == number + 1
