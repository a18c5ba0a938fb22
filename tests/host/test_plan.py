"""Tests of plans: blocks, loads that never wait, saved states."""

import pytest
from rejects import rejects

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.host.plan import Blocks
from weft.host.planner import Planner


@pytest.mark.parametrize("total, size, ranges", [
    (6, 3, [range(3), range(3, 6)]),
    (7, 3, [range(3), range(3, 6), range(6, 7)]),
    (2, 3, [range(2)]),
])
def test_blocks(total, size, ranges):
    blocks = Blocks(total, size)
    assert list(blocks) == ranges
    assert len(blocks) == len(ranges)
    held = dict.fromkeys(map(len, ranges), 0)
    for one in ranges:
        held[len(one)] += 1
    assert {length: count for length, count in blocks.sizes if length and count} == held


def test_blocks_of_any_total_take_no_memory():
    blocks = Blocks(1 << 40, 3)
    assert blocks[len(blocks) - 1] == range((1 << 40) - 1, 1 << 40)


def test_rejects_a_block_out_of_range():
    with rejects(IndexError, "block must be in 0..2, not 3"):
        Blocks(7, 3)[3]


SHAPES = [(40, 5, 40), (3, 900, 3), (9, 300, 40), (40, 300, 9), (1, 64, 90)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("words", [(32, 4096), (4096, 32)])
@pytest.mark.parametrize("dtype", ["int8", "bf16"])
def test_nonblocking_loads_never_wait_for_a_job(dtype, words, shape):
    m, k, n = shape
    sizes = {"a_words": words[0], "b_words": words[1]}
    config = Config(dtype=dtype, rows=2, cols=2, jobs=2, **sizes)
    planner, table, checked = Planner(config), [], 0
    for _ in range(3):
        plan = planner.plan(m, n, k)
        for step in plan:
            for feed in step.feeds:
                load = feed.load
                if load.operand not in plan.nonblocking:
                    continue
                checked += 1
                for job in table[-config.jobs:]:
                    first, pages = (
                        (job.a_page, job.a_pages) if load.operand == Region.A
                        else (job.b_page, job.b_pages)
                    )
                    assert load.page >= first + pages or first >= load.page + load.pages
            table.append(step.job)
    assert checked


def test_finds_loads_that_may_wait():
    config = Config(rows=2, cols=2, jobs=2, a_words=32, b_words=4096)
    assert Planner(config).plan(3, 3, 900).nonblocking == {Region.B}
    config = Config(rows=2, cols=2, jobs=2, a_words=32, b_words=32)
    assert Planner(config).plan(3, 3, 900).nonblocking == set()


def test_forgets_parameters_if_b_is_nonblocking():
    # Chains of 900 / 16 jobs, the last of which answers: each loads parameters beside its B.
    config = Config(rows=2, cols=2, jobs=2, a_words=32, b_words=4096)
    plan = Planner(config).plan(200, 2, 900, flags=JobFlag.REQUANTIZE)
    answers = [step for step in plan if step.has_results]
    assert len(answers) == 100
    assert all(step.before for step in answers)


@pytest.mark.parametrize("flags", [JobFlag(0), JobFlag.REQUANTIZE])
@pytest.mark.parametrize("b_words", [32, 64])
def test_continues_from_a_saved_state(b_words, flags):
    config = Config(rows=2, cols=2, jobs=2, a_words=32, b_words=b_words)

    def whole():
        return Planner(config).plan(8, 6, 60, flags=flags)

    said = [(step.job.a_page, step.job.b_page, step.commands[0].opcode) for step in whole()]
    plan, taken = whole(), []
    rows, columns, chunks = map(len, plan.axes)
    left = {}
    for a in range(rows):
        for b in range(columns):
            index = a, b
            inner = (plan.key(1), b in (0, columns - 1))
            if inner in left and plan.restarts(index):
                plan.restore(left[inner], index)
                taken += [None] * chunks
                continue
            for c in range(chunks):
                step = plan.step(a, b, c)
                job = step.job
                taken.append((job.a_page, job.b_page, step.commands[0].opcode))
            left[inner] = plan.save(index)
    assert None in taken
    assert [known or right for known, right in zip(taken, said, strict=True)] == said


def test_keeps_only_the_parameters_of_its_own_steps():
    config = Config(rows=2, cols=2, jobs=2, a_words=32, b_words=64)
    plan = Planner(config).plan(8, 10, 40, flags=JobFlag.REQUANTIZE)
    rows, columns, chunks = map(len, plan.axes)
    assert (rows, columns) == (4, 5)
    for b in range(columns):
        for c in range(chunks):
            plan.step(0, b, c)
    for c in range(chunks):
        plan.step(1, 0, c)
    # Panels of the loop before are still remembered, but the first one is all that is left now.
    assert set(plan.save((0, 4))[1].values()) == {0}
    assert set(plan.save((1, 0))[1].values()) == {0}
