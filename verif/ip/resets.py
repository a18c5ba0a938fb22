"""Tests of abort, soft reset and reset at random times: the next job is always correct."""

import cocotb
from cocotb.triggers import ClockCycles

from verif.ip.ip_testbench import IpTestbench
from verif.ip.jobs import random_jobs
from weft.commands import Status
from weft.hw.bus.fifo_ports import CAPACITY

DONE_OR_ABORTED = frozenset({Status(0), Status.ABORTED})


def long_job(tb, tag=1):
    """A job with many words of results."""
    config, scenario = tb.config, tb.scenario()
    a, b = scenario.operands(4 * config.rows, 4 * config.cols, 2)
    scenario.multiply(a, b, feed=(), tag=tag, statuses=DONE_OR_ABORTED)
    return scenario


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5])
async def aborts(dut, pause):
    """An abort without a job, of a job that waits for operands, and of a job that runs."""
    tb = await IpTestbench.start(dut, pause)
    for round_ in range(2):
        await tb.write("control", abort=1)
        await ClockCycles(tb.clock, 100)
        scenario = tb.unfed_job(tag=round_)
        await tb.send(scenario.words)
        await ClockCycles(tb.clock, 150)
        assert await tb.read("status", "busy") == 1
        jobs_done = await tb.read("jobs_done")
        await tb.write("control", abort=1)
        scenario.scoreboards[0].check(await tb.receive())
        assert await tb.read("jobs_done") == jobs_done + 1
        assert await tb.read("last_job") & 0xFFFF == round_
        assert await tb.read("last_job", "status") == 1
        assert await tb.read("irq_status", "failed") == 1
        await tb.write("irq_status", failed=1, done=1)

        scenario = long_job(tb)
        sending = cocotb.start_soon(tb.send(scenario.words))
        await ClockCycles(tb.clock, tb.rng.randrange(400))
        await tb.write("control", abort=1)
        scenario.scoreboards[0].check(await tb.receive())
        await sending
        await tb.run(random_jobs(tb, 1))
    assert await tb.read("status", "busy") == 0


async def soft_reset(tb, slow):
    """Make a soft reset and check the registers; ``slow`` masters see only its end."""
    await tb.write("irq_enable", access_error=1)
    await tb.write("control", reset=1)
    assert slow or await tb.read("status", "reset_busy") == 1
    if tb.ip.has_fifo_ports:
        assert slow or await tb.read("cmd_fifo_free") == 0
    await tb.wait_reset()
    for name in ("jobs_done", "last_job", "irq_status"):
        assert await tb.read(name) == 0, name
    assert await tb.read("irq_enable") == 1 << tb.fields["irq_enable"]["access_error"].low
    if tb.ip.has_fifo_ports:
        assert (await tb.read("cmd_fifo_free"), await tb.read("result_level")) == (CAPACITY, 0)
    assert await tb.read("status") == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.6])
async def soft_resets(dut, pause):
    """Soft resets while operands arrive, while the core computes or sends results, and at rest."""
    tb = await IpTestbench.start(dut, pause)
    for round_ in range(4):
        scenario = long_job(tb, tag=round_)
        count = len(scenario.words)
        cut = (count, count // 2, 1, 0)[round_ % 4]
        if tb.ip.has_fifo_ports and cut == 1:
            # Less than a word of the command stream.
            await tb.master.write(tb.addresses["cmd_fifo"], 0xFFFFFFFF)
            cut = 0
        await tb.send(scenario.words[:cut])
        if tb.ip.has_streams:
            await tb.source.wait()
        await ClockCycles(tb.clock, tb.rng.randrange(1, 300))
        if tb.ip.has_fifo_ports:
            for _ in range(min((await tb.result_level())["words"], tb.rng.randrange(3))):
                assert (await tb.master.read(tb.addresses["result_fifo"]))[1]
        await soft_reset(tb, pause > 0)
        if tb.ip.has_streams:
            # An open packet ends whole, or with the status of an abort.
            await ClockCycles(tb.clock, 20)
            while not tb.sink.idle():
                await ClockCycles(tb.clock, 1)
            while not tb.sink.empty():
                scenario.scoreboards[0].check(await tb.receive())
        jobs = random_jobs(tb, 2, tag=50)
        await tb.run(jobs)
        assert await tb.read("jobs_done") == len(jobs.scoreboards)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def open_packets(dut):
    """An offered word stays through a soft reset; an open packet is ended behind it."""
    tb = await IpTestbench.start(dut)
    if not tb.ip.has_streams:
        return
    for first in (True, False):
        scenario = long_job(tb, tag=77)
        tb.sink.pause = True
        await tb.send(scenario.words)
        await tb.source.wait()
        while not int(dut.m_axis_tvalid.value):
            await ClockCycles(tb.clock, 1)
        if not first:  # take some words of the packet
            tb.sink.pause = False
            await ClockCycles(tb.clock, 5)
            tb.sink.pause = True
            await ClockCycles(tb.clock, 40)
        await soft_reset(tb, False)
        jobs = random_jobs(tb, 1)
        sending = cocotb.start_soon(tb.send(jobs.words))
        await ClockCycles(tb.clock, 200)
        tb.sink.pause = False
        words = await tb.receive()
        scenario.scoreboards[0].check(words)
        assert (words[-1].status, words[-1].data) == (Status.ABORTED, 0)
        assert len(words) >= (2 if first else 3)
        for expected in jobs.scoreboards:
            expected.check(await tb.receive())
        await sending
        assert await tb.read("jobs_done") == len(jobs.scoreboards)
        await tb.write("control", reset=1)
        await tb.wait_reset()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.4])
async def resets(dut, pause):
    """Resets by the pin, one cycle long, at random times."""
    tb = await IpTestbench.start(dut, pause)
    for _ in range(4):
        await tb.write("irq_enable", done=1)
        scenario = long_job(tb)
        tasks = [cocotb.start_soon(task) for task in (tb.send(scenario.words), tb.receive())]
        await ClockCycles(tb.clock, tb.rng.randrange(1, 500))
        for task in tasks:
            task.cancel()
        await tb.reset()
        assert await tb.read("jobs_done") == 0 and await tb.read("irq_enable") == 0
        await tb.run(random_jobs(tb, 1))
