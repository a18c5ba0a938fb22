"""Tests of the C driver of a network core on the simulated core: memory, lists, interrupts."""

import ctypes
import tempfile
from pathlib import Path

import cocotb
import numpy as np
from cocotb.task import bridge, resume
from test_weft import FITS, LOG, PRODUCT
from weft_driver import Library, compile_driver
from weft_link import SimulatedCore
from weft_network_bench import DEPTH, DESIGN, END, PROGRAM_AT, PROGRAM_BYTES

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


async def open_program(driver):
    """Give the driver the program memory, if there is one; its array of bytes."""
    if not PROGRAM_BYTES:
        return None
    memory = np.frombuffer(driver.device.core.data.program.mem, np.uint8)
    # The driver writes the bus address of the memory: the simulated one begins at 0.
    driver.variable("test_memory").value = memory.ctypes.data
    window = memory[PROGRAM_AT:]
    arguments = ctypes.c_void_p(window.ctypes.data), PROGRAM_BYTES
    assert await bridge(driver.call)("weft_program", *arguments) == 0
    return window


async def place(driver, data):
    """Write a list to vector 0 of the memory that has lists."""
    write = bridge(driver.call)
    if await open_program(driver) is None:
        assert await write("weft_write", 0, None, data, len(data)) == 0
    else:
        assert await write("weft_program_write", 0, data, len(data)) == 0


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


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=PRODUCT is None)
async def driver_computes(dut):
    """A list that loads weights and computes a job; its sums equal numpy's.

    A program memory gets copies first; then everything is linked there, and is not copied.
    """
    driver, p = await start(dut, 9), PRODUCT
    call, window = bridge(driver.call), await open_program(driver)
    a, b = (np.array(p[name]) for name in "ab")
    for linked in (False, True) if PROGRAM_BYTES else (False,):
        for vector, layout, row_step, text in p["writes"]:
            data, rows = bytes.fromhex(text), None
            if layout:
                fields = layout & 255, layout >> 8 & 255, layout >> 16, row_step
                rows = (ctypes.c_uint32 * 4)(*fields)
            assert await call("weft_write", vector, rows, data, len(data)) == 0
        if window is not None:
            window[:] = 0
        for vector, text in p["program"]:
            data = bytes.fromhex(text)
            if linked:
                there = window[vector * DEPTH :][: len(data)]
                there[:] = np.frombuffer(data, np.uint8)
                data = ctypes.c_void_p(there.ctypes.data)
            assert await call("weft_program_write", vector, data, len(text) // 2) == 0
        assert await call("weft_run", p["list"], p["log"]) == 0
        found = ctypes.create_string_buffer(p["bytes"])
        assert await call("weft_read", p["output"], found, p["bytes"]) == 0
        sums = np.frombuffer(found, "<i4").reshape(len(a), -1)[:, : b.shape[1]]
        assert np.array_equal(sums, a @ b)
        log = (ctypes.c_uint32 * 2)()
        read = "weft_read" if window is None else "weft_program_read"
        assert await call(read, p["log"], log, 8) == 0
        assert 0 < log[0] < log[1]
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
