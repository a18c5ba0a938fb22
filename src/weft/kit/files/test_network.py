"""Tests of a network core for its integrator: memory, a product, interrupts, errors, resets."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from weft_link import SimulatedCore
from weft_network_bench import BANKS, DEPTH, DESIGN, END, PORTS

PRODUCT = DESIGN["product"]  # None: a memory is too small for any product
DONE, ERROR, ABORTED = 2, 4, 3  # states of a list
OPCODE = 1
VECTORS = DESIGN["words"] * BANKS
LOG = 256 // DEPTH  # after two descriptors
# Whether a list and its log fit the memory that has them.
FITS = (DESIGN["program_bytes"] // DEPTH or VECTORS) > LOG + 2 * BANKS


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def identity(dut):
    """Every constant register has the expected value."""
    core = await SimulatedCore.start(dut, seed=1)
    for name, value in DESIGN["constants"].items():
        assert await core.read(name) == value, name


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(pause=[0.0, 0.4])
async def memory(dut, pause):
    """Transfers of any length to any vector, with and without random pauses; nothing else changes.
    """
    core, rng = await SimulatedCore.start(dut, 2, pause), np.random.default_rng(2)
    wanted = bytearray(rng.bytes(min(VECTORS * DEPTH, 256)))
    await core.data.write(0, bytes(wanted))
    for count in (1, DEPTH, 3 * DEPTH + 1, 37):
        data, vector = rng.bytes(count), int(rng.integers(0, (len(wanted) - 64) // DEPTH))
        await core.data.write(vector, data)
        padded = data.ljust(-(-count // DEPTH) * DEPTH, b"\0")
        wanted[vector * DEPTH : vector * DEPTH + len(padded)] = padded
        assert await core.data.read(vector, count) == data
    assert await core.data.read(0, len(wanted)) == wanted


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=PRODUCT is None)
@cocotb.parametrize(pause=[0.0, 0.4])
async def products(dut, pause):
    """A list that loads weights and computes a job; its sums equal numpy's, twice."""
    core, p = await SimulatedCore.start(dut, 3, pause), PRODUCT
    a, b = (np.array(p[name]) for name in "ab")
    for vector, layout, row_step, data in p["writes"]:
        await core.data.write(vector, bytes.fromhex(data), layout, row_step)
    for vector, data in p["program"]:
        await core.data.write_list(vector, bytes.fromhex(data))
    for _ in range(2):
        assert await core.data.run(p["list"], p["log"]) == [DONE, 0, 1]
        data = await core.data.read(p["output"], p["bytes"])
        sums = np.frombuffer(data, "<i4").reshape(len(a), -1)[:, : b.shape[1]]
        assert np.array_equal(sums, a @ b)
    log = np.frombuffer(await core.data.read_log(p["log"], 8), "<u4")
    assert 0 < log[0] < log[1] <= await core.read("net_cycles")


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=not FITS)
async def interrupts(dut):
    """The end of a list raises irq, which stays high until its bit is cleared."""
    core = await SimulatedCore.start(dut, 4)
    await core.data.write_list(0, END)
    await core.write("irq_enable", done=1)
    for _ in range(2):
        assert int(dut.irq.value) == 0
        assert await core.data.run(0, LOG) == [DONE, 0, 0]
        await ClockCycles(core.clock, 4)
        assert int(dut.irq.value) == 1
        assert await core.read("irq_status") == 1
        await core.write("irq_status", done=1)
        await ClockCycles(core.clock, 4)


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=not FITS)
async def errors(dut):
    """Invalid accesses have no effect and set access_error; a list without a descriptor fails."""
    core = await SimulatedCore.start(dut, 5)
    invalid = [(0x3FC, None), (0x3FC, 1), (0x000, 7), (0x400, None), (PORTS["read_fifo"], None)]
    invalid += [(PORTS["write_fifo"], 1)]  # no transfer expects it
    if DESIGN["byte_addresses"]:
        invalid += [(DESIGN["registers"]["limit"]["address"] + n, None) for n in (1, 2, 3)]
    for address, value in invalid:
        assert not (await core.access(address, value))[1], hex(address)
        assert await core.read("irq_status", "access_error") == 1
        await core.write("irq_status", access_error=1, overflow=1, underflow=1)
    assert await core.read("irq_status") == 0
    await core.write("control", start=1)  # BASE and LIMIT are 0
    await core.write("irq_status", refused=await core.read("irq_status", "refused"))
    await core.data.write_list(0, bytes(len(END)))
    assert await core.data.run(0, LOG) == [ERROR, OPCODE, 0]
    await core.data.write_list(0, END)
    assert await core.data.run(0, LOG) == [DONE, 0, 0]


@cocotb.test(timeout_time=20, timeout_unit="ms", skip=not FITS)
async def resets(dut):
    """A soft reset ends a transfer, keeps memory and IRQ_ENABLE, and the next list runs."""
    core = await SimulatedCore.start(dut, 6)
    await core.write("irq_enable", done=1, failed=1)
    await core.data.write_list(0, END)
    await core.data.write(0 if core.data.program else LOG, b"kept")
    await core.write("memory_address", 0)
    await core.write("memory_write", 8)  # its words do not come
    await core.write("control", reset=1)
    await core.until("status", "reset_busy", 0)
    assert await core.read("status", "memory_busy") == 0
    assert await core.read("irq_status") == 0 and await core.read("irq_enable") == 3
    assert await core.data.read(0 if core.data.program else LOG, 4) == b"kept"
    assert await core.data.run(0, LOG) == [DONE, 0, 0]
