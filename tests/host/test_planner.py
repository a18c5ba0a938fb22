"""Tests of plans, word by word: the data in the pages of each job, and the cost of the loads."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.commands import JobFlag, LoadFlag
from weft.config import Config
from weft.geometry import operands
from weft.host.planner import Planner

SMALL = st.builds(
    Config,
    rows=st.integers(1, 13), cols=st.integers(1, 13), depth=st.integers(1, 5),
    a_words=st.sampled_from([32, 64, 128]), b_words=st.sampled_from([32, 64, 128]),
)
SIZE = st.integers(1, 90)


def follow(config, steps, m, n, k):
    """Run ``steps`` on model buffers and check the data of each job; the number of words loaded."""
    geometry = operands(config)
    memory = [{}, {}]
    loaded = [0, 0]
    done = {}
    words = -(-k // config.depth)
    for step in steps:
        job, feeds = step.job, step.feeds
        for feed in feeds:
            load = feed.load
            carries_on = LoadFlag.CONTINUE if feed.word else LoadFlag(0)
            assert load.flags == LoadFlag.FEED | carries_on
            assert load.page + load.pages <= geometry[load.operand].pages
            assert load.words <= 16 * load.pitch
            for panel, word in itertools.product(range(load.panels), range(load.words)):
                where = 16 * (load.page + panel * load.pitch) + word
                memory[load.operand][where] = (feed.panel + panel, feed.word + word)
            loaded[load.operand] += load.panels * load.words
        fed = {feed.load.operand for feed in feeds}
        assert (JobFlag.FEED_A in job.flags, JobFlag.FEED_B in job.flags) == (0 in fed, 1 in fed)
        assert job.m == step.rows.stop - step.rows.start
        assert job.n == step.cols.stop - step.cols.start
        first = done.get((step.rows.start, step.cols.start), 0)
        assert (JobFlag.ACCUMULATE in job.flags) == (first > 0)
        sides = (
            (step.rows, config.rows, job.a_page, job.a_pitch, job.a_pages),
            (step.cols, config.cols, job.b_page, job.b_pitch, job.b_pages),
        )
        for side, (span, edge, page, pitch, pages) in enumerate(sides):
            assert span.start % edge == 0
            panels = range(-(-(span.stop - span.start) // edge))
            for panel, word in itertools.product(panels, range(-(-job.k // config.depth))):
                at = page + panel * pitch + word // 16
                assert page <= at < page + pages <= geometry[side].pages
                want = (span.start // edge + panel, first // config.depth + word)
                assert memory[side].get(16 * at + word % 16) == want
        assert step.has_results == (first + job.k == k)
        if not step.has_results or first:
            assert job.m <= config.rows
            assert job.n <= {"int8": 1, "bf16": 8}[config.dtype] * config.cols
        for i in range(step.rows.start, step.rows.stop, config.rows):
            for j in range(step.cols.start, step.cols.stop, config.cols):
                assert done.get((i, j), 0) == first
                done[i, j] = first + job.k
    tiles = itertools.product(range(0, m, config.rows), range(0, n, config.cols))
    assert done == dict.fromkeys(tiles, k)
    assert words <= min(loaded)
    return loaded


@settings(derandomize=True, deadline=None, max_examples=100)
@given(config=SMALL, m=SIZE, n=SIZE, k=st.integers(1, 400))
def test_covers_any_product(config, m, n, k):
    follow(config, Planner(config).plan(m, n, k), m, n, k)


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
        assert follow(config, Planner(config).plan(m, n, 32), m, n, 32) == [m * 16, n * 16]


def test_chooses_the_outer_operand_with_fewer_bytes_to_load():
    config = Config(rows=2, cols=2, a_words=128, b_words=128)
    # 50 panels of A in 25 blocks and 5 of B in 3: A comes 3 times rather than B 25 times
    assert follow(config, Planner(config).plan(100, 10, 32), 100, 10, 32) == [3 * 50 * 32, 5 * 32]
    assert follow(config, Planner(config).plan(10, 100, 32), 10, 100, 32) == [5 * 32, 3 * 50 * 32]


@pytest.mark.parametrize(("m", "n", "k"), [(100, 10, 32), (3, 3, 1000)])
def test_loads_the_next_region_while_one_is_in_use(m, n, k):
    config = Config(rows=2, cols=2, a_words=128, b_words=128)
    jobs = [step.job for step in Planner(config).plan(m, n, k)]
    for one, two in itertools.pairwise(jobs):
        if JobFlag.FEED_A in two.flags:
            assert not set(range(one.a_page, one.a_page + one.a_pages)) & set(
                range(two.a_page, two.a_page + two.a_pages)
            )


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


def parameters_of(config, steps, n, memory=None):
    """Check that the parameters of each job are loaded; the panels whose parameters were loaded."""
    memory = {} if memory is None else memory
    loaded = 0
    for step in steps:
        job, load = step.job, step.before and step.before[0].load
        asked = [feed.load for feed in step.before]
        assert step.commands == [*asked, job, *(feed.load for feed in step.feeds)]
        if load:
            assert (load.operand, load.flags, load.words) == (2, 0, -(-config.cols // config.lanes))
            assert load.page + load.pages <= operands(config)[1].pages
            for panel in range(load.panels):
                memory[load.page + panel * load.pitch] = step.before[0].panel + panel
            loaded += load.panels
        flags = job.flags & (JobFlag.REQUANTIZE | JobFlag.TABLE)
        assert flags == (JobFlag.REQUANTIZE | JobFlag.TABLE if step.has_results else 0)
        if step.has_results:
            for panel in range(-(-job.n // config.cols)):
                at = memory[job.b_page + panel * job.b_pitch]
                assert at == step.cols.start // config.cols + panel
    return loaded


FINISHED = JobFlag.REQUANTIZE | JobFlag.TABLE


@settings(derandomize=True, deadline=None, max_examples=100)
@given(config=SMALL, m=SIZE, n=SIZE, k=st.integers(1, 400))
def test_loads_parameters_before_the_jobs_that_need_them(config, m, n, k):
    steps = list(Planner(config).plan(m, n, k, flags=FINISHED))
    follow(config, steps, m, n, k)
    loaded = parameters_of(config, steps, n)
    assert loaded >= -(-n // config.cols)


@pytest.mark.parametrize(("m", "k"), [(3, 16), (40, 16), (9, 200)])
def test_loads_parameters_of_a_resident_operand_once(m, k):
    config = Config(rows=2, cols=2, a_words=64, b_words=1024)
    for page in (0, 64 - 3 * -(-k // 16)):
        steps = Planner(config).plan(m, 6, k, b_page=page, flags=FINISHED)
        assert parameters_of(config, steps, 6) == 3


def test_loads_no_parameters_for_raw_results():
    steps = Planner(Config(rows=2, cols=2, a_words=64, b_words=64)).plan(20, 20, 40)
    assert not any(step.before for step in steps)


def test_rejects_a_buffer_without_free_pages():
    with pytest.raises(ValueError, match="^pages free for a must be 1 or more, not 0$"):
        Planner(Config(), [(0, 0), (0, 4)]).plan(1, 1, 1)
