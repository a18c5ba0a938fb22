"""LSTMs in mode ``single`` against LiteRT, if its wheel is installed."""

import importlib.util

import numpy as np
import pytest
from graph_runner import run_graph
from lstm_files import lstm

from weft.models.tflite import load
from weft.models.tflite.runtime import litert


@pytest.mark.parametrize("seed", range(14))
def test_equals_litert(seed):
    """Four runs of 480 bytes, one after the other, with their state."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        pytest.skip("LiteRT is not installed: the wheel is ai-edge-litert")
    rng = np.random.default_rng(seed)
    data = lstm(
        rng, 2, 30, units=8, clip=(0.0, 10.0, 0.3, 0.7)[seed % 4], zero=(2, -128, -7)[seed % 3],
        cell=2.0 ** (-11, -12, -9, -15, -10)[seed % 5], major=bool(seed % 2),
        scales=((0.0173, 0.0081), (2**-6, 2**-7), (0.031, 0.01))[seed % 3],
    )
    graph, states = load(data, "net"), {}
    shape = graph.tensors[graph.inputs[0]].shape
    xs = rng.integers(-128, 128, (4, *shape)).astype(np.int8)
    for x, [expected] in zip(xs, litert(data, [[x] for x in xs]), strict=True):
        y = run_graph(graph, [x], states, mode="single")[graph.outputs[0]]
        np.testing.assert_array_equal(y, expected)
