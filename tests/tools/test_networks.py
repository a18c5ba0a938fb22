"""The record and README have the tables of ``make networks``; each inference is fast enough."""

import pytest

from tools import network_core_networks, networks, results
from tools.network_tables import replaced


@pytest.mark.slow
def test_the_record_is_up_to_date(mlperf_tiny):
    found = networks.tables(mlperf_tiny)
    assert found == results.load("networks")["tables"], "stale; type: make networks"


@pytest.mark.slow
def test_the_table_of_the_readme_is_up_to_date(mlperf_tiny):
    table = network_core_networks.summary(mlperf_tiny)
    text = networks.README.read_text(encoding="utf-8")
    assert replaced(networks.README, {"make networks": table}) == text, "type: make networks"


@pytest.mark.slow
def test_every_inference_is_fast_enough_but_those_of_the_largest_core(mlperf_tiny):
    """Its clock is slower since it has SOFTMAX and products of maps."""
    missed = {
        (run.name, run.core) for run, program in network_core_networks.programs(mlperf_tiny)
        if run.goal_us(program) > run.goal
    }
    assert missed == {(name, "8 x 8 x 8") for name in ("kws", "resnet8", "vww")}
