"""The restart: each step waits for the one before."""

from weft.hw.bus.soft_reset import SoftReset
from weft.sim.amaranth_bench import simulate


def test_a_restart_waits_for_all_sides():
    dut, seen = SoftReset(), []

    async def bench(ctx):
        async def step(**inputs):
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            outs = (dut.stop, dut.reset, dut.holds, dut.reset_busy)
            seen.append("".join(str(int(ctx.get(out))) for out in outs))

        for inputs in (
            {"idle": 0}, {}, {"was_reset": 1}, {}, {"was_reset": 0}, {}, {"start": 1},
            {"start": 0}, {}, {"idle": 1}, {"start": 1}, {"start": 0, "was_reset": 1}, {},
            {"was_reset": 0}, {},
        ):
            await step(**inputs)

    simulate(dut, bench)
    assert seen == [
        "0111", "0111", "0011", "0011", "0000", "0000", "1001",
        "1001", "1001", "0111", "0111", "0011", "0011", "0000", "0000",
    ]
