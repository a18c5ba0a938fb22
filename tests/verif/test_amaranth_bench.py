"""The context of benches, and repeated simulations: they behave as Amaranth's own."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import simulate, ticks


class Counter(wiring.Component):
    """Counts the cycles with ``en``."""

    en: In(1)
    step: In(4)
    count: Out(8)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.en):
            m.d.sync += self.count.eq(self.count + self.step)
        return m


def test_waits_of_any_order_see_every_edge():
    """A trigger that was left waiting is replaced, and no edge is lost or seen twice."""
    dut, found = Counter(), []

    async def bench(ctx):
        ctx.set(dut.en, 1)
        ctx.set(dut.step, 1)
        for _ in range(3):
            _, _, count = await ctx.tick().sample(dut.count)
            found.append(count)
            _, _, count, en = await ctx.tick().sample(dut.count).sample(dut.en)
            found.append(count + 100 * en)
            await ctx.tick()
            found.append(ctx.get(dut.count))
        async for _, _, count in ctx.tick().sample(dut.count):
            found.append(count)
            break
        (count,) = await ctx.tick().sample(dut.count).until(dut.count == 12)
        found.append(count)

    simulate(dut, bench)
    assert found == [0, 101, 3, 3, 104, 6, 6, 107, 9, 9, 12]


def test_a_set_changes_a_signal_that_another_bench_has_set():
    dut, found = Counter(), []

    async def first(ctx):
        ctx.set(dut.en, 1)
        ctx.set(dut.step, 5)
        await ticks(ctx, 2)
        ctx.set(dut.step, 5)  # the other bench has set it to 1
        await ctx.tick()
        found.append(ctx.get(dut.count))

    async def second(ctx):
        await ctx.tick()
        ctx.set(dut.step, 1)

    simulate(dut, first, second)
    assert found == [5 + 1 + 5]


def test_each_run_starts_from_reset_with_its_own_benches():
    dut, found = Counter(), []

    def bench(step):
        async def run(ctx):
            found.append((ctx.get(dut.count), ctx.get(dut.en)))
            ctx.set(dut.en, 1)
            ctx.set(dut.step, step)
            await ticks(ctx, 3)
            found.append(ctx.get(dut.count))
        return run

    async def wait(ctx):
        await ticks(ctx, 2)

    simulate(dut, bench(1))
    simulate(dut, bench(2), wait, background=[wait])
    simulate(dut, bench(3))
    assert found == [(0, 0), 3, (0, 0), 6, (0, 0), 9]


def test_a_failed_run_does_not_change_the_next_one():
    dut = Counter()

    async def fail(ctx):
        ctx.set(dut.en, 1)
        await ctx.tick()
        raise ValueError("failed")

    async def check(ctx):
        await ctx.tick()
        assert ctx.get(dut.count) == 0

    with pytest.raises(ValueError, match="failed"):
        simulate(dut, fail)
    simulate(dut, check)


def test_a_bench_that_does_not_end_is_an_error_with_its_name():
    async def waits(ctx):
        await ticks(ctx, 1000)

    async def ends(ctx):
        await ctx.tick()

    with pytest.raises(TimeoutError, match="exceeded 50 cycles; still running: waits$"):
        simulate(Counter(), waits, ends, limit=50)
