"""Tests of plans, word by word: the data in the pages of each job, and the cost of the loads."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_core import plan

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.host.planner import Planner

SMALL = st.builds(
    Config,
    rows=st.integers(1, 13), cols=st.integers(1, 13), depth=st.integers(1, 5),
    a_words=st.sampled_from([32, 64, 128]), b_words=st.sampled_from([32, 64, 128]),
)
SIZE = st.integers(1, 90)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(config=SMALL, m=SIZE, n=SIZE, k=st.integers(1, 400))
def test_covers_any_product(config, m, n, k):
    plan(config, m, n, k)


LARGE = {"depth": 64, "a_words": 65536, "b_words": 65536}


@pytest.mark.parametrize("m, n, page, jobs", [
    (65520, 1, None, 1), (65521, 1, None, 2), (1, 65520, None, 1), (1, 65521, None, 2),
    (65536, 1, 0, 2), (150_000, 1, 0, 3), (1, 150_000, None, 3),
])
def test_a_job_has_no_more_lines_than_a_header_holds(m, n, page, jobs):
    # Both operands fit, one panel a page; a resident one is taken block by block.
    config = Config(rows=63, cols=63, **LARGE)
    edge = 63 * (65535 // 63)  # whole panels
    held = {} if page is None else {"a_page": page}
    steps = list(Planner(config).plan(m, n, 5, **held))
    spans = [(s.rows.stop - s.rows.start, s.cols.stop - s.cols.start) for s in steps]
    assert len(steps) == jobs
    assert all((s.job.m, s.job.n) == span for s, span in zip(steps, spans, strict=True))
    assert max(max(span) for span in spans) <= edge
    assert (sum(x for x, _ in spans) if m > 1 else m) == m
    assert (sum(y for _, y in spans) if n > 1 else n) == n
    for step in steps:
        step.job.pack()
        if page is not None:
            assert step.job.a_page == step.rows.start // 63


def test_is_one_job_if_everything_fits():
    config = Config()
    (step,) = Planner(config).plan(64, 64, 64)
    assert (step.job.a_pages, step.job.b_pages) == (32, 32)
    # the first panel of A, all of B, the rest of A
    order = [(f.load.operand, f.panel, f.load.panels) for f in step.feeds]
    assert order == [(0, 0, 1), (1, 0, 8), (0, 1, 7)]
    assert step.commands == [step.job, *(f.load for f in step.feeds)]


def test_loads_both_operands_once_if_one_fits():
    config = Config(rows=2, cols=2, a_words=128, b_words=128)
    for m, n in ((8, 200), (200, 8)):
        _, core = plan(config, m, n, 32)
        assert (core.loaded[Region.A], core.loaded[Region.B]) == (m * 16, n * 16)


def test_chooses_the_outer_operand_with_fewer_bytes_to_load():
    config = Config(rows=2, cols=2, a_words=128, b_words=128)
    # 50 panels of A in 25 blocks and 5 of B in 3: A comes 3 times rather than B 25 times
    for m, n, loaded in ((100, 10, (3 * 50 * 32, 5 * 32)), (10, 100, (5 * 32, 3 * 50 * 32))):
        _, core = plan(config, m, n, 32)
        assert (core.loaded[Region.A], core.loaded[Region.B]) == loaded


@pytest.mark.parametrize(("m", "n", "k"), [(100, 10, 32), (3, 3, 1000)])
def test_loads_the_next_region_while_one_is_in_use(m, n, k):
    config = Config(rows=2, cols=2, a_words=128, b_words=128)
    jobs = [step.job for step in Planner(config).plan(m, n, k)]
    for one, two in itertools.pairwise(jobs):
        if JobFlag.FEED_A in two.flags:
            assert not set(range(one.a_page, one.a_page + one.a_pages)) & set(
                range(two.a_page, two.a_page + two.a_pages)
            )


def test_products_back_to_back_load_the_next_block_while_one_is_in_use():
    # 11 panels of B, two pages each, are blocks of 4, 4 and 3 in a ring of 16 pages.
    planner = Planner(Config(rows=2, cols=2, a_words=256, b_words=256))
    steps = [step for _ in range(3) for step in planner.plan(64, 22, 32)]
    fed = [set(range(s.job.b_page, s.job.b_page + s.job.b_pages)) for s in steps
           if JobFlag.FEED_B in s.job.flags]
    assert [len(pages) for pages in fed] == [8, 8, 6] * 3
    assert not any(one & two for one, two in itertools.pairwise(fed))


def test_chains_jobs_over_k():
    config = Config(rows=2, cols=2, depth=3, a_words=64, b_words=256)
    jobs = [step.job for step in Planner(config).plan(2, 2, 200)]  # 67 words of 64
    keep, add = JobFlag.KEEP, JobFlag.ACCUMULATE
    fed = JobFlag.FEED_A | JobFlag.FEED_B
    assert [(job.k, job.flags) for job in jobs] == [
        (96, fed | keep), (96, fed | add | keep), (8, fed | add),
    ]
    assert [job.a_page for job in jobs] == [0, 2, 0]


def test_uses_resident_operands_in_place():
    config = Config(rows=2, cols=3, a_words=64, b_words=64)
    steps = list(Planner(config, [(0, 4), (0, 1)]).plan(10, 8, 16, b_page=1))
    assert [(s.job.b_page, s.job.b_pitch, s.job.b_pages) for s in steps] == [(1, 1, 3)] * 3
    assert {feed.load.operand for step in steps for feed in step.feeds} == {0}
    assert [s.rows for s in steps] == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_splits_k_of_a_resident_operand():
    config = Config(rows=2, cols=2, a_words=64, b_words=256)
    steps = list(Planner(config).plan(2, 4, 100, b_page=2))  # 7 pages a panel, 2 a chunk
    assert [(s.job.b_page, s.job.b_pages) for s in steps] == [
        (2, 2), (4, 2), (6, 2), (8, 1), (9, 2), (11, 2), (13, 2), (15, 1),
    ]


def test_only_uses_free_pages():
    config = Config(rows=2, cols=2, a_words=256, b_words=256)
    for step in Planner(config, [(3, 5), (7, 4)]).plan(30, 30, 30):
        job = step.job
        assert 3 <= job.a_page <= job.a_page + job.a_pages <= 8
        assert 7 <= job.b_page <= job.b_page + job.b_pages <= 11


def test_gives_jobs_consecutive_tags():
    planner = Planner(Config(rows=2, cols=2, a_words=32, b_words=32), tag=iter([65535, 0, 1]))
    jobs = [step.job for step in planner.plan(2, 2, 48)]
    assert [job.tag for job in jobs] == [65535, 0, 1]


FINISHED = JobFlag.REQUANTIZE | JobFlag.TABLE


@settings(derandomize=True, deadline=None, max_examples=30)
@given(config=SMALL, m=SIZE, n=SIZE, k=st.integers(1, 400))
def test_loads_parameters_before_the_jobs_that_need_them(config, m, n, k):
    _, core = plan(config, m, n, k, FINISHED)
    assert core.loaded[Region.PARAMETERS] >= parameter_words(config, n)


def parameter_words(config, n):
    """Words of the parameters of n columns."""
    return -(-n // config.cols) * -(-config.cols // config.lanes)


@pytest.mark.parametrize(("m", "k"), [(3, 16), (40, 16), (9, 200)])
def test_loads_parameters_of_a_resident_operand_once(m, k):
    config = Config(rows=2, cols=2, a_words=64, b_words=1024)
    for page in (0, 64 - 3 * -(-k // 16)):
        _, core = plan(config, m, 6, k, FINISHED, b_page=page)
        assert core.loaded[Region.PARAMETERS] == parameter_words(config, 6)


def test_loads_no_parameters_for_raw_results():
    steps = Planner(Config(rows=2, cols=2, a_words=64, b_words=64)).plan(20, 20, 40)
    assert not any(step.before for step in steps)


def test_rejects_a_buffer_without_free_pages():
    with pytest.raises(ValueError, match="^pages free for a must be 1 or more, not 0$"):
        Planner(Config(), [(0, 0), (0, 4)]).plan(1, 1, 1)
