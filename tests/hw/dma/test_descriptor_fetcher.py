"""The descriptor fetcher: good descriptors are sent word by word, bad ones are dropped."""

import dataclasses

import pytest
from tiers import quick

from verif.amaranth_bench import put, send, simulate, ticks
from weft.commands import Job, JobFlag, Load, LoadFlag, Region
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch, Store
from weft.geometry import memories
from weft.hw.dma.descriptor_fetcher import DescriptorFetcher

CONFIG = Config(rows=2, cols=2, depth=2, a_words=64, b_words=64, lanes=2)
LOAD = Load(Region.A, 0, 1, 2, 3)
FETCH = Fetch(LOAD, 0x1001, 7, lines=3, k=5)
PACKED = Fetch(LOAD, 0x1010, order=ElementOrder.PACKED)
JOB = Job(2, 2, 5, 0, 1, 1, 0, 1, 1, tag=3)
STORE = Store(JOB, 0x1008, 8)
NARROW = dataclasses.replace(JOB, flags=JobFlag.REQUANTIZE)
KEEP = dataclasses.replace(JOB, flags=JobFlag.KEEP)
CHECK_WORDS = 0, 1, 2, 3, 12, 8, 9, 10, 11


def make_dut(size=1, **options):
    return DescriptorFetcher(
        depth=4, geometries=memories(CONFIG), size=size, data_bytes=16, sizes=[4, 1], units=[8, 2],
        narrow_flags=JobFlag.REQUANTIZE, target="generic", **options,
    )


def words(packed):
    return [int.from_bytes(packed[n : n + 4], "little") for n in range(0, 64, 4)]


def run(dut, packed, busy=0, window=None):
    """Run descriptors; returns the words by destination, and the number of each pulse."""
    sent = {"fetch_take": [], "header_take": [], "store_take": []}
    pulses = {"fetch_start": 0, "load_sent": 0, "bad_descriptor": 0, "bad_address": 0}

    async def source(ctx):
        stream = [word for one in packed for word in words(one)]
        for name, value in (window or {}).items():
            put(ctx, getattr(dut.allowed, name), value)
        await send(ctx, dut.descriptors, stream, idle=0.5 if busy else 0)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ticks(ctx, 3)
        assert ctx.get(dut.free) == 4

    async def surroundings(ctx):
        for n in range(100_000):
            put(ctx, dut.stall, bool(busy) and n % busy == 0)
            put(ctx, dut.header_busy, bool(busy) and n % 40 < busy)
            put(ctx, dut.fetch_busy, bool(busy) and n % 50 < busy)
            await ctx.tick()

    async def watch(ctx):
        watched = [getattr(dut, name) for name in (*sent, *pulses)]
        async for _, _, word, index, *values in ctx.tick().sample(dut.word, dut.index, *watched):
            for name, value in zip((*sent, *pulses), values, strict=True):
                if value and name in sent:
                    sent[name].append((index, word))
                elif value:
                    pulses[name] += 1

    simulate(dut, source, background=[surroundings, watch], limit=5_000)
    return sent, pulses


def select(packed, *indices):
    return [(index, words(packed)[index]) for index in indices]


@pytest.mark.parametrize("busy", [0, 3])
def test_sends_words(busy):
    packed = [d.pack() for d in (FETCH, STORE, PACKED, Store(NARROW, 0x1002, 6), FETCH, STORE)]
    sent, pulses = run(make_dut(), packed, busy)
    assert sent["fetch_take"] == [
        word for one in packed if one[0] == 2 for word in select(one, *CHECK_WORDS)
    ]
    assert sent["header_take"] == [word for one in packed for word in select(one, *range(8))]
    assert sent["store_take"] == [
        word for one in packed if one[0] == 1 for word in select(one, 0, 1, 3, 8, 9)
    ]
    assert pulses == {"fetch_start": 3, "load_sent": 3, "bad_descriptor": 0, "bad_address": 0}


def test_a_job_that_keeps_its_sums_has_nothing_to_store():
    sent, pulses = run(make_dut(), [Store(KEEP, 1, 1).pack()])
    assert sent["store_take"] == [] and len(sent["header_take"]) == 8
    assert pulses == {"fetch_start": 0, "load_sent": 0, "bad_descriptor": 0, "bad_address": 0}


def load(**fields):
    return dataclasses.replace(FETCH, load=dataclasses.replace(LOAD, **fields)).pack()


def fetch(**fields):
    return dataclasses.replace(FETCH, **fields).pack()


BAD = {
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
    "parameters-not-packed": load(operand=Region.PARAMETERS),
    "packed-address": dataclasses.replace(PACKED, address=0x1008).pack(),
    "address": Store(JOB, 0x1004, 8).pack(),
    "stride": Store(JOB, 0x1008, 4).pack(),
    "narrow-address": Store(NARROW, 0x1001, 8).pack(),
    "narrow-stride": Store(NARROW, 0x1000, 3).pack(),
}


@pytest.mark.parametrize("what", BAD)
def test_drops_bad_descriptors(what):
    good = Store(JOB, 0x1008, 8).pack()
    sent, pulses = run(make_dut(), [good, BAD[what], PACKED.pack()])
    assert pulses == {"fetch_start": 1, "load_sent": 1, "bad_descriptor": 1, "bad_address": 0}
    assert sent["header_take"] == select(good, *range(8)) + select(PACKED.pack(), *range(8))


OUTSIDE = {
    "load": fetch(address=0xFFFFFFF0),
    "backwards": fetch(address=10, stride=-6),
    "packed": dataclasses.replace(PACKED, address=0xFFFFFFF0).pack(),
    "job": Store(JOB, 0xFFFFFFF8, 8).pack(),
    "job-backwards": Store(NARROW, 0x1000, -0x1002).pack(),
}


@pytest.mark.parametrize("busy", quick(1, [3, 0]))
@pytest.mark.parametrize("what", OUTSIDE)
def test_drops_descriptors_with_bad_addresses(what, busy):
    good = Store(JOB, 0xFFFFFFE8, 8).pack(), Store(NARROW, 0x1002, -0x1002).pack()
    packed = [good[0], OUTSIDE[what], OUTSIDE[what], PACKED.pack(), good[1]]
    sent, pulses = run(make_dut(), packed, busy)
    assert pulses == {"fetch_start": 1, "load_sent": 1, "bad_descriptor": 2, "bad_address": 2}
    done = good[0], PACKED.pack(), good[1]
    assert sent["header_take"] == [word for one in done for word in select(one, *range(8))]


@pytest.mark.parametrize("outside", [0, 1])
def test_the_window_applies_to_all_descriptors(outside):
    packed = [FETCH.pack(), STORE.pack(), PACKED.pack(), Store(NARROW, 0x1012, -6).pack()]
    window = {"base": 0x1000 + 0x20 * outside, "limit": 0x104F}
    _, pulses = run(make_dut(window=True), packed, window=window)
    assert pulses["bad_address"] == pulses["bad_descriptor"] == 4 * outside


def test_reports_which_loads_feed_the_latest_job():
    """Only if that job has results."""
    job, keep = Store(JOB, 0x1008, 8), Store(KEEP, 0, 0)
    feed = dataclasses.replace(FETCH, load=dataclasses.replace(LOAD, flags=LoadFlag.FEED))
    dut, found = make_dut(), []

    async def source(ctx):
        descriptors = FETCH, job, feed, FETCH, keep, feed, job, feed
        await send(ctx, dut.descriptors, [w for one in descriptors for w in words(one.pack())])
        while not ctx.get(dut.idle):
            await ctx.tick()

    async def watch(ctx):
        async for _, _, sent, feeds_latest in ctx.tick().sample(dut.load_sent, dut.feeds_latest):
            if sent:
                found.append(feeds_latest)

    simulate(dut, source, background=[watch], limit=2_000)
    assert found == [0, 1, 0, 0, 1]


def test_hold_jobs_holds_no_loads():
    dut, found = make_dut(), []

    async def source(ctx):
        put(ctx, dut.hold_jobs, 1)
        await send(ctx, dut.descriptors, words(FETCH.pack()) + words(STORE.pack()))
        await ticks(ctx, 150)
        assert len(found) == 8
        put(ctx, dut.hold_jobs, 0)
        while not ctx.get(dut.idle):
            await ctx.tick()
        assert len(found) == 16

    async def watch(ctx):
        async for _, _, take in ctx.tick().sample(dut.header_take):
            found.extend([1] * take)

    simulate(dut, source, background=[watch], limit=500)


@pytest.mark.parametrize("fields", [{"address": 3}, {"stride": 5}])
def test_values_of_two_bytes_have_even_addresses(fields):
    even = dataclasses.replace(FETCH, address=2, stride=6)
    assert run(make_dut(size=2), [even.pack()])[1]["bad_descriptor"] == 0
    odd = dataclasses.replace(even, **fields)
    assert run(make_dut(size=2), [odd.pack()])[1]["bad_descriptor"] == 1
