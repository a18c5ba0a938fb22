"""AXI4-Lite against a port that answers when it likes: order, fairness, rate, refusals."""

import random

import pytest

from weft.hw.bus.axi_lite import OKAY, SLVERR, AxiLite, ResponseQueue
from weft.sim.amaranth_bench import play, simulate, ticks
from weft.sim.ip.echo import REFUSED, Echo


async def give(ctx, valid, ready, pins, values, odds, rng):
    """Values on a channel: each a tuple for ``pins``."""
    for value in values:
        while rng.random() < odds:
            await ctx.tick()
        for pin, part in zip(pins, value, strict=True):
            ctx.set(pin, part)
        ctx.set(valid, 1)
        while not (await ctx.tick().sample(ready))[-1]:
            pass
        ctx.set(valid, 0)


async def take(ctx, valid, ready, pins, count, odds, rng):
    found = []
    while len(found) < count:
        ctx.set(ready, accepts := int(rng.random() >= odds))
        _, _, there, *values = await ctx.tick().sample(valid, *pins)
        if there and accepts:
            found.append(tuple(values))
    ctx.set(ready, 0)
    return found


def traffic(reads, writes, *, odds=(0, 0, 0, 0, 0), cycles=1, seed=1):
    """Accesses as the port saw them, answers to reads and to writes, and how long it took."""
    bus = AxiLite()
    dut = Echo(bus, cycles)
    seen, answers = [], {}
    print("seed", seed)

    def channel(n, task, *arguments):
        rng = random.Random(f"{seed}-{n}")

        async def bench(ctx):
            answers[n] = await task(ctx, *arguments, odds[n], rng)
        bench.__name__ = f"channel_{n}"
        return bench

    async def watch(ctx):
        held, access = None, bus.port.access
        while True:
            _, _, valid, ready, p = await ctx.tick().sample(
                access.valid, access.ready, access.payload
            )
            found = (p.address, p.write) + ((p.mask, p.data) if p.write else ())
            assert held in (None, found) and (valid or not held), "an access must stay"
            held = found if valid and not ready else None
            seen.append(found if valid and ready else None)

    simulate(
        dut,
        channel(0, give, bus.arvalid, bus.arready, [bus.araddr], [(4 * r,) for r in reads]),
        channel(1, give, bus.awvalid, bus.awready, [bus.awaddr], [(4 * w,) for w, _ in writes]),
        channel(2, give, bus.wvalid, bus.wready, [bus.wdata, bus.wstrb],
                [(d, d % 16) for _, d in writes]),
        channel(3, take, bus.rvalid, bus.rready, [bus.rdata, bus.rresp], len(reads)),
        channel(4, take, bus.bvalid, bus.bready, [bus.bresp], len(writes)),
        background=[watch],
    )
    return seen, answers[3], answers[4]


def check(reads, writes, seen, got, wrote):
    done = [access for access in seen if access]
    assert [a[0] for a in done if not a[1]] == reads
    assert [a[0:1] + a[2:] for a in done if a[1]] == [(w, d % 16, d) for w, d in writes]
    assert got == [(3 * r, SLVERR if r >= REFUSED else OKAY) for r in reads]
    assert wrote == [(SLVERR if w >= REFUSED else OKAY,) for w, _ in writes]


@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("odds", [
    (0, 0, 0, 0, 0), (0.5,) * 5, (0, 0.9, 0, 0, 0), (0, 0, 0.9, 0, 0), (0, 0, 0, 0.9, 0),
    (0, 0, 0, 0, 0.9),
])
def test_every_access_is_made_once_and_answered_in_order(odds, cycles):
    rng = random.Random(7)
    reads = [rng.randrange(0x400) for _ in range(40)]
    writes = [(rng.randrange(0x400), rng.getrandbits(32)) for _ in range(40)]
    check(reads, writes, *traffic(reads, writes, odds=odds, cycles=cycles))


@pytest.mark.parametrize("kind", ["reads", "writes", "both"])
def test_an_access_a_cycle_in_fair_turns_but_two_reads_in_three(kind):
    reads = list(range(40)) if kind != "writes" else []
    writes = [(n, n) for n in range(40)] if kind != "reads" else []
    seen, got, wrote = traffic(reads, writes)
    check(reads, writes, seen, got, wrote)
    first = next(n for n, access in enumerate(seen) if access)
    run = seen[first : first + 30]
    assert sum(map(bool, run)) == (20 if kind == "reads" else 30), "not as many accesses"
    if kind == "both":
        ways = [access[1] for access in run]
        assert all(a != b for a, b in zip(ways, ways[1:], strict=False))


def test_reads_that_nobody_takes_do_not_hold_up_writes():
    bus = AxiLite()
    dut = Echo(bus, 1)

    async def bench(ctx):
        ctx.set(bus.arvalid, 1)
        for _ in range(20):
            ctx.set(bus.awvalid, 1)
            ctx.set(bus.wvalid, 1)
            ctx.set(bus.bready, 1)
            await ctx.tick().until(bus.bvalid)
        assert ctx.get(bus.rvalid)
        ctx.set(bus.rready, 1)
        ctx.set(bus.arvalid, 0)
        await ticks(ctx, 20)
        assert not ctx.get(bus.rvalid)

    simulate(dut, bench)


@pytest.mark.parametrize("places", [2, 4])
def test_answers_keep_room_for_as_many_as_they_promise(places):
    dut = ResponseQueue(width=8, places=places)
    room, = play(dut, [{"keep": 1}] * places + [{"keep": 0}], "room", tail=3)
    assert room[:places] == [1] * places and room[-1] == 0


def test_every_pin_that_goes_out_is_of_registers():
    """No output changes in the cycle in which an input does."""
    bus = AxiLite()
    ins = ["awvalid", "wvalid", "arvalid", "bready", "rready"]
    outs = ["awready", "wready", "arready", "bvalid", "rvalid", "rdata", "bresp", "rresp"]
    rng = random.Random(3)

    async def bench(ctx):
        for _ in range(300):
            for name in ins:
                ctx.set(getattr(bus, name), rng.randrange(2))
            before = [ctx.get(getattr(bus, name)) for name in outs]
            for name in ins:
                ctx.set(getattr(bus, name), rng.randrange(2))
            assert [ctx.get(getattr(bus, name)) for name in outs] == before
            await ctx.tick()

    simulate(Echo(bus, 1), bench)
