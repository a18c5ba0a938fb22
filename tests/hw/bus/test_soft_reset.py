"""Tests of the soft reset: each step waits for the one before."""

from verif.amaranth_bench import simulate
from weft.hw.bus.register_bank import SoftReset


def test_each_step_waits_for_its_acknowledge():
    dut, states = SoftReset(), []

    async def bench(ctx):
        async def step(**inputs):
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            outputs = (dut.stop, dut.reset, dut.flush, dut.reset_busy)
            states.append("".join(str(int(ctx.get(out))) for out in outputs))

        for inputs in (
            {"idle": 0}, {}, {"reset_ack": 1}, {}, {"reset_ack": 0}, {}, {"start": 1},
            {"start": 0}, {}, {"idle": 1}, {"start": 1}, {"start": 0, "reset_ack": 1}, {},
            {"reset_ack": 0}, {},
        ):
            await step(**inputs)

    simulate(dut, bench)
    assert states == [
        "0111", "0111", "0011", "0011", "0000", "0000", "1001",
        "1001", "1001", "0111", "0111", "0011", "0011", "0000", "0000",
    ]
