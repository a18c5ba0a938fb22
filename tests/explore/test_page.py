"""The pictures of a report: the fields that the parallel coordinates can show."""

from explore_points import network_core, point

from weft.explore.page import PARALLEL
from weft.explore.space import AXES, NETWORK_AXES, fields_of


def test_parallel_coordinates_have_all_numbers_of_a_search():
    """`ram_cols` is no axis of a search, but a known design may have it."""
    spaces = *AXES.values(), NETWORK_AXES
    numbers = {
        name for axes in spaces for name, values in axes.items() if isinstance(values[0], int)
    }
    assert numbers | {"dsp_cols", "ram_cols"} <= set(PARALLEL)
    assert set(PARALLEL) <= {*fields_of(point().config), *fields_of(network_core())}
