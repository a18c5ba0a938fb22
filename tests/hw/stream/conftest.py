"""A simulation with two clocks."""

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator


@pytest.fixture
def two_clocks():
    """``two_clocks(dut, periods, *benches)``: runs the benches until all have ended.

    ``periods`` has the clock period in seconds of the domains "w" and "r". Raises TimeoutError
    after ``limit`` cycles of "w".
    """
    return _two_clocks


def _two_clocks(dut, periods, *benches, limit=20_000):
    m, done = Module(), []
    for name in periods:
        m.domains += ClockDomain(name)
    m.submodules.dut = dut
    simulator = Simulator(m)
    for name, period in periods.items():
        simulator.add_clock(period, domain=name, phase=period / 3)

    def tracked(bench):
        async def run(ctx):
            await bench(ctx)
            done.append(bench.__name__)
        return run

    for bench in benches:
        simulator.add_testbench(tracked(bench), background=True)

    async def watchdog(ctx):
        for _ in range(limit):
            if len(done) == len(benches):
                return
            await ctx.tick("w")
        raise TimeoutError(f"only {done} of {len(benches)} benches ended in {limit} cycles")

    simulator.add_testbench(watchdog)
    simulator.run()
