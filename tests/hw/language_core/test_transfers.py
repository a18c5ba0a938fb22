"""Words that move between the memories: order, back-pressure, errors, a memory that is late."""

import random
from collections import deque

import pytest
from tiers import quick

from verif.amaranth_bench import pulse, put, simulate, ticks
from verif.axi_memory import AxiMemory
from weft.hw.language_core.transfers import WordTransfers
from weft.language_core.config import BEAT_BYTES, WORD_BYTES
from weft.language_core.descriptors import Transfer
from weft.language_core.latencies import ARRIVED, READ, RING_WORDS

WORDS, TIMEOUT, LIMIT = 96, 64, 40_000
DUT = WordTransfers(target="generic", timeout=TIMEOUT)


class Bench:
    """Transfers between a simulated AXI4 memory and a main memory, whose port B is not always free.

    ``main`` has the words that have arrived, as a step of port A reads them.
    """

    def __init__(self, *, busy=0.0, **options):
        self.axi = AxiMemory(DUT.axi, data_bytes=BEAT_BYTES, size=WORDS * WORD_BYTES, **options)
        self.rng, self.busy = random.Random(7), busy
        self.axi.memory[:] = self.rng.randbytes(len(self.axi.memory))
        self.main = {}

    def word(self, number):
        """A word of the program memory."""
        return bytes(self.axi.memory[number * WORD_BYTES :][:WORD_BYTES])

    def run(self, bench):
        simulate(DUT, bench, background=[self.axi.run, self.port_b, self.port_a], limit=LIMIT)

    async def port_b(self, ctx):
        """Beats are in the memory ARRIVED cycles after they were accepted."""
        late = deque([None] * ARRIVED)
        while True:
            free = self.rng.random() >= self.busy
            ctx.set(DUT.beat_ready, free)
            _, _, valid, word, place, beat = await ctx.tick().sample(
                DUT.beat_valid, DUT.word, DUT.place, DUT.beat
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
            late.append(ctx.get(DUT.read_word))
            data = self.main.get(late.popleft(), bytes(WORD_BYTES))
            ctx.set(DUT.read_data, int.from_bytes(data, "little"))
            await ctx.tick()

    async def start(self, ctx, transfer, counts, *, main, program, steps=(1, 0), row=0):
        put(ctx, DUT.transfer, transfer)
        for n in range(2):
            put(ctx, DUT.further[n], counts[n] - 1)
            put(ctx, DUT.steps[n], steps[n])
        put(ctx, DUT.main, main)
        put(ctx, DUT.program, program)
        put(ctx, DUT.row, row)
        put(ctx, DUT.row_words, counts[0])
        await pulse(ctx, DUT.start)

    async def done(self, ctx):
        """Wait for the end of a load or a store; returns the cycles, and whether it has failed."""
        cycles = 0
        while not ctx.get(DUT.done):
            await ctx.tick()
            cycles += 1
        failed = ctx.get(DUT.failed)
        await ticks(ctx, 6)
        assert not ctx.get(DUT.done)
        return cycles, bool(failed)

    async def move(self, ctx, *args, **others):
        await self.start(ctx, *args, **others)
        return (await self.done(ctx))[1]

    async def take(self, ctx, count, *, main, pause=0.0):
        """Take words of a stream, and return them: what port A reads after the step."""
        found, ring = [], main // RING_WORDS * RING_WORDS
        while len(found) < count:
            step = ctx.get(DUT.ready) and self.rng.random() >= pause
            ctx.set(DUT.step, step)
            data = self.main.get(ring + len(found) % RING_WORDS)
            now = data and bytes(data)
            await ctx.tick()
            if step:
                assert ctx.get(DUT.failed) or bytes(data) == now
                found.append(now)
        ctx.set(DUT.step, 0)
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
