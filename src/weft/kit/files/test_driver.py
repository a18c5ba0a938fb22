"""Tests of the C driver on the simulated core: products, resident weights, interrupts."""

import ctypes
import tempfile
from pathlib import Path

import cocotb
import numpy as np
from cocotb.task import bridge, resume
from test_weft import SHAPES, operands
from weft_data import DataPath
from weft_driver import Driver, compile_driver
from weft_link import SimulatedCore
from weft_packing import DESIGN

HERE = Path(__file__).resolve().parent
MEMORY = 1 << 18  # bytes
DONE = 1  # bit 0 of irq_status
# K of a panel in the smaller buffer. A larger K is split over several jobs.
PANEL = min(DESIGN["config"][f"{side}_words"] for side in "ab") * DESIGN["config"]["depth"]
DEEP = [(3, 5, PANEL + 1)] if PANEL <= 512 else []  # a larger one takes long to simulate


class SimulatedDevice:
    """The device of a `Driver`: register accesses run in the simulation."""

    def __init__(self, core):
        self.core, self.access_errors = core, 0
        self.read, self.write = resume(self._read), resume(self._write)
        self.exchange = resume(self._exchange)
        self.memory = core.data.driver_memory(MEMORY)

    async def _read(self, address):
        value, ok = await self.core.access(address)
        self.access_errors += not ok
        return value

    async def _write(self, address, value):
        self.access_errors += not (await self.core.access(address, value))[1]

    async def _exchange(self, commands, size):
        """Send commands; the result stream of ``size`` bytes and its status, if there is one."""
        await self.core.data.send(commands)
        if not size:
            return b"", 0
        data, _, status = await self.core.data.receive()
        return data, status


async def start(dut, seed):
    """Reset the core, compile the driver, and initialize it."""
    device = SimulatedDevice(await SimulatedCore.start(dut, seed))
    with tempfile.TemporaryDirectory() as folder:
        sources = [*sorted((HERE.parent / "driver").glob("*.c")), HERE / "driver_glue.c"]
        library = compile_driver(sources, HERE / "driver_hooks.h", folder)
        driver = Driver(library, device, DESIGN["prefix"])
    assert await bridge(driver.call)("weft_init", None) == 0
    return driver


def result_of(driver, a, b):
    """Memory for C, whose rows are as far apart as the strides of any bus may require."""
    return driver.alloc((a.shape[0], -(-b.shape[1] // 16) * 16), "<i4")[:, : b.shape[1]]


async def multiply(driver, a, b, **options):
    """C of a product that the driver computes."""
    c = result_of(driver, a, b)
    product = driver.product(a, b if "weights" not in options else None, c, **options)
    assert await bridge(driver.call)("weft_matmul", ctypes.byref(product)) == 0
    return c


def equal(c, x, y):
    """Whether C equals numpy's product of x and y; a bf16 core's results are the bits of floats."""
    values = c.view("<f4") if DESIGN["floats"] else c
    return np.array_equal(values.astype(np.int64), x.astype(np.int64) @ y.astype(np.int64))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def driver_multiplies(dut):
    """Products of several shapes, with transposed operands, and with resident weights."""
    driver, rng = await start(dut, 6), np.random.default_rng(6)
    for n, shape in enumerate([*DEEP, *SHAPES]):
        (a, b), (x, y) = operands(rng, *shape[:2], shape[2])
        a, b = driver.put(a, order="CF"[n % 2]), driver.put(b, order="FC"[n % 2])
        assert equal(await multiply(driver, a, b), x, y), shape
    weights = driver.Weights()
    arguments = ctypes.byref(weights), b.ctypes.data, *b.strides, b.shape[1], b.shape[0]
    assert await bridge(driver.call)("weft_load_b", *arguments) == 0
    for _ in range(2):
        (a, _), (x, _) = operands(rng, 2, 1, b.shape[0])
        assert equal(await multiply(driver, driver.put(a), b, weights=weights), x, y)
    assert driver.device.access_errors == 0


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=not DataPath.RAISES_DONE)
async def driver_is_interrupted(dut):
    """A product is started, and interrupts advance it to its end."""
    driver, rng = await start(dut, 7), np.random.default_rng(7)
    (a, b), (x, y) = operands(rng, *SHAPES[2])
    a, b = driver.put(a), driver.put(b)
    c = result_of(driver, a, b)
    results = []
    done = driver.DONE(lambda core, error, context: results.append(error))
    driver.call("test_done", done)
    product = driver.product(a, b, c)

    def enable_and_start():
        driver.call("weft_irq_enable", DONE)
        return driver.call("weft_start", ctypes.byref(product))

    assert await bridge(enable_and_start)() == 1  # the product runs
    while not results:
        if not int(dut.irq.value):
            await dut.irq.value_change
        await bridge(driver.call)("weft_irq")
    assert results == [0]
    assert equal(c, x, y)
