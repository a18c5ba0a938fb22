"""The tile generator against loops over the tiles of M and of N."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import checker, put, quiet, receive, send, simulate, ticks
from weft.commands import JobFlag, Region, Status
from weft.geometry import Operand
from weft.hw.control.job_table import JobEntry
from weft.hw.control.tile_generator import TileGenerator

A = Operand(3, 2, 64, 16)
B = Operand(4, 2, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
FLAGS = ("accumulate", "keep")
FINISHES = JobFlag.REQUANTIZE, JobFlag.TABLE
STALLS = pytest.mark.parametrize("stall", quick(2, [0, 0.9, 0.5]))


def generator(starts=False):
    geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
    return TileGenerator(
        geometries=geometries, job=JobEntry(geometries, FINISHES), count=range(16),
        job_index=range(4),
    )


def job(tag, m, n, k=5, **fields):
    values = {"a_page": 1, "a_pitch": 2, "b_page": 3, "b_pitch": 1, **dict.fromkeys(FLAGS, 0)}
    values["epilogue"] = {"requantize": 0, "table": 0}
    return {"tag": tag, "m": m, "n": n, "k": k, **values, **fields}


def tagged_tiles(one, job_index):
    """The tiles of a job, in order."""
    down, across = -(-one["m"] // 3), -(-one["n"] // 4)
    for i in range(down):
        for j in range(across):
            tile = {
                "a_page": (one["a_page"] + i * one["a_pitch"]) % A.pages,
                "b_page": (one["b_page"] + j * one["b_pitch"]) % B.pages,
                "single_word": int(one["k"] <= 2),
                "rows": min(3, one["m"] - 3 * i),
                "cols": min(4, one["n"] - 4 * j),
                "last": int((i, j) == (down - 1, across - 1)),
                "status": 0,
                "failed": 0,
                "hold": one["keep"],
                **{name: one[name] for name in ("k", "tag", "accumulate", "epilogue")},
            }
            if "preload" in one:
                tile |= {name: one[name] for name in ("preload", "broadcast")}
                # Three words further in the panel of C for each row of tiles; 0 for a broadcast.
                row = 0 if one["broadcast"] else 3 * i
                tile["c"] = (one["c_page"] + j * one["c_pitch"] + row) % C.words
            yield {"tile": tile, "job_index": job_index, "i": i, "j": j}


def jobs(seed, count, starts=False):
    rng = random.Random(seed)
    for tag in range(count):
        m, n = rng.randint(1, 12), rng.randint(1, 20)
        fields = {flag: rng.randrange(2) for flag in FLAGS}
        fields["epilogue"] = {flag.name.lower(): rng.randrange(2) for flag in FINISHES}
        fields |= {"a_page": rng.randrange(4), "a_pitch": rng.randrange(4)}
        fields |= {"b_page": rng.randrange(8), "b_pitch": rng.randrange(8)}
        if starts:
            fields |= {name: rng.randrange(2) for name in ("preload", "broadcast")}
            fields |= {"c_page": rng.randrange(C.words), "c_pitch": rng.randrange(C.words + 1)}
        yield job(tag, m, n, rng.choice([1, 2, 3, rng.randint(1, 128)]), **fields)


def source(dut, sent, rejected=(), idle=0):
    """Sends jobs as the job table does: with indices 0, 1, 2, 3, 0, and the `rejected` bit."""
    async def bench(ctx):
        for n, one in enumerate(sent):
            ctx.set(dut.job_index, n % 4)
            await send(ctx, dut.jobs, [one], idle=idle, seed=n)
            ctx.set(dut.rejected, n in rejected)

    return bench


def failure(tagged):
    """The fields of a failed tile that have a meaning."""
    tile = tagged["tile"]
    return tagged["job_index"], tile["tag"], tile["status"], tile["failed"], tile["last"]


async def abort(ctx, dut, index):
    """Aborts the job ``index`` for one cycle."""
    ctx.set(dut.abort, 1)
    ctx.set(dut.abort_index, index)
    await ctx.tick()
    ctx.set(dut.abort, 0)


@pytest.mark.parametrize("starts", [False, True], ids=["no-c", "c"])
@pytest.mark.parametrize("idle", quick(2, [0, 0.5, 0.9]))
@STALLS
def test_tiles_come_row_by_row(starts, idle, stall):
    dut = generator(starts)
    sent = list(jobs(1, 24, starts))
    expected = [tagged for n, one in enumerate(sent) for tagged in tagged_tiles(one, n % 4)]

    async def sink(ctx):
        assert await receive(ctx, dut.tiles, len(expected), stall=stall, seed=2) == expected
        await quiet(ctx, dut.tiles)
        assert not ctx.get(dut.active)

    streams = [checker(dut.tiles, "tiles"), checker(dut.jobs, "jobs")]
    simulate(dut, source(dut, sent, idle=idle), sink, background=streams)


@pytest.mark.parametrize("m", quick(5, [1, 4, 5, 11, 12, 2, 3, 6, 7, 8, 9, 10]))
def test_ragged_edges_have_fewer_rows_and_columns(m):
    dut = generator()
    sent = [job(n, m, n) for n in range(1, 21)]
    expected = [tagged for n, one in enumerate(sent) for tagged in tagged_tiles(one, n % 4)]

    async def sink(ctx):
        assert await receive(ctx, dut.tiles, len(expected)) == expected

    simulate(dut, source(dut, sent), sink)


@pytest.mark.parametrize("broadcast, words", [
    (0, [10, 17, 24, 13, 20, 27, 16, 23, 30]), (1, [10, 17, 24] * 3),
])
def test_each_tile_has_its_rows_of_c(broadcast, words):
    # 3 x 3 tiles; panels of C have seven words. The next job has its own C.
    dut = generator(starts=True)
    start = {"preload": 1, "broadcast": broadcast, "c_page": 10, "c_pitch": 7}
    other = {"preload": 1, "broadcast": 0, "c_page": 61, "c_pitch": 2}

    async def sink(ctx):
        found = [tagged["tile"]["c"] for tagged in await receive(ctx, dut.tiles, 13)]
        assert found == [*words, 61, 63, 0, 2]

    simulate(dut, source(dut, [job(1, 7, 9, **start), job(2, 6, 8, **other)]), sink)


def test_a_job_gives_a_tile_every_cycle_after_one_cycle():
    dut = generator()
    sent = list(jobs(2, 6))

    async def sink(ctx):
        ctx.set(dut.tiles.ready, 1)
        ports = dut.jobs.ready, dut.active, dut.tiles.valid
        for one in sent:
            count = len(list(tagged_tiles(one, 0)))
            trace = [(await ctx.tick().sample(*ports))[2:] for _ in range(count + 2)]
            assert trace == [(1, 0, 0), (0, 1, 0), *[(0, 1, 1)] * count]

    simulate(dut, source(dut, sent), sink)


@STALLS
@pytest.mark.parametrize("also", [set(), {1}, {3}, {1, 3}], ids=str)
def test_a_rejected_job_is_one_failed_tile(also, stall):
    # For any sizes, even 0.
    dut = generator()
    sent = [job(9, 0, 0, 0), job(8, 12, 20), job(7, 3, 0), job(6, 4, 9)]
    rejected = {0, 2} | also

    async def sink(ctx):
        for n, one in enumerate(sent):
            if n in rejected:
                [tagged] = await receive(ctx, dut.tiles, 1, stall=stall, seed=n)
                assert failure(tagged) == (n, one["tag"], Status.REJECTED, 1, 1)
            else:
                expected = list(tagged_tiles(one, n))
                assert await receive(ctx, dut.tiles, len(expected), stall=stall, seed=n) == expected
        await quiet(ctx, dut.tiles)

    streams = [checker(dut.tiles, "tiles")]
    simulate(dut, source(dut, sent, rejected), sink, background=streams)


@pytest.mark.parametrize("before", range(9))
def test_the_rest_of_an_aborted_job_is_one_failed_tile(before):
    dut = generator(starts=True)
    start = {"preload": 1, "broadcast": 0, "c_pitch": 7}
    sent = [job(1, 7, 9, c_page=10, **start), job(2, 4, 5, c_page=1, **start)]

    async def sink(ctx):
        await ticks(ctx, 2)
        expected = list(tagged_tiles(sent[0], 0))
        assert await receive(ctx, dut.tiles, before) == expected[:before]
        await abort(ctx, dut, 0)
        [tagged] = await receive(ctx, dut.tiles, 1)
        assert failure(tagged) == (0, 1, Status.ABORTED, 1, 1)
        assert await receive(ctx, dut.tiles, 4) == list(tagged_tiles(sent[1], 1))
        await quiet(ctx, dut.tiles)

    simulate(dut, source(dut, sent), sink)


def test_an_abort_can_come_before_the_job():
    dut = generator()

    async def bench(ctx):
        ctx.set(dut.abort, 1)  # before the job comes
        await send(ctx, dut.jobs, [job(5, 7, 9)])
        await ticks(ctx, 2)
        ctx.set(dut.abort, 0)
        [tagged] = await receive(ctx, dut.tiles, 1)
        assert failure(tagged) == (0, 5, Status.ABORTED, 1, 1)
        await quiet(ctx, dut.tiles)

    simulate(dut, bench)


@pytest.mark.parametrize("after", range(4))
def test_an_abort_of_another_index_has_no_effect(after):
    dut = generator()
    one = job(5, 7, 9)

    async def sink(ctx):
        await ticks(ctx, 1 + after)
        for index in (1, 2, 3):
            await abort(ctx, dut, index)
        assert await receive(ctx, dut.tiles, 9) == list(tagged_tiles(one, 0))

    simulate(dut, source(dut, [one]), sink)


def test_an_abort_in_the_cycle_of_the_last_tile_is_too_late():
    dut = generator()
    sent = [job(1, 3, 9), job(2, 3, 8)]

    async def sink(ctx):
        await ticks(ctx, 2)
        await receive(ctx, dut.tiles, 2)
        ctx.set(dut.abort, 1)  # with the last one
        assert await receive(ctx, dut.tiles, 1) == list(tagged_tiles(sent[0], 0))[2:]
        ctx.set(dut.abort, 0)
        assert await receive(ctx, dut.tiles, 2) == list(tagged_tiles(sent[1], 1))

    simulate(dut, source(dut, sent), sink)


def test_a_rejected_job_stays_rejected():
    dut = generator()

    async def sink(ctx):
        ctx.set(dut.abort_index, 0)
        ctx.set(dut.abort, 1)
        await ticks(ctx, 6)
        [tagged] = await receive(ctx, dut.tiles, 1)
        assert failure(tagged) == (0, 3, Status.REJECTED, 1, 1)

    async def table(ctx):
        put(ctx, dut.rejected, 1)
        await send(ctx, dut.jobs, [job(3, 1, 1)])

    simulate(dut, table, sink)
