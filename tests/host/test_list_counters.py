"""The counters of lists: measured cycles are taken, others are predicted."""

from network_cores import SMALL

from weft.host.list_products import ListCounters
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import ListEnd, ListJob, split

LIST = ListJob(
    panel_rows=8, out_height=2, out_width=9, columns=9, tile_words=5, kernel_height=1,
    kernel_width=1, tap_vectors=5, group_tiles=3, in_height=2, in_width=9, sums=1,
), ListEnd()


def test_measured_and_predicted():
    counters = ListCounters(SMALL)
    addresses = split(100, SMALL.banks), split(200, SMALL.banks)
    data = b"".join(descriptor.pack() for descriptor in LIST)
    counters.add(data, 45, *addresses, 1000)
    assert (counters.lists, counters.steps, counters.cycles()) == (1, 45, 1000)
    assert counters.counted == 1000
    counters.add(data, 45, *addresses, None)
    counters.add(data, 45, *addresses, None)
    assert counters.counted is None
    predicted = predict_list(SMALL, LIST, *addresses).cycles
    assert (counters.lists, counters.steps) == (3, 3 * 45)
    assert counters.cycles() == counters.cycles() == 1000 + 2 * predicted
