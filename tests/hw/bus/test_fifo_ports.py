"""Windows: stream words in parts, and of results never those of two jobs for one's."""

import random

import pytest

from weft.hw.bus.fifo_ports import DEPTH, ROOM, RxFifo, TxFifo
from weft.sim.amaranth_bench import checker, quiet, receive, send, simulate, ticks


@pytest.mark.parametrize("size", [4, 8, 64])
@pytest.mark.parametrize("stall", [0, 0.6])
def test_parts_become_words_low_first(size, stall):
    dut, rng = TxFifo(bytes_in=size, target="generic"), random.Random(1)
    words = [rng.getrandbits(8 * size) for _ in range(30)]
    parts = [word >> n & 0xFFFFFFFF for word in words for n in range(0, 8 * size, 32)]

    async def give(ctx):
        await send(ctx, dut.i, parts, idle=stall, seed=3)

    async def take(ctx):
        assert await receive(ctx, dut.commands, len(words), stall=stall, seed=4) == words
        await quiet(ctx, dut.commands)
        assert not ctx.get(dut.waiting)

    simulate(dut, give, take, background=[checker(dut.commands, "commands")])


@pytest.mark.parametrize("size", [4, 16])
def test_room_is_what_is_taken_at_once(size):
    dut = TxFifo(bytes_in=size, target="generic")

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for _ in range(2):
            while room := ctx.get(dut.room):
                for _ in range(room):
                    assert ctx.get(dut.i.ready)
                    await ctx.tick()
        assert ctx.get(dut.room) == 0 and not ctx.get(dut.i.ready) and ctx.get(dut.waiting)
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.commands.ready, 1)
        await ticks(ctx, 2 * DEPTH)
        assert ctx.get(dut.room) == ROOM

    simulate(dut, bench)


def test_a_word_takes_as_many_cycles_as_it_has_parts():
    dut, came = TxFifo(bytes_in=8, target="generic"), []

    async def give(ctx):
        await send(ctx, dut.i, range(80))

    async def take(ctx):
        ctx.set(dut.commands.ready, 1)
        for cycle in range(90):
            _, _, valid = await ctx.tick().sample(dut.commands.valid)
            came.extend([cycle] * valid)

    simulate(dut, give, take)
    assert len(came) == 40 and came[-1] - came[0] == 78


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


def due(size, job):
    """The parts of a job: zeros where the word that ends it is none."""
    words = [*job[2][:-1], 0 if job[1] else job[2][-1]]
    return [word >> n & 0xFFFFFFFF for word in words for n in range(0, 8 * size, 32)]


@pytest.mark.parametrize("size", [4, 8, 32])
@pytest.mark.parametrize("idle, odds", [(0, 0), (0.8, 0), (0, 0.9), (0.5, 0.5)])
def test_a_job_at_a_time_with_what_is_said_of_it(size, idle, odds):
    dut, rng = RxFifo(bytes_out=size, target="generic"), random.Random(6)
    jobs, ended = jobs_of(size, 20, 5), []

    async def give(ctx):
        await send(ctx, dut.results, stream_words(jobs), idle=idle, seed=1)

    async def watch(ctx):
        while True:
            _, _, found, level = await ctx.tick().sample(dut.ended, dut.level)
            assert level.some == (level.words != 0)
            if found.valid:
                ended.append((found.tag, found.status))

    async def take(ctx):
        for job in jobs:
            left, parts, complete = None, [], False
            while left != 0:
                while rng.random() < odds:
                    await ctx.tick()
                level = ctx.get(dut.level)
                if complete:
                    # The count goes down to nothing; only then is it another job's.
                    assert level.words == left
                elif level.complete:
                    complete, left = True, level.words
                    assert ended[-1] == job[:2] and len(ended) == jobs.index(job) + 1
                ctx.set(dut.o.ready, level.some)
                _, _, valid, part = await ctx.tick().sample(dut.o.valid, dut.o.payload)
                ctx.set(dut.o.ready, 0)
                if level.some and valid:
                    parts.append(part)
                    left = left - 1 if complete else None
            assert parts == due(size, job)
        await ticks(ctx, 20)
        assert ctx.get(dut.level.words) == 0 and not ctx.get(dut.level.complete)

    simulate(dut, give, take, background=[watch], limit=40_000)
    assert ended == [job[:2] for job in jobs]


@pytest.mark.parametrize("jobs, least, most", [
    ([(1, 0, [n] * 200) for n in range(9)], ROOM - 8, ROOM),
    ([(n, 0, [n]) for n in range(90)], 4, 4),
], ids=["words", "jobs"])
def test_no_more_is_taken_than_there_is_room_for_and_no_other_job(jobs, least, most):
    dut, words = RxFifo(bytes_out=16, target="generic"), list(stream_words(jobs))

    async def give(ctx):
        await send(ctx, dut.results, words)

    async def take(ctx):
        await ticks(ctx, 1000)
        assert not ctx.get(dut.results.ready)
        assert least <= ctx.get(dut.level.words) <= most
        found = []
        while len(found) < 4 * len(words):
            some = ctx.get(dut.level.some)
            ctx.set(dut.o.ready, some)
            _, _, valid, value = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if some and valid:
                found.append(value)
        assert found == [part for job in jobs for part in due(16, job)]

    simulate(dut, give, take, limit=40_000)
