"""Tests of the C driver of a network core on the simulated core: memory, lists, interrupts."""

import ctypes
import tempfile
from pathlib import Path

import cocotb
import numpy as np
from cocotb.task import bridge, resume
from test_weft import FITS, LOG
from weft_driver import Library, compile_driver
from weft_link import SimulatedCore
from weft_network_bench import DEPTH, DESIGN, END

HERE = Path(__file__).resolve().parent


class SimulatedDevice:
    """The device of a `Library`: register accesses run in the simulation."""

    def __init__(self, core):
        self.core, self.access_errors = core, 0
        self.read, self.write = resume(self._read), resume(self._write)

    async def _read(self, address):
        value, ok = await self.core.access(address)
        self.access_errors += not ok
        return value

    async def _write(self, address, value):
        self.access_errors += not (await self.core.access(address, value))[1]


async def start(dut, seed):
    """Reset the core, compile the driver, and initialize it."""
    device = SimulatedDevice(await SimulatedCore.start(dut, seed))
    with tempfile.TemporaryDirectory() as folder:
        sources = [*sorted((HERE.parent / "driver").glob("*.c")), HERE / "driver_glue.c"]
        library = compile_driver(sources, HERE / "driver_hooks.h", folder)
        driver = Library(library, device, DESIGN["prefix"])
    assert await bridge(driver.call)("weft_init", None) == 0
    return driver


async def place(driver, data):
    """Write a list to vector 0 of the memory that has lists."""
    program = driver.device.core.data.program
    if program:
        program.mem[: len(data)] = data
        window = len(program.mem)
        # The driver writes the bus address of the memory: the one of the simulated memory is 0.
        memory = np.frombuffer(program.mem, np.uint8)
        driver.variable("test_memory").value = memory.ctypes.data
        arguments = ctypes.c_void_p(memory.ctypes.data), window
        assert await bridge(driver.call)("weft_program", *arguments) == 0
    else:
        assert await bridge(driver.call)("weft_write", 0, None, data, len(data)) == 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def driver_moves_memory(dut):
    """Bytes that it writes are read again, from aligned memory and from any other."""
    driver, rng = await start(dut, 7), np.random.default_rng(7)
    for count in (1, 4, 3 * DEPTH + 2, 61):
        data = rng.bytes(count)
        assert await bridge(driver.call)("weft_write", 1, None, data, count) == 0
        for skew in (0, 1):
            found = ctypes.create_string_buffer(count + 1)
            to = ctypes.c_void_p(ctypes.addressof(found) + skew)
            assert await bridge(driver.call)("weft_read", 1, to, count) == 0
            assert found.raw[skew : skew + count] == data
    assert driver.device.access_errors == 0


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=not FITS)
async def driver_is_interrupted(dut):
    """A list is started, and the interrupt at its end finishes it; then one with an error."""
    driver = await start(dut, 8)
    for data, wanted in ((END, 0), (bytes(len(END)), -7), (END, 0)):
        await place(driver, data)

        def enable_and_start():
            driver.call("weft_irq_enable", 1)
            return driver.call("weft_start", 0, LOG)

        assert await bridge(enable_and_start)() == 0
        if not int(dut.irq.value):
            await dut.irq.value_change
        assert await bridge(driver.call)("weft_finish") == wanted
    assert await bridge(driver.call)("weft_is_busy") == 0
    assert driver.device.access_errors == 0
