"""Every operator that the host computes, in numpy, against TFLite Micro: random and extreme."""

import itertools

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build, micro

from weft.network.tflite import load

INT8, INT16, FLOAT = np.int8, np.int16, np.float32


def values(rng, t):
    """Random values of a tensor, with both ends of the range."""
    kind = np.dtype(t.dtype)
    if kind == np.bool_:
        return rng.random(t.shape) < 0.5
    if kind.kind == "f":
        x = (rng.standard_normal(t.shape) * 10.0 ** rng.integers(-2, 3)).astype(kind)
        x.ravel()[: x.size // 8] = 0
        return x
    limits = np.iinfo(kind)
    if kind.itemsize > 2:
        return rng.integers(-100_000, 100_000, t.shape).astype(kind)
    x = rng.integers(limits.min, limits.max, t.shape, kind, endpoint=True)
    if x.size > 3:
        x.ravel()[:2] = limits.min, limits.max
    return x


def check(rng, name, inputs, outputs, options=None, kernel=None, trivial=False):
    """One operator on random values; ``inputs`` are tensors, those without data are fed."""
    tensors = {f"i{i}": t for i, t in enumerate(inputs)}
    tensors |= {f"o{i}": t for i, t in enumerate(outputs)}
    ins, outs = list(tensors)[: len(inputs)], list(tensors)[len(inputs) :]
    fed = [key for key in ins if tensors[key].data is None]
    data = build(tensors, [(name, ins, outs, options)], fed, outs)
    graph = load(data, "net")
    [node] = graph.nodes
    assert node.kernel == kernel if kernel else node.kernel != "tflite.model", node.reason
    for _ in range(3):
        x = [values(rng, tensors[key]) for key in fed]
        found = run_graph(graph, x)
        expected = micro(data, x, len(outs))
        for number, y in zip(graph.outputs, expected, strict=True):
            z = found[number]
            same = np.array_equal(z, y, equal_nan=z.dtype.kind == "f")
            assert same, (name, node.attributes, x, z[z != y], y[z != y])
        check_uint8(name, tensors, ins, outs, options, x, expected)
    assert trivial or any(len(np.unique(found[number])) > 1 for number in graph.outputs)


def raised(value):
    """int8 values as uint8, larger by 128; other values as they are."""
    return (value.astype(int) + 128).astype(np.uint8) if value.dtype == INT8 else value


# Operators whose rounding depends on the sign of the raw value, or that keep it.
RAW = ("AVERAGE_POOL_2D", "RESIZE_BILINEAR", "CAST")


def check_uint8(name, tensors, ins, outs, options, x, expected):
    """TFLite Micro has no uint8: the same file, with all int8 values and zero points raised."""
    if name in RAW or not any(t.dtype == "int8" for t in tensors.values()):
        return
    if any(t.dtype == "uint8" for t in tensors.values()) or (name, "int16") == (
        "SOFTMAX", tensors[outs[0]].dtype
    ):
        return
    lifted = {}
    for key, t in tensors.items():
        dtype = "uint8" if t.dtype == "int8" else t.dtype
        zero = t.zero + 128 * (t.dtype == "int8")
        data = None if t.data is None else raised(t.data)
        lifted[key] = T(t.shape, dtype, t.scale, zero, t.axis, data)
    fed = [key for key in ins if tensors[key].data is None]
    graph = load(build(lifted, [(name, ins, outs, options)], fed, outs), "net")
    found = run_graph(graph, [raised(value) for value in x])
    for number, y in zip(graph.outputs, expected, strict=True):
        assert np.array_equal(found[number], raised(y)), (name, graph.nodes[0].attributes)


@pytest.fixture
def rng(request):
    return np.random.default_rng(list(request.node.name.encode()))


def q(rng, shape, dtype=INT8, scale=None, zero=None, data=None):
    """A quantized tensor with a random scale and zero point."""
    if dtype == FLOAT or np.dtype(dtype) == np.int32:
        return T(shape, dtype)
    scale = float(np.exp2(rng.uniform(-7, -3))) if scale is None else scale
    if zero is None:
        zero = 0 if dtype == INT16 else int(rng.integers(-128, 128))
    return T(shape, dtype, scale=scale, zero=zero)


BROADCASTS = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((1,), (2, 3, 4)), ((2, 1, 4), (1, 3, 1))]


@pytest.mark.parametrize("dtype", [INT8, INT16, FLOAT, np.int32])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_arithmetic(rng, name, dtype):
    for fused, (a, b) in itertools.product(range(4), BROADCASTS):
        y = q(rng, np.broadcast_shapes(a, b), dtype)
        options = {"fusedActivationFunction": fused}
        options = f"{name.title()}Options", options
        check(rng, name, [q(rng, a, dtype), q(rng, b, dtype)], [y], options, trivial=True)


def test_the_same_tensor_twice(rng):
    x, y = q(rng, (2, 9)), q(rng, (2, 9))
    data = build({"x": x, "y": y}, [("ADD", ["x", "x"], ["y"], ("AddOptions", {}))], ["x"], ["y"])
    graph, value = load(data, "net"), values(rng, x)
    assert np.array_equal(run_graph(graph, [value])[1], micro(data, [value])[0])


@pytest.mark.parametrize("name, dtype", [
    ("SQUARED_DIFFERENCE", INT8), ("SQUARED_DIFFERENCE", FLOAT), ("DIV", FLOAT),
])
def test_more_arithmetic(rng, name, dtype):
    for a, b in BROADCASTS:
        y = q(rng, np.broadcast_shapes(a, b), dtype)
        options = ("DivOptions", {}) if name == "DIV" else ("SquaredDifferenceOptions", {})
        check(rng, name, [q(rng, a, dtype), q(rng, b, dtype)], [y], options, trivial=True)


@pytest.mark.parametrize("dtype", [INT8, FLOAT, np.int32])
@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM"])
def test_extremes(rng, name, dtype):
    for a, b in BROADCASTS:
        x = q(rng, a, dtype)
        y = T(np.broadcast_shapes(a, b), dtype, scale=x.scale, zero=x.zero)
        other = T(b, dtype, scale=x.scale, zero=x.zero)
        check(rng, name, [x, other], [y], ("MaximumMinimumOptions", {}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT, np.int32])
@pytest.mark.parametrize("name", [
    "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
])
def test_comparisons(rng, name, dtype):
    kind = "".join(part.title() for part in name.split("_")) + "Options"
    for a, b in BROADCASTS:
        y = T(np.broadcast_shapes(a, b), "bool")
        inputs = [q(rng, a, dtype), q(rng, b, dtype)]
        check(rng, name, inputs, [y], (kind, {}), trivial=True)


@pytest.mark.parametrize("name", ["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"])
def test_logical(rng, name):
    count = 1 if name == "LOGICAL_NOT" else 2
    check(rng, name, [T((3, 5), "bool")] * count, [T((3, 5), "bool")])


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_prelu(rng, dtype):
    for slope in ((1, 1, 4), (4,)):
        x, y = q(rng, (2, 3, 4), dtype), q(rng, (2, 3, 4), dtype)
        check(rng, "PRELU", [x, q(rng, slope, dtype)], [y])


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_select(rng, dtype):
    x = q(rng, (2, 3, 4), dtype)
    other = T((4,), dtype, scale=x.scale, zero=x.zero)
    check(rng, "SELECT_V2", [T((2, 3, 1), "bool"), x, other], [x], ("SelectV2Options", {}))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("dtype", [INT8, INT16, FLOAT])
@pytest.mark.parametrize("name", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools(rng, name, dtype, padding):
    for (kh, kw), (sh, sw), fused in itertools.product(
        [(1, 1), (3, 2), (2, 5)], [(1, 1), (2, 3)], (0, 1, 3)
    ):
        less = (1, 1) if padding == 0 else (kh, kw)
        out = [(n + s - m) // s for n, s, m in zip((7, 8), (sh, sw), less, strict=True)]
        x = q(rng, (2, 7, 8, 3), dtype)
        y = T((2, *out, 3), dtype, scale=x.scale, zero=x.zero)
        options = {
            "padding": padding, "strideH": sh, "strideW": sw, "filterHeight": kh,
            "filterWidth": kw, "fusedActivationFunction": fused,
        }
        check(rng, name, [x], [y], ("Pool2DOptions", options), trivial=True)


AXES = [((1, 2), True), ((2, 1), False), ((-1,), False), ((0,), True), ((1,), False)]


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("dtype", [INT8, INT16])
@pytest.mark.parametrize("name", ["MEAN", "SUM"])
def test_sums(rng, name, dtype, equal):
    for axes, keep in AXES:
        shape = np.zeros((2, 5, 6, 3)).sum(axes, keepdims=keep).shape
        x, y = q(rng, (2, 5, 6, 3), dtype), q(rng, shape, dtype)
        if name == "SUM" and not equal:
            y.scale = x.scale * 20
        if equal:
            y = T(shape, dtype, scale=x.scale, zero=x.zero)
        axes = T(data=np.array(axes, np.int32))
        check(rng, name, [x, axes], [y], ("ReducerOptions", {"keepDims": keep}), trivial=True)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN"])
def test_reduced_extremes(rng, name, dtype):
    for axes, keep in AXES:
        shape = np.zeros((2, 5, 6, 3)).sum(axes, keepdims=keep).shape
        x = q(rng, (2, 5, 6, 3), dtype)
        y = T(shape, dtype, scale=x.scale, zero=x.zero)
        axes = T(data=np.array(axes, np.int32))
        check(rng, name, [x, axes], [y], ("ReducerOptions", {"keepDims": keep}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("name", ["ARG_MAX", "ARG_MIN"])
def test_arg_extremes(rng, name, dtype):
    kind = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
    for axis in (0, 1, -1):
        shape = tuple(np.delete((4, 5, 300), axis))
        x, y = q(rng, (4, 5, 300), dtype), T(shape, "int32")
        check(rng, name, [x, T(data=np.array([axis], np.int32))], [y], (kind, {"outputType": 2}))


@pytest.mark.parametrize("align, half", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("name, dtype", [
    ("RESIZE_BILINEAR", INT8), ("RESIZE_NEAREST_NEIGHBOR", INT8),
    ("RESIZE_NEAREST_NEIGHBOR", FLOAT),
])
def test_resize(rng, name, dtype, align, half):
    title = "ResizeBilinear" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    options = f"{title}Options", {"alignCorners": align, "halfPixelCenters": half}
    for size in ((1, 1), (3, 9), (10, 14), (5, 7), (17, 4)):
        x = q(rng, (2, 5, 7, 3), dtype)
        y = T((2, *size, 3), dtype, scale=x.scale, zero=x.zero)
        check(rng, name, [x, T(data=np.array(size, np.int32))], [y], options, trivial=True)


@pytest.mark.parametrize("out", [INT8, INT16])
def test_softmax(rng, out):
    for scale, beta, columns in itertools.product((0.01, 0.1, 0.5, 2.0), (1.0, 0.3), (1, 7, 300)):
        y = T((4, columns), out, scale=1 / 256 if out == INT8 else 1 / 65536,
              zero=-128 if out == INT8 else -32768)
        x = q(rng, (4, columns), scale=scale)
        check(rng, "SOFTMAX", [x], [y], ("SoftmaxOptions", {"beta": beta}), trivial=True)


FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


@pytest.mark.parametrize("name", [
    "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "ELU", "ABS",
])
def test_tables(rng, name):
    every = np.arange(256, dtype=np.uint8).view(INT8)
    for _ in range(60):
        x, y = q(rng, (256,)), q(rng, (256,))
        if name in FIXED:
            y = T((256,), scale=FIXED[name][0], zero=FIXED[name][1])
        if name == "RELU6":
            y = T((256,), scale=x.scale, zero=x.zero)
        if name == "HARD_SWISH":
            y.scale = x.scale * float(rng.uniform(0.3, 1.5))
        options = None
        if name == "LEAKY_RELU":
            options = "LeakyReluOptions", {"alpha": float(rng.uniform(-0.5, 2))}
        data = build({"x": x, "y": y}, [(name, ["x"], ["y"], options)], ["x"], ["y"])
        graph = load(data, "net")
        assert graph.nodes[0].kernel == "table"
        found = run_graph(graph, [every])[1]
        [expected] = micro(data, [every])
        assert np.array_equal(found, expected), (x.scale, x.zero, y.scale, found, expected)
        tensors = {"x": x, "y": y}
        check_uint8(name, tensors, ["x"], ["y"], options, [every], [expected])


@pytest.mark.parametrize("name", [
    "RELU", "RELU6", "LEAKY_RELU", "ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "FLOOR", "CEIL",
    "ROUND",
])
def test_float_functions(rng, name):
    options = ("LeakyReluOptions", {"alpha": 0.1}) if name == "LEAKY_RELU" else None
    check(rng, name, [T((50,), FLOAT)], [T((50,), FLOAT)], options, trivial=True)


@pytest.mark.parametrize("name", ["LOGISTIC", "TANH"])
def test_int16_sigmoids(rng, name):
    for scale in (2**-12, 2**-11, 2**-10, 2**-15, 1e-4, 3e-4, 0.00123, 0.01, 1e-9, 0.5):
        x = T((3000,), INT16, scale=scale)
        y = T((3000,), INT16, scale=1 / 32768)
        check(rng, name, [x], [y], trivial=True)


def test_int16_leaky_relu(rng):
    for alpha in (0.1, 1.5):
        x, y = q(rng, (500,), INT16), q(rng, (500,), INT16)
        check(rng, "LEAKY_RELU", [x], [y], ("LeakyReluOptions", {"alpha": alpha}))


@pytest.mark.parametrize("source, target", [
    (FLOAT, INT8), (FLOAT, INT16), (INT8, INT8), (INT16, INT8), (INT16, INT16), (INT8, INT16),
    (np.int32, INT8), (np.int32, INT16), (INT8, np.int32), (INT16, np.int32), (np.uint8, INT8),
    (INT8, np.uint8),
])
def test_quantize(rng, source, target):
    for _ in range(10):
        x, y = q(rng, (300,), source), q(rng, (300,), target)
        for t in (x, y):
            if np.dtype(t.dtype) == np.int32:
                t.scale, t.zero = 0.001, 0
            if np.dtype(t.dtype) == np.uint8:
                t.zero += 128
        check(rng, "QUANTIZE", [x], [y], trivial=True)


@pytest.mark.parametrize("source", [INT8, INT16, np.uint8])
def test_dequantize(rng, source):
    for _ in range(10):
        x = q(rng, (300,), source)
        x.zero += 128 * (source == np.uint8)
        check(rng, "DEQUANTIZE", [x], [T((300,), FLOAT)])


@pytest.mark.parametrize("source, target", [
    (INT8, FLOAT), (INT16, np.int32), (np.int32, FLOAT), (INT8, np.int32), (np.int32, INT16),
])
def test_cast(rng, source, target):
    check(rng, "CAST", [T((30,), source)], [T((30,), target)])


I32 = np.int32


def moving():
    """Cases: name, input shapes, constants, output shapes, options."""
    yield "RESHAPE", [(2, 6)], [np.array([3, 4], I32)], [(3, 4)], None
    yield "RESHAPE", [(2, 6)], [], [(4, 3)], ("ReshapeOptions", {"newShape": [4, 3]})
    yield "SQUEEZE", [(2, 1, 6)], [], [(2, 6)], ("SqueezeOptions", {"squeezeDims": [1]})
    yield "EXPAND_DIMS", [(2, 6)], [np.array([1], I32)], [(2, 1, 6)], ("ExpandDimsOptions", {})
    axes = np.array([0, 3, 1, 2], I32)
    yield "TRANSPOSE", [(2, 3, 4, 5)], [axes], [(2, 5, 3, 4)], ("TransposeOptions", {})
    for axis in (1, -1):
        yield (
            "CONCATENATION", [(2, 3), (2, 3)], [], [np.zeros((2, 3)).repeat(2, axis).shape],
            ("ConcatenationOptions", {"axis": axis}),
        )
    yield "PACK", [(2, 3), (2, 3)], [], [(2, 2, 3)], (
        "PackOptions", {"axis": 1, "valuesCount": 2},
    )
    yield "UNPACK", [(2, 3, 4)], [], [(2, 4)] * 3, ("UnpackOptions", {"axis": 1, "num": 3})
    yield "SLICE", [(4, 5, 6)], [np.array([1, 0, 2], I32), np.array([2, -1, 3], I32)], [
        (2, 5, 3),
    ], ("SliceOptions", {})
    yield "PAD", [(1, 2, 3, 1)], [np.array([[0, 0], [1, 2], [0, 3], [1, 0]], I32)], [
        (1, 5, 6, 2),
    ], ("PadOptions", {})
    yield "MIRROR_PAD", [(3, 4)], [np.array([[1, 2], [2, 0]], I32)], [(6, 6)], (
        "MirrorPadOptions", {"mode": 0},
    )
    yield "MIRROR_PAD", [(3, 4)], [np.array([[1, 2], [2, 0]], I32)], [(6, 6)], (
        "MirrorPadOptions", {"mode": 1},
    )
    yield "GATHER", [(3, 5, 4)], [np.array([[4, 0], [2, 2]], I32)], [(3, 2, 2, 4)], (
        "GatherOptions", {"axis": 1},
    )
    yield "SPACE_TO_DEPTH", [(2, 4, 6, 3)], [], [(2, 2, 3, 12)], (
        "SpaceToDepthOptions", {"blockSize": 2},
    )
    yield "DEPTH_TO_SPACE", [(2, 2, 3, 12)], [], [(2, 4, 6, 3)], (
        "DepthToSpaceOptions", {"blockSize": 2},
    )
    yield "BROADCAST_TO", [(3, 1)], [np.array([2, 3, 4], I32)], [(2, 3, 4)], None
    for begin, end, step, masks, shape in (
        ((0, 1, 2), (4, 5, 6), (1, 2, 3), {}, (4, 2, 2)),
        ((-1, 4, 5), (-5, -6, 0), (-1, -2, -2), {}, (4, 3, 3)),
        ((9, 9, 9), (9, 9, 4), (1, 1, 1), {"beginMask": 5, "endMask": 3, "shrinkAxisMask": 0},
         None),
        ((1, 0, -1), (9, 9, 9), (1, 1, 1), {"shrinkAxisMask": 5, "endMask": 2}, (5,)),
    ):
        if shape is not None:
            yield "STRIDED_SLICE", [(4, 5, 6)], [
                np.array(part, I32) for part in (begin, end, step)
            ], [shape], ("StridedSliceOptions", masks)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("case", list(moving()), ids=lambda case: case[0])
def test_moving(rng, case, dtype):
    name, inputs, constants, outputs, options = case
    x = [q(rng, inputs[0], dtype)]
    x += [T(shape, dtype, scale=x[0].scale, zero=x[0].zero) for shape in inputs[1:]]
    y = [T(shape, dtype, scale=x[0].scale, zero=x[0].zero) for shape in outputs]
    check(rng, name, [*x, *(T(data=value) for value in constants)], y, options)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_split(rng, dtype):
    x = q(rng, (2, 6, 4), dtype)
    def part(size):
        return T((2, size, 4), dtype, scale=x.scale, zero=x.zero)

    axis = T(data=np.array([1], I32))
    check(rng, "SPLIT", [axis, x], [part(2)] * 3, ("SplitOptions", {"numSplits": 3}))
    sizes = T(data=np.array([1, 3, 2], I32))
    parts = [part(1), part(3), part(2)]
    check(rng, "SPLIT_V", [x, sizes, axis], parts, ("SplitVOptions", {"numSplits": 3}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_padv2(rng, dtype):
    x = q(rng, (1, 2, 3, 1), dtype)
    y = T((1, 5, 6, 2), dtype, scale=x.scale, zero=x.zero)
    pairs = T(data=np.array([[0, 0], [1, 2], [0, 3], [1, 0]], I32))
    value = T(data=np.array([5], dtype), scale=x.scale, zero=x.zero)
    check(rng, "PADV2", [x, pairs, value], [y], ("PadV2Options", {}))
