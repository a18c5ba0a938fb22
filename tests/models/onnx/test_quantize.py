"""Quantization after training, and the comparison with the float model."""

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, attention, cnn, require, run_runtime

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.onnx import load
from weft.models.onnx.agreement import compare
from weft.models.onnx.calibration import Feeds
from weft.models.onnx.quantize import METHODS, prepare, quantize


@pytest.fixture
def network():
    """A float model, its samples, and the model prepared."""
    require("onnx", "onnxruntime")
    b, y = cnn()
    samples = b.rng.normal(size=(6, 3, 10, 10)).astype(np.float32)
    data = b.bytes(y)
    return data, samples, prepare(data, "net.onnx")


@pytest.mark.parametrize("method", METHODS)
def test_results_are_int8_and_near(network, method):
    data, samples, prepared = network
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    steps = []
    quantized = quantize(
        prepared, "net.onnx", feeds, method=method, advance=lambda: steps.append(1)
    )
    assert len(steps) == 6
    graph = load(quantized, "net.int8.onnx")
    products = [node for node in graph.nodes if isinstance(node, Gemm)]
    assert len(products) == 5
    assert {node.weights.dtype.name for node in products} == {"int8"}
    assert [node.requantization.w_scale.size for node in products] == [8, 8, 8, 4, 10]
    y = run_graph(graph, [samples[:1]], mode="onnx")[graph.outputs[0]]
    [expected] = run_runtime(data, [samples[:1]])
    power = np.sum(expected.astype(float) ** 2) / np.sum((expected - y).astype(float) ** 2)
    assert 10 * np.log10(power) > 25


def test_attention():
    """Weights of more than 1,024 bytes, which onnxruntime may keep in another file."""
    require("onnx", "onnxruntime")
    b, y = attention()
    samples = b.rng.normal(size=(4, 6, 16)).astype(np.float32)
    prepared = prepare(b.bytes(y), "net.onnx")
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    quantized = quantize(prepared, "net.onnx", feeds)
    products = [n for n in load(quantized, "net.onnx").nodes if isinstance(n, Gemm)]
    assert [node.b is None for node in products] == [True, True, True, False, False, True, True]
    agreement = compare(prepared, quantized, feeds)
    assert min(row.sqnr for row in agreement.rows) > 20
    assert 0.7 < agreement.top1 <= 1


def test_agreement_by_hand(network):
    """The figures of the output, computed from the outputs of both models alone."""
    data, samples, prepared = network
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    quantized = quantize(prepared, "net.onnx", feeds)
    agreement = compare(prepared, quantized, feeds)
    assert [row.operator for row in agreement.rows] == [
        "Relu", "Clip", "Conv", "Add", "Sigmoid", "MaxPool", "ConvTranspose", "GlobalAveragePool",
        "Flatten", "Gemm",
    ]
    f, q = (
        np.concatenate([run_runtime(model, [x[None]])[0] for x in samples]).astype(float)
        for model in (data, quantized)
    )
    last = agreement.rows[-1]
    assert last.sqnr == pytest.approx(10 * np.log10(np.sum(f**2) / np.sum((f - q) ** 2)), abs=1e-3)
    cosine = np.sum(f * q) / np.linalg.norm(f) / np.linalg.norm(q)
    assert last.cosine == pytest.approx(cosine, abs=1e-9)
    assert agreement.top1 == np.mean(f.argmax(axis=1) == q.argmax(axis=1))


def test_agreement_with_itself(network):
    _, samples, prepared = network
    agreement = compare(prepared, prepared, Feeds({"x": samples}, prepared, "calib.npz"))
    assert {row.sqnr for row in agreement.rows} == {np.inf}
    assert agreement.top1 == 1


def test_batch_normalization_is_folded():
    require("onnx", "onnxruntime")
    b = Builder()
    y = b.node("Conv", b.input("x", [1, 2, 5, 5]), b.weights(4, 2, 3, 3))
    numbers = [b.constant(b.rng.uniform(0.5, 1, 4).astype(np.float32)) for _ in range(4)]
    prepared = prepare(b.bytes(b.node("BatchNormalization", y, *numbers)), "net.onnx")
    import onnx

    nodes = onnx.ModelProto.FromString(prepared).graph.node
    assert [node.op_type for node in nodes] == ["Conv"]


def test_rejects_a_quantized_model(network):
    _, samples, prepared = network
    quantized = quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "calib.npz"))
    rule = r"int8.onnx: must be a float model, but has the node x_QuantizeLinear \(QuantizeLinear\)"
    with pytest.raises(ModelError, match=rule):
        prepare(quantized, "int8.onnx")


def test_rejects_an_unknown_method(network):
    _, samples, prepared = network
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    with pytest.raises(ModelError, match="method must be min-max, entropy, percentile, not 'best'"):
        quantize(prepared, "net.onnx", feeds, method="best")
