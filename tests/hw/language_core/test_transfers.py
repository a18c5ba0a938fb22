"""Words that move between the memories: order, back-pressure, errors, a memory that is late."""

import random
from collections import deque

import numpy as np
import pytest
from tiers import quick

from verif.amaranth_bench import pulse, put, simulate, ticks
from verif.axi_memory import AxiMemory
from weft.golden.int4 import unpack
from weft.hw.language_core.transfers import WordTransfers
from weft.language_core.config import BEAT_BYTES, WORD_BYTES
from weft.language_core.descriptors import Transfer, packed_beats
from weft.language_core.latencies import ARRIVED, READ, RING_WORDS
from weft.models.language_core.image import packed_words

WORDS, TIMEOUT, LIMIT = 96, 64, 40_000
DUT = WordTransfers(target="generic", timeout=TIMEOUT)
INT4 = WordTransfers(target="generic", timeout=TIMEOUT, int4=True)


class Bench:
    """Transfers between a simulated AXI4 memory and a main memory, whose port B is not always free.

    ``main`` has the words that have arrived, as a step of port A reads them.
    """

    def __init__(self, dut=DUT, *, busy=0.0, **options):
        self.dut = dut
        self.axi = AxiMemory(dut.axi, data_bytes=BEAT_BYTES, size=WORDS * WORD_BYTES, **options)
        self.rng, self.busy = random.Random(7), busy
        self.axi.memory[:] = self.rng.randbytes(len(self.axi.memory))
        self.main = {}

    def word(self, number):
        """A word of the program memory."""
        return bytes(self.axi.memory[number * WORD_BYTES :][:WORD_BYTES])

    def run(self, bench):
        simulate(self.dut, bench, background=[self.axi.run, self.port_b, self.port_a], limit=LIMIT)

    async def port_b(self, ctx):
        """Beats are in the memory ARRIVED cycles after they were accepted."""
        late = deque([None] * ARRIVED)
        while True:
            free = self.rng.random() >= self.busy
            ctx.set(self.dut.beat_ready, free)
            _, _, valid, word, place, beat = await ctx.tick().sample(
                self.dut.beat_valid, self.dut.word, self.dut.place, self.dut.beat
            )
            late.append((word, place, beat) if valid and free else None)
            if (arrived := late.popleft()) is not None:
                word, place, beat = arrived
                data = self.main.setdefault(word, bytearray(WORD_BYTES))
                first = place * BEAT_BYTES
                data[first : first + BEAT_BYTES] = beat.to_bytes(BEAT_BYTES, "little")

    async def port_a(self, ctx):
        """Words to store: READ cycles after their address."""
        late = deque([0] * READ)
        while True:
            late.append(ctx.get(self.dut.read_word))
            data = self.main.get(late.popleft(), bytes(WORD_BYTES))
            ctx.set(self.dut.read_data, int.from_bytes(data, "little"))
            await ctx.tick()

    async def start(self, ctx, transfer, counts, *, main, program, steps=(1, 0), row=0):
        put(ctx, self.dut.transfer, transfer)
        for n in range(2):
            put(ctx, self.dut.further[n], counts[n] - 1)
            put(ctx, self.dut.steps[n], steps[n])
        put(ctx, self.dut.main, main)
        put(ctx, self.dut.program, program)
        put(ctx, self.dut.row, row)
        put(ctx, self.dut.row_words, counts[0])
        await pulse(ctx, self.dut.start)

    async def done(self, ctx):
        """Wait for the end of a load or a store; returns the cycles, and whether it has failed."""
        cycles = 0
        while not ctx.get(self.dut.done):
            await ctx.tick()
            cycles += 1
        failed = ctx.get(self.dut.failed)
        await ticks(ctx, 6)
        assert not ctx.get(self.dut.done)
        return cycles, bool(failed)

    async def move(self, ctx, *args, **others):
        await self.start(ctx, *args, **others)
        return (await self.done(ctx))[1]

    async def take(self, ctx, count, *, main, pause=0.0):
        """Take words of a stream, and return them: what port A reads after the step."""
        found, ring = [], main // RING_WORDS * RING_WORDS
        while len(found) < count:
            step = ctx.get(self.dut.ready) and self.rng.random() >= pause
            ctx.set(self.dut.step, step)
            data = self.main.get(ring + len(found) % RING_WORDS)
            now = data and bytes(data)
            await ctx.tick()
            if step:
                assert ctx.get(self.dut.failed) or bytes(data) == now
                found.append(now)
        ctx.set(self.dut.step, 0)
        return found


MEMORIES = [
    {}, {"latency": 40, "busy": 0.5}, {"pause": 0.6, "latency": 5, "busy": 0.2},
]


@pytest.mark.parametrize("options", quick(2, MEMORIES))
def test_loads(options):
    """Parts of two loops, as of keys and values; and the words of a row."""
    bench = Bench(**options)

    async def run(ctx):
        assert not await bench.move(
            ctx, Transfer.LOAD, (3, 4), main=17, program=5, steps=(1, 6)
        )
        assert not await bench.move(ctx, Transfer.LOAD, (5, 1), main=60, program=20, row=11)

    bench.run(run)
    expected = {17 + 6 * n + k: bench.word(5 + 6 * n + k) for n in range(4) for k in range(3)}
    expected |= {60 + n: bench.word(20 + 55 + n) for n in range(5)}
    assert bench.main == expected


@pytest.mark.parametrize("options, pause", [
    (MEMORIES[2], 0), (MEMORIES[0], 0.97),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in (
        (MEMORIES[0], 0), (MEMORIES[1], 0), (MEMORIES[1], 0.97), (MEMORIES[2], 0.95),
    )),
])
def test_streams(options, pause):
    """Two in a row; the product takes words at once, or so slowly that the ring is full."""
    bench = Bench(**options)

    async def run(ctx):
        for first, counts in ((2, (7, 4)), (40, (1, 3))):
            await bench.start(
                ctx, Transfer.STREAM, counts, main=24, program=first, steps=(1, counts[0])
            )
            count = counts[0] * counts[1]
            words = await bench.take(ctx, count, main=24, pause=pause)
            assert words == [bench.word(first + n) for n in range(count)]
            await ticks(ctx, 20)
            assert not ctx.get(DUT.ready) and not ctx.get(DUT.failed)

    bench.run(run)
    assert set(bench.main) == set(range(24, 24 + RING_WORDS))


@pytest.mark.parametrize("options", quick(1, MEMORIES[::-1]))
def test_stores(options):
    bench = Bench(**options)
    bench.main = {n: bench.rng.randbytes(WORD_BYTES) for n in range(64)}
    before = bytes(bench.axi.memory)

    async def run(ctx):
        assert not await bench.move(ctx, Transfer.STORE, (4, 1), main=9, program=30, steps=(5, 0))
        assert not await bench.move(ctx, Transfer.LOAD, (2, 1), main=70, program=30, steps=(5, 0))

    bench.run(run)
    words = {30 + 5 * n: bench.main[9 + 5 * n] for n in range(4)}
    for n in range(WORDS):
        assert bench.word(n) == words.get(n, before[n * WORD_BYTES :][:WORD_BYTES])
    assert (bench.main[70], bench.main[75]) == (bench.main[9], bench.main[14])


@pytest.mark.parametrize("transfer", [Transfer.LOAD, Transfer.STORE])
def test_an_error_of_the_memory_ends_a_transfer(transfer):
    """Of a beat, and of a place that it has not; then a right one."""
    bench = Bench(latency=9)

    async def run(ctx):
        bench.axi.bad = {33 * WORD_BYTES + 48}
        assert await bench.move(ctx, transfer, (40, 1), main=10, program=30)
        assert await bench.move(ctx, transfer, (6, 1), main=10, program=WORDS)
        bench.axi.bad = set()
        assert not await bench.move(ctx, Transfer.STORE, (2, 1), main=10, program=50)
        assert bench.axi.bursts[-2:] == [("aw", n * WORD_BYTES, 8) for n in (50, 51)]
        assert not await bench.move(ctx, Transfer.LOAD, (6, 1), main=20, program=30)
        assert len(bench.axi.bursts) < 30  # not all 40 of the first load

    bench.run(run)
    assert [bench.main[20 + n] for n in range(6)] == [bench.word(30 + n) for n in range(6)]


def test_an_error_of_the_memory_ends_a_stream():
    """The product gets words that are not valid, as many as it takes."""
    bench = Bench(latency=9)

    async def run(ctx):
        bench.axi.bad = {33 * WORD_BYTES}
        await bench.start(ctx, Transfer.STREAM, (40, 1), main=0, program=30)
        await bench.take(ctx, 40, main=0)
        assert ctx.get(DUT.failed)
        bench.axi.bad = set()
        await bench.start(ctx, Transfer.STREAM, (20, 1), main=0, program=30)
        assert await bench.take(ctx, 20, main=0) == [bench.word(30 + n) for n in range(20)]
        assert not ctx.get(DUT.failed)

    bench.run(run)


@pytest.mark.parametrize("transfer", [
    Transfer.LOAD, Transfer.STORE, pytest.param(Transfer.STREAM, marks=pytest.mark.slow),
])
def test_a_memory_that_does_not_answer(transfer):
    """It fails after the timeout, and so does the next transfer; then the old beats come."""
    bench = Bench()

    async def run(ctx):
        for _ in range(2):
            bench.axi.pause = 1.0
            await bench.start(ctx, transfer, (12, 1), main=8, program=30)
            if transfer == Transfer.STREAM:
                await bench.take(ctx, 12, main=8)
                assert ctx.get(DUT.failed)
            else:
                cycles, failed = await bench.done(ctx)
                assert failed and TIMEOUT <= cycles < TIMEOUT + 20
        await bench.start(ctx, Transfer.LOAD, (12, 1), main=40, program=60)
        await ticks(ctx, TIMEOUT // 2)
        bench.axi.pause = 0.5
        assert (await bench.done(ctx))[1] is False
        await bench.start(ctx, Transfer.STREAM, (12, 1), main=8, program=50)
        assert await bench.take(ctx, 12, main=8) == [bench.word(50 + n) for n in range(12)]

    bench.run(run)
    assert [bench.main[40 + n] for n in range(12)] == [bench.word(60 + n) for n in range(12)]


def _packed(bench, words, tiles, first):
    """Weights of int4 in the program memory from a word on; and the words that they are."""
    rng = np.random.default_rng(words)
    scales = rng.integers(1, 16, (8 * tiles, words)).astype(np.uint8)
    weights = unpack(rng.integers(-8, 8, (8 * tiles, 16 * words)).astype(np.int8), scales)
    data = packed_words(weights, scales).tobytes()
    bench.axi.memory[first * WORD_BYTES : first * WORD_BYTES + len(data)] = data
    return [
        weights[8 * tile : 8 * tile + 8, 16 * n : 16 * n + 16].tobytes()
        for tile in range(tiles) for n in range(words)
    ]


@pytest.mark.parametrize("options, pause", [
    (MEMORIES[2], 0), (MEMORIES[0], 0.97),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in (
        (MEMORIES[0], 0), (MEMORIES[1], 0), (MEMORIES[1], 0.97), (MEMORIES[2], 0.97),
    )),
])
def test_weights_of_int4(options, pause):
    """Streams of tiles of 7 and of 2 words, one of int8, then the second tile as a row."""
    bench = Bench(INT4, **options)

    async def run(ctx):
        for first, (words, tiles) in ((2, (7, 3)), (40, (2, 4)), (60, (5, 1))):
            packed = 0 if words == 5 else packed_beats(words) - 1
            expected = [bench.word(60 + n) for n in range(5)]
            if packed:
                expected = _packed(bench, words, tiles, first)
            put(ctx, INT4.packed, packed)
            await bench.start(
                ctx, Transfer.STREAM, (words, tiles), main=24, program=first, steps=(1, words)
            )
            assert await bench.take(ctx, words * tiles, main=24, pause=pause) == expected
            await ticks(ctx, 20)
            assert not ctx.get(INT4.ready) and not ctx.get(INT4.failed)
        expected = _packed(bench, 7, 3, 30)
        put(ctx, INT4.packed, packed_beats(7) - 1)
        assert not await bench.move(ctx, Transfer.LOAD, (7, 1), main=50, program=30, row=1)
        assert [bench.main[50 + n] for n in range(7)] == expected[7:14]

    bench.run(run)
    lengths = [length for kind, _, length in bench.axi.bursts if kind == "ar"]
    # 30 and 9 beats of a tile, then 5 words of int8, then a row.
    assert lengths == [8, 8, 8, 6] * 3 + [8, 1] * 4 + [8] * 5 + [8, 8, 8, 6]


def test_a_memory_that_fails_within_weights_of_int4():
    """By an error, and by no answer; then right ones, of both kinds."""
    bench = Bench(INT4, latency=9)

    async def run(ctx):
        expected = _packed(bench, 7, 3, 30)
        for fails in (True, False):
            bench.axi.bad = {34 * WORD_BYTES + 16} if fails else set()
            bench.axi.pause = 0.0 if fails else 1.0
            put(ctx, INT4.packed, packed_beats(7) - 1)
            await bench.start(
                ctx, Transfer.STREAM, (7, 3), main=8, program=30, steps=(1, 7)
            )
            await bench.take(ctx, 21, main=8)
            assert ctx.get(INT4.failed)
            bench.axi.bad, bench.axi.pause = set(), 0.0
            put(ctx, INT4.packed, 0)
            assert not await bench.move(ctx, Transfer.LOAD, (3, 1), main=40, program=70)
            put(ctx, INT4.packed, packed_beats(7) - 1)
            await bench.start(
                ctx, Transfer.STREAM, (7, 3), main=8, program=30, steps=(1, 7)
            )
            assert await bench.take(ctx, 21, main=8) == expected

    bench.run(run)
    assert [bench.main[40 + n] for n in range(3)] == [bench.word(70 + n) for n in range(3)]


@pytest.mark.slow
def test_a_memory_that_is_late_does_not_fail():
    """Each beat comes just in time."""
    bench = Bench()

    async def wakes(ctx):
        while True:
            bench.axi.pause = 1.0
            await ticks(ctx, TIMEOUT - 8)
            bench.axi.pause = 0.0
            await ticks(ctx, 1)

    async def run(ctx):
        assert not await bench.move(ctx, Transfer.LOAD, (2, 1), main=8, program=30)

    simulate(DUT, run, background=[bench.axi.run, bench.port_b, bench.port_a, wakes], limit=LIMIT)
    assert bench.main == {8: bench.word(30), 9: bench.word(31)}
