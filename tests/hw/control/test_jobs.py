"""The job table: order, readiness, conflicts with loads, and what it refuses."""

import pytest

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, Status
from weft.geometry import Operand
from weft.hw.control.headers import JobHeader, LoadHeader
from weft.hw.control.jobs import JobTable
from weft.sim.amaranth_bench import checker, plain, put, receive, send, simulate

A = Operand(3, 2, 128, 16)  # 8 pages: up to 24 rows, K up to 256
B = Operand(4, 2, 128, 16)  # 8 pages: up to 32 columns
FED = JobFlag.FEED_A | JobFlag.FEED_B
PLAIN = FED | JobFlag.ACCUMULATE | JobFlag.KEEP
ALL = PLAIN | JobFlag.REQUANTIZE | JobFlag.TABLE
START = JobFlag.PRELOAD | JobFlag.BROADCAST
C = Operand(4, 1, 32, 16, page=1, size=4)  # 32 words
MEMORIES = {Region.A: A, Region.B: B}
FINISHES = JobFlag.REQUANTIZE, JobFlag.TABLE
# A core that starts from C, of three tiles a pass and another result path.
FLOAT = {
    "geometries": {**MEMORIES, Region.C: C}, "known": PLAIN | START | JobFlag.ROUND | JobFlag.CLAMP,
    "finishes": (JobFlag.ROUND, JobFlag.CLAMP), "slots": 3,
}


def job(tag=0, flags=0, **fields):
    values = {"m": 1, "n": 2, "k": 3, "a_page": 1, "a_pitch": 1, "a_pages": 2}
    values |= {"b_page": 3, "b_pitch": 2, "b_pages": 4}
    return Job(**{**values, **fields}, tag=tag, flags=JobFlag(flags))


def header(command):
    shape = JobHeader if isinstance(command, Job) else LoadHeader
    return plain(shape.from_bits(int.from_bytes(command.pack(), "little")))


def run(bench, jobs=4, **options):
    plain = {"geometries": MEMORIES, "known": ALL, "finishes": FINISHES, "slots": 1}
    table = JobTable(jobs=jobs, **plain | options)
    simulate(table, lambda ctx: bench(ctx, table), background=[checker(table.pull, "pull")])


async def push(ctx, table, *jobs):
    await send(ctx, table.push, [header(one) for one in jobs])


async def pull(ctx, table):
    [one] = await receive(ctx, table.pull, 1)
    return one


async def pulse(ctx, port, value=1):
    put(ctx, port, value)
    await ctx.tick()
    ctx.set(port, [0, 0] if isinstance(value, list) else 0)


def test_jobs_leave_in_order_with_all_that_they_say():
    async def bench(ctx, table):
        flags = [0, *PLAIN, FED, JobFlag.KEEP | JobFlag.ACCUMULATE]
        flags += [JobFlag.REQUANTIZE, JobFlag.TABLE, JobFlag.REQUANTIZE | JobFlag.TABLE]
        for n, flag in enumerate(flags * 2):
            sent = job(tag=1000 + n, flags=flag, m=1 + n % 3, n=1 + n % 4, k=50 + n, a_page=n % 4)
            await push(ctx, table, sent)
            got = await pull(ctx, table)
            for name in ("tag", "m", "n", "k", "a_page", "a_pitch", "b_page", "b_pitch"):
                assert got[name] == getattr(sent, name), name
            for flag in (JobFlag.ACCUMULATE, JobFlag.KEEP):
                assert got[flag.name.lower()] == (flag in sent.flags), flag
            assert got["finish"] == {
                "requantize": JobFlag.REQUANTIZE in sent.flags, "table": JobFlag.TABLE in sent.flags
            }
            assert got["status"] == 0
            assert not {"preload", "broadcast", "c_page", "c_pitch"} & set(got)
            await pulse(ctx, table.retire)

    run(bench)


def test_jobs_say_where_they_start_from():
    async def bench(ctx, table):
        flags = [0, JobFlag.PRELOAD, JobFlag.BROADCAST, START, JobFlag.ROUND, JobFlag.CLAMP]
        for n, flag in enumerate([*flags, START | JobFlag.ROUND | JobFlag.CLAMP]):
            sent = job(tag=n, flags=flag, c_page=31 - n, c_pitch=32 - n, c_pages=1)
            await push(ctx, table, sent)
            got = await pull(ctx, table)
            assert got["status"] == 0
            assert (got["c_page"], got["c_pitch"]) == (31 - n, 32 - n)
            for name in ("preload", "broadcast"):
                assert got[name] == (JobFlag[name.upper()] in sent.flags), name
            assert got["finish"] == {
                "round": JobFlag.ROUND in sent.flags, "clamp": JobFlag.CLAMP in sent.flags
            }
            await pulse(ctx, table.retire)

    run(bench, **FLOAT)


@pytest.mark.parametrize("jobs", [2, 4])
def test_holds_so_many_jobs_until_they_retire(jobs):
    async def bench(ctx, table):
        assert ctx.get(table.empty)
        await push(ctx, table, *(job(tag) for tag in range(jobs)))
        assert not ctx.get(table.empty) and not ctx.get(table.push.ready)
        assert [(await pull(ctx, table))["tag"] for _ in range(jobs)] == list(range(jobs))
        assert not ctx.get(table.pull.valid) and not ctx.get(table.push.ready)
        for left in reversed(range(jobs)):
            await pulse(ctx, table.retire)
            assert ctx.get(table.empty) == (left == 0)
            assert ctx.get(table.push.ready)

    run(bench, jobs)


def test_a_job_can_be_read_in_the_cycle_after_its_push():
    async def bench(ctx, table):
        put(ctx, table.push.payload, header(job(7)))
        ctx.set(table.push.valid, 1)
        assert not ctx.get(table.pull.valid)
        await ctx.tick()
        assert ctx.get(table.pull.valid) and ctx.get(table.pull.payload.tag) == 7

    run(bench)


def test_panels_become_ready_as_they_are_fed():
    async def bench(ctx, table):
        async def loaded():
            await ctx.tick()
            return [ctx.get(table.loaded[x]) for x in range(2)]

        await push(ctx, table, job(1, FED), job(2, JobFlag.FEED_B))
        await pull(ctx, table)
        await pulse(ctx, table.panel, [0, 1])  # for the latest, job 2
        assert await loaded() == [0, 0]
        await pull(ctx, table)
        everything = (1 << len(table.loaded[0])) - 1
        assert await loaded() == [everything, 1]
        await pulse(ctx, table.panel, [1, 1])
        assert await loaded() == [everything, 2]
        await push(ctx, table, job(3, JobFlag.FEED_A), job(4))
        await pull(ctx, table)
        assert await loaded() == [0, everything]
        await pull(ctx, table)
        assert await loaded() == [everything, everything]

    run(bench)


def test_a_fed_slot_starts_again_at_none():
    async def bench(ctx, table):
        for tag in range(4):
            await push(ctx, table, job(tag, FED))
            await pull(ctx, table)
            await pulse(ctx, table.panel, [1, 1])
            await ctx.tick()
            assert [ctx.get(table.loaded[x]) for x in range(2)] == [1, 1]
            await pulse(ctx, table.retire)

    run(bench, jobs=2)


# A job on pages 4..6 of A and 2..5 of B.
SPANS = {"a_page": 4, "a_pages": 3, "b_page": 2, "b_pages": 4}


@pytest.mark.parametrize("operand", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 7])
def test_spans_reach_the_end_of_the_buffer(operand, first):
    async def bench(ctx, table):
        pages = 8 - first
        spans = {"a_page": first, "a_pages": pages, "b_page": first, "b_pages": pages}
        await push(ctx, table, job(**spans))
        for page in range(8):
            put(ctx, table.load, header(Load(operand, page, 1, 1, 1)))
            assert ctx.get(table.conflict) == (page >= first)

    run(bench)


@pytest.mark.parametrize("operand, page, pages, conflict", [
    (0, 2, 2, 0), (0, 2, 3, 1), (0, 6, 1, 1), (0, 7, 1, 0), (0, 5, 1, 1), (0, 0, 9, 1),
    (1, 0, 2, 0), (1, 1, 2, 1), (1, 5, 3, 1), (1, 6, 1, 0), (1, 0, 0xFFFF, 1),
    # Parameters lie where B lies; the table is everybody's.
    (2, 0, 2, 0), (2, 1, 2, 1), (2, 5, 3, 1), (2, 6, 1, 0), (3, 0, 1, 1), (3, 7, 1, 1),
])
def test_a_load_waits_for_jobs_on_its_pages(operand, page, pages, conflict):
    async def bench(ctx, table):
        put(ctx, table.load, header(Load(operand, page, pages, 1, 1)))
        assert not ctx.get(table.conflict)
        await push(ctx, table, job(**SPANS))
        assert ctx.get(table.conflict) == conflict
        put(ctx, table.load, header(Load(operand, page, 1, pages, 1)))
        assert ctx.get(table.conflict) == conflict
        await pull(ctx, table)
        assert ctx.get(table.conflict) == conflict
        await pulse(ctx, table.retire)
        assert not ctx.get(table.conflict)

    run(bench)


# A job on words 8..12 of C.
SPAN_C = {"c_page": 8, "c_pitch": 5, "c_pages": 5}


@pytest.mark.parametrize("flags", [JobFlag.PRELOAD, START])
@pytest.mark.parametrize("page, words, conflict", [
    (0, 8, 0), (0, 9, 1), (8, 1, 1), (12, 1, 1), (12, 9, 1), (13, 1, 0), (13, 9, 0), (0, 32, 1),
])
def test_a_load_of_c_waits_for_jobs_that_start_from_it(flags, page, words, conflict):
    async def bench(ctx, table):
        put(ctx, table.load, header(Load(4, page, words, 1, words)))
        await push(ctx, table, job(**SPAN_C), job(flags=JobFlag.BROADCAST, **SPAN_C))
        assert not ctx.get(table.conflict)
        await push(ctx, table, job(flags=flags, **SPAN_C))
        assert ctx.get(table.conflict) == conflict
        for left in reversed(range(3)):
            await pull(ctx, table)
            await pulse(ctx, table.retire)
            assert ctx.get(table.conflict) == (conflict and left > 0)
        # In their places: jobs that start from 0.
        await push(ctx, table, *[job(**SPAN_C)] * 4)
        assert not ctx.get(table.conflict)

    run(bench, **FLOAT)


def test_c_reaches_the_end_of_its_buffer():
    async def bench(ctx, table):
        await push(ctx, table, job(flags=JobFlag.PRELOAD, c_page=31, c_pitch=1, c_pages=1))
        for page in range(32):
            put(ctx, table.load, header(Load(4, page, 1, 1, 1)))
            assert ctx.get(table.conflict) == (page == 31)
        await push(ctx, table, job(flags=JobFlag.PRELOAD, c_page=0, c_pitch=32, c_pages=32))
        put(ctx, table.load, header(Load(4, 30, 1, 1, 1)))
        assert ctx.get(table.conflict)
        # Other operands have their own pages.
        for operand in (0, 1):
            put(ctx, table.load, header(Load(operand, 7, 1, 1, 1)))
            assert not ctx.get(table.conflict)

    run(bench, **FLOAT)


def test_a_load_does_not_wait_for_the_job_that_it_feeds():
    async def bench(ctx, table):
        await push(ctx, table, job(1, FED, **SPANS))
        put(ctx, table.load, header(Load(0, 4, 1, 1, 1, LoadFlag.CONTINUE)))
        assert ctx.get(table.conflict)
        put(ctx, table.load, header(Load(0, 4, 1, 1, 1, LoadFlag.FEED)))
        assert not ctx.get(table.conflict)
        await push(ctx, table, job(2, FED, a_page=7))
        assert ctx.get(table.conflict)  # job 1 is no longer the latest
        await pulse(ctx, table.retire)
        assert not ctx.get(table.conflict)

    run(bench)


def test_a_table_waits_for_all_jobs():
    async def bench(ctx, table):
        await push(ctx, table, job(1), job(2, FED))
        for flags in (0, LoadFlag.FEED):
            put(ctx, table.load, header(Load(3, 0, 1, 1, 256, LoadFlag(flags))))
            assert ctx.get(table.conflict)
        await pulse(ctx, table.retire)
        assert ctx.get(table.conflict)
        await pulse(ctx, table.retire)
        assert not ctx.get(table.conflict)

    run(bench)


@pytest.mark.parametrize("known", [PLAIN, PLAIN | JobFlag.REQUANTIZE, ALL])
@pytest.mark.parametrize("flag", [JobFlag.REQUANTIZE, JobFlag.TABLE])
def test_rejects_flags_that_it_does_not_know(known, flag):
    async def bench(ctx, table):
        await push(ctx, table, job(9, flag))
        got = await pull(ctx, table)
        assert got["status"] == (0 if flag in known else Status.REJECTED)

    run(bench, known=known)


@pytest.mark.parametrize("fields", [
    {"m": 0}, {"n": 0}, {"k": 0}, {"m": 25}, {"n": 33}, {"k": 257}, {"m": 31}, {"m": 1 << 15},
    {"n": 0xFFFF}, {"k": (1 << 32) - 1}, {"k": 1 << 9}, {"flags": 64}, {"flags": 0x8000},
    {"flags": 64 | JobFlag.FEED_A},
    {"flags": JobFlag.KEEP, "m": 4}, {"flags": JobFlag.KEEP, "n": 5},
    {"flags": JobFlag.ACCUMULATE, "m": 4}, {"flags": JobFlag.ACCUMULATE, "n": 5},
], ids=str)
def test_rejects_what_the_core_does_not_do(fields):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        got = await pull(ctx, table)
        assert (got["status"], got["tag"]) == (Status.REJECTED, 9)

    run(bench)


@pytest.mark.parametrize("fields, good", [
    ({"flags": JobFlag.PRELOAD, "m": 24, "n": 32}, True),
    ({"flags": JobFlag.PRELOAD | JobFlag.ACCUMULATE}, False),
    ({"flags": START | JobFlag.ACCUMULATE | JobFlag.KEEP}, False),
    ({"flags": JobFlag.BROADCAST | JobFlag.ACCUMULATE}, True),
    ({"flags": JobFlag.PRELOAD | JobFlag.KEEP, "m": 3, "n": 12}, True),
    ({"flags": JobFlag.KEEP, "m": 4, "n": 12}, False),
    ({"flags": JobFlag.KEEP, "m": 3, "n": 13}, False),
    ({"flags": JobFlag.ACCUMULATE, "m": 3, "n": 12}, True),
    ({"flags": JobFlag.ACCUMULATE, "m": 3, "n": 13}, False),
    ({"flags": JobFlag.ACCUMULATE, "m": 4, "n": 1}, False),
    ({"flags": JobFlag.REQUANTIZE}, False),
    ({"flags": JobFlag.ROUND | JobFlag.CLAMP}, True),
    ({"flags": 0x400}, False),
], ids=str)
def test_what_a_core_of_several_slots_does(fields, good):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        assert (await pull(ctx, table))["status"] == (0 if good else Status.REJECTED)

    run(bench, **FLOAT)


def test_large_buffers_hold_more_lines_than_a_header_asks_for():
    large = {
        Region.A: Operand(64, 1, 65536, 16), Region.B: Operand(64, 1, 65536, 16),
    }

    async def bench(ctx, table):
        await push(ctx, table, job(9, m=0xFFFF, n=0xFFFF, k=0x10000))
        got = await pull(ctx, table)
        assert (got["status"], got["m"], got["n"], got["k"]) == (0, 0xFFFF, 0xFFFF, 0x10000)

    run(bench, geometries=large)


@pytest.mark.parametrize("fields", [
    {"m": 24, "n": 32, "k": 256}, {"m": 1, "n": 1, "k": 1},
    {"flags": 63, "m": 3, "n": 4}, {"flags": 3}, {"flags": 48, "m": 4},
], ids=str)
def test_takes_what_the_buffers_hold(fields):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        assert (await pull(ctx, table))["status"] == 0

    run(bench)
