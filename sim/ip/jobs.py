"""Whole jobs over the bus, back to back, under pauses on every channel, against golden."""

import cocotb

from weft.commands import JobFlag
from weft.sim.ip.ip_testbench import IpTestbench
from weft.sim.scenario import Scenario

__all__ = ["program"]


def program(rig, count=4, tag=0):
    """Jobs of several shapes, of sums and of finished results, one of them refused."""
    config, found = rig.config, Scenario(rig.config)
    for n in range(count):
        shape = [rig.rng.randint(1, most) for most in (2 * config.rows, 2 * config.cols, 9)]
        a, b = rig.operands(*shape)
        found.multiply(a, b, tag=tag + n, feed=(0, 1) if n % 2 else ())
        if config.requantize != "none":
            found.load_parameters([(5, 3 << 29, -8, 0, 1, -128, 127)] * shape[1])
            found.job(a, b, flags=JobFlag.REQUANTIZE, tag=tag + 100 + n)
        if config.dtype == "bf16":
            found.job(a, b, flags=JobFlag.ROUND, tag=tag + 100 + n)
        if n == 1:
            found.reject(tag=tag + 99, k=0)
    return found


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5, 0.9])
async def products(dut, pause):
    rig = await IpTestbench.start(dut, pause)
    jobs = program(rig, 2 if pause > 0.8 else 4)
    await rig.run(jobs)
    assert await rig.read("jobs_done") == len(jobs.expected_results)
    last = jobs.expected_results[-1]
    assert await rig.read("last_job", "tag") == last.tag
    assert await rig.read("last_job", "status") == last.status


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def description(dut):
    """The core's registers through the bus, and its counters."""
    from weft.registers import decode, describe

    rig = await IpTestbench.start(dut)
    words = [await rig.read(name) for name in list(rig.addresses)[: len(describe(rig.config))]]
    assert decode(words) == rig.config
    jobs = program(rig, 2)
    await rig.run(jobs)
    assert await rig.read("finished") == len(jobs.expected_results)
    assert await rig.read("words_in") == len(jobs.words)
