"""The C driver works the core that is simulated: its registers, its memory, its interrupt."""

import ctypes
import tempfile
from pathlib import Path

import cocotb
import numpy as np
from cocotb.task import bridge, resume
from test_weft import SHAPES, operands
from weft_driver import Driver, compiled
from weft_link import Core
from weft_packing import DESIGN

HERE = Path(__file__).resolve().parent
MEMORY = 1 << 18  # bytes
DONE = 1  # bit of the interrupts
# Values of k in a panel of the smaller buffer; of a few more, jobs hand on their sums.
PANEL = min(DESIGN["config"][f"{side}_words"] for side in "ab") * DESIGN["config"]["depth"]
DEEP = [(3, 5, PANEL + 1)] * (PANEL <= 512)


class Space:
    """What the driver reaches of a core in a simulation."""

    def __init__(self, core):
        self.core, self.refused = core, 0
        self.read, self.write = resume(self._read), resume(self._write)
        self.exchange = resume(self._exchange)
        self.memory = np.zeros(MEMORY, np.uint8)
        if DESIGN["bus"] == "dma":
            self.memory = np.frombuffer(core.memory.mem, np.uint8)

    async def _read(self, address):
        value, right = await self.core.access(address)
        self.refused += not right
        return value

    async def _write(self, address, value):
        self.refused += not (await self.core.access(address, value))[1]

    async def _exchange(self, commands, size):
        await self.core.send(commands)
        if not size:
            return b"", 0
        data, _, status = await self.core.receive()
        return data, status


async def start(dut, seed):
    """A core, and the driver that has looked at it."""
    space = Space(await Core.start(dut, seed))
    with tempfile.TemporaryDirectory() as folder:
        sources = [*sorted((HERE.parent / "driver").glob("*.c")), HERE / "driver_glue.c"]
        driver = Driver(compiled(sources, HERE / "driver_hooks.h", folder), space, DESIGN["prefix"])
    assert await bridge(driver.call)("weft_init", None) == 0
    return driver


async def multiply(driver, a, b, **options):
    """A product by the driver."""
    c = driver.room((a.shape[0], -(-b.shape[1] // 16) * 16), "<i4")[:, : b.shape[1]]
    product = driver.product(a, b if "weights" not in options else None, c, **options)
    assert await bridge(driver.call)("weft_matmul", ctypes.byref(product)) == 0
    return c


def equal(c, x, y):
    """Whether a product is that of numpy; floats come as their bits."""
    values = c.view("<f4") if DESIGN["config"]["dtype"] == "bf16" else c
    return np.array_equal(values.astype(np.int64), x.astype(np.int64) @ y.astype(np.int64))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def driver_multiplies(dut):
    """Products of several shapes, transposed operands, and weights that stay."""
    driver, rng = await start(dut, 6), np.random.default_rng(6)
    for n, shape in enumerate([*DEEP, *SHAPES]):
        (a, b), (x, y) = operands(rng, *shape[:2], shape[2])
        a, b = driver.put(a, order="CF"[n % 2]), driver.put(b, order="FC"[n % 2])
        assert equal(await multiply(driver, a, b), x, y), shape
    weights = driver.Weights()
    place = ctypes.byref(weights), b.ctypes.data, *b.strides, b.shape[1], b.shape[0]
    assert await bridge(driver.call)("weft_load_b", *place) == 0
    for _ in range(2):
        (a, _), (x, _) = operands(rng, 2, 1, b.shape[0])
        assert equal(await multiply(driver, driver.put(a), b, weights=weights), x, y)
    assert driver.space.refused == 0


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=DESIGN["bus"] == "stream")
async def driver_is_interrupted(dut):
    """A product is begun, and interrupts carry it to its end."""
    driver, rng = await start(dut, 7), np.random.default_rng(7)
    (a, b), (x, y) = operands(rng, *SHAPES[2])
    a, b = driver.put(a), driver.put(b)
    c = driver.room((a.shape[0], -(-b.shape[1] // 16) * 16), "<i4")[:, : b.shape[1]]
    said = []
    done = driver.DONE(lambda core, error, context: said.append(error))
    driver.call("test_done", done)
    product = driver.product(a, b, c)

    def begin():
        driver.call("weft_enable", DONE)
        return driver.call("weft_start", ctypes.byref(product))

    assert await bridge(begin)() == 1
    while not said:
        if not int(dut.irq.value):
            await dut.irq.value_change
        await bridge(driver.call)("weft_irq")
    assert said == [0]
    assert equal(c, x, y)
