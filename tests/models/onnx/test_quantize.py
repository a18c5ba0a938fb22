"""Quantization after training, and the comparison with the float model."""

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, attention, cnn, require, run_runtime

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.onnx import load
from weft.models.onnx.agreement import compare, ort
from weft.models.onnx.quantize import METHODS, Feeds, prepare, quantize, rewrite


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


def test_agreement_of_an_output_of_integers():
    """Places of the largest elements, which are equal or not."""
    require("onnx", "onnxruntime")
    b = Builder()
    y = b.node("Conv", b.input("x", [1, 2, 5, 5]), b.weights(3, 2, 5, 5))
    data = b.bytes(b.node("ArgMax", b.node("Flatten", y), axis=1, keepdims=0), dtype=np.int64)
    samples = b.rng.normal(size=(60, 2, 5, 5)).astype(np.float32)
    prepared = prepare(data, "net.onnx")
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    quantized = quantize(prepared, "net.onnx", Feeds({"x": samples / 9}, prepared, "calib.npz"))
    f, q = (
        np.concatenate([run_runtime(model, [x[None]])[0] for x in samples])
        for model in (data, quantized)
    )
    assert compare(prepared, quantized, feeds).top1 == np.mean(f == q)
    assert 0 < np.mean(f == q) < 1


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


@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "float16"), (np.float64, "double")])
def test_rejects_other_floats(dtype, name):
    require("onnx", "onnxruntime")
    b = Builder()
    x = b.input("x", [1, 2, 5, 5])
    weights = b.constant(b.rng.normal(size=(4, 2, 3, 3)).astype(dtype))
    rule = rf"net.onnx: must be a model of float32, but \w+ is {name}; convert the model"
    with pytest.raises(ModelError, match=rule):
        prepare(b.bytes(b.node("Conv", x, weights)), "net.onnx")


def masked(b, x):
    """Scores with a causal mask, as exporters write it."""
    scores = b.node("MatMul", x, b.weights(6, 6))
    mask = np.where(np.tri(6) > 0, 0, -np.inf).astype(np.float32)
    return b.node("Softmax", b.node("Add", scores, mask))


def with_weight(value):
    """A product with one weight of this value."""
    def build(b, x):
        weights = b.rng.normal(size=(6, 6)).astype(np.float32)
        weights[2, 3] = value
        return b.node("MatMul", x, b.constant(weights, "w"))
    return build


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("build", "message"), [
    (with_weight(np.nan), "net.onnx: constant w must have no NaN"),
    (with_weight(np.inf), r"net.onnx: tensor \w+ must have finite values, for a finite scale"),
    (masked, r"net.onnx: tensor \w+ must have finite values, for a finite scale"),
])
def test_rejects_numbers_without_a_scale(build, message):
    require("onnx", "onnxruntime")
    b = Builder()
    data = b.bytes(build(b, b.input("x", ["n", 6, 6])))
    samples = b.rng.normal(size=(3, 6, 6)).astype(np.float32)
    with pytest.raises(ModelError, match=f"^{message}$"):
        prepared = prepare(data, "net.onnx")
        quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "calib.npz"))


@pytest.mark.parametrize("first", [False, True])
def test_constants_of_other_products_have_one_scale(first):
    """onnxruntime takes axis 1 for the columns of each constant; then it could not run the file."""
    require("onnx", "onnxruntime")
    b = Builder()
    x = b.input("x", [2, 5, 6])
    operands = (b.weights(4, 5), x) if first else (x, b.weights(2, 6, 4))
    data = b.bytes(b.node("Relu", b.node("MatMul", *operands)))
    samples = b.rng.normal(size=(4, 5, 6)).astype(np.float32)
    prepared = prepare(data, "net.onnx")
    quantized = quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "calib.npz"))
    [[expected]] = ort(quantized, [[samples[:2]]], optimized=True)
    graph = load(quantized, "net.onnx")
    y = run_graph(graph, [samples[:2]], mode="onnx")[graph.outputs[0]]
    assert np.array_equal(y, expected) and y.any()


def test_a_batch_that_is_not_full_is_no_sample():
    require("onnx", "onnxruntime")
    b = Builder()
    prepared = b.bytes(b.node("MatMul", b.input("x", [3, 6]), b.weights(6, 4)))
    feeds = Feeds({"x": np.ones((8, 6), np.float32)}, prepared, "calib.npz")
    assert (len(feeds), feeds.samples) == (2, 6)


def test_an_output_without_values_has_no_agreement():
    require("onnx", "onnxruntime")
    b = Builder()
    data = b.bytes(b.node("Relu", b.input("x", ["n", 0])))
    feeds = Feeds({"x": np.ones((2, 0), np.float32)}, data, "calib.npz")
    with pytest.raises(ModelError, match="^output Relu0_0 must have 1 value or more, for a comp"):
        compare(data, data, feeds)


def test_shapes_that_follow_from_values_may_differ():
    require("onnx", "onnxruntime")
    models = []
    for weight in (1, -1):
        b = Builder()
        y = b.node("MatMul", b.input("x", [1, 1]), b.constant(np.float32([[weight]])))
        models.append(b.bytes(b.node("NonZero", b.node("Relu", y)), dtype=np.int64))
    feeds = Feeds({"x": np.ones((1, 1), np.float32)}, models[0], "calib.npz")
    rule = r"^tensor NonZero2_0 must have one shape, not \(2, 1\) in the float and \(2, 0\) in "
    with pytest.raises(ModelError, match=rule):
        compare(*models, feeds)


def test_rejects_other_inputs():
    require("onnx", "onnxruntime")
    from onnx import TensorProto, helper

    b = Builder()
    data = b.bytes(b.node("Relu", b.weights(2, 3)))
    with pytest.raises(ModelError, match="^net.onnx: inputs must be at least 1, not 0$"):
        prepare(data, "net.onnx")
    b = Builder()
    b.inputs.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    model = b.model(b.node("SequenceAt", "s", np.int64(0)))
    model.graph.output[0].type.tensor_type.shape.dim.add()
    with pytest.raises(ModelError, match="^net.onnx: input s must be a tensor$"):
        prepare(model.SerializeToString(), "net.onnx")


def test_rejects_an_unknown_method(network):
    _, samples, prepared = network
    feeds = Feeds({"x": samples}, prepared, "calib.npz")
    with pytest.raises(ModelError, match="method must be min-max, entropy, percentile, not 'best'"):
        quantize(prepared, "net.onnx", feeds, method="best")


F32 = np.float32


def jax_layer(b, x, columns, *, row):
    """``maximum(x @ w + bias, 0)`` as jax2onnx exports it."""
    y = b.node("Gemm", x, b.weights(16, columns), F32(0), alpha=1.0, beta=0.0)
    bias = b.weights(1, columns) if row else b.weights(columns, scale=1)
    return b.node("Max", b.node("Add", y, bias), F32(0))


def kinds(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize("row", [True, False])
def test_a_layer_of_jax_is_one_quantized_product(row):
    b = Builder(seed=80)
    y = jax_layer(b, b.input("x", ["B", 16]), 8, row=row)
    data = b.bytes(y)
    samples = b.rng.normal(size=(12, 16)).astype(F32)
    prepared = prepare(data, "net.onnx")
    from onnx import ModelProto

    assert kinds(ModelProto.FromString(prepared)) == ["Gemm", "Relu"]
    assert np.allclose(run_runtime(prepared, [samples])[0], run_runtime(data, [samples])[0])
    quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "calib.npz"))


def relu6(b, x):
    return b.node("Min", b.node("Max", x, F32(0)), F32(6))


def shared(b, x):
    low = b.node("Max", x, F32(-1))
    return b.node("Add", b.node("Min", F32(1), low), low)


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize("build, expected", [
    (relu6, ["Clip"]),
    (shared, ["Clip", "Clip", "Add"]),
    (lambda b, x: b.node("Min", b.node("Relu", x), F32(6)), ["Clip"]),
    (lambda b, x: b.node("Max", b.node("Min", x, F32(2)), F32(1)), ["Clip", "Clip"]),
    (lambda b, x: b.node("Max", x, F32(np.nan)), ["Max"]),
    (lambda b, x: b.node("Max", x, x), ["Max"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), b.weights(1, 4)), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), F32(2)), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(4, 16), b.weights(4), beta=0.0, transB=1), ["Gemm"]),
    (lambda b, x: b.node("Gemm", x, b.weights(16, 4), np.zeros(4, F32)), ["MatMul"]),
    (lambda b, x: b.node("Einsum", x, b.weights(4, 16), equation="ij,kj->ik"),
     ["Transpose", "MatMul"]),
    (lambda b, x: b.node("Einsum", x, b.weights(16, 4), equation="ij,jk->ki"),
     ["MatMul", "Transpose"]),
    (lambda b, x: b.node("Einsum", x, b.weights(3, 16), equation="ij,kj->i"), ["Einsum"]),
])
def test_results_stay_equal(build, expected):
    b = Builder(seed=81)
    y = build(b, b.input("x", [5, 16]))
    model = b.model(y)
    x = 4 * b.rng.normal(size=(5, 16)).astype(F32)
    [before] = run_runtime(model.SerializeToString(), [x])
    rewrite(model)
    assert kinds(model) == expected
    [after] = run_runtime(model.SerializeToString(), [x])
    assert np.allclose(before, after, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_unread_initializers_go():
    require("onnx")
    b = Builder(seed=82)
    model = b.model(b.node("Gemm", b.input("x", [5, 16]), b.weights(16, 4), F32(0), beta=0.0))
    rewrite(model)
    assert [tensor.name for tensor in model.graph.initializer] == ["c0"]
