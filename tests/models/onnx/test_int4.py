"""Weights of int4 in an ONNX model: their values, what stays, and onnxruntime's results."""

import numpy as np
import pytest
from onnx_models import Builder, require, run_runtime

from weft.models.onnx.int4 import with_int4_weights
from weft.models.onnx.quantize import Feeds, prepare, quantize


def quantized(builder, y, shape):
    """The model with weights of int8, and its samples."""
    samples = builder.rng.normal(size=(4, *shape)).astype(np.float32)
    prepared = prepare(builder.bytes(y), "net.onnx")
    return quantize(prepared, "net.onnx", Feeds({"x": samples}, prepared, "x.npz")), samples


def constants(model):
    """The nodes of the model, and its constants by name."""
    import onnx
    from onnx import numpy_helper

    onnx.checker.check_model(model)
    graph = onnx.ModelProto.FromString(model).graph
    return graph.node, {t.name: numpy_helper.to_array(t) for t in graph.initializer}


def weights_of(model):
    """Of each product: its operator, weights, scales, and its bias as numbers, or None."""
    nodes, values = constants(model)
    by_output = {name: node for node in nodes for name in node.output}
    found = []
    for node in nodes:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            source = by_output[node.input[1]]
            bias = None
            if len(node.input) > 2:
                given = by_output[node.input[2]]
                bias = values[given.input[0]] * values[given.input[1]].astype(np.float64)
            found.append((
                node.op_type, values[source.input[0]], values[source.input[1]], bias
            ))
    return found


def is_int4(group):
    """Whether 8 weights are codes times one scale: by trial of all scales."""
    return any(
        all(w % scale == 0 and -8 <= w // scale <= 7 for w in map(int, group))
        for scale in range(1, 16)
    )


@pytest.fixture
def network():
    require("onnx", "onnxruntime")
    b = Builder(seed=4)
    y = b.node("Conv", b.input("x", [1, 12, 6, 6]), b.weights(10, 12, 3, 2), b.weights(10))
    y = b.node("Conv", b.node("Relu", y), b.weights(10, 1, 2, 2), group=10)  # depthwise
    y = b.node("Conv", y, b.weights(6, 5, 1, 1), group=2)
    y = b.node("Flatten", b.node("GlobalAveragePool", y))
    y = b.node("Gemm", y, b.weights(9, 6), b.weights(9), transB=1)
    return quantized(b, b.node("MatMul", b.node("Relu", y), b.weights(9, 5)), (12, 6, 6))


def test_values(network):
    model, samples = network
    changed, count, every = with_int4_weights(model)
    before, after = weights_of(model), weights_of(changed)
    assert [operator for operator, *_ in after] == ["Conv", "Conv", "Conv", "Gemm", "MatMul"]
    sizes = [weights.size for _, weights, *_ in before]
    assert (count, every) == (sum(sizes) - sizes[1], sum(sizes))
    np.testing.assert_array_equal(after[1][1], before[1][1])
    inputs = [1, None, 1, 1, 0]  # the axis
    for place, axis in enumerate(inputs):
        (_, old, old_scale, old_bias), (_, new, scale, bias) = before[place], after[place]
        assert new.dtype == np.int8 and new.shape == old.shape
        if axis is None:
            continue
        rows = np.moveaxis(new, axis, -1).reshape(-1, new.shape[axis])
        for row in rows:
            assert all(is_int4(row[first : first + 8]) for first in range(0, len(row), 8))
        outputs = [-1 if n == 1 - (axis if new.ndim == 2 else 1) else 1 for n in range(new.ndim)]
        error = (new * scale.reshape(outputs) / old_scale.reshape(outputs) - old) * 105 / 127
        error = np.moveaxis(error, axis, -1).reshape(-1, new.shape[axis])
        # With the scale 15, the error of a weight is at most a half of 15 of 105 steps.
        for first in range(0, error.shape[1], 8):
            group = error[:, first : first + 8]
            assert np.all((group**2).sum(1) <= 7.51**2 * group.shape[1])
        if bias is not None:
            assert np.abs(bias - old_bias).max() <= np.abs(old_bias).max() / 1000
    wanted, found = run_runtime(model, [samples[:1]])[0], run_runtime(changed, [samples[:1]])[0]
    noise = np.sum((wanted - found) ** 2) / np.sum(wanted**2)
    assert 10 * np.log10(1 / noise) > 15


def test_every_constant_is_used(network):
    nodes, values = constants(with_int4_weights(network[0])[0])
    assert {name for node in nodes for name in node.input} >= values.keys()


def test_weights_of_two_nodes_stay():
    require("onnx", "onnxruntime")
    b = Builder(seed=5)
    x, shared = b.input("x", ["n", 8]), b.weights(8, 8)
    model, _ = quantized(b, b.node("MatMul", b.node("MatMul", x, shared), shared), (8,))
    changed, count, every = with_int4_weights(model)
    assert (count, every) == (0, 128)
    assert constants(changed)[1].keys() == constants(model)[1].keys()
