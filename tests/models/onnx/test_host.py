"""Each operator of the host against onnxruntime: integers exactly, float32 to its precision."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, equal_to_runtime, require, run_runtime

from weft.models.onnx import load

I64, F32, U8 = np.int64, np.float32, np.uint8


def compare(kind, shapes, *constants, kernel, dtype=F32, version=18, domain="", exact=None,
            out=None, low=-3, high=3, **attributes):
    """Run one operator on random inputs; its kernel must be ``kernel``."""
    require("onnx", "onnxruntime")
    b = Builder(seed=11, opset=version)
    dtype = np.dtype(dtype)
    names = [b.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    outputs = attributes.pop("outputs", 1)
    y = b.node(kind, *names, *constants, domain=domain, outputs=outputs, **attributes)
    results = [y] if outputs == 1 else y
    data = b.bytes(*results, dtype=out or dtype)
    if dtype.kind == "f":
        inputs = [b.rng.uniform(low, high, shape).astype(dtype) for shape in shapes]
    else:
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -500), min(limits.max, 500)
        inputs = [b.rng.integers(low, high, shape, dtype, endpoint=True) for shape in shapes]
    graph = load(data, "net.onnx")
    [node] = graph.nodes
    assert node.kernel == kernel
    values = run_graph(graph, inputs, mode="onnx")
    for number, expected in zip(graph.outputs, run_runtime(data, inputs), strict=True):
        ours = values[number]
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "f" and not exact:
            np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-6)
        else:
            assert np.array_equal(ours, expected)


@pytest.mark.parametrize("kind, kernel, attributes", [
    ("Abs", "abs", {}), ("Ceil", "ceil", {}), ("Erf", "erf", {}), ("Exp", "exp", {}),
    ("Floor", "floor", {}), ("Neg", "negative", {}), ("Reciprocal", "reciprocal", {}),
    ("Relu", "relu", {}), ("Round", "round", {}), ("Sigmoid", "sigmoid", {}),
    ("Softplus", "softplus", {}), ("Softsign", "softsign", {}), ("Tanh", "tanh", {}),
    ("HardSwish", "hard_swish", {}), ("LeakyRelu", "leaky_relu", dict(alpha=0.2)),
    ("Elu", "elu", dict(alpha=0.7)), ("Selu", "selu", {}),
    ("HardSigmoid", "hard_sigmoid", dict(alpha=0.3)),
    ("Softmax", "softmax", dict(axis=1)),
])
def test_functions(kind, kernel, attributes):
    compare(kind, [(2, 3, 4)], kernel=f"onnx.{kernel}", **attributes)


@pytest.mark.parametrize("kind, kernel", [("Log", "log"), ("Sqrt", "sqrt")])
def test_functions_of_positive_numbers(kind, kernel):
    compare(kind, [(2, 3, 4)], kernel=f"onnx.{kernel}", low=0.01)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    compare("Gelu", [(2, 30)], kernel="onnx.gelu", version=20, approximate=approximate)


@pytest.mark.parametrize("kind, kernel", [
    ("Add", "onnx.add"), ("Sub", "onnx.subtract"), ("Mul", "onnx.multiply"),
    ("Div", "onnx.divide"), ("Max", "maximum"), ("Min", "minimum"),
])
@pytest.mark.parametrize("dtype", [F32, np.int32])
def test_two_inputs(kind, kernel, dtype):
    if (kind, dtype) == ("Div", np.int32):
        compare(kind, [(50, 4)], np.int32([-7, 3, 2, -1]), kernel="onnx.divide", dtype=dtype)
    else:
        compare(kind, [(2, 3, 4), (3, 1)], kernel=kernel, dtype=dtype)


def test_further_elementwise():
    compare("Pow", [(2, 9)], F32(2.5), kernel="onnx.power", low=0)
    compare("Sum", [(2, 9), (9,), (1, 1)], kernel="onnx.sum")
    compare("PRelu", [(2, 9), (9,)], kernel="onnx.prelu")
    compare("Clip", [(2, 9)], F32(-0.5), F32(1), kernel="onnx.clip")
    compare("Clip", [(2, 9)], "", F32(1), kernel="onnx.clip")
    compare("Less", [(2, 9), (9,)], kernel="onnx.less", out=bool)
    compare("Cast", [(2, 9)], kernel="onnx.cast", dtype=np.int32, to=1, out=F32)


@pytest.mark.parametrize("kind, kernel, constants, attributes", [
    ("Reshape", "reshape", [I64([0, -1, 2])], {}), ("Flatten", "reshape", [], dict(axis=2)),
    ("Unsqueeze", "reshape", [I64([0, -1])], {}),
    ("Transpose", "transpose", [], dict(perm=[2, 0, 1])), ("Transpose", "transpose", [], {}),
    ("Slice", "slice", [I64([1, -9]), I64([99, -1]), I64([1, -1]), I64([2, 1])], {}),
    ("Slice", "slice", [I64([3, 5]), I64([-99, 0]), I64([1, 2]), I64([-1, -2])], {}),
    ("Slice", "slice", [I64([-9]), I64([-99]), I64([1]), I64([-1])], {}),
    ("Slice", "slice", [I64([0]), I64([1])], {}),
    ("Gather", "onnx.gather", [I64([[0, -1], [2, 2]])], dict(axis=1)),
    ("Expand", "broadcast", [I64([3, 1, 1, 1])], {}),
    ("Pad", "pad", [I64([0, 1, 2, 1, 0, 3]), F32(7)], {}),
    ("Pad", "mirror_pad", [I64([0, 1, 2, 1, 0, 3])], dict(mode="reflect")),
    ("Pad", "mirror_pad", [I64([0, 1, 2, 1, 0, 3])], dict(mode="edge")),
])
def test_movement(kind, kernel, constants, attributes):
    compare(kind, [(2, 4, 6)], *constants, kernel=kernel, exact=True, **attributes)


def test_joins_and_parts():
    compare("Concat", [(2, 4, 6), (2, 1, 6)], kernel="concatenation", axis=1, exact=True)
    compare("Split", [(2, 7)], I64([3, 4]), kernel="split", axis=1, outputs=2, exact=True)
    compare(
        "Split", [(2, 7)], kernel="split", axis=-1, outputs=3, num_outputs=3, exact=True
    )


POOLS = [
    dict(kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2]),
    dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER"),
    dict(kernel_shape=[2, 2], dilations=[2, 3]),
]


@pytest.mark.parametrize("attributes", POOLS)
def test_pools(attributes):
    shape = [(2, 3, 8, 7)]
    compare("MaxPool", shape, kernel="onnx.max_pool", exact=True, **attributes)
    compare("MaxPool", shape, kernel="onnx.max_pool", dtype=np.int8, **attributes)
    for version in (13, 19, 22):
        if version == 13 and "dilations" in attributes:
            continue
        given = dict(kernel="onnx.average_pool", version=version, exact=True, **attributes)
        compare("AveragePool", shape, **given)
        if "ceil_mode" not in attributes:
            compare("AveragePool", shape, count_include_pad=1, **given)


@pytest.mark.parametrize("version", [13, 19])
@pytest.mark.parametrize("shape, window, strides, kernel", [
    ((2, 3, 20), [4], [3], "onnx.average_pool"),
    ((2, 3, 9, 40), [3, 4], [2, 3], "onnx.average_pool"),
    ((1, 2, 40, 70), [3, 32], [1, 1], "onnx.average_pool"),
    ((1, 2, 40, 70), [33, 3], [1, 2], "onnx.average_pool"),
    ((1, 2, 5, 6, 7), [2, 3, 2], [1, 2, 2], "onnx.average_pool"),
    ((2, 3, 8, 9), [8, 9], [1, 1], "onnx.global_average_pool"),
])
def test_the_order_of_sums(shape, window, strides, kernel, version):
    """Bytes, as sums of float32 depend on their order, and QuantizeLinear may follow."""
    compare(
        "AveragePool", [shape], kernel=kernel if version == 13 else "onnx.average_pool",
        version=version, exact=True, kernel_shape=window, strides=strides,
    )


@pytest.mark.parametrize("kind, kernel", [
    ("ReduceMean", "onnx.reduce_mean"), ("ReduceSum", "onnx.reduce_sum"),
    ("ReduceMax", "reduce_max"), ("ReduceMin", "reduce_min"),
])
def test_reductions(kind, kernel):
    compare(kind, [(2, 3, 4)], I64([1, -1]), kernel=kernel, keepdims=0)
    compare(kind, [(2, 3, 4)], kernel=kernel)
    compare(kind, [(2, 3, 4)], I64([0]), kernel=kernel, dtype=np.int32)


@pytest.mark.parametrize("attributes", POOLS)
def test_a_quantized_average(attributes):
    """The scales are equal powers of two: many averages are ties, or next to them."""
    for dtype, version in itertools.product((np.uint8, np.int8), (13, 19)):
        if version == 13 and "dilations" in attributes:
            continue
        b = Builder(opset=version)
        scale, zero = F32(2**-5), dtype(7)
        x = b.node("DequantizeLinear", b.input("x", (2, 3, 8, 7), dtype), scale, zero)
        y = b.node("QuantizeLinear", b.node("AveragePool", x, **attributes), scale, zero)
        limits = np.iinfo(dtype)
        values = b.rng.integers(limits.min, limits.max + 1, (2, 3, 8, 7)).astype(dtype)
        equal_to_runtime(b, y, [values], dtype=dtype)


def test_global_pools_and_places():
    for version in (13, 22):
        compare(
            "GlobalAveragePool", [(2, 3, 5, 7)], kernel="onnx.global_average_pool", exact=True,
            version=version,
        )
    compare("GlobalMaxPool", [(2, 3, 4, 5)], kernel="reduce_max")
    for kind, kernel in (("ArgMax", "arg_max"), ("ArgMin", "arg_min")):
        compare(kind, [(2, 9, 3)], kernel=kernel, dtype=np.int8, out=I64, axis=1)
        compare(kind, [(2, 9, 3)], kernel=kernel, out=I64, axis=-1, keepdims=0)


def test_batch_normalization():
    rng = np.random.default_rng(1)
    numbers = [rng.uniform(0.5, 1, 3).astype(F32) for _ in range(4)]
    compare("BatchNormalization", [(2, 3, 4)], *numbers, kernel="onnx.batch_normalization")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_quantize(dtype):
    version = 21 if dtype == np.int16 else 18
    for x in (F32(0.03), F32([0.01, 0.02, 0.5])):
        zero = np.full(x.shape, 5, dtype)
        options = dict(exact=True, axis=1, version=version)
        compare(
            "QuantizeLinear", [(40, 3, 7)], x, zero, kernel="onnx.quantize", out=dtype, **options
        )
        compare(
            "DequantizeLinear", [(40, 3, 7)], x, zero, kernel="onnx.dequantize", dtype=dtype,
            out=F32, **options,
        )


@pytest.mark.parametrize("low, high", [(-3, 2), (0.5, 2), (-3, -1), (0, 0)])
def test_dynamic_quantize(low, high):
    require("onnx", "onnxruntime")
    b = Builder(seed=12)
    y, scale, zero = b.node("DynamicQuantizeLinear", b.input("x", [5, 9]), outputs=3)
    y = b.node("DequantizeLinear", y, scale, zero)
    data = b.bytes(y, scale)
    x = b.rng.uniform(low, high, (5, 9)).astype(F32)
    graph = load(data, "net.onnx")
    assert [node.kernel for node in graph.nodes] == ["onnx.dynamic_quantize", "onnx.dequantize"]
    values = run_graph(graph, [x], mode="onnx")
    for number, expected in zip(graph.outputs, run_runtime(data, [x]), strict=True):
        assert np.array_equal(values[number], expected)


@pytest.mark.parametrize("kind, kernel", [
    ("QLinearAdd", "qlinear_add"), ("QLinearMul", "qlinear_multiply"),
])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized_add_and_multiply(kind, kernel, dtype):
    """All pairs of bytes; the scales differ from run to run."""
    require("onnx", "onnxruntime")
    b = Builder(seed=13)
    limits = np.iinfo(dtype)
    a, c = (v.astype(dtype).ravel() for v in np.mgrid[0:256, 0:256] + limits.min)
    for _ in range(6):
        b = Builder(seed=int(b.rng.integers(1 << 30)))
        s = b.rng.uniform(0.003, 0.1, 3).astype(F32)
        z = b.rng.integers(limits.min, limits.max, 3, dtype, endpoint=True)
        names = b.input("a", [a.size], dtype), b.input("c", [a.size], dtype)
        y = b.node(
            kind, names[0], s[0], z[0], names[1], s[1], z[1], s[2], z[2], domain="com.microsoft"
        )
        equal_to_runtime(b, y, [a, c], dtype, [f"onnx.{kernel}"])


@pytest.mark.parametrize("scales, zeros", [
    ((0.0390625, 0.0625, 0.375), (177, 134, 212)), ((0.125, 0.0234375, 0.078125), (125, 128, 141)),
    ((0.125, 0.015625, 0.09375), (228, 190, 121)), ((0.03125, 0.015625, 0.1875), (50, 172, 191)),
])
def test_quantized_add_next_to_ties(scales, zeros):
    """All pairs of bytes, with scales for which the order of the roundings shows."""
    require("onnx", "onnxruntime")
    b = Builder()
    a, c = (v.astype(U8).ravel() for v in np.mgrid[0:256, 0:256])
    names = b.input("a", [a.size], U8), b.input("c", [a.size], U8)
    s, z = F32(scales), U8(zeros)
    y = b.node("QLinearAdd", names[0], s[0], z[0], names[1], s[1], z[1], s[2], z[2],
               domain="com.microsoft")
    equal_to_runtime(b, y, [a, c], U8)


def test_quantized_add_without_the_last_zero_point():
    shapes = [(40, 9)]
    scales = [F32(0.02), U8(9), np.arange(9, dtype=U8), F32(0.04), U8(3), F32(0.05)]
    compare(
        "QLinearAdd", shapes, *scales, kernel="onnx.qlinear_add", dtype=U8, domain="com.microsoft"
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized_pool_and_concat(dtype):
    compare(
        "QLinearGlobalAveragePool", [(2, 5, 7, 9)], F32(0.02), dtype(9), F32(0.003), dtype(3),
        kernel="onnx.qlinear_global_average_pool", dtype=dtype, domain="com.microsoft",
    )
    require("onnx", "onnxruntime")
    b = Builder(seed=14)
    x, y = (b.input(name, [2, 40, 9], dtype) for name in "xy")
    z = b.node(
        "QLinearConcat", F32(0.02), dtype(7), x, F32(0.013), dtype(3), y, F32(0.02), dtype(7),
        domain="com.microsoft", axis=1,
    )
    inputs = [b.rng.integers(0, 120, (2, 40, 9), dtype) for _ in "xy"]
    equal_to_runtime(b, z, inputs, dtype, ["onnx.qlinear_concat"])


@pytest.mark.parametrize("rule", [
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
])
@pytest.mark.parametrize("rounding", [
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
])
def test_resize(rule, rounding):
    options = dict(
        kernel="onnx.select", exact=True, mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode=rule,
    )
    for scale in ([1, 1, 2, 2], [1, 1, 0.5, 1.7]):
        compare("Resize", [(1, 2, 6, 5)], "", F32(scale), **options)
    compare("Resize", [(1, 2, 6, 5)], "", "", I64([1, 2, 9, 1]), **options)


@pytest.mark.parametrize("kind, shapes, constants, attributes", [
    ("LayerNormalization", [(2, 8)], [np.ones(8, F32)], {}),
    ("CumSum", [(2, 8)], [I64(1)], {}),
    ("Resize", [(1, 1, 4, 4)], ["", F32([1, 1, 2, 2])], dict(mode="linear")),
    ("QLinearSoftmax", [(2, 8)], [F32(0.1), U8(0), F32(1 / 256), U8(0)],
     dict(domain="com.microsoft", dtype=U8, axis=-1, opset=13)),
])
def test_other_operators_run_in_onnxruntime(kind, shapes, constants, attributes):
    compare(kind, shapes, *constants, kernel="onnx.model", exact=True, **attributes)
