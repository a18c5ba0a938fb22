"""Tests of the AXI4-Lite slave: order, fairness, rate and errors."""

import random

import pytest

from verif.amaranth_bench import play, simulate, ticks
from verif.ip.echo import FIRST_ERROR, Echo
from weft.hw.bus.axi_lite import OKAY, SLVERR, AxiLite, ResponseQueue


async def drive(ctx, valid, ready, pins, values, idle, rng):
    """Sends ``values`` on a channel; each is a tuple for ``pins``."""
    for value in values:
        while rng.random() < idle:
            await ctx.tick()
        for pin, part in zip(pins, value, strict=True):
            ctx.set(pin, part)
        ctx.set(valid, 1)
        while not (await ctx.tick().sample(ready))[-1]:
            pass
        ctx.set(valid, 0)


async def collect(ctx, valid, ready, pins, count, stall, rng):
    """Receives ``count`` tuples of ``pins`` from a channel."""
    found = []
    while len(found) < count:
        ctx.set(ready, accept := int(rng.random() >= stall))
        _, _, is_valid, *values = await ctx.tick().sample(valid, *pins)
        if is_valid and accept:
            found.append(tuple(values))
    ctx.set(ready, 0)
    return found


def bytes_of(words):
    """The byte addresses of word addresses."""
    return [int(4 * word) for word in words]


def traffic(reads, writes, *, odds=(0, 0, 0, 0, 0), cycles=1, seed=1):
    """Runs reads and writes; returns the requests of each cycle, and both lists of responses.

    ``odds`` are the probabilities of a pause on AR, AW, W, R and B.
    """
    bus = AxiLite()
    dut = Echo(bus, cycles)
    requests, responses = [], {}
    print("seed", seed)

    def channel(n, task, *arguments):
        rng = random.Random(f"{seed}-{n}")

        async def bench(ctx):
            responses[n] = await task(ctx, *arguments, odds[n], rng)
        bench.__name__ = f"channel_{n}"
        return bench

    async def watch(ctx):
        stalled, request = None, bus.bus.request
        while True:
            _, _, valid, ready, p = await ctx.tick().sample(
                request.valid, request.ready, request.payload
            )
            found = (p.addr, p.write) + ((p.mask, p.data) if p.write else ())
            assert stalled in (None, found) and (valid or not stalled), "a request must stay"
            stalled = found if valid and not ready else None
            requests.append(found if valid and ready else None)

    simulate(
        dut,
        channel(0, drive, bus.arvalid, bus.arready, [bus.araddr], [(r,) for r in bytes_of(reads)]),
        channel(1, drive, bus.awvalid, bus.awready, [bus.awaddr],
                [(w,) for w in bytes_of(w for w, _ in writes)]),
        channel(2, drive, bus.wvalid, bus.wready, [bus.wdata, bus.wstrb],
                [(d, d % 16) for _, d in writes]),
        channel(3, collect, bus.rvalid, bus.rready, [bus.rdata, bus.rresp], len(reads)),
        channel(4, collect, bus.bvalid, bus.bready, [bus.bresp], len(writes)),
        background=[watch],
    )
    return requests, responses[3], responses[4]


def check(reads, writes, requests, read, written):
    done = [request for request in requests if request]
    assert [a[0] for a in done if not a[1]] == reads
    assert [a[0:1] + a[2:] for a in done if a[1]] == [(w, d % 16, d) for w, d in writes]
    assert read == [(3 * r, SLVERR if r >= FIRST_ERROR else OKAY) for r in reads]
    assert written == [(SLVERR if w >= FIRST_ERROR else OKAY,) for w, _ in writes]


@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("odds", [
    (0, 0, 0, 0, 0), (0.5,) * 5, (0, 0.9, 0, 0, 0), (0, 0, 0.9, 0, 0), (0, 0, 0, 0.9, 0),
    (0, 0, 0, 0, 0.9),
])
def test_every_access_happens_once_and_is_answered_in_order(odds, cycles):
    rng = random.Random(7)
    reads = [rng.randrange(0x400) for _ in range(40)]
    writes = [(rng.randrange(0x400), rng.getrandbits(32)) for _ in range(40)]
    check(reads, writes, *traffic(reads, writes, odds=odds, cycles=cycles))


def test_an_address_that_is_no_multiple_of_4_is_an_error():
    """A quarter of a word further: the word of the request is the same."""
    reads = [n + odd / 4 for n in range(5) for odd in range(4)]
    requests, read, written = traffic(reads, [(n, 7) for n in reads])
    assert {request[0] for request in requests if request} == {*range(5)}
    wanted = [OKAY if n == int(n) else SLVERR for n in reads]
    assert [resp for _, resp in read] == [resp for resp, in written] == wanted


@pytest.mark.parametrize("kind", ["reads", "writes", "both"])
def test_rate_and_fair_turns(kind):
    reads = list(range(40)) if kind != "writes" else []
    writes = [(n, n) for n in range(40)] if kind != "reads" else []
    requests, read, written = traffic(reads, writes)
    check(reads, writes, requests, read, written)
    first = next(n for n, request in enumerate(requests) if request)
    run = requests[first : first + 30]
    assert sum(map(bool, run)) == (20 if kind == "reads" else 30)
    if kind == "both":
        is_write = [request[1] for request in run]
        assert all(a != b for a, b in zip(is_write, is_write[1:], strict=False))


def test_untaken_read_responses_do_not_block_writes():
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


@pytest.mark.parametrize("depth", [2, 4])
def test_response_queue_reserves_at_most_its_depth(depth):
    dut = ResponseQueue(width=8, depth=depth)
    free, = play(dut, [{"reserve": 1}] * depth + [{"reserve": 0}], "free", tail=3)
    assert free[:depth] == [1] * depth and free[-1] == 0


def test_no_output_depends_on_an_input_in_the_same_cycle():
    bus = AxiLite()
    inputs = ["awvalid", "wvalid", "arvalid", "bready", "rready"]
    outputs = ["awready", "wready", "arready", "bvalid", "rvalid", "rdata", "bresp", "rresp"]
    rng = random.Random(3)

    async def bench(ctx):
        for _ in range(300):
            for name in inputs:
                ctx.set(getattr(bus, name), rng.randrange(2))
            before = [ctx.get(getattr(bus, name)) for name in outputs]
            for name in inputs:
                ctx.set(getattr(bus, name), rng.randrange(2))
            assert [ctx.get(getattr(bus, name)) for name in outputs] == before
            await ctx.tick()

    simulate(Echo(bus, 1), bench)
