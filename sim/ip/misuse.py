"""Bad use of the register space: what is refused, said and without effect; and interrupts."""

import cocotb
from cocotb.triggers import ClockCycles

from weft.commands import JobFlag
from weft.hw.bus.fifo_ports import DEPTH
from weft.register_map import SPACE, fifo_ports, registers
from weft.sim.ip.ip_testbench import IpTestbench
from weft.sim.ip.jobs import program
from weft.sim.scenario import Scenario


async def holds(rig, **expected):
    """Check fields of IRQ_STATUS, those not named being 0, and clear it."""
    value = await rig.read("irq_status")
    found = {name for name, field in rig.fields["irq_status"].items() if value >> field.low & 1}
    assert found == set(expected), f"IRQ_STATUS must be {set(expected)}, not {found}"
    await rig.write("irq_status", **dict.fromkeys(found, 1))


async def right(rig):
    """The next job is."""
    await rig.run(program(rig, 1))
    await rig.master.write(rig.addresses["irq_status"], 0xFFFFFFFF)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def unknown_addresses(dut):
    rig = await IpTestbench.start(dut, 0.2)
    known = {r.address for r in registers(rig.ip)}
    known |= {a for w in fifo_ports(rig.ip) for a in range(w.address, w.address + w.size, 4)}
    free = [address for address in range(0, SPACE, 4) if address not in known]
    # Next to what there is, and wherever.
    edges = [a for a in free if a - 4 in known or a + 4 in known]
    for address in edges + rig.rng.sample(free, 10):
        assert (await rig.master.read(address))[1] is False, hex(address)
        await holds(rig, access_error=1)
        assert not await rig.master.write(address, 0xFFFFFFFF), hex(address)
        await holds(rig, access_error=1)
    await right(rig)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def wrong_ways(dut):
    """Registers that are only read, or only written, the other way; and parts of words."""
    rig = await IpTestbench.start(dut)
    await rig.write("irq_enable", done=1)
    for register in registers(rig.ip):
        if register.access == "ro":
            assert not await rig.master.write(register.address, 0xFFFFFFFF), register.name
        else:
            for mask in (1, 8, 12) if not rig.wishbone else range(15):
                right_ = await rig.master.write(register.address, 0xFFFFFFFF, mask)
                assert not right_, (register.name, mask)
        if register.access == "wo":
            assert (await rig.master.read(register.address))[1] is False, register.name
        await holds(rig, access_error=1)
    for window in fifo_ports(rig.ip):
        for address in (window.address, window.address + window.size - 4):
            if window.access == "ro":
                assert not await rig.master.write(address, 1)
            else:
                assert (await rig.master.read(address))[1] is False
                assert not await rig.master.write(address, 1, 3)
        await holds(rig, access_error=1)
    assert await rig.read("irq_enable") == 1
    assert not await rig.read("status", "reset_busy")
    await right(rig)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nothing_to_read(dut):
    """An empty RESULTS is refused, wherever in the window it is read."""
    rig = await IpTestbench.start(dut)
    if not rig.ip.has_fifo_ports:
        return
    for _ in range(2):
        for offset in (0, 4, 0x3FC):
            value, done = await rig.master.read(rig.addresses["result_fifo"] + offset)
            assert (value, done) == (0, False)
            await holds(rig, access_error=1, underflow=1)
        await right(rig)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def no_room(dut):
    """Words without room are refused and dropped; those that had room are all kept."""
    rig = await IpTestbench.start(dut)
    if not rig.ip.has_fifo_ports:
        return
    # A job that is never fed, and behind it loads that wait for it, until there is no room.
    config, found = rig.config, Scenario(rig.config)
    a, b = rig.operands(1, 1, 1)
    found.job(a, b, flags=JobFlag.FEED_A | JobFlag.FEED_B, tag=7)
    await rig.send(found.words)
    more = Scenario(config)
    while len(more.words) * config.bytes_in < 4 * DEPTH + 64 * config.bytes_in:
        a, b = rig.operands(config.rows, config.cols, 7)
        more.multiply(a, b, tag=len(more.expected_results))
    parts = rig.parts(more.words)
    while parts and (room := await rig.read("cmd_fifo_free")):
        assert await rig.master.write_all(rig.addresses["cmd_fifo"], parts[:room])
        parts = parts[room:]
        await ClockCycles(rig.clock, 100)
    assert parts
    await holds(rig)
    for offset in (0, 0x3FC):
        assert not await rig.master.write(rig.addresses["cmd_fifo"] + offset, 0xFFFFFFFF)
        await holds(rig, access_error=1, overflow=1)
    await rig.write("control", abort=1)
    (ended,) = await rig.take()
    assert (ended["tag"], ended["status"], ended["data"]) == (7, 1, 0)

    async def rest():
        left = parts
        while left:
            room = await rig.read("cmd_fifo_free")
            assert await rig.master.write_all(rig.addresses["cmd_fifo"], left[:room]) or not room
            left = left[room:]

    sending = cocotb.start_soon(rest())
    for answer in more.expected_results:
        answer.check(await rig.take())
    await sending


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def interrupts(dut):
    """IRQ rises for what is enabled, and falls when that is cleared, nothing else with it."""
    rig = await IpTestbench.start(dut)
    assert int(dut.irq.value) == 0
    await rig.run(program(rig, 1))
    await holds(rig, done=1)
    await rig.master.read(SPACE - 4 if not rig.ip.has_fifo_ports else 0x7FC)
    assert int(dut.irq.value) == 0
    await rig.write("irq_enable", access_error=1)
    await ClockCycles(rig.clock, 3)
    assert int(dut.irq.value) == 1
    await rig.write("irq_status", done=1)
    await ClockCycles(rig.clock, 3)
    assert int(dut.irq.value) == 1
    await rig.write("irq_status", access_error=1)
    await ClockCycles(rig.clock, 3)
    assert int(dut.irq.value) == 0
    refused = Scenario(rig.config)
    refused.reject(tag=3, m=0)
    await rig.write("irq_enable", failed=1)
    await rig.run(refused)
    await ClockCycles(rig.clock, 3)
    assert int(dut.irq.value) == 1
    assert await rig.read("last_job", "status") == 2 and await rig.read("last_job", "tag") == 3
    await holds(rig, done=1, failed=1)

