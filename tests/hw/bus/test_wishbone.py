"""Tests of the Wishbone slave: one answer for each access, in the cycle of the access."""

import random

import pytest

from verif.amaranth_bench import simulate
from verif.ip.echo import FIRST_ERROR, Echo, RequestLog
from weft.hw.bus.wishbone import Wishbone


class Master(RequestLog):
    """Runs bus cycles of several accesses; ``requests`` has the requests of the register bus."""

    async def cycle(self, ctx, words, *, writes=False, stay=None, idle=0, rng=None):
        """Accesses ``words``; returns the answers and the number of clocks.

        The cycle is aborted after ``stay`` clocks.
        """
        bus, found, sent, clocks = self.bus, [], 0, 0
        ctx.set(bus.cyc_i, 1)
        while len(found) < len(words) and clocks != stay:
            strobe = sent < len(words) and not (rng and rng.random() < idle)
            if not bus.pipelined and ctx.get(bus.stb_i):
                strobe = True  # stays until the answer
            ctx.set(bus.stb_i, int(strobe))
            if strobe:
                ctx.set(bus.adr_i, words[sent])
                ctx.set(bus.we_i, int(writes))
                ctx.set(bus.dat_i, words[sent] + 7)
                ctx.set(bus.sel_i, words[sent] % 16)
            stall_pin = [bus.stall_o] if bus.pipelined else []
            _, _, ack, err, data, *stall = await ctx.tick().sample(
                bus.ack_o, bus.err_o, bus.dat_o, *stall_pin
            )
            assert not (ack and err)
            if ack or err:
                assert bus.pipelined or strobe
                found.append((data, err))
            accepted = not stall[0] if bus.pipelined else ack or err
            sent += bool(strobe and accepted)
            if not bus.pipelined and (ack or err):
                ctx.set(bus.stb_i, 0)
            clocks += 1
        ctx.set(bus.stb_i, 0)
        ctx.set(bus.cyc_i, 0)
        return found, clocks


def answers(words):
    return [(3 * word, word >= FIRST_ERROR) for word in words]


@pytest.mark.parametrize("cycles", [1, 4])
@pytest.mark.parametrize("idle", [0, 0.5])
@pytest.mark.parametrize("pipelined", [False, True])
def test_every_access_happens_once_and_is_answered(pipelined, idle, cycles):
    bus, rng = Wishbone(pipelined=pipelined), random.Random(5)
    master = Master(bus)
    words = [rng.randrange(0x400) for _ in range(40)]

    async def bench(ctx):
        for first in range(0, len(words), 8):
            part = words[first : first + 8]
            found, _ = await master.cycle(ctx, part, writes=first % 16 > 0, idle=idle, rng=rng)
            assert found == answers(part)

    simulate(Echo(bus, cycles), bench, background=[master.watch])
    assert [addr for addr, *_ in master.requests] == words
    for n, (addr, write, mask, data) in enumerate(master.requests):
        assert (write, mask, data) == (n // 8 % 2, addr % 16, addr + 7)


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
def test_aborted_cycles_do_not_disturb_the_next(pipelined, cycles):
    bus, rng = Wishbone(pipelined=pipelined), random.Random(9)
    master = Master(bus)

    async def bench(ctx):
        for _ in range(100):
            await master.cycle(
                ctx, [rng.randrange(0x400) for _ in range(4)], stay=rng.randrange(1, 12)
            )
            for _ in range(rng.choice([1, 1, 2, 5])):
                # The answer may still arrive in the clock in which the cycle ends, but not later.
                _, _, cyc = await ctx.tick().sample(bus.cyc_i)
            part = [rng.randrange(0x400) for _ in range(3)]
            found, _ = await master.cycle(ctx, part)
            assert found == answers(part)

    simulate(Echo(bus, cycles), bench)


def test_no_answer_outside_a_cycle():
    bus = Wishbone(pipelined=True)
    master = Master(bus)

    async def bench(ctx):
        await master.cycle(ctx, [1, 1], stay=2)
        await ctx.tick()
        for _ in range(20):
            _, _, ack, err = await ctx.tick().sample(bus.ack_o, bus.err_o)
            assert not ack and not err

    simulate(Echo(bus, 6), bench)
