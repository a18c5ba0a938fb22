"""The jobs that the models of a core reject, at both sides of each limit."""

import pytest

from weft.commands import Job, JobFlag
from weft.config import Config
from weft.geometry import JobRules

# Buffers of 4 pages; A: 4 panels of 2 rows, B: 4 panels of 3 columns, 64 words of 2 values of k.
SMALL = Config(rows=2, cols=3, depth=2, a_words=64, b_words=64)
# A pass has 8 tiles of 3 columns.
FLOATS = Config(dtype="bf16", rows=2, cols=3, a_words=256, b_words=256, c_words=32)
SUMS_ONLY = Config(requantize="none", a_words=64, b_words=64, rows=2, cols=3)


def rejects(config, m, n, k, flags=JobFlag(0)):
    return JobRules(config).rejects(Job(m, n, k, 0, 1, 1, 0, 1, 1, flags=flags))


@pytest.mark.parametrize("sizes, rejected", [
    ((1, 1, 1), False), ((8, 12, 128), False), ((9, 1, 1), True), ((1, 13, 1), True),
    ((1, 1, 129), True), ((0, 1, 1), True), ((1, 0, 1), True), ((1, 1, 0), True),
])
def test_sizes(sizes, rejected):
    assert rejects(SMALL, *sizes) is rejected


@pytest.mark.parametrize("config, flags, rejected", [
    (SMALL, JobFlag.REQUANTIZE | JobFlag.TABLE, False), (SUMS_ONLY, JobFlag.REQUANTIZE, True),
    (SMALL, JobFlag.PRELOAD, True), (SMALL, JobFlag.ROUND, True), (SMALL, JobFlag(1 << 12), True),
    (FLOATS, JobFlag.PRELOAD | JobFlag.ROUND, False), (FLOATS, JobFlag.REQUANTIZE, True),
    (SMALL, JobFlag.FEED_A | JobFlag.FEED_B, False),
])
def test_flags(config, flags, rejected):
    assert rejects(config, 1, 1, 1, flags) is rejected


@pytest.mark.parametrize("flag", [JobFlag.ACCUMULATE, JobFlag.KEEP])
@pytest.mark.parametrize("config, m, n, rejected", [
    (SMALL, 2, 3, False), (SMALL, 3, 3, True), (SMALL, 2, 4, True),
    (FLOATS, 2, 24, False), (FLOATS, 2, 25, True), (FLOATS, 3, 24, True),
])
def test_sums_are_handed_on_within_a_pass(flag, config, m, n, rejected):
    assert rejects(config, m, n, 1, flag) is rejected
    assert rejects(config, m, n, 1) is False


def test_sums_start_once():
    assert rejects(FLOATS, 1, 1, 1, JobFlag.ACCUMULATE | JobFlag.PRELOAD) is True
    assert rejects(FLOATS, 1, 1, 1, JobFlag.KEEP | JobFlag.PRELOAD) is False
