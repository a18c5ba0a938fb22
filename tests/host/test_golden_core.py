"""Tests of the golden core's buffers and result stream, against loops over words and tiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16
from products import integers

from weft.commands import Job, JobFlag, Load, Region
from weft.config import Config
from weft.geometry import memories
from weft.host.golden_core import FloatCore, IntegerCore
from weft.host.packing import ENTRY, pack, pack_entries

POWERS = st.sampled_from([1, 2, 4, 8, 16])
EDGES, SIZES = st.integers(1, 9), st.integers(1, 20)


def tile_by_tile(results, config):
    """The result stream as a plain loop: tile by tile, row by row, chunk by chunk."""
    out, size = b"", results.itemsize
    for top in range(0, results.shape[0], config.rows):
        for left in range(0, results.shape[1], config.cols):
            for row in results[top : top + config.rows, left : left + config.cols]:
                for at in range(0, len(row), config.lanes):
                    chunk = row[at : at + config.lanes].tobytes()
                    out += chunk.ljust(config.lanes * size, b"\0")
    return out + bytes(-len(out) % config.bytes_out)


def put(core, region, lines, page, gap=0):
    """Load ``lines`` [R, K], ``gap`` pages apart; the addresses for a job."""
    operand = memories(core.config)[region]
    panels, words = operand.panels(len(lines)), operand.panel_words(lines.shape[1])
    pitch = -(-words // operand.page) + gap
    core.load(Load(region, page, pitch, panels, words), pack(lines, operand))
    return page, pitch, (panels - 1) * pitch + pitch - gap


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    rows=EDGES, cols=EDGES, depth=st.integers(1, 3), lanes=POWERS, bytes_out=POWERS, m=SIZES,
    n=SIZES, k=SIZES, gap=st.integers(0, 2), scaled=st.booleans(),
)
def test_results_are_in_tile_order(rows, cols, depth, lanes, bytes_out, m, n, k, gap, scaled):
    config = Config(
        rows=rows, cols=cols, depth=depth, lanes=lanes, bytes_out=max(lanes, bytes_out),
        a_words=2048, b_words=2048, requantize="single",
    )
    rng = np.random.default_rng(m * n)
    a, b = integers(rng, np.int8, m, k), integers(rng, np.int8, n, k)
    core = IntegerCore(config)
    places = put(core, Region.A, a, 3, gap)
    b_page, b_pitch, b_pages = put(core, Region.B, b, 1, gap)
    want, flags = a.astype(np.int32) @ b.T, JobFlag(0)
    if scaled:
        # Sums over 2**shift, ties up; each column has a shift of its own.
        shift = np.arange(n) % 7 + 1
        entries = np.zeros(n, ENTRY)
        entries["multiplier"], entries["shift"] = 1 << 30, 1 - shift
        entries["low"], entries["high"] = -128, 127
        operand = memories(config)[Region.PARAMETERS]
        load = Load(Region.PARAMETERS, b_page, b_pitch, -(-n // cols), -(-cols // lanes))
        core.load(load, pack_entries(entries, operand, cols))
        want = (want + (1 << shift - 1) >> shift).clip(-128, 127).astype(np.int8)
        flags = JobFlag.REQUANTIZE
    job = Job(m, n, k, *places, b_page, b_pitch, b_pages, flags=flags)
    assert core.run(job) == tile_by_tile(want, config)


@pytest.mark.parametrize("out_dtype, flag", [(np.float32, JobFlag(0)), (bfloat16, JobFlag.ROUND)])
@pytest.mark.parametrize("broadcast", [False, True])
def test_sums_of_floats_start_from_the_words_of_c(out_dtype, flag, broadcast):
    config = Config(
        dtype="bf16", rows=3, cols=4, lanes=8, c_words=64, a_words=64, b_words=64, bytes_out=8
    )
    rng = np.random.default_rng(1)
    m, n, k = 7, 10, 5
    a, b, c = (rng.integers(-9, 10, shape) for shape in ((m, k), (n, k), (m, n)))
    c = c[:1] if broadcast else c
    core = FloatCore(config)
    a16, b16 = a.astype(bfloat16), b.astype(bfloat16)
    places = [put(core, Region.A, a16, 0), put(core, Region.B, b16, 1)]
    # The panels of C end at the last word of its memory.
    height = len(c)
    page = 64 - 3 * height
    places.append(put(core, Region.C, c.T.astype(np.float32), page))
    flags = JobFlag.PRELOAD | (JobFlag.BROADCAST if broadcast else JobFlag(0)) | flag
    job = Job(m, n, k, *places[0], *places[1], *places[2], flags=flags)
    assert core.run(job) == tile_by_tile((a @ b.T + c).astype(out_dtype), config)


def test_operands_reach_to_the_last_word():
    config = Config(rows=2, cols=3, depth=1, a_words=64, b_words=64)
    rng = np.random.default_rng(2)
    core = IntegerCore(config)
    a, b = integers(rng, np.int8, 4, 16), integers(rng, np.int8, 6, 16)
    places = [put(core, Region.A, a, 1, gap=1), put(core, Region.B, b, 2)]
    job = Job(4, 6, 16, *places[0], *places[1])
    assert places[0][0] + places[0][2] == places[1][0] + places[1][2] == 4
    assert core.run(job) == tile_by_tile(a.astype(np.int32) @ b.T, config)
