"""The schedule of a sweep, and an engine whose work takes no time."""

import pytest
from explore_points import point

from tools.scaling import measured, outcomes_a_second, wall


@pytest.mark.parametrize("workers, seconds", [
    (1, 2 * 10 + 4 * 30),   # each run after the other
    (2, 10 + 2 * 30),        # both netlists, then the seeds
    (4, 10 + 30),            # both designs side by side
    (100, 10 + 30),          # no shorter than a synthesis, then place and route
])
def test_seeds_wait_for_their_netlist(workers, seconds):
    assert wall([(10, 30), (10, 30)], 2, workers) == seconds


def test_a_netlist_is_made_once():
    assert wall([(10, 1)], 5, 1) == 15


def test_recorded_points_have_durations():
    found = measured()
    assert len(found) > 20
    luts = [outcome.used["LUT"] for _, outcome in found]
    assert luts == sorted(luts)
    assert all(min(outcome.seconds.values()) > 0 for _, outcome in found)


def test_an_engine_without_tools_is_timed():
    assert outcomes_a_second(point(), 100, count=5) > 0
