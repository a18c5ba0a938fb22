"""Queues and stages of streams: every word once, in order, at full rate."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from amaranth.sim import Simulator

from weft.hw.stream.async_fifo import AsyncFifo, PulseHandshake
from weft.hw.stream.fifo import Fifo
from weft.hw.stream.skid_buffer import SkidBuffer
from weft.sim.amaranth_bench import checker, quiet, receive, send, simulate, ticks

WORDS = [n * 37 % 251 for n in range(300)]


def passes(dut, idle, stall):
    async def give(ctx):
        await send(ctx, dut.i, WORDS, idle=idle, seed=1)

    async def take(ctx):
        assert await receive(ctx, dut.o, len(WORDS), stall=stall, seed=2) == WORDS
        await quiet(ctx, dut.o)

    simulate(dut, give, take, background=[checker(dut.o, "words")], limit=6000)


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.7, 0.7), (0, 0.9)])
@pytest.mark.parametrize("make", [
    lambda: SkidBuffer(8), lambda: Fifo(width=8, depth=16, target="generic"),
    lambda: Fifo(width=8, depth=16, target="ice40hx"),
], ids=["skid", "fifo", "fifo-ice40"])
def test_every_word_passes_once_in_order(make, idle, stall):
    passes(make(), idle, stall)


@pytest.mark.parametrize("make, latency", [
    (lambda: SkidBuffer(8), SkidBuffer.LATENCY), (lambda: Fifo(width=8, depth=16, target="generic"),
                                      Fifo.LATENCY),
], ids=["skid", "fifo"])
def test_rate_and_latency(make, latency):
    dut, came = make(), []

    async def give(ctx):
        await ticks(ctx, 3)
        await send(ctx, dut.i, WORDS[:50])

    async def take(ctx):
        ctx.set(dut.o.ready, 1)
        for cycle in range(70):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            came.extend([cycle] * valid)

    simulate(dut, give, take)
    assert came == list(range(3 + latency, 53 + latency))


def test_fifo_counts_its_words_and_takes_all_but_one():
    dut = Fifo(width=8, depth=16, target="generic")

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for cycle in range(30):
            _, _, ready, words = await ctx.tick().sample(dut.i.ready, dut.words)
            assert (ready, words) == (cycle < 15, min(cycle, 15))
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for left in range(15, 0, -1):
            assert (ctx.get(dut.words), ctx.get(dut.o.valid)) == (left, 1)
            await ctx.tick()
        assert (ctx.get(dut.words), ctx.get(dut.o.valid)) == (0, 0)

    simulate(dut, bench)


@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0.5), (0, 0.9), (0.9, 0)])
def test_a_word_that_follows_is_there_whatever_happens(idle, stall):
    dut, seen = Fifo(width=8, depth=16, target="generic"), []

    async def give(ctx):
        await send(ctx, dut.i, WORDS, idle=idle, seed=1)

    async def take(ctx):
        assert await receive(ctx, dut.o, len(WORDS), stall=stall, seed=2) == WORDS

    async def watch(ctx):
        while True:
            _, _, follows, valid = await ctx.tick().sample(dut.follows, dut.o.valid)
            seen.append((follows, valid))

    simulate(dut, give, take, background=[watch], limit=6000)
    after = [valid for (follows, _), (_, valid) in zip(seen, seen[1:], strict=False) if follows]
    assert len(after) > 50 and all(after)


def test_skid_takes_nothing_in_a_reset():
    class Held(wiring.Component):
        def __init__(self):
            self.inner, self.reset = SkidBuffer(8), Signal()
            super().__init__(dict(self.inner.signature.members))

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = ResetInserter(self.reset)(self.inner)
            connect(m, flipped(self.i), self.inner.i)
            connect(m, self.inner.o, flipped(self.o))
            return m

    dut = Held()

    async def bench(ctx):
        await send(ctx, dut.i, [1, 2])
        ctx.set(dut.reset, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 1)
        for _ in range(3):
            assert not ctx.get(dut.i.ready) and not ctx.get(dut.o.valid)
            await ctx.tick()
        ctx.set(dut.reset, 0)
        ctx.set(dut.i.payload, 9)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.o.valid)
        assert ctx.get(dut.o.payload) == 9

    simulate(dut, bench)


def two_clocks(dut, periods, *benches, limit=20_000):
    """Benches, each of a domain, with clocks of these periods; how many have ended."""
    m, ended = Module(), []
    for name in periods:
        m.domains += ClockDomain(name)
    m.submodules.dut = dut
    simulator = Simulator(m)
    for name, period in periods.items():
        simulator.add_clock(period, domain=name, phase=period / 3)

    def tracked(bench):
        async def run(ctx):
            await bench(ctx)
            ended.append(bench.__name__)
        return run

    for bench in benches:
        simulator.add_testbench(tracked(bench), background=True)

    async def watchdog(ctx):
        for _ in range(limit):
            if len(ended) == len(benches):
                return
            await ctx.tick("w")
        raise TimeoutError(f"only {ended} have ended")

    simulator.add_testbench(watchdog)
    simulator.run()


PERIODS = [(1.0e-6, 1.0e-6), (1.0e-6, 0.73e-6), (1.0e-6, 4.1e-6), (3.7e-6, 1.0e-6)]


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize("stall", [0, 0.6])
def test_every_word_passes_from_clock_to_clock(periods, stall):
    dut, rng = AsyncFifo(8, depth=4, writer="w", reader="r"), random.Random(4)

    async def give(ctx):
        for word in WORDS[:120]:
            while rng.random() < stall:
                await ctx.tick("w")
            ctx.set(dut.i.payload, word)
            ctx.set(dut.i.valid, 1)
            while not (await ctx.tick("w").sample(dut.i.ready))[-1]:
                pass
            ctx.set(dut.i.valid, 0)

    async def take(ctx):
        found, held = [], None
        while len(found) < 120:
            ctx.set(dut.o.ready, ready := int(rng.random() >= stall))
            _, _, valid, word = await ctx.tick("r").sample(dut.o.valid, dut.o.payload)
            assert held in (None, word if valid else None)
            held = word if valid and not ready else None
            if valid and ready:
                found.append(word)
        assert found == WORDS[:120]
        for _ in range(30):
            await ctx.tick("w")
        assert not ctx.get(dut.some) and not ctx.get(dut.there)

    two_clocks(dut, dict(zip("wr", periods, strict=True)), give, take)


@pytest.mark.parametrize("periods", PERIODS)
def test_an_order_is_carried_out_once(periods):
    dut, acted = PulseHandshake(giver="w", doer="r"), []

    async def give(ctx):
        for _ in range(10):
            ctx.set(dut.asks, 1)
            while not (await ctx.tick("w").sample(dut.done))[-1]:
                pass
            ctx.set(dut.asks, 0)
            given.append(len(acted))
            for _ in range(len(given) % 3):
                await ctx.tick("w")
        assert given == list(range(1, 11))

    async def do(ctx):
        while len(acted) < 10:
            ctx.set(dut.ends, 0)
            while not (await ctx.tick("r").sample(dut.acts))[-1]:
                pass
            for _ in range(len(acted) % 4):
                await ctx.tick("r")
            ctx.set(dut.ends, 1)
            acted.append(1)
            _, _, acts = await ctx.tick("r").sample(dut.acts)
            assert acts

    given = []
    two_clocks(dut, dict(zip("wr", periods, strict=True)), give, do)
