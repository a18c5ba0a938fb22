"""Tests of the APB slave: one request for each transfer, and its answer in the last cycle."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from verif.amaranth_bench import pulse, simulate
from verif.ip.echo import FIRST_ERROR, Echo, RequestLog
from weft.hw.bus.apb import Apb

LIMIT = 50  # cycles of a transfer


class Master(RequestLog):
    """Makes transfers; ``requests`` has the requests of the register bus."""

    async def transfer(self, ctx, address, value=None):
        """Read the byte ``address``, or write ``value``: the word, the error, and the cycles."""
        bus = self.bus
        ctx.set(bus.psel, 1)
        ctx.set(bus.paddr, address)
        ctx.set(bus.pwrite, int(value is not None))
        ctx.set(bus.pwdata, value or 0)
        _, _, ready, error = await ctx.tick().sample(bus.pready, bus.pslverr)
        assert (ready, error) == (0, 0), "nothing ends in the setup cycle"
        ctx.set(bus.penable, 1)
        ready, cycles = 0, 1
        while not ready and cycles < LIMIT:
            cycles += 1
            _, _, ready, error, word = await ctx.tick().sample(
                bus.pready, bus.pslverr, bus.prdata
            )
            assert ready or not error
        ctx.set(bus.penable, 0)
        ctx.set(bus.psel, 0)
        return word, error, cycles


@pytest.mark.parametrize("cycles", [1, 4])
@pytest.mark.parametrize("idle", [0, 0.5])
def test_every_transfer_is_one_request_and_gets_its_answer(idle, cycles):
    bus, rng = Apb(), random.Random(5)
    master = Master(bus)
    words = [rng.randrange(0x400) for _ in range(40)]
    writes = [rng.random() < 0.5 for _ in words]

    async def bench(ctx):
        for word, write in zip(words, writes, strict=True):
            while rng.random() < idle:
                _, _, ready, error = await ctx.tick().sample(bus.pready, bus.pslverr)
                assert not ready and not error
            odd = rng.choice([0, 0, 0, 1, 2, 3])  # an address that is no multiple of 4
            found, error, took = await master.transfer(
                ctx, 4 * word + odd, word + 7 if write else None
            )
            assert (found, error) == (3 * word, odd > 0 or word >= FIRST_ERROR)
            assert took == 1 + (cycles if word % 2 else 1)

    simulate(Echo(bus, cycles), bench, background=[master.watch])
    assert [(addr, write, mask) for addr, write, mask, _ in master.requests] == [
        (word, int(write), 15) for word, write in zip(words, writes, strict=True)
    ]
    for word, write, (_, _, _, data) in zip(words, writes, master.requests, strict=True):
        assert not write or data == word + 7


async def give_up(ctx, bus, cycles):
    """Begin a read of an odd word, which takes 6 cycles, and end it in its access phase."""
    ctx.set(bus.psel, 1)
    ctx.set(bus.paddr, 4)
    ctx.set(bus.pwrite, 0)
    await ctx.tick()
    ctx.set(bus.penable, 1)
    await ctx.tick().repeat(cycles)
    ctx.set(bus.psel, 0)
    ctx.set(bus.penable, 0)


def test_a_reset_ends_a_transfer_without_an_answer():
    """The master starts again after the reset, and gets the answer of its new transfer."""
    bus, reset = Apb(), Signal()
    master = Master(bus)

    async def bench(ctx):
        for wait in range(1, 8):
            await give_up(ctx, bus, wait)
            await pulse(ctx, reset)
            assert ctx.get(bus.pready) == 0
            found, error, took = await master.transfer(ctx, 8)
            assert (found, error, took) == (6, 0, 2)

    simulate(ResetInserter(reset)(Echo(bus, 6)), bench)


@pytest.mark.parametrize("idle", [1, 2, 5, 9])
def test_a_transfer_that_the_master_gives_up_answers_no_other(idle):
    """Only the master is reset: the slave's response to the old transfer must not end a new one."""
    bus = Apb()
    master = Master(bus)

    async def bench(ctx):
        for wait in range(1, 6):
            await give_up(ctx, bus, wait)
            await ctx.tick().repeat(idle)
            found, error, _ = await master.transfer(ctx, 8)
            assert (found, error) == (6, 0)

    simulate(Echo(bus, 6), bench, background=[master.watch])
    assert [addr for addr, *_ in master.requests] == [1, 2] * 5
