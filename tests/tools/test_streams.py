"""The record of networks from an SDRAM: its rows, and what must hold in each of them."""

import pytest
from tooling import load


@pytest.fixture(scope="module")
def streams():
    return load("streams")


def test_the_record_has_all_networks_and_their_bounds(streams):
    [table] = load("results").load("streams")["tables"]
    rows = {row[0]: row for row in table["rows"]}
    assert len(rows) == len(streams.FILES) + len(streams.MADE) + 2  # with less memory
    [made] = (row for name, row in rows.items() if name.startswith(streams.VWW_MADE))
    assert 100_000 < made[2] < 150_000
    assert {*streams.FILES, *streams.MADE} <= {*rows}
    for _, kept, streamed, cycles, ideal, bound, ratio, alone in rows.values():
        assert cycles >= ideal
        assert bound == pytest.approx(max(ideal, streamed / streams.RATE), abs=1)
        assert ratio == pytest.approx(cycles / bound, abs=0.006)
        if kept == "all":  # no cycle more than without an SDRAM
            assert (streamed, cycles) == (0, alone)


def test_the_made_networks_are_files(streams):
    pytest.importorskip("tflite")
    for make, shape in ((streams.mobilenet_v1, (1, 32, 32, 3)), (streams.mcunet, (1, 48, 48, 3))):
        network = streams.load(make(shape[1]), "net")
        graph = network.graph
        assert graph.tensors[graph.inputs[0]].shape == shape
        assert graph.tensors[graph.outputs[0]].shape[-1] == 1000
