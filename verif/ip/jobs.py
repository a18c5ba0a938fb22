"""Tests of jobs over the bus: back to back, with pauses on every channel, against golden."""

import cocotb

from verif.ip.ip_testbench import IpTestbench
from weft.commands import JobFlag, epilogue_flags

__all__ = ["random_jobs"]


def random_jobs(tb, count=4, tag=0):
    """Jobs of random shapes; some are requantized, and one is rejected."""
    config, scenario = tb.config, tb.scenario()
    for n in range(count):
        shape = [tb.rng.randint(1, limit) for limit in (2 * config.rows, 2 * config.cols, 9)]
        a, b = scenario.operands(*shape)
        a, b = scenario.multiply(a, b, tag=tag + n, feed=(0, 1) if n % 2 else ())
        for flags in epilogue_flags(config)[:1]:
            if JobFlag.REQUANTIZE in flags:
                column = 5, 3 << 29, -8, 0, 1, -128, 127
                scenario.load_parameters(b, [column] * len(b.matrix))
            scenario.job(a, b, flags=flags, tag=tag + 100 + n)
        if n == 1:
            scenario.reject(tag=tag + 99, k=0)
    return scenario


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=[0, 0.5, 0.9])
async def products(dut, pause):
    tb = await IpTestbench.start(dut, pause)
    jobs = random_jobs(tb, 2 if pause > 0.8 else 4)
    await tb.run(jobs)
    assert await tb.read("jobs_done") == len(jobs.scoreboards)
    last = jobs.scoreboards[-1]
    assert await tb.read("last_job", "tag") == last.tag
    assert await tb.read("last_job", "status") == last.ended


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def core_registers(dut):
    """The constant registers of the core describe its Config, and its counters count."""
    from weft.registers import decode, describe

    tb = await IpTestbench.start(dut)
    words = [await tb.read(name) for name in list(tb.addresses)[: len(describe(tb.config))]]
    assert decode(words) == tb.config
    jobs = random_jobs(tb, 2)
    await tb.run(jobs)
    assert await tb.read("finished") == len(jobs.scoreboards)
    assert await tb.read("words_in") == len(jobs.words)
