"""docs/chip.md has the tables that ``make chip-price`` writes."""

import numpy as np
import pytest
from graphs import chain

from tools.chip_price import page


@pytest.mark.slow
def test_page_is_up_to_date(mlperf_tiny):
    text = page.PATH.read_text(encoding="utf-8")
    assert text == page.page(mlperf_tiny), "stale; type: make chip-price"


def test_tables():
    graph = chain(np.random.default_rng(1))
    text = page.tables(dict.fromkeys(page.NETWORKS, graph))
    assert text.count("| FULLY_CONNECTED | 1 x 1 x 30 |") == len(page.GOALS)
    assert "### kws on `networks-25f`" in text
