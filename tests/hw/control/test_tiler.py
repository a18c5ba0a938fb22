"""The tiler against loops over the tiles of M and of N."""

import random

import pytest

from weft.commands import JobFlag, Region, Status
from weft.geometry import Operand
from weft.hw.control.jobs import Job
from weft.hw.control.tiler import Tiler
from weft.sim.amaranth_bench import checker, put, quiet, receive, send, simulate, ticks

A = Operand(3, 2, 64, 16)
B = Operand(4, 2, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
FLAGS = ("accumulate", "keep")
FINISHES = JobFlag.REQUANTIZE, JobFlag.TABLE
ALL = 15


def tiler(starts=False):
    geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
    return Tiler(geometries=geometries, job=Job(geometries, FINISHES), count=range(ALL + 1))


def job(tag, m, n, k=5, status=0, **fields):
    values = {"a_page": 1, "a_pitch": 2, "b_page": 3, "b_pitch": 1, **dict.fromkeys(FLAGS, 0)}
    values["finish"] = {"requantize": 0, "table": 0}
    return {"tag": tag, "m": m, "n": n, "k": k, "status": status, **values, **fields}


def tiles(one):
    """The tiles of a job, in order."""
    down, across = -(-one["m"] // 3), -(-one["n"] // 4)
    for i in range(down):
        for j in range(across):
            tile = {
                "a_page": (one["a_page"] + i * one["a_pitch"]) % A.pages,
                "b_page": (one["b_page"] + j * one["b_pitch"]) % B.pages,
                "k": one["k"],
                "rows": min(3, one["m"] - 3 * i),
                "cols": min(4, one["n"] - 4 * j),
                "last": int((i, j) == (down - 1, across - 1)),
                **{name: one[name] for name in ("tag", "status", "finish", *FLAGS)},
            }
            if "preload" in one:
                tile |= {name: one[name] for name in ("preload", "broadcast")}
                # Of a panel of C, three words further down; or its only one.
                row = 0 if one["broadcast"] else 3 * i
                tile["c"] = (one["c_page"] + j * one["c_pitch"] + row) % C.words
            yield tile


def jobs(seed, count, starts=False):
    rng = random.Random(seed)
    for tag in range(count):
        m, n = rng.randint(1, 12), rng.randint(1, 20)
        fields = {flag: rng.randrange(2) for flag in FLAGS}
        fields["finish"] = {flag.name.lower(): rng.randrange(2) for flag in FINISHES}
        fields |= {"a_page": rng.randrange(4), "a_pitch": rng.randrange(4)}
        fields |= {"b_page": rng.randrange(8), "b_pitch": rng.randrange(8)}
        if starts:
            fields |= {name: rng.randrange(2) for name in ("preload", "broadcast")}
            fields |= {"c_page": rng.randrange(C.words), "c_pitch": rng.randrange(C.words + 1)}
        yield job(tag, m, n, rng.randint(1, 128), **fields)


@pytest.mark.parametrize("starts", [False, True], ids=["no-c", "c"])
@pytest.mark.parametrize("idle", [0, 0.5, 0.9])
@pytest.mark.parametrize("stall", [0, 0.5, 0.9])
def test_tiles_come_row_by_row(starts, idle, stall):
    dut = tiler(starts)
    given = list(jobs(1, 16, starts))
    expected = [tile for one in given for tile in tiles(one)]

    async def source(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        await send(ctx, dut.jobs, given, idle=idle, seed=1)

    async def sink(ctx):
        assert await receive(ctx, dut.tiles, len(expected), stall=stall, seed=2) == expected
        await quiet(ctx, dut.tiles)

    simulate(dut, source, sink, background=[checker(dut.tiles, "tiles"), checker(dut.jobs, "jobs")])


@pytest.mark.parametrize("broadcast, words", [
    (0, [10, 17, 24, 13, 20, 27, 16, 23, 30]), (1, [10, 17, 24] * 3),
])
def test_each_tile_has_its_rows_of_c(broadcast, words):
    # 3 x 3 tiles; panels of C of seven words. The job behind has its own.
    dut = tiler(starts=True)
    start = {"preload": 1, "broadcast": broadcast, "c_page": 10, "c_pitch": 7}
    other = {"preload": 1, "broadcast": 0, "c_page": 61, "c_pitch": 2}

    async def source(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        await send(ctx, dut.jobs, [job(1, 7, 9, **start), job(2, 6, 8, **other)])

    async def sink(ctx):
        found = [tile["c"] for tile in await receive(ctx, dut.tiles, 13)]
        assert found == [*words, 61, 63, 0, 2]

    simulate(dut, source, sink)


@pytest.mark.parametrize("before", [0, 2, 4])
def test_an_abort_leaves_the_next_job_its_c(before):
    dut = tiler(starts=True)
    start = {"preload": 1, "broadcast": 0, "c_pitch": 7}
    given = [job(1, 7, 9, c_page=10, **start), job(2, 4, 5, c_page=1, **start)]

    async def source(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        await send(ctx, dut.jobs, given)

    async def sink(ctx):
        await ticks(ctx, 2)
        await receive(ctx, dut.tiles, before)
        ctx.set(dut.abort, 1)
        await ctx.tick()
        ctx.set(dut.abort, 0)
        found = await receive(ctx, dut.tiles, 5)
        assert found[0]["status"] == Status.ABORTED
        assert [tile["c"] for tile in found[1:]] == [1, 8, 4, 11]

    simulate(dut, source, sink)


def test_a_tile_leaves_every_cycle_from_job_to_job():
    dut = tiler()
    given = list(jobs(2, 6))
    count = sum(len(list(tiles(one))) for one in given)

    async def source(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        await send(ctx, dut.jobs, given)

    async def sink(ctx):
        ctx.set(dut.tiles.ready, 1)
        valid = [(await ctx.tick().sample(dut.tiles.valid))[-1] for _ in range(count + 2)]
        assert valid == [0, *[1] * count, 0]

    simulate(dut, source, sink)


def test_a_tile_waits_for_both_its_panels():
    dut = tiler()
    one = job(1, 6, 8)  # 2 x 2 tiles

    async def bench(ctx):
        async def offered(a, b):
            put(ctx, dut.loaded, [a, b])
            assert ctx.get(dut.starved) == (not ctx.get(dut.tiles.valid))
            return ctx.get(dut.tiles.valid)

        assert not ctx.get(dut.starved)
        await send(ctx, dut.jobs, [one])
        needed = [(1, 1), (1, 2), (2, 1), (2, 2)]
        for (a, b), tile in zip(needed, tiles(one), strict=True):
            assert not await offered(a - 1, b)
            assert not await offered(a, b - 1)
            assert await offered(a, b)
            assert await receive(ctx, dut.tiles, 1) == [tile]
        assert not ctx.get(dut.starved) and not ctx.get(dut.tiles.valid)

    simulate(dut, bench)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("loaded", [0, ALL])
def test_an_abort_ends_the_job_and_no_other(before, loaded):
    dut = tiler()
    given = [job(1, 6, 8), job(2, 3, 8)]

    async def source(ctx):
        await send(ctx, dut.jobs, given)

    async def bench(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        await ticks(ctx, 2)
        assert await receive(ctx, dut.tiles, before) == list(tiles(given[0]))[:before]
        put(ctx, dut.loaded, [loaded, loaded])
        ctx.set(dut.abort, 1)
        await ctx.tick()
        ctx.set(dut.abort, 0)
        assert ctx.get(dut.tiles.valid) and not ctx.get(dut.starved)
        [end] = await receive(ctx, dut.tiles, 1)
        assert (end["tag"], end["status"], end["last"]) == (1, Status.ABORTED, 1)
        put(ctx, dut.loaded, [ALL, ALL])
        assert await receive(ctx, dut.tiles, 2) == list(tiles(given[1]))
        await quiet(ctx, dut.tiles)

    simulate(dut, source, bench)


def test_an_abort_with_no_job_does_nothing():
    dut = tiler()
    one = job(1, 4, 5)

    async def bench(ctx):
        put(ctx, dut.loaded, [ALL, ALL])
        ctx.set(dut.abort, 1)
        await ctx.tick()
        await send(ctx, dut.jobs, [one])  # the pulse ends as the job comes in
        ctx.set(dut.abort, 0)
        assert await receive(ctx, dut.tiles, 4) == list(tiles(one))

    simulate(dut, bench)


def test_an_abort_leaves_a_rejected_job_rejected():
    dut = tiler()

    async def bench(ctx):
        await send(ctx, dut.jobs, [job(1, 0, 0, 0, status=Status.REJECTED)])
        ctx.set(dut.abort, 1)
        await ctx.tick()
        ctx.set(dut.abort, 0)
        [end] = await receive(ctx, dut.tiles, 1)
        assert (end["tag"], end["status"], end["last"]) == (1, Status.REJECTED, 1)
        await quiet(ctx, dut.tiles)

    simulate(dut, bench)
