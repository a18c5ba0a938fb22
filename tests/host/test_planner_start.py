"""Tests of plans with C, and with passes of several tiles, word by word."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_core import plan

from weft.commands import JobFlag, Load, Region
from weft.config import Config

SMALL = st.builds(
    Config,
    dtype=st.just("bf16"), rows=st.integers(1, 13), cols=st.integers(1, 13),
    a_words=st.sampled_from([32, 64, 128]), b_words=st.sampled_from([32, 64, 512]),
    c_words=st.sampled_from([32, 64, 256]),
)
SIZE = st.integers(1, 90)
START, ROW = JobFlag.PRELOAD, JobFlag.PRELOAD | JobFlag.BROADCAST
FINISH = JobFlag.ROUND | JobFlag.CLAMP


@settings(derandomize=True, deadline=None, max_examples=75)
@given(
    config=SMALL, m=SIZE, n=SIZE, k=st.one_of(st.integers(1, 60), st.integers(1, 400)),
    start=st.sampled_from([JobFlag(0), START, ROW]),
    finish=st.sampled_from([JobFlag(0), JobFlag.ROUND, JobFlag.CLAMP, FINISH]),
)
def test_covers_any_product(config, m, n, k, start, finish):
    plan(config, m, n, k, start | finish)


LARGE = {"dtype": "bf16", "rows": 4, "cols": 4, "a_words": 2048, "b_words": 2048}


@pytest.mark.parametrize("start", [JobFlag(0), START, ROW])
@pytest.mark.parametrize("places", [{"a_page": 0}, {"b_page": 0}, {"a_page": 0, "b_page": 0}])
@pytest.mark.parametrize("c_words", [32, 64])
def test_uses_resident_operands_in_place(start, places, c_words):
    config = Config(**LARGE, c_words=c_words)
    plan(config, 11, 45, 70, start | FINISH, **places)


def test_one_job_starts_from_all_of_c_if_it_fits():
    steps, core = plan(Config(**LARGE, c_words=128), 30, 16, 8, START)
    (step,) = steps
    assert (step.job.c_page, step.job.c_pitch, step.job.c_pages) == (0, 30, 120)
    assert [feed.load for feed in step.before] == [Load(Region.C, 0, 30, 4, 30)]
    assert core.loaded[Region.C] == 120


def test_blocks_of_c_take_half_of_its_buffer():
    # 30 rows of 5 panels are 150 words of 128: blocks of at most 64 words, in turn.
    steps, core = plan(Config(**LARGE, c_words=128), 30, 20, 8, START)
    assert core.loaded[Region.C] == 150
    for one, two in itertools.pairwise(step.job for step in steps):
        assert one.c_pages <= 64
        assert one.c_page + one.c_pages <= two.c_page or two.c_page + two.c_pages <= one.c_page


def test_one_tile_may_fill_the_buffer_of_c():
    config = Config(dtype="bf16", rows=32, cols=2, c_words=32)
    steps, _ = plan(config, 70, 5, 8, START)
    assert sorted(step.job.c_pages for step in steps) == [6] * 3 + [32] * 6


def test_a_row_of_c_is_loaded_once():
    # Blocks of A and of B, each column in several jobs.
    config = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, c_words=64)
    steps, core = plan(config, 40, 60, 16, ROW)
    assert len(steps) > 8
    assert core.loaded[Region.C] == 30


def test_loads_a_long_row_of_c_in_parts():
    config = Config(dtype="bf16", rows=2, cols=1, b_words=2048, c_words=32)
    for places in ({}, {"b_page": 0}):
        steps, core = plan(config, 2, 50, 16, ROW, **places)
        assert all(step.job.c_pages <= 16 for step in steps)
        assert core.loaded[Region.C] == 50


def test_chains_go_over_eight_column_panels():
    # Two pages of a panel of A at once, and a page of each of four panels of B.
    config = Config(dtype="bf16", rows=2, cols=3, a_words=64, b_words=256)
    steps, core = plan(config, 3, 30, 100, ROW | FINISH)
    assert [(s.job.m, s.job.n, s.job.k) for s in steps[:7]] == [(2, 15, 16)] * 6 + [(2, 15, 4)]
    assert len(steps) == 2 * 2 * 7
    assert core.loaded[Region.B] == 2 * 10 * 100
    wide = Config(dtype="bf16", rows=2, cols=3, a_words=64, b_words=512)
    steps, _ = plan(wide, 2, 24, 100)
    assert [(s.job.m, s.job.n, s.job.k) for s in steps] == [(2, 24, 32)] * 3 + [(2, 24, 4)]


def test_chains_with_c_have_as_many_panels_as_its_buffer():
    config = Config(dtype="bf16", rows=8, cols=2, a_words=64, b_words=512, c_words=32)
    steps, _ = plan(config, 8, 16, 100, START)
    assert {step.job.n for step in steps} == {4}


def test_splits_k_instead_of_leaving_tiles_of_a_pass_empty():
    # Two panels fit: blocks of one tile would leave seven places of eight empty.
    config = Config(dtype="bf16", rows=4, cols=4, a_words=256, b_words=256)
    steps, _ = plan(config, 16, 32, 128)
    assert max(step.job.n for step in steps) == 32
    # Where passes are whole all the same, K stays whole.
    steps, _ = plan(config, 16, 32, 16)
    assert len(steps) == 1
    # A resident operand is there at once, however many panels it has.
    steps, _ = plan(Config(**LARGE), 4, 40, 128, b_page=0)
    assert len(steps) == 1


@pytest.mark.parametrize("bytes_in, wide", [(16, 7), (2, 5)])
def test_splits_k_only_if_the_stream_is_fast_enough(bytes_in, wide):
    # Blocks of 2 x 5 tiles are two passes each: 8 in all. Rows of 7 tiles are 6, but load B twice.
    config = Config(dtype="bf16", rows=4, cols=4, a_words=512, b_words=512, bytes_in=bytes_in)
    steps, _ = plan(config, 8, 80, 33)
    assert max(step.job.n for step in steps) == wide * config.cols


def test_uses_resident_operands_in_passes_that_fit_c():
    # The C of 12 tiles, half of its buffer, would be two passes; eight tiles are one.
    config = Config(dtype="bf16", rows=5, cols=1, c_words=128)
    steps, core = plan(config, 10, 24, 20, START, a_page=0, b_page=0)
    assert [(step.job.m, step.job.n, step.job.k) for step in steps] == [(5, 8, 20)] * 6
    assert core.loaded[Region.A] == core.loaded[Region.B] == 0
