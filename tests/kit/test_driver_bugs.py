"""Drivers that are wrong in a line: what tests the right one finds each of them out."""

import ctypes

import numpy as np
import pytest

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, depth=2, a_words=64, b_words=64)
# M, K, N; of the second one operand after the other is split, of the third K too.
SHAPES = [(5, 7, 9), (9, 91, 13), (3, 300, 5)]
BUGS = {
    "words of a panel at every value": (
        "axi", "weft_panel.c", "word_step = (ptrdiff_t)(WORDS(edge) * WEFT_DEPTH) * value;",
        "word_step = value;"
    ),
    "a line less": (
        "wishbone", "weft_panel.c", "e < p->lines && d < values", "e + 1 < p->lines && d < values"
    ),
    "no zeros behind a panel": ("axi", "weft_panel.c", "        if (zeros)", "        if (0)"),
    "rows of results at the wrong place": (
        "stream", "weft_pack.c", "first += (ptrdiff_t)WEFT_ROWS * step", "first += 0 * step"
    ),
    "columns of all tiles at the first": (
        "axi", "weft_pack.c", "row += WEFT_COLS * 4)", "row += 0)"
    ),
    "A is not loaded again": ("stream", "weft_jobs.c", "core->loaded_row != row", "!core->tag"),
    "B is not loaded again": (
        "axi", "weft_jobs.c", "core->loaded_col != col ||", "!core->tag ||"
    ),
    "a word more than there is room for": (
        "axi", "weft_words.h", "out->room -= pieces;", "out->room -= out->room > 300;"
    ),
    "the end of a job is not awaited": (
        "wishbone", "weft_fifo.c", "if (!LEVEL(level, COMPLETE))", "if (0)"
    ),
    "transposed as if it were not": (
        "dma", "weft_dma.c", "*order = K_MINOR;", "*order = K_MAJOR;"
    ),
    "the rest of A is the first panel": (
        "dma", "weft_dma.c", "(core->row + first) * p->a_row", "core->row * p->a_row"
    ),
    "the sums of k's parts are forgotten": (
        "stream", "weft_jobs.c", "core->k ? WEFT_ACCUMULATE :", "0 ? WEFT_ACCUMULATE :"
    ),
    "every part of k is the first": (
        "axi", "weft_jobs.c", "(ptrdiff_t)core->k * value", "0 * value"
    ),
    "a part's end is waited for": (
        "wishbone", "weft_fifo.c", "core->active = !weft_keeps(core);", "core->active = 1;"
    ),
    "A of every part is the first one's": (
        "dma", "weft_dma.c", "(ptrdiff_t)core->k * p->a_k", "0 * p->a_k"
    ),
    "results at the first column": (
        "dma", "weft_dma.c", "(size_t)core->col * weft_result_size", "0u * weft_result_size"
    ),
}


def right(driver):
    """Whether all products are numpy's."""
    rng = np.random.default_rng(19)
    driver.call("test_limit", 300)
    for m, k, n in SHAPES:
        a = driver.put(rng.integers(-128, 128, (m, k), dtype=np.int8), order="F")
        b = driver.put(rng.integers(-128, 128, (k, n), dtype=np.int8))
        c = driver.room((m, 16), np.int32)[:, :n]
        product = driver.product(a, b, c)
        if driver.call("weft_matmul", ctypes.byref(product)):
            return False
        if not np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64)):
            return False
    return True


@pytest.mark.filterwarnings(
    # The space that a wrong driver works may refuse what it asks for.
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_seen(golden, name):
    bus, *change = BUGS[name]
    driver = golden(Ip(config=CONFIG, bus=bus), tuple(change))
    assert driver.call("weft_init", None) == 0
    assert not right(driver)


@pytest.mark.parametrize("bus", sorted({bus for bus, *_ in BUGS.values()}))
def test_what_has_none_is_right(golden, bus):
    driver = golden(Ip(config=CONFIG, bus=bus))
    assert driver.call("weft_init", None) == 0
    assert right(driver)
