"""What an integrator runs in his own tree: a core answers, multiplies and survives misuse."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from weft_link import Core
from weft_packing import CONFIG, DESIGN, FLOATS

ROWS, COLS, DEPTH = (CONFIG[name] for name in ("rows", "cols", "depth"))
SHAPES = [(1, 1, 1), (ROWS, COLS, 2 * DEPTH), (ROWS + 1, 2 * COLS - 1, 3 * DEPTH + 1)]


def operands(rng, m, n, k):
    """A and B; of floats such as have exact sums in whatever order."""
    if FLOATS:
        whole = [rng.integers(-16, 17, shape).astype(np.float32) for shape in ((m, k), (k, n))]
        return [(values.view(np.uint32) >> 16).astype(np.uint16) for values in whole], whole
    pair = [rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((m, k), (k, n))]
    return pair, pair


async def check(core, rng, shape):
    """One product, exact."""
    (a, b), (x, y) = operands(rng, *shape)
    c = await core.multiply(a, b)
    assert np.array_equal(c.astype(np.int64), x.astype(np.int64) @ y.astype(np.int64)), shape


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def identity(dut):
    """Every constant register has its value."""
    core = await Core.start(dut, seed=1)
    for name, value in DESIGN["constants"].items():
        assert await core.read(name) == value, name


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(odds=[0.0, 0.4])
async def products(dut, odds):
    """Products one after another, channels pausing at random."""
    core, rng = await Core.start(dut, 2, odds), np.random.default_rng(2)
    for shape in SHAPES:
        await check(core, rng, shape)
    assert await core.read("jobs_done") == len(SHAPES)
    assert await core.read("finished") == len(SHAPES)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def interrupts(dut):
    """A job that ends raises irq, until the bit is cleared."""
    core, rng = await Core.start(dut, 3), np.random.default_rng(3)
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
async def misuse(dut):
    """What is refused has no effect, and is noted; what is rejected is answered."""
    core, rng = await Core.start(dut, 4), np.random.default_rng(4)
    for address, value in ((0x3FC, None), (0x3FC, 1), (0x000, 7), (0x400, None)):
        assert not (await core.access(address, value))[1], hex(address)
    assert await core.read("irq_status", "access_error") == 1
    await core.write("irq_status", access_error=1)
    assert await core.read("irq_status", "access_error") == 0
    tag, status = await core.refuse()
    assert (tag, status) == (core.tag, 2)
    await check(core, rng, SHAPES[1])


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def resets(dut):
    """A soft reset forgets all but the enables, and the next product is right."""
    core, rng = await Core.start(dut, 5), np.random.default_rng(5)
    await core.write("irq_enable", done=1, failed=1)
    await check(core, rng, SHAPES[1])
    await core.write("control", reset=1)
    await core.until("status", "reset_busy", 0)
    assert await core.read("jobs_done") == 0
    assert await core.read("irq_status") == 0
    assert await core.read("irq_enable") == 3
    await check(core, rng, SHAPES[2])
