"""The job table: order, panel counts, conflicts with loads, and rejected jobs."""

import pytest

from verif.amaranth_bench import pulse, put, ticks
from verif.job_table_bench import (
    ALL,
    FED,
    FLOAT,
    PLAIN,
    START,
    conflicts,
    header,
    job,
    pull,
    push,
    retire,
    run,
)
from weft.commands import JobFlag, Load, LoadFlag, Region
from weft.geometry import Operand


def test_jobs_are_pulled_in_order_with_all_fields():
    async def bench(ctx, table):
        flags = [0, *PLAIN, FED, JobFlag.KEEP | JobFlag.ACCUMULATE]
        flags += [JobFlag.REQUANTIZE, JobFlag.TABLE, JobFlag.REQUANTIZE | JobFlag.TABLE]
        for n, flag in enumerate(flags * 2):
            sent = job(tag=1000 + n, flags=flag, m=1 + n % 3, n=1 + n % 4, k=50 + n, a_page=n % 4)
            await push(ctx, table, sent)
            got = await pull(ctx, table)
            ctx.set(table.tag_index, got["tag"])
            assert ctx.get(table.tag) == sent.tag
            for name in ("m", "n", "k", "a_page", "a_pitch", "b_page", "b_pitch"):
                assert got[name] == getattr(sent, name), name
            for flag in (JobFlag.ACCUMULATE, JobFlag.KEEP):
                assert got[flag.name.lower()] == (flag in sent.flags), flag
            assert got["epilogue"] == {
                "requantize": JobFlag.REQUANTIZE in sent.flags, "table": JobFlag.TABLE in sent.flags
            }
            assert not got["rejected"]
            assert not {"preload", "broadcast", "c_page", "c_pitch"} & set(got)
            await pulse(ctx, table.retire)

    run(bench)


def test_jobs_have_the_fields_of_c():
    async def bench(ctx, table):
        flags = [0, JobFlag.PRELOAD, JobFlag.BROADCAST, START, JobFlag.ROUND, JobFlag.CLAMP]
        for n, flag in enumerate([*flags, START | JobFlag.ROUND | JobFlag.CLAMP]):
            sent = job(tag=n, flags=flag, c_page=31 - n, c_pitch=32 - n, c_pages=1)
            await push(ctx, table, sent)
            got = await pull(ctx, table)
            assert not got["rejected"]
            assert (got["c_page"], got["c_pitch"]) == (31 - n, 32 - n)
            for name in ("preload", "broadcast"):
                assert got[name] == (JobFlag[name.upper()] in sent.flags), name
            assert got["epilogue"] == {
                "round": JobFlag.ROUND in sent.flags, "clamp": JobFlag.CLAMP in sent.flags
            }
            await pulse(ctx, table.retire)

    run(bench, **FLOAT)


@pytest.mark.parametrize("jobs", [2, 4])
def test_holds_jobs_until_they_retire(jobs):
    async def bench(ctx, table):
        assert ctx.get(table.empty)
        await push(ctx, table, job(1000))
        pulled = [(await pull(ctx, table))["tag"]]
        await push(ctx, table, *(job(1000 + tag) for tag in range(1, jobs)))
        assert not ctx.get(table.empty) and not ctx.get(table.push.ready)
        pulled += [(await pull(ctx, table))["tag"] for _ in range(1, jobs)]
        assert pulled == list(range(jobs))
        for index in range(jobs):
            ctx.set(table.tag_index, index)
            assert ctx.get(table.tag) == 1000 + index
        assert not ctx.get(table.pull.valid) and not ctx.get(table.push.ready)
        for left in reversed(range(jobs)):
            await pulse(ctx, table.retire)
            assert ctx.get(table.empty) == (left == 0)
            assert ctx.get(table.push.ready)

    run(bench, jobs)


def test_a_push_in_the_cycle_of_a_retire():
    async def bench(ctx, table):
        await push(ctx, table, job(0))
        await pull(ctx, table)
        put(ctx, table.push.payload, header(job(1)))
        ctx.set(table.push.valid, 1)
        await pulse(ctx, table.retire)
        assert ctx.get(table.push.ready)  # one of two entries is in use
        await ctx.tick()
        assert not ctx.get(table.push.ready)

    run(bench, jobs=2)


def test_a_job_can_be_pulled_in_the_cycle_after_its_push():
    async def bench(ctx, table):
        put(ctx, table.push.payload, header(job(m=7)))
        ctx.set(table.push.valid, 1)
        assert not ctx.get(table.pull.valid)
        await ctx.tick()
        assert ctx.get(table.pull.valid) and ctx.get(table.pull.payload.m) == 7

    run(bench)


def test_the_pull_index_is_the_entry_of_the_next_job():
    async def bench(ctx, table):
        for n in range(9):
            await push(ctx, table, job(n))
            assert ctx.get(table.pull_index) == n % 4
            await pull(ctx, table)
            await pulse(ctx, table.retire)

    run(bench)


def test_each_entry_has_the_tag_of_its_job():
    async def bench(ctx, table):
        for first in (0xFFFF, 500, 70):
            await push(ctx, table, *(job(first - n) for n in range(4)))
            for n in range(4):
                assert (await pull(ctx, table))["tag"] == n
            for n in reversed(range(4)):
                ctx.set(table.tag_index, n)
                assert ctx.get(table.tag) == first - n
            for _ in range(4):
                await pulse(ctx, table.retire)

    run(bench)


def test_each_job_is_rejected_on_its_own():
    async def bench(ctx, table):
        for wrong in ([1, 0, 0, 1], [0, 0, 1, 1]):
            await push(ctx, table, *(job(n, m=25 if bad else 24) for n, bad in enumerate(wrong)))
            assert [(await pull(ctx, table))["rejected"] for _ in wrong] == wrong
            for _ in wrong:
                await pulse(ctx, table.retire)

    run(bench)


def test_panels_become_ready_as_they_are_fed():
    async def bench(ctx, table):
        async def ready_panels():
            """Two cycles after a pull; a panel counts from the second cycle after its pulse."""
            await ctx.tick()
            return [ctx.get(table.ready_panels[x]) for x in range(2)]

        await push(ctx, table, job(1, FED), job(2, JobFlag.FEED_B))
        await pull(ctx, table)
        await pulse(ctx, table.panel_done, [0, 1])  # for job 2, which was pushed last
        assert await ready_panels() == [0, 0]
        await pull(ctx, table)
        complete = (1 << len(table.ready_panels[0])) - 1
        assert await ready_panels() == [complete, 1]
        await pulse(ctx, table.panel_done, [1, 1])
        assert await ready_panels() == [complete, 2]
        await push(ctx, table, job(3, JobFlag.FEED_A), job(4))
        await pull(ctx, table)
        assert await ready_panels() == [0, complete]
        await pull(ctx, table)
        assert await ready_panels() == [complete, complete]

    run(bench)


def test_a_full_table_keeps_its_panel_counts():
    async def bench(ctx, table):
        await push(ctx, table, job(1, FED))
        await pulse(ctx, table.panel_done, [1, 1])
        await pull(ctx, table)
        await push(ctx, table, job(2, FED))
        await ticks(ctx, 3)
        assert [ctx.get(table.ready_panels[x]) for x in range(2)] == [1, 1]

    run(bench, jobs=2)


def test_the_panel_count_of_a_fed_job_starts_at_0():
    async def bench(ctx, table):
        for tag in range(4):
            await push(ctx, table, job(tag, FED))
            await pull(ctx, table)
            await pulse(ctx, table.panel_done, [1, 1])
            await ctx.tick()
            assert [ctx.get(table.ready_panels[x]) for x in range(2)] == [1, 1]
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
            load = Load(operand, page, 1, 1, 1)
            assert await conflicts(ctx, table, load) == (page >= first)

    run(bench)


@pytest.mark.parametrize("operand, page, pages, conflict", [
    (0, 2, 2, 0), (0, 2, 3, 1), (0, 6, 1, 1), (0, 7, 1, 0), (0, 5, 1, 1), (0, 0, 9, 1),
    (1, 0, 2, 0), (1, 1, 2, 1), (1, 5, 3, 1), (1, 6, 1, 0), (1, 0, 0xFFFF, 1),
    # Parameters have the pages of B; all jobs use the table.
    (2, 0, 2, 0), (2, 1, 2, 1), (2, 5, 3, 1), (2, 6, 1, 0), (3, 0, 1, 1), (3, 7, 1, 1),
])
def test_a_load_conflicts_with_jobs_on_its_pages(operand, page, pages, conflict):
    async def bench(ctx, table):
        assert not await conflicts(ctx, table, Load(operand, page, pages, 1, 1))
        await push(ctx, table, job(**SPANS))
        assert await conflicts(ctx, table, Load(operand, page, pages, 1, 1)) == conflict
        assert await conflicts(ctx, table, Load(operand, page, 1, pages, 1)) == conflict
        await pull(ctx, table)
        await ticks(ctx, 3)
        assert ctx.get(table.conflict) == conflict
        await retire(ctx, table)
        assert not ctx.get(table.conflict)

    run(bench)


# A job on words 8..12 of C.
SPAN_C = {"c_page": 8, "c_pitch": 5, "c_pages": 5}


@pytest.mark.parametrize("flags", [JobFlag.PRELOAD, START])
@pytest.mark.parametrize("page, words, conflict", [
    (0, 8, 0), (0, 9, 1), (8, 1, 1), (12, 1, 1), (12, 9, 1), (13, 1, 0), (13, 9, 0), (0, 32, 1),
])
def test_a_load_of_c_conflicts_with_jobs_that_preload_it(flags, page, words, conflict):
    async def bench(ctx, table):
        load = Load(4, page, words, 1, words)
        await push(ctx, table, job(**SPAN_C), job(flags=JobFlag.BROADCAST, **SPAN_C))
        assert not await conflicts(ctx, table, load)
        await push(ctx, table, job(flags=flags, **SPAN_C))
        assert await conflicts(ctx, table, load) == conflict
        for left in reversed(range(3)):
            await pull(ctx, table)
            await retire(ctx, table)
            assert ctx.get(table.conflict) == (conflict and left > 0)
        # In the same entries: jobs that start from 0.
        await push(ctx, table, *[job(**SPAN_C)] * 4)
        assert not await conflicts(ctx, table, load)

    run(bench, **FLOAT)


def test_spans_of_c_reach_the_end_of_the_buffer():
    async def bench(ctx, table):
        await push(ctx, table, job(flags=JobFlag.PRELOAD, c_page=31, c_pitch=1, c_pages=1))
        for page in range(32):
            assert await conflicts(ctx, table, Load(4, page, 1, 1, 1)) == (page == 31)
        await push(ctx, table, job(flags=JobFlag.PRELOAD, c_page=0, c_pitch=32, c_pages=32))
        assert await conflicts(ctx, table, Load(4, 30, 1, 1, 1))
        # Other operands have their own pages.
        for operand in (0, 1):
            assert not await conflicts(ctx, table, Load(operand, 7, 1, 1, 1))

    run(bench, **FLOAT)


def test_a_load_does_not_conflict_with_the_job_that_it_feeds():
    async def bench(ctx, table):
        await push(ctx, table, job(1, FED, **SPANS))
        feeding = Load(0, 4, 1, 1, 1, LoadFlag.FEED)
        assert await conflicts(ctx, table, Load(0, 4, 1, 1, 1, LoadFlag.CONTINUE))
        assert not await conflicts(ctx, table, feeding)
        await push(ctx, table, job(2, FED, a_page=7))
        assert await conflicts(ctx, table, feeding)  # job 1 is no longer the last one
        await retire(ctx, table)
        assert not ctx.get(table.conflict)

    run(bench)


def test_a_load_of_the_table_conflicts_with_all_jobs():
    async def bench(ctx, table):
        await push(ctx, table, job(1), job(2, FED))
        for flags in (0, LoadFlag.FEED):
            assert await conflicts(ctx, table, Load(3, 0, 1, 1, 256, LoadFlag(flags)))
        await retire(ctx, table)
        assert ctx.get(table.conflict)
        await retire(ctx, table)
        assert not ctx.get(table.conflict)

    run(bench)


@pytest.mark.parametrize("supported", [PLAIN, PLAIN | JobFlag.REQUANTIZE, ALL])
@pytest.mark.parametrize("flag", [JobFlag.REQUANTIZE, JobFlag.TABLE])
def test_rejects_unsupported_flags(supported, flag):
    async def bench(ctx, table):
        await push(ctx, table, job(9, flag))
        got = await pull(ctx, table)
        assert got["rejected"] == (flag not in supported)

    run(bench, supported_flags=supported)


@pytest.mark.parametrize("fields", [
    {"m": 0}, {"n": 0}, {"k": 0}, {"m": 25}, {"n": 33}, {"k": 257}, {"m": 31}, {"m": 1 << 15},
    {"n": 0xFFFF}, {"k": (1 << 32) - 1}, {"k": 1 << 9}, {"flags": 64}, {"flags": 0x8000},
    {"flags": 64 | JobFlag.FEED_A}, {"flags": JobFlag.KEEP, "m": 4},
    {"flags": JobFlag.KEEP, "n": 5},
    {"flags": JobFlag.ACCUMULATE, "m": 4}, {"flags": JobFlag.ACCUMULATE, "n": 5},
], ids=str)
def test_rejects_invalid_jobs(fields):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        got = await pull(ctx, table)
        assert (got["rejected"], got["tag"]) == (1, 0)
    run(bench)


@pytest.mark.parametrize("fields, valid", [
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
def test_rules_of_a_core_with_several_slots(fields, valid):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        assert (await pull(ctx, table))["rejected"] == (not valid)

    run(bench, **FLOAT)


def test_buffers_may_be_larger_than_a_header_can_say():
    large = {
        Region.A: Operand(64, 1, 65536, 16), Region.B: Operand(64, 1, 65536, 16),
    }

    async def bench(ctx, table):
        await push(ctx, table, job(9, m=0xFFFF, n=0xFFFF, k=0x10000))
        got = await pull(ctx, table)
        assert not got["rejected"]
        assert (got["m"], got["n"], got["k"]) == (0xFFFF, 0xFFFF, 0x10000)

    run(bench, geometries=large)


@pytest.mark.parametrize("fields", [
    {"m": 24, "n": 32, "k": 256}, {"m": 1, "n": 1, "k": 1},
    {"flags": 63, "m": 3, "n": 4}, {"flags": 3}, {"flags": 48, "m": 4},
], ids=str)
def test_accepts_what_the_buffers_hold(fields):
    async def bench(ctx, table):
        await push(ctx, table, job(9, **fields))
        assert not (await pull(ctx, table))["rejected"]

    run(bench)
