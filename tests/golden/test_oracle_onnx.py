"""The golden models against onnxruntime, on generated models: QLinearMatMul, QGemm, MatMulInteger.

In QGemm the sum is C where A is its zero point: so it sweeps the requantizer alone.
"""

import importlib.util
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from products import integers

from weft.golden import activate, add_bias, matmul, requantize
from weft.quantize import activation_table, leaky_relu, onnx_scale, sigmoid

INT8, UINT8 = np.int8, np.uint8
PAIRS = list(itertools.product((INT8, UINT8), repeat=2))
RUNS = [(INT8, INT8, INT8), (UINT8, INT8, UINT8), (UINT8, UINT8, UINT8)]  # A, B and the result
M, K, N = 9, 300, 20


@pytest.fixture(scope="module")
def ort():
    """onnxruntime on one core, onnx, and the types that it sums exactly."""
    for name in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # an operator without a kernel raises; it is not printed too
    return SimpleNamespace(onnx=onnx, runtime=onnxruntime, options=options, exact={})


@pytest.fixture
def exact(ort):
    """``exact(a, b)``: skips if sums of these types saturate, which is possible without VNNI."""

    def check(*types):
        if types not in ort.exact:
            a, b = ends(types[0], (M, K)), ends(types[1], (K, N))
            y = run(ort, "MatMulInteger", dict(a=a, b=b), {}, np.int32)
            ort.exact[types] = np.array_equal(y, matmul(a, b))
        if not ort.exact[types]:
            names = " x ".join(np.dtype(dtype).name for dtype in types)
            pytest.skip(f"onnxruntime's sums of {names} must be exact, but saturate on this CPU")

    return check


def ends(dtype, shape):
    """Both ends of ``dtype``, alternating along rows and columns."""
    limits = np.iinfo(dtype)
    return np.where(np.indices(shape).sum(axis=0) // 2 % 2, limits.min, limits.max).astype(dtype)


def run(ort, operator, inputs, constants, dtype, domain="", **attributes):
    """The result of an operator for inputs and constants; a constant named "" is omitted."""
    helper, types = ort.onnx.helper, ort.onnx.helper.np_dtype_to_tensor_dtype
    node = helper.make_node(operator, [*inputs, *constants], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "graph",
        [helper.make_tensor_value_info(n, types(v.dtype), v.shape) for n, v in inputs.items()],
        [helper.make_tensor_value_info("y", types(np.dtype(dtype)), None)],
        [ort.onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items() if n],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1),
    ])
    session = ort.runtime.InferenceSession(
        model.SerializeToString(), ort.options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0]


def layer(ort, operator, a, b, scales, zero_points, *, c=None, dtype):
    """QLinearMatMul, or QGemm with C, with scales and zero points of A, B and the result."""
    def numbers(index, dtype):
        return {
            f"scale_{index}": np.asarray(scales[index], np.float32),
            f"zero_point_{index}": np.asarray(zero_points[index], dtype),
        }

    bias = {"c" if c is not None else "": c} if operator == "QGemm" else {}
    # All inputs of the node, in order; all except A are constants.
    constants = {
        **numbers(0, a.dtype), "b": b, **numbers(1, b.dtype), **bias, **numbers(2, dtype)
    }
    domain = "com.microsoft" if operator == "QGemm" else ""
    return run(ort, operator, {"a": a}, constants, dtype, domain)


@pytest.mark.parametrize("types", PAIRS)
@pytest.mark.parametrize("per_column", [None, False, True])
def test_matmulinteger(ort, exact, types, per_column):
    exact(*types)
    rng = np.random.default_rng(1)
    a, b = integers(rng, types[0], M, K), integers(rng, types[1], K, N)
    constants = {}
    if per_column is not None:
        b_zero_point = integers(rng, types[1], N if per_column else 1)
        constants = {
            "a_zero_point": integers(rng, types[0], 1)[0],
            "b_zero_point": b_zero_point if per_column else b_zero_point[0],
        }
    y = run(ort, "MatMulInteger", dict(a=a, b=b), constants, np.int32)
    assert np.array_equal(y, matmul(a, b, **constants))


@pytest.mark.parametrize("operator", ["QLinearMatMul", "QGemm"])
@pytest.mark.parametrize("types", RUNS)
@pytest.mark.parametrize("per_column", [False, True])
def test_layers(ort, exact, operator, types, per_column):
    exact(*types[:2])
    rng = np.random.default_rng(2)
    limits = np.iinfo(types[2])
    a_middle, b_middle = (int(np.iinfo(dtype).max) // 2 + 1 & 128 for dtype in types[:2])
    for y_zero_point in (limits.min, 7, limits.max):
        a, b = integers(rng, types[0], M, K), integers(rng, types[1], K, N)
        a_zero_point, b_zero_point = a_middle + 11, b_middle + rng.integers(-20, 20, N)
        scales = [0.02, rng.uniform(0.01, 0.03, N).astype(np.float32), 1.7]
        if not per_column:
            scales[1], b_zero_point = scales[1][0], b_zero_point[0]
        c = rng.integers(-100_000, 100_000, N, np.int32) if operator == "QGemm" else None
        y = layer(
            ort, operator, a, b, scales, (a_zero_point, b_zero_point, y_zero_point),
            c=c, dtype=types[2],
        )
        acc = matmul(a, b, a_zero_point=a_zero_point, b_zero_point=b_zero_point)
        acc = acc if c is None else add_bias(acc, c)
        expected = requantize(
            acc, scale=onnx_scale(*scales), mode="onnx", zero_point=y_zero_point, dtype=types[2]
        )
        assert np.array_equal(y, expected)
        assert len(np.unique(y)) > 20


@pytest.mark.parametrize("operator", ["QLinearMatMul", "QGemm"])
def test_no_other_types_run(ort, operator):
    for types in sorted(set(itertools.product((INT8, UINT8), repeat=3)) - set(RUNS), key=str):
        a, b = np.zeros((1, 1), types[0]), np.zeros((1, 1), types[1])
        error = ort.runtime.capi.onnxruntime_pybind11_state.NotImplemented
        with pytest.raises(error, match=f"implementation for {operator}"):
            layer(ort, operator, a, b, (1, 1, 1), (0, 0, 0), dtype=types[2])


@pytest.mark.parametrize("types", RUNS)
def test_sweep(ort, sums, types):
    """A million sums and scales over all types: ties, ends of int32, saturation."""
    rng = np.random.default_rng(3)
    limits = np.iinfo(types[2])
    count = 1 << 14
    for index in range(22):
        scale = np.exp2(rng.uniform(-33, 9, count)).astype(np.float32)
        if index % 3 == 0:  # powers of two
            scale = np.exp2(rng.integers(-34, 10, count)).astype(np.float32)
        acc = sums(rng, scale.astype(np.float64))
        zero_point = int(rng.integers(limits.min, limits.max, endpoint=True))
        a = np.full((1, 1), 5, types[0])
        y = layer(
            ort, "QGemm", a, np.ones((1, count), types[1]), (1, scale, 1),
            (5, np.zeros(count), zero_point), c=acc, dtype=types[2],
        )
        expected = requantize(
            acc, scale=scale, mode="onnx", zero_point=zero_point, dtype=types[2]
        )
        assert np.array_equal(y[0], expected)


@pytest.mark.parametrize("operator", ["QLinearMatMul", "QGemm"])
def test_scales_are_computed_in_float32(ort, exact, operator):
    """Sums next to a tie of 8 bits, where the last bit of a scale changes the result."""
    exact(UINT8, UINT8)
    rng = np.random.default_rng(4)
    a = np.array([[255] * 1025 + [1]], UINT8)
    count, differ = 1000, 0
    for _ in range(8):
        a_scale, y_scale = np.float32(rng.uniform(1, 2, 2))
        b_scale = np.float32(rng.uniform(1e-5, 2e-5, count))
        scale = onnx_scale(a_scale, b_scale, y_scale)
        acc = np.rint((rng.integers(100, 250, count) + 0.5) / scale.astype(np.float64)).astype(int)
        whole, rest = np.divmod(acc, 255 * 255)
        b = 255 * (np.arange(1024)[:, None] < whole)
        b = np.vstack([b, rest // 255, rest % 255]).astype(UINT8)
        assert np.array_equal(matmul(a, b)[0], acc)
        y = layer(
            ort, operator, a, b, (a_scale, b_scale, y_scale), (0, np.zeros(count), 0), dtype=UINT8
        )
        assert np.array_equal(y[0], requantize(acc, scale=scale, mode="onnx", dtype=UINT8))
        by_double = (np.float64(a_scale) * b_scale / np.float64(y_scale)).astype(np.float32)
        differ += np.sum(y[0] != requantize(acc, scale=by_double, mode="onnx", dtype=UINT8))
    assert differ > 0


@pytest.mark.parametrize("bias, a", [((1 << 31) - 1, 3), (-(1 << 31), -3)])
def test_sums_wrap(ort, bias, a):
    c = np.full(N, bias, np.int32)
    y = layer(
        ort, "QGemm", np.full((1, 1), a, INT8), np.ones((1, N), INT8), (1, 2.0**-25, 1), (0, 0, 0),
        c=c, dtype=INT8,
    )
    acc = add_bias(np.full((1, N), a), c)
    assert np.array_equal(y, requantize(acc, scale=np.float32(2.0**-25), mode="onnx"))
    assert np.all(np.sign(y) == -np.sign(a))


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("operator, function, attributes", [
    ("QLinearSigmoid", sigmoid, {}),
    ("QLinearLeakyRelu", leaky_relu(np.float32(0.1)), dict(alpha=0.1)),
])
def test_tables(ort, dtype, operator, function, attributes):
    rng = np.random.default_rng(5)
    x = np.arange(256, dtype=UINT8).view(dtype)
    distinct = []
    for _ in range(40):
        x_scale, y_scale = np.float32(rng.uniform([0.01, 0.003], [0.08, 0.01]))
        x_zero_point, y_zero_point = integers(rng, dtype, 2)
        y = run(ort, operator, {"x": x}, {
            "x_scale": x_scale, "x_zero_point": x_zero_point,
            "y_scale": y_scale, "y_zero_point": y_zero_point,
        }, dtype, "com.microsoft", **attributes)
        table = activation_table(
            function, x_scale, x_zero_point, y_scale, y_zero_point,
            mode="onnx", x_dtype=dtype, y_dtype=dtype,
        )
        assert np.array_equal(activate(x, table), y)
        distinct.append(len(np.unique(y)))
    assert max(distinct) > 100
