"""`streams` against the bytes that were counted on simulated serial ports, and by hand."""

import pytest

from weft.commands import Job, JobFlag, Load, LoadFlag, Region
from weft.config import Config
from weft.models.report.product_core import ceilings
from weft.models.report.streams import streams

ICEBREAKER = Config(
    rows=2, cols=2, depth=4, lanes=1, scale_cycles=8, bytes_in=4, bytes_out=1, a_words=256,
    b_words=256,
)


def test_bytes_on_the_wire_are_those_that_a_board_counts():
    """The row 1 x 64 x 32 with int32 results of the record `link`, whose B is resident.

    236 bytes sent and 244 received, with two READs (of 12 + 4 bytes) and their answers (of
    12 + 4 * 8 bytes) for the counters.
    """
    commands = [
        Job(1, 32, 64, 0, 1, 1, 0, 1, 16, flags=JobFlag.FEED_A),
        Load(Region.A, 0, 1, 1, 16, flags=LoadFlag.FEED),
    ]
    found = streams(ICEBREAKER, commands)
    assert (found.sent, found.received) == (236 - 2 * 16, 244 - 2 * 44)
    assert (found.commands, found.results) == (2 * 32 + 16 * 8, 32 * 4)
    assert (found.a, found.b, found.parameters) == (16 * 8, 0, 0)
    assert found.drain == 32 * 4  # a byte of a sum a cycle


def test_parameters_and_requantized_results():
    commands = [
        Load(Region.PARAMETERS, 0, 1, 2, 2),
        Job(3, 4, 4, 0, 1, 2, 0, 1, 2, flags=JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.REQUANTIZE),
        Load(Region.A, 0, 1, 2, 1, flags=LoadFlag.FEED),
        Load(Region.B, 0, 1, 2, 1, flags=LoadFlag.FEED),
    ]
    found = streams(ICEBREAKER, commands)
    assert (found.a, found.b, found.parameters) == (2 * 8, 2 * 8, 4 * 16)
    assert found.commands == 4 * 32 + 2 * 8 + 2 * 8 + 4 * 16
    assert found.results == 12
    assert found.drain == 12 * 8  # scale_cycles


def test_a_job_that_keeps_its_sums_sends_nothing():
    job = Job(2, 2, 4, 0, 1, 1, 0, 1, 1, flags=JobFlag.KEEP)
    found = streams(ICEBREAKER, [job])
    assert (found.results, found.drain, found.received) == (0, 0, 12)


@pytest.mark.parametrize("config, drain", [
    (ICEBREAKER, 1 / 8),
    (Config(rows=4, cols=6, lanes=4, bytes_out=16), 6 / 2),  # the second chunk has 2 of 4 results
    (Config(requantize="none", lanes=4, bytes_out=4), 1),  # an int32 a cycle
    (Config(dtype="bf16", lanes=4, bytes_out=4), 2),  # two bfloat16 a cycle
])
def test_ceilings(config, drain):
    found = ceilings(config)
    assert found.drain == drain
    assert (found.peak, found.load) == (config.peak, config.bytes_in)
    assert found.a_bytes == config.a_words * config.rows * config.depth * config.data_type.a.bytes
