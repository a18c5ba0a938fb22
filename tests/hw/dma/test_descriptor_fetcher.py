"""Descriptors looked at, and handed out word by word; those that are none are dropped."""

import dataclasses

import pytest

from weft.commands import Job, JobFlag, Load, LoadFlag, Region
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch, Store
from weft.geometry import memories
from weft.hw.dma.descriptor_fetcher import DescriptorFetcher
from weft.sim.amaranth_bench import put, send, simulate, ticks

CONFIG = Config(rows=2, cols=2, depth=2, a_words=64, b_words=64, lanes=2)
LOAD = Load(Region.A, 0, 1, 2, 3)
FETCH = Fetch(LOAD, 0x1001, 7, lines=3, k=5)
RAW = Fetch(LOAD, 0x1010, order=ElementOrder.PACKED)
JOB = Job(2, 2, 5, 0, 1, 1, 0, 1, 1, tag=3)
STORE = Store(JOB, 0x1008, 8)
NARROW = dataclasses.replace(JOB, flags=JobFlag.REQUANTIZE)
KEEP = dataclasses.replace(JOB, flags=JobFlag.KEEP)


def front(size=1, **options):
    return DescriptorFetcher(
        depth=4, geometries=memories(CONFIG), size=size, data_bytes=16, sizes=[4, 1], units=[8, 2],
        narrows=JobFlag.REQUANTIZE, target="generic", **options,
    )


def words(packed):
    return [int.from_bytes(packed[n : n + 4], "little") for n in range(0, 64, 4)]


def run(dut, packed, busy=0, **pins):
    """What comes out: the words for the walker, of the header, for the scatter; and pulses."""
    out = {"walk": [], "header": [], "store": []}
    pulses = {"fetch": 0, "send": 0, "bad": 0, "outside": 0}

    async def source(ctx):
        whole = [word for one in packed for word in words(one)]
        for name, value in pins.items():
            put(ctx, getattr(dut, name), value)
        await send(ctx, dut.descriptors, whole, idle=0.5 if busy else 0)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ticks(ctx, 3)
        assert ctx.get(dut.room) == 4

    async def surroundings(ctx):
        for n in range(100_000):
            put(ctx, dut.wait, bool(busy) and n % busy == 0)
            put(ctx, dut.sending, bool(busy) and n % 40 < busy)
            put(ctx, dut.fetching, bool(busy) and n % 50 < busy)
            await ctx.tick()

    async def watch(ctx):
        watched = [getattr(dut, name) for name in (*out, *pulses)]
        async for _, _, word, index, *values in ctx.tick().sample(dut.word, dut.index, *watched):
            for name, there in zip((*out, *pulses), values, strict=True):
                if there and name in out:
                    out[name].append((index, word))
                elif there:
                    pulses[name] += 1

    simulate(dut, source, background=[surroundings, watch], limit=5_000)
    return out, pulses


def picked(packed, *indices):
    return [(index, words(packed)[index]) for index in indices]


@pytest.mark.parametrize("busy", [0, 3])
def test_hands_out(busy):
    packed = [d.pack() for d in (FETCH, STORE, RAW, Store(NARROW, 0x1002, 6), FETCH, STORE)]
    out, pulses = run(front(), packed, busy)
    walked = 0, 1, 2, 3, 12, 8, 9, 10, 11
    assert out["walk"] == [
        word for one in packed if one[0] == 2 for word in picked(one, *walked)
    ]
    assert out["header"] == [word for one in packed for word in picked(one, *range(8))]
    assert out["store"] == [
        word for one in packed if one[0] == 1 for word in picked(one, 0, 1, 3, 8, 9)
    ]
    assert pulses == {"fetch": 3, "send": 3, "bad": 0, "outside": 0}


def test_a_job_that_keeps_its_sums_has_nothing_to_store():
    out, pulses = run(front(), [Store(KEEP, 1, 1).pack()])
    assert out["store"] == [] and len(out["header"]) == 8
    assert pulses == {"fetch": 0, "send": 0, "bad": 0, "outside": 0}


def load(**fields):
    return dataclasses.replace(FETCH, load=dataclasses.replace(LOAD, **fields)).pack()


def fetch(**fields):
    return dataclasses.replace(FETCH, **fields).pack()


WRONG = {
    "opcode": b"\x03" + FETCH.pack()[1:],
    "version": b"\x02\x01" + FETCH.pack()[2:],
    "operand": load(operand=4),
    "no-panels": load(panels=0),
    "panels": load(panels=1 << 9),
    "no-words": load(words=0),
    "words": load(words=4),
    "many-words": load(words=1 << 20),
    "k": fetch(k=7),
    "no-k": fetch(k=0),
    "lines": fetch(lines=1 << 16),
    "order": FETCH.pack()[:48] + b"\x03" + FETCH.pack()[49:],
    "parameters-by-strides": load(operand=Region.PARAMETERS),
    "raw-address": dataclasses.replace(RAW, address=0x1008).pack(),
    "address": Store(JOB, 0x1004, 8).pack(),
    "stride": Store(JOB, 0x1008, 4).pack(),
    "narrow-address": Store(NARROW, 0x1001, 8).pack(),
    "narrow-stride": Store(NARROW, 0x1000, 3).pack(),
}


@pytest.mark.parametrize("what", WRONG)
def test_drops(what):
    right = Store(JOB, 0x1008, 8).pack()
    out, pulses = run(front(), [right, WRONG[what], RAW.pack()])
    assert pulses == {"fetch": 1, "send": 1, "bad": 1, "outside": 0}
    assert out["header"] == picked(right, *range(8)) + picked(RAW.pack(), *range(8))


BEYOND = {
    "load": fetch(address=0xFFFFFFF0),
    "backwards": fetch(address=10, stride=-6),
    "raw": dataclasses.replace(RAW, address=0xFFFFFFF0).pack(),
    "job": Store(JOB, 0xFFFFFFF8, 8).pack(),
    "job-backwards": Store(NARROW, 0x1000, -0x1002).pack(),
}


@pytest.mark.parametrize("busy", [0, 3])
@pytest.mark.parametrize("what", BEYOND)
def test_drops_what_leads_outside(what, busy):
    right = Store(JOB, 0xFFFFFFE8, 8).pack(), Store(NARROW, 0x1002, -0x1002).pack()
    packed = [right[0], BEYOND[what], BEYOND[what], RAW.pack(), right[1]]
    out, pulses = run(front(), packed, busy)
    assert pulses == {"fetch": 1, "send": 1, "bad": 2, "outside": 2}
    done = right[0], RAW.pack(), right[1]
    assert out["header"] == [word for one in done for word in picked(one, *range(8))]


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_window_is_for_all(beyond):
    packed = [FETCH.pack(), STORE.pack(), RAW.pack(), Store(NARROW, 0x1012, -6).pack()]
    pins = {"base": 0x1000 + 0x20 * beyond, "limit": 0x104F}
    out, pulses = run(front(window=True), packed, **pins)
    assert pulses["outside"] == pulses["bad"] == 4 * beyond


def test_says_which_job_a_load_feeds():
    """The latest one, where it has results."""
    job, keep = Store(JOB, 0x1008, 8), Store(KEEP, 0, 0)
    feed = dataclasses.replace(FETCH, load=dataclasses.replace(LOAD, flags=LoadFlag.FEED))
    dut, found = front(), []

    async def source(ctx):
        order = FETCH, job, feed, FETCH, keep, feed, job, feed
        await send(ctx, dut.descriptors, [w for one in order for w in words(one.pack())])
        while not ctx.get(dut.idle):
            await ctx.tick()

    async def watch(ctx):
        async for _, _, sent, fed in ctx.tick().sample(dut.send, dut.fed):
            if sent:
                found.append(fed)

    simulate(dut, source, background=[watch], limit=2_000)
    assert found == [0, 1, 0, 0, 1]


def test_holds_jobs_alone():
    dut, found = front(), []

    async def source(ctx):
        put(ctx, dut.holds, 1)
        await send(ctx, dut.descriptors, words(FETCH.pack()) + words(STORE.pack()))
        await ticks(ctx, 150)
        assert len(found) == 8
        put(ctx, dut.holds, 0)
        while not ctx.get(dut.idle):
            await ctx.tick()
        assert len(found) == 16

    async def watch(ctx):
        async for _, _, there in ctx.tick().sample(dut.header):
            found.extend([1] * there)

    simulate(dut, source, background=[watch], limit=500)


@pytest.mark.parametrize("fields", [{"address": 3}, {"stride": 5}])
def test_values_of_two_bytes_lie_at_even_addresses(fields):
    even = dataclasses.replace(FETCH, address=2, stride=6)
    assert run(front(size=2), [even.pack()])[1]["bad"] == 0
    assert run(front(size=2), [dataclasses.replace(even, **fields).pack()])[1]["bad"] == 1
