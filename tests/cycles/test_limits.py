"""`limits` against cycles computed by hand, and against the order that all limits have."""

import pytest
from covering import CONFIGS as COVERING

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.cycles.model import CycleLimits, limits
from weft.host.planner import Planner

# One result a cycle; 4 rows and 4 columns.
CONFIG = Config(rows=4, cols=4, lanes=1, bytes_out=4, bytes_in=4, a_words=512, b_words=512)


def plan(config, m, k, n, flags=0):
    steps = Planner(config).plan(m, n, k, flags=JobFlag(flags))
    return [command for step in steps for command in step.commands]


def test_compute_takes_a_step_for_each_word_of_k():
    found = limits(CONFIG, plan(CONFIG, 4, 300, 4))
    assert found.compute - found.latency == 300 - 1
    assert found.bound == "load"  # of 600 words of 4 bytes
    assert found.cycles == predict(CONFIG, plan(CONFIG, 4, 300, 4)).cycles


def test_the_next_tile_follows_after_two_cycles_if_all_is_ideal():
    one, four = (limits(CONFIG, plan(CONFIG, 4, 1, n)) for n in (4, 16))
    assert four.latency - one.latency == 3 * 2


def test_drain_sends_one_chunk_a_cycle():
    one, five = (limits(CONFIG, plan(CONFIG, m, 4, 4)) for m in (4, 20))
    assert five.drain - one.drain == 4 * 16
    assert five.bound == "drain"


def test_load_takes_all_words_of_the_stream():
    commands = [
        Job(4, 4, 64, 0, 4, 4, 0, 4, 4, flags=JobFlag.FEED_A | JobFlag.FEED_B),
        Load(Region.A, 0, 4, 1, 64, flags=LoadFlag.FEED),
        Load(Region.B, 0, 4, 1, 64, flags=LoadFlag.FEED),
    ]
    found = limits(CONFIG, commands)
    # A header has 8 words, and the check of a load takes 3 cycles. Each value of k is a word of A
    # and of B. So the job is in the table in cycle 8, and the last word of B is taken in cycle
    # 8 + 2 + 2 * (8 + 3 + 64) = 160. The tile passes the gate 4 cycles after the later of them.
    assert found.load - found.latency == (160 + 4) - (8 + 4)


def test_a_long_pipeline_is_latency():
    assert CycleLimits(cycles=100, load=60, compute=60, drain=60, latency=51).bound == "latency"
    assert CycleLimits(cycles=100, load=60, compute=61, drain=60, latency=50).bound == "compute"


@pytest.mark.parametrize("config", COVERING, ids=lambda config: config.name)
def test_no_limit_exceeds_the_cycles(config):
    flags = epilogue_flags(config)[:1]
    for shape in ((5, 19, 11), (33, 3, 2)):
        found = limits(config, plan(config, *shape, *flags))
        parts = found.load, found.compute, found.drain
        assert found.latency <= min(parts) and max(parts) <= found.cycles
