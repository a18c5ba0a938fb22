"""Tests of the core for its integrator: identification, products, interrupts, errors, resets."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from weft_link import SimulatedCore
from weft_packing import CONFIG, DESIGN, FLOATS

ROWS, COLS, DEPTH = (CONFIG[name] for name in ("rows", "cols", "depth"))
SHAPES = [(1, 1, 1), (ROWS, COLS, 2 * DEPTH), (ROWS + 1, 2 * COLS - 1, 3 * DEPTH + 1)]


def operands(rng, m, n, k):
    """``(A, B)`` for the core, and the same for numpy. Float sums are exact in any order."""
    if FLOATS:
        values = [rng.integers(-16, 17, shape).astype(np.float32) for shape in ((m, k), (k, n))]
        return [(v.view(np.uint32) >> 16).astype(np.uint16) for v in values], values
    pair = [rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((m, k), (k, n))]
    return pair, pair


async def check(core, rng, shape):
    """Compute one product on the core, and compare it with numpy."""
    (a, b), (x, y) = operands(rng, *shape)
    c = await core.multiply(a, b)
    assert np.array_equal(c.astype(np.int64), x.astype(np.int64) @ y.astype(np.int64)), shape


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def identity(dut):
    """Every constant register has the expected value."""
    core = await SimulatedCore.start(dut, seed=1)
    for name, value in DESIGN["constants"].items():
        assert await core.read(name) == value, name


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(pause=[0.0, 0.4])
async def products(dut, pause):
    """Consecutive products, with and without random pauses on all channels."""
    core, rng = await SimulatedCore.start(dut, 2, pause), np.random.default_rng(2)
    for shape in SHAPES:
        await check(core, rng, shape)
    assert await core.read("jobs_done") == len(SHAPES)
    assert await core.read("finished") == len(SHAPES)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def interrupts(dut):
    """The end of a job raises irq, which stays high until its bit is cleared."""
    core, rng = await SimulatedCore.start(dut, 3), np.random.default_rng(3)
    await core.write("irq_enable", done=1)
    assert int(dut.irq.value) == 0
    await check(core, rng, SHAPES[0])
    await ClockCycles(core.clock, 50)
    assert int(dut.irq.value) == 1
    assert await core.read("irq_status", "done") == 1
    await core.write("irq_status", done=1)
    await ClockCycles(core.clock, 4)
    assert int(dut.irq.value) == 0
    await check(core, rng, SHAPES[0])


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def errors(dut):
    """Invalid accesses have no effect and set access_error; an invalid job is rejected."""
    core, rng = await SimulatedCore.start(dut, 4), np.random.default_rng(4)
    for address, value in ((0x3FC, None), (0x3FC, 1), (0x000, 7), (0x400, None)):
        assert not (await core.access(address, value))[1], hex(address)
    assert await core.read("irq_status", "access_error") == 1
    await core.write("irq_status", access_error=1)
    assert await core.read("irq_status", "access_error") == 0
    tag, status = await core.reject()
    assert (tag, status) == (core.tag, 2)
    await check(core, rng, SHAPES[1])


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def resets(dut):
    """A soft reset clears all state except irq_enable, and the next product is correct."""
    core, rng = await SimulatedCore.start(dut, 5), np.random.default_rng(5)
    await core.write("irq_enable", done=1, failed=1)
    await check(core, rng, SHAPES[1])
    await core.write("control", reset=1)
    await core.until("status", "reset_busy", 0)
    assert await core.read("jobs_done") == 0
    assert await core.read("irq_status") == 0
    assert await core.read("irq_enable") == 3
    await check(core, rng, SHAPES[2])
