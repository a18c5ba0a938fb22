"""Tests of the FIFO: every word once, in order, at one word a cycle; its level; commits."""

import pytest
from streams import check_transfer, valid_cycles
from tiers import quick

from verif.amaranth_bench import put, quiet, receive, simulate
from weft.hw.stream.fifo import Fifo

WORDS = [n * 37 % 251 for n in range(300)]


def fifo(**options):
    return Fifo(8, **{"depth": 16, "target": "generic", "counted": True, **options})


@pytest.mark.parametrize("idle, stall", quick(2, [
    (0, 0), (0.7, 0.7), (0.5, 0), (0, 0.5), (0, 0.9),
]))
@pytest.mark.parametrize("options", [
    {}, {"target": "ice40hx"}, {"counted": False, "depth": 8},
], ids=["generic", "ice40", "uncounted"])
def test_every_word_passes_once_in_order(options, idle, stall):
    dut = fifo(**options)
    check_transfer(dut, dut.i, dut.o, WORDS, idle=idle, stall=stall)


@pytest.mark.parametrize("counted", [False, True])
def test_rate_and_latency(counted):
    dut = fifo(counted=counted)
    cycles = valid_cycles(dut, dut.i, dut.o, WORDS[:50], start=3)
    assert cycles == list(range(3 + Fifo.LATENCY, 53 + Fifo.LATENCY))


def test_level_counts_words_up_to_depth_less_one():
    dut = fifo()

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for cycle in range(30):
            _, _, ready, level = await ctx.tick().sample(dut.i.ready, dut.level)
            assert (ready, level) == (cycle < 15, min(cycle, 15))
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for remaining in range(15, 0, -1):
            assert (ctx.get(dut.level), ctx.get(dut.o.valid)) == (remaining, 1)
            await ctx.tick()
        assert (ctx.get(dut.level), ctx.get(dut.o.valid)) == (0, 0)

    simulate(dut, bench)


def test_uncounted_fifo_holds_words_in_its_output_registers_too():
    dut = fifo(depth=4, counted=False)

    async def bench(ctx):
        count = 0
        ctx.set(dut.i.valid, 1)
        while ctx.get(dut.i.ready):
            ctx.set(dut.i.payload, count)
            count += 1
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        assert count == 4  # three in the memory, one in an output register
        assert await receive(ctx, dut.o, 4) == [0, 1, 2, 3]

    simulate(dut, bench)


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0.5), (0, 0.9), (0.9, 0)])
def test_next_valid_is_kept(idle, stall):
    dut, samples = fifo(), []

    async def watch(ctx):
        while True:
            _, _, next_valid, valid = await ctx.tick().sample(dut.next_valid, dut.o.valid)
            samples.append((next_valid, valid))

    check_transfer(dut, dut.i, dut.o, WORDS, idle=idle, stall=stall, background=[watch])
    after = [valid for (early, _), (_, valid) in zip(samples, samples[1:], strict=False) if early]
    assert len(after) > 50 and all(after)


def test_words_leave_only_after_a_commit():
    dut = fifo(counted=False, checked=False, commit=True)

    async def bench(ctx):
        for word in range(1, 7):
            put(ctx, dut.i.valid, 1)
            put(ctx, dut.i.payload, word)
            put(ctx, dut.commit, word == 4)
            await ctx.tick()
        put(ctx, dut.i.valid, 0)
        assert await receive(ctx, dut.o, 4) == [1, 2, 3, 4]
        await quiet(ctx, dut.o)

    simulate(dut, bench)
