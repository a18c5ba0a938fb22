"""The program memory: reads and stores of vectors over AXI4, errors, time-outs, lists that end."""

import random

import pytest
from network_cores import small_network_core
from tiers import quick

from verif.amaranth_bench import plain, send, simulate, ticks
from verif.axi_memory import AxiMemory
from weft.hw.dma.axi import BURST
from weft.hw.network_core.memory.program_memory import ProgramMemory

DEPTH, VECTORS, TIMEOUT = 2, 4, 256
CHIP = small_network_core(2, 4, DEPTH, 2, words=16, read_vectors=VECTORS, program_words=512)
BEAT, BASE = DEPTH * VECTORS, 0x1A8
SIZE = 1 << 14


def place(number):
    return {"bank": number % CHIP.banks, "word": number // CHIP.banks}


class MemoryBench:
    """A program memory before a simulated AXI4 memory, and what its two clients receive."""

    def __init__(self, **options):
        self.dut = ProgramMemory(CHIP, timeout=TIMEOUT)
        self.memory = AxiMemory(self.dut.axi, data_bytes=BEAT, size=SIZE, **options)
        self.memory.memory[:] = random.Random(1).randbytes(SIZE)
        self.found, self.failed, self.events = ([], []), ([], []), []

    def vector(self, number):
        first = BASE + number * DEPTH
        return int.from_bytes(self.memory.memory[first : first + DEPTH], "little")

    async def watch(self, ctx):
        dut, now = self.dut, 0
        names = "stored", "store_error", "timed_out"
        while True:
            _, _, *valids, data, failed, stored, error, timed_out = await ctx.tick().sample(
                *(client.data_valid for client in dut.reads), dut.reads[0].data, dut.read_error,
                *(getattr(dut, name) for name in names),
            )
            now += 1
            for client, valid in enumerate(valids):
                if valid:
                    self.found[client].append(plain(data))
                    self.failed[client].append(failed)
            pulses = zip(names, (stored, error, timed_out), strict=True)
            self.events += [(name, now) for name, pulse in pulses if pulse]

    def run(self, *benches, memory=True):
        async def base(ctx):
            ctx.set(self.dut.base, BASE)

        served = [self.memory.run] if memory else []
        simulate(self.dut, base, *benches, background=[*served, self.watch], limit=60_000)
        return self

    def source(self, client, numbers, idle=0.0):
        async def bench(ctx):
            stream = self.dut.reads[client].request
            await send(ctx, stream, map(place, numbers), idle=idle, seed=client)
            await self.settle(ctx)
        return bench

    async def settle(self, ctx):
        """Wait until nothing is open."""
        for _ in range(8):
            await ctx.tick()
        while not self.memory.idle:
            await ctx.tick()
        await ticks(ctx, 20)


def check_reads(bench, wanted):
    for found, numbers in zip(bench.found, wanted, strict=True):
        assert [data[0] for data in found] == [bench.vector(n) for n in numbers]
        for data, n in zip(found, numbers, strict=True):
            if n % VECTORS == 0:  # a whole beat
                assert data == [bench.vector(n + k) for k in range(VECTORS)]


@pytest.mark.parametrize("pause, idle", quick(2, [(0, 0), (0.5, 0.3), (0.4, 0), (0, 0.5)]))
def test_reads_of_two_clients(pause, idle):
    rng = random.Random(3)
    wanted = [], []
    for numbers in wanted:
        for _ in range(6):
            first, step = VECTORS * rng.randrange(300), rng.choice((1, VECTORS))
            numbers += [first + k * step for k in range(rng.choice((1, 5, 40)))]
    bench = MemoryBench(pause=pause, latency=20)
    bench.run(*(bench.source(n, numbers, idle) for n, numbers in enumerate(wanted)))
    check_reads(bench, wanted)
    assert bench.events == []


def test_neighbouring_reads_share_bursts_and_beats():
    first = 3 * VECTORS
    bench = MemoryBench(latency=5)
    bench.run(bench.source(1, range(first, first + 40 * VECTORS, VECTORS)))
    start = BASE + first * DEPTH
    room = BURST - start // BEAT % BURST
    assert bench.memory.bursts == [
        ("ar", start, room), ("ar", start + room * BEAT, 16),
        ("ar", start + (room + 16) * BEAT, 40 - room - 16),
    ]
    single = MemoryBench()
    single.run(single.source(1, range(2, 23)))
    assert sum(beats for _, _, beats in single.memory.bursts) == 6  # of 21 vectors
    check_reads(single, ([], range(2, 23)))


def test_a_slow_memory_has_many_beats_open():
    bench = MemoryBench(latency=400)
    numbers = range(0, 100 * VECTORS, VECTORS)
    bench.run(bench.source(0, numbers))
    check_reads(bench, (numbers, []))


@pytest.mark.parametrize("pause", [0, 0.5])
def test_stores(pause):
    bench = MemoryBench(pause=pause, latency=10)
    rng = random.Random(5)
    expected, writes = bytearray(bench.memory.memory), []
    for _ in range(20):
        number, data, enable = rng.randrange(900), rng.randrange(1 << 16), rng.randrange(4)
        writes.append({"address": place(number), "data": data, "enable": enable})
        for n in range(DEPTH):
            if enable >> n & 1:
                expected[BASE + number * DEPTH + n] = data >> 8 * n & 0xFF

    async def body(ctx):
        await send(ctx, bench.dut.writes, writes)
        ended = ctx.get(bench.dut.written)
        while not ctx.get(bench.dut.written):
            await ctx.tick()
        assert not ended and bench.memory.memory == expected
        await ticks(ctx, 2)

    bench.run(body)
    assert [b for _, _, b in bench.memory.bursts] == [1] * 20
    assert [name for name, _ in bench.events] == ["stored"] * 20


@pytest.mark.parametrize("response", quick(1, [2, 3]))
@pytest.mark.parametrize("client", [0, 1])
@pytest.mark.parametrize("bad", [0, 7, 15])
def test_a_read_with_an_error_response_is_marked(client, bad, response):
    """In a burst of 16 beats: the first one, one between, the last one; alone."""
    first = -BASE // BEAT % BURST * VECTORS
    numbers = range(first, first + BURST * VECTORS, VECTORS)
    bench = MemoryBench(latency=3)
    bench.memory.bad, bench.memory.response = {BASE + numbers[bad] * DEPTH}, response
    bench.run(bench.source(client, numbers))
    assert [beats for *_, beats in bench.memory.bursts] == [BURST]
    assert [n for n, failed in enumerate(bench.failed[client]) if failed] == [bad]
    assert bench.events == [] and bench.found[1 - client] == []


@pytest.mark.parametrize("response", quick(1, [2, 3]))
def test_all_vectors_of_a_failed_beat_are_marked(response):
    bench = MemoryBench()
    bench.memory.bad, bench.memory.response = {BASE + 8 * DEPTH}, response
    bench.run(bench.source(0, range(4, 16)))
    assert bench.failed[0] == [0] * 4 + [1] * 4 + [0] * 4


@pytest.mark.parametrize("response", quick(1, [2, 3]))
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_store_with_an_error_response_is_reported(bad, response):
    bench = MemoryBench(latency=3)
    numbers = 4, 9, 16
    bench.memory.bad = {BASE + numbers[bad] // VECTORS * BEAT}
    bench.memory.response = response

    async def body(ctx):
        await send(ctx, bench.dut.writes, [
            {"address": place(n), "data": 1, "enable": 3} for n in numbers
        ])
        await bench.settle(ctx)

    names = [name for name, _ in bench.run(body).events]
    assert names == ["store_error" if n == bad else "stored" for n in range(3)]


def test_a_list_that_ends_completes_its_transactions():
    """Its data and errors are dropped; the next list gets its own data only."""
    bench = MemoryBench(latency=60)
    bench.memory.bad = {BASE + n * BEAT for n in range(4, 12)}

    async def body(ctx):
        dut = bench.dut
        await send(ctx, dut.reads[1].request, [place(n) for n in range(0, 80, VECTORS)])
        assert not ctx.get(dut.idle)
        ctx.set(dut.halt, 1)
        await ticks(ctx, 1)
        assert not ctx.get(dut.idle)
        ctx.set(dut.halt, 0)
        received = len(bench.found[1])
        await send(ctx, dut.reads[1].request, [place(n) for n in (200, 204)])
        await bench.settle(ctx)
        assert [data[0] for data in bench.found[1][received:]] == [
            bench.vector(n) for n in (200, 204)
        ]
        ctx.set(dut.halt, 1)
        await ticks(ctx, 1)
        assert ctx.get(dut.idle)

    bench.run(body)
    assert bench.events == [] and sum(b for *_, b in bench.memory.bursts) == 20 + 2


def test_a_memory_without_answers_times_out():
    bench = MemoryBench()

    async def body(ctx):
        await ticks(ctx, 2 * TIMEOUT)
        assert bench.events == []
        ctx.set(bench.dut.reads[0].request.payload, place(4))
        ctx.set(bench.dut.reads[0].request.valid, 1)
        await ctx.tick()
        ctx.set(bench.dut.reads[0].request.valid, 0)
        await ticks(ctx, 2 * TIMEOUT + 20)

    events = bench.run(body, memory=False).events
    assert [name for name, _ in events] == ["timed_out"] * 2
    assert events[1][1] - events[0][1] == TIMEOUT
