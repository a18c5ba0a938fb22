"""Wishbone against a port that answers when it likes: one answer an access, of its own cycle."""

import random

import pytest

from weft.hw.bus.wishbone import Wishbone
from weft.sim.amaranth_bench import simulate
from weft.sim.ip.echo import REFUSED, Echo


class Master:
    """Cycles of several accesses, some of which are given up; what was seen goes to lists."""

    def __init__(self, bus):
        self.bus = bus
        self.accesses = []  # as the port has them

    async def watch(self, ctx):
        access = self.bus.port.access
        while True:
            _, _, valid, ready, p = await ctx.tick().sample(
                access.valid, access.ready, access.payload
            )
            if valid and ready:
                self.accesses.append((p.address, p.write, p.mask, p.data))

    async def cycle(self, ctx, words, *, writes=False, stay=None, idle=0, rng=None):
        """Answers to accesses of ``words``; the cycle is given up after ``stay`` clocks."""
        bus, found, given, clocks = self.bus, [], 0, 0
        ctx.set(bus.cyc_i, 1)
        while len(found) < len(words) and clocks != stay:
            asks = given < len(words) and not (rng and rng.random() < idle)
            if not bus.pipelined and ctx.get(bus.stb_i):
                asks = True  # until it is answered
            ctx.set(bus.stb_i, int(asks))
            if asks:
                ctx.set(bus.adr_i, words[given])
                ctx.set(bus.we_i, int(writes))
                ctx.set(bus.dat_i, words[given] + 7)
                ctx.set(bus.sel_i, words[given] % 16)
            ends = [bus.stall_o] if bus.pipelined else []
            _, _, ack, err, data, *stall = await ctx.tick().sample(
                bus.ack_o, bus.err_o, bus.dat_o, *ends
            )
            assert not (ack and err)
            if ack or err:
                assert bus.pipelined or asks
                found.append((data, err))
            taken = not stall[0] if bus.pipelined else ack or err
            given += bool(asks and taken)
            if not bus.pipelined and (ack or err):
                ctx.set(bus.stb_i, 0)
            clocks += 1
        ctx.set(bus.stb_i, 0)
        ctx.set(bus.cyc_i, 0)
        return found, clocks


def answers(words):
    return [(3 * word, word >= REFUSED) for word in words]


@pytest.mark.parametrize("cycles", [1, 4])
@pytest.mark.parametrize("idle", [0, 0.5])
@pytest.mark.parametrize("pipelined", [False, True])
def test_every_access_is_made_once_and_answered(pipelined, idle, cycles):
    bus, rng = Wishbone(pipelined=pipelined), random.Random(5)
    master = Master(bus)
    words = [rng.randrange(0x400) for _ in range(40)]

    async def bench(ctx):
        for first in range(0, len(words), 8):
            part = words[first : first + 8]
            found, _ = await master.cycle(ctx, part, writes=first % 16 > 0, idle=idle, rng=rng)
            assert found == answers(part)

    simulate(Echo(bus, cycles), bench, background=[master.watch])
    assert [address for address, *_ in master.accesses] == words
    for n, (address, write, mask, data) in enumerate(master.accesses):
        assert (write, mask, data) == (n // 8 % 2, address % 16, address + 7)


@pytest.mark.parametrize("pipelined, clocks", [(False, 2), (True, 1)])
def test_rate(pipelined, clocks):
    bus = Wishbone(pipelined=pipelined)
    master, words = Master(bus), list(range(0, 80, 2))

    async def bench(ctx):
        found, took = await master.cycle(ctx, words)
        assert found == answers(words)
        assert took == clocks * len(words) + (1 if pipelined else 0)

    simulate(Echo(bus, 1), bench)


@pytest.mark.parametrize("cycles", [1, 2, 5])
@pytest.mark.parametrize("pipelined", [False, True])
def test_cycles_given_up_do_not_confuse_the_next(pipelined, cycles):
    bus, rng = Wishbone(pipelined=pipelined), random.Random(9)
    master = Master(bus)

    async def bench(ctx):
        for _ in range(100):
            await master.cycle(
                ctx, [rng.randrange(0x400) for _ in range(4)], stay=rng.randrange(1, 12)
            )
            for _ in range(rng.choice([1, 1, 2, 5])):
                # In the clock in which a cycle ends its answer may still be seen, but no later.
                _, _, cyc = await ctx.tick().sample(bus.cyc_i)
            part = [rng.randrange(0x400) for _ in range(3)]
            found, _ = await master.cycle(ctx, part)
            assert found == answers(part)

    simulate(Echo(bus, cycles), bench)


def test_no_answer_without_a_cycle():
    bus = Wishbone(pipelined=True)
    master = Master(bus)

    async def bench(ctx):
        await master.cycle(ctx, [1, 1], stay=2)
        await ctx.tick()
        for _ in range(20):
            _, _, ack, err = await ctx.tick().sample(bus.ack_o, bus.err_o)
            assert not ack and not err

    simulate(Echo(bus, 6), bench)
