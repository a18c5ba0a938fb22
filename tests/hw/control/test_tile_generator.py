"""The walker against loops over the tiles of M and of N."""

import random

import pytest

from weft.commands import JobFlag, Region, Status
from weft.geometry import Operand
from weft.hw.control.job_table import JobEntry
from weft.hw.control.tile_generator import TileGenerator
from weft.sim.amaranth_bench import checker, put, quiet, receive, send, simulate, ticks

A = Operand(3, 2, 64, 16)
B = Operand(4, 2, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
FLAGS = ("accumulate", "keep")
FINISHES = JobFlag.REQUANTIZE, JobFlag.TABLE
STALLS = pytest.mark.parametrize("stall", [0, 0.5, 0.9])


def walker(starts=False):
    geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
    return TileGenerator(
        geometries=geometries, job=JobEntry(geometries, FINISHES), count=range(16),
        job_index=range(4),
    )


def job(tag, m, n, k=5, **fields):
    values = {"a_page": 1, "a_pitch": 2, "b_page": 3, "b_pitch": 1, **dict.fromkeys(FLAGS, 0)}
    values["epilogue"] = {"requantize": 0, "table": 0}
    return {"tag": tag, "m": m, "n": n, "k": k, **values, **fields}


def places(one, owner):
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
                # Of a panel of C, three words further down; or its only one.
                row = 0 if one["broadcast"] else 3 * i
                tile["c"] = (one["c_page"] + j * one["c_pitch"] + row) % C.words
            yield {"tile": tile, "job_index": owner, "i": i, "j": j}


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


def source(dut, given, rejected=(), idle=0):
    """Gives jobs as the table does: in places 0, 1, 2, 3, 0...; and says which is rejected."""
    async def bench(ctx):
        for n, one in enumerate(given):
            ctx.set(dut.job_index, n % 4)
            await send(ctx, dut.jobs, [one], idle=idle, seed=n)
            ctx.set(dut.rejected, n in rejected)

    return bench


def end_of(place):
    """What a void tile says; the rest of it is nobody's."""
    tile = place["tile"]
    return place["job_index"], tile["tag"], tile["status"], tile["failed"], tile["last"]


async def end(ctx, dut, victim):
    """For a cycle."""
    ctx.set(dut.abort, 1)
    ctx.set(dut.abort_index, victim)
    await ctx.tick()
    ctx.set(dut.abort, 0)


@pytest.mark.parametrize("starts", [False, True], ids=["no-c", "c"])
@pytest.mark.parametrize("idle", [0, 0.5, 0.9])
@STALLS
def test_tiles_come_row_by_row(starts, idle, stall):
    dut = walker(starts)
    given = list(jobs(1, 24, starts))
    expected = [place for n, one in enumerate(given) for place in places(one, n % 4)]

    async def sink(ctx):
        assert await receive(ctx, dut.tiles, len(expected), stall=stall, seed=2) == expected
        await quiet(ctx, dut.tiles)
        assert not ctx.get(dut.active)

    streams = [checker(dut.tiles, "tiles"), checker(dut.jobs, "jobs")]
    simulate(dut, source(dut, given, idle=idle), sink, background=streams)


@pytest.mark.parametrize("m", range(1, 13))
def test_ragged_edges_have_fewer_rows_and_columns(m):
    dut = walker()
    given = [job(n, m, n) for n in range(1, 21)]
    expected = [place for n, one in enumerate(given) for place in places(one, n % 4)]

    async def sink(ctx):
        assert await receive(ctx, dut.tiles, len(expected)) == expected

    simulate(dut, source(dut, given), sink)


@pytest.mark.parametrize("broadcast, words", [
    (0, [10, 17, 24, 13, 20, 27, 16, 23, 30]), (1, [10, 17, 24] * 3),
])
def test_each_tile_has_its_rows_of_c(broadcast, words):
    # 3 x 3 tiles; panels of C of seven words. The job behind has its own.
    dut = walker(starts=True)
    start = {"preload": 1, "broadcast": broadcast, "c_page": 10, "c_pitch": 7}
    other = {"preload": 1, "broadcast": 0, "c_page": 61, "c_pitch": 2}

    async def sink(ctx):
        found = [place["tile"]["c"] for place in await receive(ctx, dut.tiles, 13)]
        assert found == [*words, 61, 63, 0, 2]

    simulate(dut, source(dut, [job(1, 7, 9, **start), job(2, 6, 8, **other)]), sink)


def test_a_job_is_looked_at_and_then_gives_a_tile_every_cycle():
    dut = walker()
    given = list(jobs(2, 6))

    async def sink(ctx):
        ctx.set(dut.tiles.ready, 1)
        ports = dut.jobs.ready, dut.active, dut.tiles.valid
        for one in given:
            count = len(list(places(one, 0)))
            seen = [(await ctx.tick().sample(*ports))[2:] for _ in range(count + 2)]
            assert seen == [(1, 0, 0), (0, 1, 0), *[(0, 1, 1)] * count]

    simulate(dut, source(dut, given), sink)


@STALLS
@pytest.mark.parametrize("also", [set(), {1}, {3}, {1, 3}], ids=str)
def test_a_rejected_job_is_one_void_tile(also, stall):
    # Whatever its sizes are, 0 among them.
    dut = walker()
    given = [job(9, 0, 0, 0), job(8, 12, 20), job(7, 3, 0), job(6, 4, 9)]
    refused = {0, 2} | also

    async def sink(ctx):
        for n, one in enumerate(given):
            if n in refused:
                [place] = await receive(ctx, dut.tiles, 1, stall=stall, seed=n)
                assert end_of(place) == (n, one["tag"], Status.REJECTED, 1, 1)
            else:
                due = list(places(one, n))
                assert await receive(ctx, dut.tiles, len(due), stall=stall, seed=n) == due
        await quiet(ctx, dut.tiles)

    streams = [checker(dut.tiles, "tiles")]
    simulate(dut, source(dut, given, refused), sink, background=streams)


@pytest.mark.parametrize("before", range(9))
def test_what_is_left_of_a_job_that_is_ended_is_one_void_tile(before):
    dut = walker(starts=True)
    start = {"preload": 1, "broadcast": 0, "c_pitch": 7}
    given = [job(1, 7, 9, c_page=10, **start), job(2, 4, 5, c_page=1, **start)]

    async def sink(ctx):
        await ticks(ctx, 2)
        due = list(places(given[0], 0))
        assert await receive(ctx, dut.tiles, before) == due[:before]
        await end(ctx, dut, victim=0)
        [place] = await receive(ctx, dut.tiles, 1)
        assert end_of(place) == (0, 1, Status.ABORTED, 1, 1)
        assert await receive(ctx, dut.tiles, 4) == list(places(given[1], 1))
        await quiet(ctx, dut.tiles)

    simulate(dut, source(dut, given), sink)


def test_a_job_is_ended_as_soon_as_it_has_been_looked_at():
    dut = walker()

    async def bench(ctx):
        ctx.set(dut.abort, 1)  # from before it came
        await send(ctx, dut.jobs, [job(5, 7, 9)])
        await ticks(ctx, 2)
        ctx.set(dut.abort, 0)
        [place] = await receive(ctx, dut.tiles, 1)
        assert end_of(place) == (0, 5, Status.ABORTED, 1, 1)
        await quiet(ctx, dut.tiles)

    simulate(dut, bench)


@pytest.mark.parametrize("after", range(4))
def test_a_job_in_another_place_is_not_ended(after):
    dut = walker()
    one = job(5, 7, 9)

    async def sink(ctx):
        await ticks(ctx, 1 + after)
        for victim in (1, 2, 3):
            await end(ctx, dut, victim)
        assert await receive(ctx, dut.tiles, 9) == list(places(one, 0))

    simulate(dut, source(dut, [one]), sink)


def test_a_tile_that_is_taken_as_its_job_is_ended_was_there():
    dut = walker()
    given = [job(1, 3, 9), job(2, 3, 8)]

    async def sink(ctx):
        await ticks(ctx, 2)
        await receive(ctx, dut.tiles, 2)
        ctx.set(dut.abort, 1)  # with the last one
        assert await receive(ctx, dut.tiles, 1) == list(places(given[0], 0))[2:]
        ctx.set(dut.abort, 0)
        assert await receive(ctx, dut.tiles, 2) == list(places(given[1], 1))

    simulate(dut, source(dut, given), sink)


def test_a_rejected_job_stays_rejected():
    dut = walker()

    async def sink(ctx):
        ctx.set(dut.abort_index, 0)
        ctx.set(dut.abort, 1)
        await ticks(ctx, 6)
        [place] = await receive(ctx, dut.tiles, 1)
        assert end_of(place) == (0, 3, Status.REJECTED, 1, 1)

    async def table(ctx):
        put(ctx, dut.rejected, 1)
        await send(ctx, dut.jobs, [job(3, 1, 1)])

    simulate(dut, table, sink)
