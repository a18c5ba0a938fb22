"""Drivers with one bug each: the check that the correct driver passes detects every bug."""

import ctypes

import numpy as np
import pytest
from tiers import tiers

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, depth=2, a_words=64, b_words=64)
# M, K, N. The second shape splits both operands, the third also K.
SHAPES = [(5, 7, 9), (9, 91, 13), (3, 300, 5)]
BUGS = {
    "the step between words is one value": (
        "axi", "weft_panel.c", "word_step = (ptrdiff_t)(WORDS(edge) * WEFT_DEPTH) * value;",
        "word_step = value;"
    ),
    "the last line is missing": (
        "wishbone", "weft_panel.c", "e < p->lines && d < values", "e + 1 < p->lines && d < values"
    ),
    "no zeros after a panel": ("axi", "weft_panel.c", "        if (zeros)", "        if (0)"),
    "all tile rows are stored in the first": (
        "stream", "weft_pack.c", "first += (ptrdiff_t)WEFT_ROWS * stride", "first += 0 * stride"
    ),
    "all tile columns are stored in the first": (
        "axi", "weft_pack.c", "row += WEFT_COLS * 4)", "row += 0)"
    ),
    "A is not loaded again": (
        "stream", "weft_jobs.c", "core->resident_row != row", "!core->next_tag"
    ),
    "B is not loaded again": (
        "axi", "weft_jobs.c", "core->resident_col != col ||", "!core->next_tag ||"
    ),
    "more words are written than the FIFO has free": (
        "axi", "weft_stream_io.h", "out->cmd_free -= pieces;",
        "out->cmd_free -= out->cmd_free > 300;"
    ),
    "results are read before the job ends": (
        "wishbone", "weft_fifo.c", "if (!LEVEL(level, COMPLETE))", "if (0)"
    ),
    "the order of a transposed operand is wrong": (
        "dma", "weft_dma.c", "*order = K_MINOR;", "*order = K_MAJOR;"
    ),
    "the rest of A is the first panel": (
        "dma", "weft_dma.c", "(core->row + first) * p->a_row_stride", "core->row * p->a_row_stride"
    ),
    "sums of earlier parts of k are dropped": (
        "stream", "weft_jobs.c", "core->k ? WEFT_ACCUMULATE :", "0 ? WEFT_ACCUMULATE :"
    ),
    "every part of k loads the first part": (
        "axi", "weft_jobs.c", "(ptrdiff_t)core->k * value", "0 * value"
    ),
    "waits for results of a part of k": (
        "wishbone", "weft_fifo.c", "core->job_active = !weft_more_k(core);",
        "core->job_active = 1;"
    ),
    "every part of k loads the first part of A": (
        "dma", "weft_dma.c", "(ptrdiff_t)core->k * p->a_k_stride", "0 * p->a_k_stride"
    ),
    "results are stored at the first column": (
        "dma", "weft_dma.c", "(size_t)core->col * weft_result_size", "0u * weft_result_size"
    ),
}


def correct(driver):
    """Whether all products equal numpy's."""
    rng = np.random.default_rng(19)
    driver.call("test_poll_limit", 300)
    for m, k, n in SHAPES:
        a = driver.put(rng.integers(-128, 128, (m, k), dtype=np.int8), order="F")
        b = driver.put(rng.integers(-128, 128, (k, n), dtype=np.int8))
        c = driver.alloc((m, 16), np.int32)[:, :n]
        product = driver.product(a, b, c)
        if driver.call("weft_matmul", ctypes.byref(product)):
            return False
        if not np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64)):
            return False
    return True


@pytest.mark.filterwarnings(
    # The register model may raise an error on the accesses of a broken driver.
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("name", tiers({name: name for name in BUGS}, *[*BUGS][::5]))
def test_detects_a_bug(golden, name):
    bus, *change = BUGS[name]
    driver = golden(Ip(config=CONFIG, bus=bus), tuple(change))
    assert driver.call("weft_init", None) == 0
    assert not correct(driver)


@pytest.mark.parametrize("bus", sorted({bus for bus, *_ in BUGS.values()}))
def test_driver_without_a_bug_is_correct(golden, bus):
    driver = golden(Ip(config=CONFIG, bus=bus))
    assert driver.call("weft_init", None) == 0
    assert correct(driver)
