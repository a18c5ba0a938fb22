"""docs/networks.md has the tables that ``make networks`` writes."""

import pytest

from tools import networks


@pytest.mark.slow
def test_page_is_up_to_date(mlperf_tiny):
    text = networks.PATH.read_text(encoding="utf-8")
    assert text == networks.page(mlperf_tiny), "stale; type: make networks"
