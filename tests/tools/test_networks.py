"""The pages have the tables that ``make networks`` writes; each inference is fast enough."""

import pytest

from tools import network_core_networks, networks


@pytest.mark.slow
@pytest.mark.parametrize(
    "path, page", [(networks.PATH, networks.page), *network_core_networks.PAGES.items()],
    ids=lambda value: getattr(value, "name", ""),
)
def test_page_is_up_to_date(mlperf_tiny, path, page):
    text = path.read_text(encoding="utf-8")
    assert text == page(mlperf_tiny), "stale; type: make networks"


@pytest.mark.slow
def test_every_inference_is_fast_enough(mlperf_tiny):
    for run, program in network_core_networks.programs(mlperf_tiny):
        assert program.cycles / run.design.clock <= run.goal, f"us of {run.name} on {run.array}"
