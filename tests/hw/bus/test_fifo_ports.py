"""Tests of the FIFO ports: packing, splitting, free space, and one job at a time."""

import random

import pytest
from streams import check_transfer, valid_cycles
from tiers import quick

from verif.amaranth_bench import send, simulate, ticks
from weft.hw.bus.fifo_ports import CAPACITY, DEPTH, RxFifo, TxFifo


@pytest.mark.parametrize("size", quick(2, [4, 64, 8]))
@pytest.mark.parametrize("stall", quick(1, [0.6, 0]))
def test_parts_are_packed_lowest_first(size, stall):
    dut, rng = TxFifo(bytes_in=size, target="generic"), random.Random(1)
    words = [rng.getrandbits(8 * size) for _ in range(30)]
    parts = [word >> n & 0xFFFFFFFF for word in words for n in range(0, 8 * size, 32)]

    nonempty = []

    async def watch(ctx):
        while True:
            nonempty.append((await ctx.tick().sample(dut.nonempty))[-1])

    check_transfer(
        dut, dut.i, dut.commands, parts, words, idle=stall, stall=stall, background=[watch]
    )
    assert any(nonempty) and not nonempty[-1]


@pytest.mark.parametrize("size", [4, 16])
def test_free_words_are_accepted_without_a_pause(size):
    dut = TxFifo(bytes_in=size, target="generic")

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for _ in range(2):
            while free := ctx.get(dut.free):
                for _ in range(free):
                    assert ctx.get(dut.i.ready)
                    await ctx.tick()
        assert ctx.get(dut.free) == 0 and not ctx.get(dut.i.ready) and ctx.get(dut.nonempty)
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.commands.ready, 1)
        await ticks(ctx, 2 * DEPTH)
        assert ctx.get(dut.free) == CAPACITY

    simulate(dut, bench)


def test_rate_is_one_part_a_cycle():
    dut = TxFifo(bytes_in=8, target="generic")
    cycles = valid_cycles(dut, dut.i, dut.commands, range(80))
    assert len(cycles) == 40 and cycles[-1] - cycles[0] == 78


def jobs_of(size, count, seed):
    rng = random.Random(seed)
    return [
        (tag, rng.choice([0, 0, 1, 2]), [rng.getrandbits(8 * size) for _ in range(length)])
        for tag, length in (
            (rng.getrandbits(16), rng.choice([1, 1, 2, 5, 40])) for _ in range(count)
        )
    ]


def stream_words(jobs):
    for tag, status, words in jobs:
        for n, word in enumerate(words):
            last = n == len(words) - 1
            yield {"data": word, "last": last, "status": status * last, "tag": tag}


def expected_parts(size, job):
    """The parts of a job; its last word reads as zeros if its status is not 0."""
    words = [*job[2][:-1], 0 if job[1] else job[2][-1]]
    return [word >> n & 0xFFFFFFFF for word in words for n in range(0, 8 * size, 32)]


@pytest.mark.parametrize("size", quick(2, [4, 32, 8]))
@pytest.mark.parametrize("idle, stall", quick(2, [(0, 0), (0.5, 0.5), (0.8, 0), (0, 0.9)]))
def test_one_job_at_a_time_with_its_level_and_status(size, idle, stall):
    dut, rng = RxFifo(bytes_out=size, target="generic"), random.Random(6)
    jobs, done = jobs_of(size, 20, 5), []

    async def source(ctx):
        await send(ctx, dut.results, stream_words(jobs), idle=idle, seed=1)

    async def watch(ctx):
        while True:
            _, _, job_done, level = await ctx.tick().sample(dut.job_done, dut.level)
            assert level.nonempty == (level.words != 0)
            if job_done.valid:
                done.append((job_done.tag, job_done.status))

    async def sink(ctx):
        for job in jobs:
            remaining, parts, complete = None, [], False
            while remaining != 0:
                while rng.random() < stall:
                    await ctx.tick()
                level = ctx.get(dut.level)
                if complete:
                    # No word of the next job enters before this one is drained.
                    assert level.words == remaining
                elif level.complete:
                    complete, remaining = True, level.words
                    assert done[-1] == job[:2] and len(done) == jobs.index(job) + 1
                ctx.set(dut.o.ready, level.nonempty)
                _, _, valid, part = await ctx.tick().sample(dut.o.valid, dut.o.payload)
                ctx.set(dut.o.ready, 0)
                if level.nonempty and valid:
                    parts.append(part)
                    remaining = remaining - 1 if complete else None
            assert parts == expected_parts(size, job)
        await ticks(ctx, 20)
        assert ctx.get(dut.level.words) == 0 and not ctx.get(dut.level.complete)

    simulate(dut, source, sink, background=[watch], limit=40_000)
    assert done == [job[:2] for job in jobs]


@pytest.mark.parametrize("jobs, least, most", [
    ([(1, 0, [n] * 200) for n in range(9)], CAPACITY - 8, CAPACITY),
    ([(n, 0, [n]) for n in range(90)], 4, 4),
], ids=["words", "jobs"])
def test_accepts_what_fits_and_no_second_job(jobs, least, most):
    dut, words = RxFifo(bytes_out=16, target="generic"), list(stream_words(jobs))

    async def source(ctx):
        await send(ctx, dut.results, words)

    async def sink(ctx):
        await ticks(ctx, 1000)
        assert not ctx.get(dut.results.ready)
        assert least <= ctx.get(dut.level.words) <= most
        found = []
        while len(found) < 4 * len(words):
            nonempty = ctx.get(dut.level.nonempty)
            ctx.set(dut.o.ready, nonempty)
            _, _, valid, value = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if nonempty and valid:
                found.append(value)
        assert found == [part for job in jobs for part in expected_parts(16, job)]

    simulate(dut, source, sink, limit=40_000)
