"""The record of networks from an SDRAM: its rows, and what must hold in each of them."""

import numpy as np
import pytest
from tooling import load

from weft.golden.int4 import scales_of


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
    for _, kept, streamed, cycles, ideal, bound, ratio, alone, packed, fewer in rows.values():
        assert packed <= streamed and fewer <= cycles
        assert cycles >= ideal
        assert bound == pytest.approx(max(ideal, streamed / streams.RATE), abs=1)
        assert ratio == pytest.approx(cycles / bound, abs=0.006)
        if kept == "all":  # no cycle more than without an SDRAM
            assert (streamed, cycles) == (0, alone)


def test_weights_of_int4_are_near_the_others(streams):
    pytest.importorskip("tflite")
    graph = streams.load(streams.mobilenet_v1(32), "net").graph
    found = streams.with_int4(graph)
    changed = 0
    for old, new in zip(graph.nodes, found.nodes, strict=True):
        if not isinstance(old, streams.Gemm) or len(old.weights) > 1:
            assert new is old
            continue
        changed += 1
        k, columns = new.weights.shape[1:]
        taps = 9 if changed == 1 else 1  # the first layer is the only one of 3 x 3
        rows = new.weights.reshape(taps, k // taps, columns).swapaxes(1, 2).reshape(-1, k // taps)
        assert scales_of(rows, 8) is not None
        error = new.weights / 105 - old.weights / 127
        assert np.abs(error).max() <= 15 / 105
    assert changed == 15


def test_the_made_networks_are_files(streams):
    pytest.importorskip("tflite")
    for make, shape in ((streams.mobilenet_v1, (1, 32, 32, 3)), (streams.mcunet, (1, 48, 48, 3))):
        network = streams.load(make(shape[1]), "net")
        graph = network.graph
        assert graph.tensors[graph.inputs[0]].shape == shape
        assert graph.tensors[graph.outputs[0]].shape[-1] == 1000
