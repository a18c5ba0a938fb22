"""The bounds check: transfers that touch the first and last allowed bytes, and those beyond."""

import dataclasses
import random

import pytest

from verif.amaranth_bench import put, simulate
from weft.commands import Job, JobFlag, Load, Region
from weft.config import Config
from weft.descriptors import ElementOrder, Fetch, Store
from weft.geometry import memories
from weft.hw.dma.bounds_check import BoundsCheck

SPACE = 1 << 32
BYTES = 16
CONFIG = Config(rows=3, cols=4, depth=2, lanes=2, a_words=256, b_words=256)
REGIONS = memories(CONFIG)
WIDE = {Region.A: memories(Config(rows=12, cols=4, depth=4))[Region.A]}  # three beats a word


def bytes_of(descriptor, geometries=REGIONS):
    """The first and last byte that a descriptor touches; None if it touches none."""
    start, step = descriptor.address, descriptor.stride
    if isinstance(descriptor, Store):
        job = descriptor.job
        count, width = job.m, job.n * (1 if job.flags else 4)
    elif descriptor.order == ElementOrder.PACKED:
        g, load = geometries[descriptor.load.operand], descriptor.load
        words = -(-load.words // g.group) * g.segments
        count, step, width = load.panels, words * BYTES, words * BYTES
    elif descriptor.order == ElementOrder.K_MAJOR:
        count, width = descriptor.lines, descriptor.k
    else:
        count, width = descriptor.k, descriptor.lines
    if not count * width:
        return None
    runs = start, start + (count - 1) * step
    return min(runs), max(runs) + width - 1


def outside(descriptors, window=None, geometries=REGIONS):
    """The hardware's ``outside`` of each descriptor."""
    dut = BoundsCheck(
        geometries=geometries, size=1, sizes=[4, 1], data_bytes=BYTES, window=window is not None
    )
    found = []

    async def bench(ctx):
        if window is not None:
            put(ctx, dut.allowed.base, window[0])
            put(ctx, dut.allowed.limit, window[1])
        for descriptor in descriptors:
            data = descriptor.pack()
            load = isinstance(descriptor, Fetch)
            put(ctx, dut.load, load)
            put(ctx, dut.packed, load and descriptor.order == ElementOrder.PACKED)
            put(ctx, dut.k_minor, load and descriptor.order == ElementOrder.K_MINOR)
            put(ctx, dut.narrow, not load and bool(descriptor.job.flags))
            put(ctx, dut.region, descriptor.load.operand if load else 0)
            put(ctx, dut.start, 1)
            await ctx.tick()
            put(ctx, dut.start, 0)
            index = None
            while not ctx.get(dut.done):
                put(ctx, dut.word_valid, index == ctx.get(dut.index))  # a cycle late
                index = ctx.get(dut.index)
                put(ctx, dut.word, int.from_bytes(data[4 * index : 4 * index + 4], "little"))
                await ctx.tick()
            found.append(bool(ctx.get(dut.outside)))
            await ctx.tick()

    simulate(dut, bench, limit=400 * len(descriptors))
    return found


def fetch(address, stride, lines, k, order=ElementOrder.K_MAJOR, region=Region.A):
    return Fetch(Load(region, 0, 1, 1, 1), address, stride, lines, k, order)


def packed(address, panels, words, region=Region.A):
    return Fetch(Load(region, 0, 1, panels, words), address, order=ElementOrder.PACKED)


def store(address, stride, m, n, flags=0):
    return Store(Job(m, n, 1, *[1] * 6, flags=JobFlag(flags)), address, stride)


def move(descriptor, by):
    """The same transfer from another address; None if that is not a 32-bit number."""
    kind, fields = type(descriptor), dict(vars(descriptor))
    fields["address"] += by
    return kind(**fields) if 0 <= fields["address"] < SPACE else None


def ends(descriptor, base, limit, geometries=REGIONS):
    """The transfer moved to each end of a space, and one step beyond each."""
    first, last = bytes_of(descriptor, geometries)
    step = BYTES if getattr(descriptor, "order", None) == ElementOrder.PACKED else 1
    for by in (base - first, base - first - step, limit - last, limit - last + step):
        if one := move(descriptor, by):
            yield one


TRANSFERS = {
    "one-line": fetch(0x1000, 100, 1, 7),
    "lines": fetch(0x1000, 100, 8, 7),
    "backwards": fetch(0x1000, -100, 8, 7),
    "k-minor": fetch(0x1000, 9, 3, 100, ElementOrder.K_MINOR),
    "k-minor-backwards": fetch(0x1000, -9, 3, 100, ElementOrder.K_MINOR),
    "in-place": fetch(0x1000, 0, 100, 7),
    "odd-count": fetch(0x1000, 0x123457, 0x5A5, 0xFFF),
    "most-lines": fetch(0x1000, 0xFFFF, 0xFFFF, 1),
    "longest-stride": fetch(0x1000, (1 << 31) - 1, 3, 1),
    "longest-stride-back": fetch(0xF0000000, -(1 << 31), 2, 1),
    "results": store(0x1000, 64, 9, 13),
    "results-backwards": store(0x1000, -64, 9, 13),
    "narrow": store(0x1000, 64, 9, 13, JobFlag.REQUANTIZE),
    "most-results": store(0x1000, 0xFFFF, 0xFFFF, 0xFFFF),
    "packed": packed(0x1000, 3, 5),
    "packed-shared-beats": packed(0x1000, 5, 7, Region.B),
    "parameters": packed(0x1000, 2, 2, Region.PARAMETERS),
}


@pytest.mark.parametrize("window", [None, (0x20000, 0xFFF7FFFF)])
def test_each_end_of_the_space(window):
    base, limit = window or (0, SPACE - 1)
    beat = BYTES if window else 1  # windows are of whole beats
    spaces = (base, limit), (base - beat + 1, limit + beat - 1)
    transfers = [
        one for transfer in TRANSFERS.values() for space in spaces for one in ends(transfer, *space)
    ]
    expected = []
    for transfer in transfers:
        first, last = bytes_of(transfer)
        expected.append(first // beat < base // beat or last // beat > limit // beat)
    assert outside(transfers, window) == expected
    assert 20 < sum(expected) < len(expected) - 20


def test_addresses_that_wrap_are_outside():
    """Modulo 2^32 the last byte has an allowed address."""
    transfers = [
        fetch(0x1000, 1 << 30, 5, 7), fetch(0x1000, -(1 << 30), 5, 7),
        fetch(0x1000, 1 << 30, 0xFFFD, 7), fetch(0xF0000000, -(1 << 31), 5, 1),
        store(0x1000, 1 << 30, 9, 13), store(SPACE - 4, 4, 1, 3), store(0x10, -(1 << 24), 257, 1),
    ]
    assert outside(transfers) == [True] * len(transfers)


def test_transfers_of_no_bytes_are_inside():
    transfers = [
        fetch(SPACE - 1, 1 << 30, 0, 7), fetch(0, -1, 0, 7),
        fetch(SPACE - 1, 1 << 30, 0, 70, ElementOrder.K_MINOR),
        fetch(0, -1, 0, 70, ElementOrder.K_MINOR),
        store(SPACE - 4, 4, 0, 9), store(SPACE - 4, 4, 9, 0), store(0, -4, 0, 0),
    ]
    assert outside(transfers) == [False] * len(transfers)
    assert outside(transfers, (0x1000, 0x1FFF)) == [False] * len(transfers)


def test_words_of_several_beats():
    transfer = packed(0x1000, 5, 7)
    assert WIDE[Region.A].segments == 3
    assert bytes_of(transfer, WIDE)[1] == 0x1000 + 5 * 7 * 3 * BYTES - 1
    transfers = [*ends(transfer, 0, SPACE - 1, WIDE)]
    assert outside(transfers, geometries=WIDE) == [False, False, True]


def test_panels_that_wrap_are_outside():
    """The panels have three times 2^32 bytes."""
    long = {Region.A: dataclasses.replace(WIDE[Region.A], words=1 << 16)}
    assert outside([packed(0, 1 << 12, 1 << 16)], geometries=long) == [True]


@pytest.mark.parametrize("window", [None, (0x40000000, 0xBFFFFFFF)])
def test_random_transfers(window):
    rng, transfers = random.Random(5), []
    base, limit = window or (0, SPACE - 1)
    for _ in range(150):
        bits = rng.randrange(4, 31)
        stride = rng.choice([1, -1]) * rng.getrandbits(bits)
        count = rng.getrandbits(max(1, min(16, 34 - bits)))
        address, other = rng.getrandbits(32), rng.getrandbits(9)
        transfers.append(rng.choice([
            fetch(address, stride, count, other), store(address, stride, count, other),
            fetch(address, stride, other, min(count, 511), ElementOrder.K_MINOR),
            packed(address & -BYTES, rng.randrange(1, 16), rng.randrange(1, 257)),
        ]))
    expected = []
    for transfer in transfers:
        touched = bytes_of(transfer)
        expected.append(touched is not None and not base <= touched[0] <= touched[1] <= limit)
    assert outside(transfers, window) == expected
    assert 30 < sum(expected) < len(expected) - 20
