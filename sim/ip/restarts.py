"""What ends jobs early, abort, soft reset and reset, wherever it strikes: the next is right."""

import cocotb
from cocotb.triggers import ClockCycles

from weft.commands import JobFlag, Status
from weft.hw.bus.fifo_ports import CAPACITY
from weft.sim.ip.ip_testbench import IpTestbench
from weft.sim.ip.jobs import program
from weft.sim.scenario import Scenario

ENDS = frozenset({Status(0), Status.ABORTED})


def long_job(rig, tag=1):
    """A job of many words of results."""
    config, found = rig.config, Scenario(rig.config)
    a, b = rig.operands(4 * config.rows, 4 * config.cols, 2)
    found.multiply(a, b, tag=tag)
    return found


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5])
async def aborts(dut, pause):
    """A job that waits for ever is ended, and one that runs, and none at all."""
    rig = await IpTestbench.start(dut, pause)
    for round_ in range(2):
        await rig.write("control", abort=1)
        await ClockCycles(rig.clock, 100)
        found = Scenario(rig.config)
        a, b = rig.operands(1, 1, 1)
        found.job(a, b, flags=JobFlag.FEED_A | JobFlag.FEED_B, tag=round_)
        await rig.send(found.words)
        await ClockCycles(rig.clock, 150)
        assert await rig.read("status", "busy") == 1
        before = await rig.read("jobs_done")
        await rig.write("control", abort=1)
        found.expected_results[0].check(await rig.take(), statuses=ENDS)
        assert await rig.read("jobs_done") == before + 1
        assert await rig.read("last_job") & 0xFFFF == round_
        assert await rig.read("last_job", "status") == 1
        assert await rig.read("irq_status", "failed") == 1
        await rig.write("irq_status", failed=1, done=1)

        found = long_job(rig)
        sending = cocotb.start_soon(rig.send(found.words))
        await ClockCycles(rig.clock, rig.rng.randrange(400))
        await rig.write("control", abort=1)
        found.expected_results[0].check(await rig.take(), statuses=ENDS)
        await sending
        await rig.run(program(rig, 1))
    assert await rig.read("status", "busy") == 0


async def restart(rig, slow):
    """A soft reset, and what is to be seen of it; by a slow master only at its end."""
    await rig.write("irq_enable", access_error=1)
    await rig.write("control", reset=1)
    assert slow or await rig.read("status", "reset_busy") == 1
    if rig.ip.has_fifo_ports:
        assert slow or await rig.read("cmd_fifo_free") == 0
    await rig.restarted()
    for name in ("jobs_done", "last_job", "irq_status"):
        assert await rig.read(name) == 0, name
    assert await rig.read("irq_enable") == 1 << rig.fields["irq_enable"]["access_error"].low
    if rig.ip.has_fifo_ports:
        assert (await rig.read("cmd_fifo_free"), await rig.read("result_level")) == (CAPACITY, 0)
    assert await rig.read("status") == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.6])
async def soft_resets(dut, pause):
    """While operands come, while it computes, while results leave, while nothing happens."""
    rig = await IpTestbench.start(dut, pause)
    for round_ in range(4):
        found = long_job(rig, tag=round_)
        whole = len(found.words)
        cut = (whole, whole // 2, 1, 0)[round_ % 4]
        if rig.ip.has_fifo_ports and cut == 1:
            # Not even a whole word of the stream.
            await rig.master.write(rig.addresses["cmd_fifo"], 0xFFFFFFFF)
            cut = 0
        await rig.send(found.words[:cut])
        if rig.ip.bus == "stream":
            await rig.source.wait()
        await ClockCycles(rig.clock, rig.rng.randrange(1, 300))
        if rig.ip.has_fifo_ports:
            for _ in range(min((await rig.level())["words"], rig.rng.randrange(3))):
                assert (await rig.master.read(rig.addresses["result_fifo"]))[1]
        await restart(rig, pause > 0)
        if rig.ip.bus == "stream":
            # A packet that had begun has ended: whole, or with the status of an abort.
            await ClockCycles(rig.clock, 20)
            while not rig.sink.idle():
                await ClockCycles(rig.clock, 1)
            while not rig.sink.empty():
                found.expected_results[0].check(await rig.take(), statuses=ENDS)
        jobs = program(rig, 2, tag=50)
        await rig.run(jobs)
        assert await rig.read("jobs_done") == len(jobs.expected_results)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def packet_on_offer(dut):
    """A word on offer stays through a soft reset; a packet that is open is ended behind it."""
    rig = await IpTestbench.start(dut)
    if rig.ip.bus != "stream":
        return
    for first in (True, False):
        found = long_job(rig, tag=77)
        rig.sink.pause = True
        await rig.send(found.words)
        await rig.source.wait()
        while not int(dut.m_axis_tvalid.value):
            await ClockCycles(rig.clock, 1)
        if not first:  # no word is on offer that the sink has not taken
            rig.sink.pause = False
            await ClockCycles(rig.clock, 5)
            rig.sink.pause = True
            await ClockCycles(rig.clock, 40)
        await restart(rig, False)
        jobs = program(rig, 1)
        sending = cocotb.start_soon(rig.send(jobs.words))
        await ClockCycles(rig.clock, 200)
        rig.sink.pause = False
        words = await rig.take()
        found.expected_results[0].check(words, statuses={Status.ABORTED})
        assert words[-1]["data"] == 0 and len(words) >= (2 if first else 3)
        for answer in jobs.expected_results:
            answer.check(await rig.take())
        await sending
        assert await rig.read("jobs_done") == len(jobs.expected_results)
        await rig.write("control", reset=1)
        await rig.restarted()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.4])
async def resets(dut, pause):
    """The reset pin, in the midst of everything, for as short as may be."""
    rig = await IpTestbench.start(dut, pause)
    for _ in range(4):
        await rig.write("irq_enable", done=1)
        found = long_job(rig)
        tasks = [cocotb.start_soon(task) for task in (rig.send(found.words), rig.take())]
        await ClockCycles(rig.clock, rig.rng.randrange(1, 500))
        for task in tasks:
            task.cancel()
        await rig.reset()
        assert await rig.read("jobs_done") == 0 and await rig.read("irq_enable") == 0
        await rig.run(program(rig, 1))
