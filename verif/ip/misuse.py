"""Tests of wrong register accesses, which have no effect, and of interrupts."""

import cocotb
from cocotb.triggers import ClockCycles

from verif.ip.ip_testbench import IpTestbench
from verif.ip.jobs import random_jobs
from weft.hw.bus.fifo_ports import DEPTH
from weft.register_map import fifo_ports, registers
from weft.registers import SPACE


async def expect_irq_status(tb, **expected):
    """Check that exactly the named bits of IRQ_STATUS are set, and clear them."""
    value = await tb.read("irq_status")
    found = {name for name, field in tb.fields["irq_status"].items() if value >> field.low & 1}
    assert found == set(expected), f"IRQ_STATUS must be {set(expected)}, not {found}"
    await tb.write("irq_status", **dict.fromkeys(found, 1))


async def run_one_job(tb):
    """Check that the next job succeeds, and clear IRQ_STATUS."""
    await tb.run(random_jobs(tb, 1))
    await tb.master.write(tb.addresses["irq_status"], 0xFFFFFFFF)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def unknown_addresses(dut):
    tb = await IpTestbench.start(dut, 0.2)
    known = {r.address for r in registers(tb.ip)}
    known |= {a for p in fifo_ports(tb.ip) for a in range(p.address, p.address + p.size, 4)}
    unknown = [address for address in range(0, SPACE, 4) if address not in known]
    edges = [a for a in unknown if a - 4 in known or a + 4 in known]
    for address in edges + tb.rng.sample(unknown, 10):
        assert (await tb.master.read(address))[1] is False, hex(address)
        await expect_irq_status(tb, access_error=1)
        assert not await tb.master.write(address, 0xFFFFFFFF), hex(address)
        await expect_irq_status(tb, access_error=1)
    await run_one_job(tb)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def wrong_accesses(dut):
    """Writes of read-only registers, reads of write-only ones, and writes of partial words."""
    tb = await IpTestbench.start(dut)
    await tb.write("irq_enable", done=1)
    for register in registers(tb.ip):
        masks = (15,) if register.access == "ro" else tb.master.PARTIAL_MASKS
        answers = [await tb.master.write(register.address, 0xFFFFFFFF, mask) for mask in masks]
        if register.access == "wo":
            answers.append((await tb.master.read(register.address))[1])
        assert not any(answers), (register.name, answers)
        await expect_irq_status(tb, **{"access_error": 1} if answers else {})
    for port in fifo_ports(tb.ip):
        for address in (port.address, port.address + port.size - 4):
            if port.access == "ro":
                assert not await tb.master.write(address, 1)
            else:
                assert (await tb.master.read(address))[1] is False
                for mask in tb.master.PARTIAL_MASKS:
                    assert not await tb.master.write(address, 1, mask), mask
        await expect_irq_status(tb, access_error=1)
    assert await tb.read("irq_enable") == 1
    assert not await tb.read("status", "reset_busy")
    await run_one_job(tb)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def empty_result_fifo(dut):
    """A read of an empty RESULT_FIFO is an error, at each of its addresses."""
    tb = await IpTestbench.start(dut)
    if not tb.ip.has_fifo_ports:
        return
    for _ in range(2):
        for offset in (0, 4, 0x3FC):
            value, okay = await tb.master.read(tb.addresses["result_fifo"] + offset)
            assert (value, okay) == (0, False)
            await expect_irq_status(tb, access_error=1, underflow=1)
        await run_one_job(tb)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def full_cmd_fifo(dut):
    """A write to a full CMD_FIFO is an error and is dropped; all other words are kept."""
    tb = await IpTestbench.start(dut)
    if not tb.ip.has_fifo_ports:
        return
    # A job that is never fed blocks the loads behind it until CMD_FIFO is full.
    config, more = tb.config, tb.scenario()
    await tb.send(tb.unfed_job(tag=7).words)
    while len(more.words) * config.bytes_in < 4 * DEPTH + 64 * config.bytes_in:
        more.multiply(*more.operands(config.rows, config.cols, 7), feed=())
    parts = tb.parts(more.words)
    while parts and (free := await tb.read("cmd_fifo_free")):
        assert await tb.master.write_all(tb.addresses["cmd_fifo"], parts[:free])
        parts = parts[free:]
        await ClockCycles(tb.clock, 100)
    assert parts
    await expect_irq_status(tb)
    for offset in (0, 0x3FC):
        assert not await tb.master.write(tb.addresses["cmd_fifo"] + offset, 0xFFFFFFFF)
        await expect_irq_status(tb, access_error=1, overflow=1)
    await tb.write("control", abort=1)
    (aborted,) = await tb.receive()
    assert (aborted.tag, aborted.status, aborted.data) == (7, 1, 0)

    async def send_remaining():
        remaining = parts
        while remaining:
            free = await tb.read("cmd_fifo_free")
            assert await tb.master.write_all(
                tb.addresses["cmd_fifo"], remaining[:free]
            ) or not free
            remaining = remaining[free:]

    sending = cocotb.start_soon(send_remaining())
    for expected in more.scoreboards:
        expected.check(await tb.receive())
    await sending


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def interrupts(dut):
    """irq rises with an enabled event, and falls when exactly that event is cleared."""
    tb = await IpTestbench.start(dut)
    assert int(dut.irq.value) == 0
    await tb.run(random_jobs(tb, 1))
    await expect_irq_status(tb, done=1)
    await tb.master.read(SPACE - 4 if not tb.ip.has_fifo_ports else 0x7FC)
    assert int(dut.irq.value) == 0
    await tb.write("irq_enable", access_error=1)
    await ClockCycles(tb.clock, 3)
    assert int(dut.irq.value) == 1
    await tb.write("irq_status", done=1)
    await ClockCycles(tb.clock, 3)
    assert int(dut.irq.value) == 1
    await tb.write("irq_status", access_error=1)
    await ClockCycles(tb.clock, 3)
    assert int(dut.irq.value) == 0
    rejected = tb.scenario()
    rejected.reject(tag=3, m=0)
    await tb.write("irq_enable", failed=1)
    await tb.run(rejected)
    await ClockCycles(tb.clock, 3)
    assert int(dut.irq.value) == 1
    assert await tb.read("last_job", "status") == 2 and await tb.read("last_job", "tag") == 3
    await expect_irq_status(tb, done=1, failed=1)
