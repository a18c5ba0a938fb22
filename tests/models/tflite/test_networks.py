"""The networks of MLPerf Tiny: every operator's bytes equal TFLite Micro's."""

import numpy as np
import pytest
from graph_runner import run_graph

from weft.models.ir import Gemm
from weft.models.tflite import load

pytest.importorskip("tflite")


@pytest.mark.parametrize("name, products, host", [
    ("kws_int8", 10, 3), ("resnet8_int8", 10, 6), ("vww_96_int8", 28, 3),
])
def test_every_operator_equals_tflite_micro(mlperf_tiny, name, products, host):
    graph = load((mlperf_tiny / f"{name}.tflite").read_bytes(), name)
    record = np.load(mlperf_tiny / f"{name}_activations.npz")
    values = run_graph(graph, [record["model_in"].reshape(graph.tensors[graph.inputs[0]].shape)])
    for node in graph.nodes:
        [number] = node.outputs
        expected = record[f"out{node.position[-1]}"]
        assert np.array_equal(values[number].ravel(), expected.ravel()), node.name
    kinds = [isinstance(node, Gemm) for node in graph.nodes]
    assert (sum(kinds), len(kinds) - sum(kinds)) == (products, host)
    assert "tflite.model" not in {n.kernel for n in graph.nodes if not isinstance(n, Gemm)}


def test_ad01_equals_tflite_micro(mlperf_tiny):
    graph = load((mlperf_tiny / "ad01_int8.tflite").read_bytes(), "ad01_int8")
    record = np.load(mlperf_tiny / "ad01_int8.npz")
    shape = graph.tensors[graph.inputs[0]].shape
    for x, y in zip(record["model_in"][:20], record["model_out_tflm"], strict=False):
        values = run_graph(graph, [x.reshape(shape)])
        assert np.array_equal(values[graph.outputs[0]].ravel(), y.ravel())
