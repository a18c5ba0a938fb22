"""Operators whose inputs and outputs have different scales, against both runtimes.

What LiteRT refuses is recorded here, and compared with LiteRT if its wheel is installed.
"""

import numpy as np
import pytest
from graph_runner import run_graph
from rejects import rejects
from tflite_files import T, build, micro
from tflite_operators import values

from weft.config import Config
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.exactness import in_mode
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

BYTES, QUANTIZED = ("int8", "uint8"), ("int8", "uint8", "int16")
BOOL = "bool"


def c(*numbers):
    return np.array(numbers, np.int32)


def pool(height, stride):
    return "Pool2DOptions", {
        "filterHeight": height, "filterWidth": height, "strideH": stride, "strideW": stride,
        "padding": 1,
    }


# Name, inputs (a shape: fed; an array: constant), outputs, options, version; then the types for
# which LiteRT refuses other scales.
CASES = [
    ("RESHAPE", [(2, 6), c(3, 4)], [(3, 4)], ("ReshapeOptions", {"newShape": [3, 4]}), 1, ()),
    ("SQUEEZE", [(2, 1, 6)], [(2, 6)], ("SqueezeOptions", {"squeezeDims": [1]}), 1, ()),
    ("EXPAND_DIMS", [(2, 6), c(1)], [(2, 1, 6)], ("ExpandDimsOptions", {}), 1, QUANTIZED),
    ("TRANSPOSE", [(2, 3, 4), c(2, 0, 1)], [(4, 2, 3)], ("TransposeOptions", {}), 2, BYTES),
    ("SLICE", [(4, 5), c(1, 2), c(2, 3)], [(2, 3)], ("SliceOptions", {}), 2, BYTES),
    ("STRIDED_SLICE", [(4, 5), c(0, 1), c(4, 5), c(1, 2)], [(4, 2)],
     ("StridedSliceOptions", {}), 2, ()),
    ("SPLIT", [c(1), (2, 6)], [(2, 3)] * 2, ("SplitOptions", {"numSplits": 2}), 2, BYTES),
    ("SPLIT", [c(1), (2, 5)], [(2, 1)] * 5, ("SplitOptions", {"numSplits": 5}), 2, ()),
    ("SPLIT_V", [(2, 6), c(1, 5), c(1)], [(2, 1), (2, 5)], ("SplitVOptions", {"numSplits": 2}), 2,
     ()),
    ("PACK", [(2, 3), (2, 3)], [(2, 2, 3)], ("PackOptions", {"axis": 1, "valuesCount": 2}), 2,
     QUANTIZED),
    ("UNPACK", [(2, 3)], [(2,)] * 3, ("UnpackOptions", {"axis": 1, "num": 3}), 2, QUANTIZED),
    ("CONCATENATION", [(2, 9), (2, 60)], [(2, 69)], ("ConcatenationOptions", {"axis": 1}), 2,
     ["int8"]),
    ("PAD", [(2, 3), c(1, 0, 2, 1).reshape(2, 2)], [(3, 6)], ("PadOptions", {}), 2, BYTES),
    ("PADV2", [(2, 3), c(1, 0, 2, 1).reshape(2, 2), 5], [(3, 6)], ("PadV2Options", {}), 2,
     QUANTIZED),
    ("MIRROR_PAD", [(3, 4), c(1, 2, 2, 0).reshape(2, 2)], [(6, 6)],
     ("MirrorPadOptions", {"mode": 0}), 2, QUANTIZED),
    ("GATHER", [(3, 5), c(4, 0)], [(3, 2)], ("GatherOptions", {"axis": 1}), 2, ()),
    ("TILE", [(2, 3), c(2, 2)], [(4, 6)], ("TileOptions", {}), 1, ()),
    ("SPACE_TO_DEPTH", [(1, 4, 6, 3)], [(1, 2, 3, 12)], ("SpaceToDepthOptions", {"blockSize": 2}),
     2, BYTES),
    ("DEPTH_TO_SPACE", [(1, 2, 3, 12)], [(1, 4, 6, 3)], ("DepthToSpaceOptions", {"blockSize": 2}),
     2, BYTES),
    ("SPACE_TO_BATCH_ND", [(1, 4, 6, 3), c(2, 2), c(0, 0, 0, 0).reshape(2, 2)], [(4, 2, 3, 3)],
     ("SpaceToBatchNDOptions", {}), 2, QUANTIZED),
    ("BATCH_TO_SPACE_ND", [(4, 2, 3, 3), c(2, 2), c(0, 0, 0, 0).reshape(2, 2)], [(1, 4, 6, 3)],
     ("BatchToSpaceNDOptions", {}), 2, QUANTIZED),
    ("RESIZE_NEAREST_NEIGHBOR", [(1, 3, 4, 2), c(5, 7)], [(1, 5, 7, 2)],
     ("ResizeNearestNeighborOptions", {}), 2, ()),
    ("RESIZE_BILINEAR", [(1, 3, 4, 2), c(5, 7)], [(1, 5, 7, 2)], ("ResizeBilinearOptions", {}), 2,
     BYTES),
    ("MAX_POOL_2D", [(1, 4, 6, 3)], [(1, 2, 3, 3)], pool(2, 2), 2, BYTES),
    ("MAX_POOL_2D", [(1, 5, 8, 3)], [(1, 2, 3, 3)], pool(2, 3), 2, ()),
    ("MAX_POOL_2D", [(1, 4, 6, 3)], [(1, 4, 6, 3)], pool(1, 1), 2, BYTES),
    ("AVERAGE_POOL_2D", [(1, 4, 6, 3)], [(1, 2, 3, 3)], pool(2, 2), 2, ()),
    ("MAXIMUM", [(2, 3), (2, 3)], [(2, 3)], ("MaximumMinimumOptions", {}), 2, ()),
    ("MINIMUM", [(2, 3), (2, 3)], [(2, 3)], ("MaximumMinimumOptions", {}), 2, ()),
    ("RELU", [(2, 300)], [(2, 300)], None, 2, ()),
    ("RELU6", [(2, 300)], [(2, 300)], None, 2, ()),
    ("RELU_N1_TO_1", [(2, 300)], [(2, 300)], None, 1, ()),
    ("RELU_0_TO_1", [(2, 300)], [(2, 300)], None, 1, ()),
    ("REVERSE_V2", [(2, 3), c(1)], [(2, 3)], ("ReverseV2Options", {}), 2, ()),
    ("REDUCE_MAX", [(2, 3, 4), c(1)], [(2, 4)], ("ReducerOptions", {}), 2, ["int16"]),
    ("REDUCE_MIN", [(2, 3, 4), c(1)], [(2, 4)], ("ReducerOptions", {}), 2, ["int16"]),
    ("SELECT_V2", [BOOL, (2, 3), (2, 3)], [(2, 3)], ("SelectV2Options", {}), 1, ()),
    ("BROADCAST_TO", [(3, 1), c(2, 3, 4)], [(2, 3, 4)], ("BroadcastToOptions", {}), 3, ()),
    ("ABS", [(2, 300)], [(2, 300)], ("AbsOptions", {}), 2, ()),
    ("HARD_SWISH", [(2, 300)], [(2, 300)], ("HardSwishOptions", {}), 1, ()),
    ("TANH", [(2, 300)], [(2, 300)], None, 2, ["int16"]),
    ("LOGISTIC", [(2, 300)], [(2, 300)], None, 2, ["int16"]),
    ("SOFTMAX", [(2, 30)], [(2, 30)], ("SoftmaxOptions", {"beta": 1.0}), 2, ["int8", "int16"]),
]
# Types that Weft leaves to TFLite Micro, or that neither runtime has.
ONLY = {
    "ABS": ["int8"], "SPACE_TO_DEPTH": BYTES, "DEPTH_TO_SPACE": BYTES, "HARD_SWISH": BYTES,
    **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "RESIZE_BILINEAR"), BYTES),
    "SOFTMAX": BYTES,
}
# What TFLite Micro does not have: operators, and operators of int16.
NOT_MICRO = {
    ("TILE", "int8"), ("RELU_N1_TO_1", "int8"), ("RELU_0_TO_1", "int8"),
    *((name, "int16") for name in (
        "MIRROR_PAD", "GATHER", "TILE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "REDUCE_MAX",
        "REDUCE_MIN",
    )),
}
X = (0.05, 3)
# Scale and zero point of the first input, of the others, and of the outputs.
UNEQUAL = {
    "scale of y": (X, X, (0.07, 3)), "zero of y": (X, X, (0.05, -9)),
    "scale of x": ((0.03, 3), X, X), "zero of x": ((0.05, 20), X, X),
    "scale of b": (X, (0.03, 3), X), "zero of b": (X, (0.05, 20), X),
}
FUNCTIONS = ("LOGISTIC", "SOFTMAX", "TANH")  # the scale of y alone matters


def all_cases():
    for i, case in enumerate(CASES):
        several = sum(isinstance(given, tuple | int) for given in case[1]) > 1
        for dtype in ONLY.get(case[0], QUANTIZED):
            for what, scales in UNEQUAL.items():
                if what[:4] == "zero" and dtype == "int16" or what[-1] == "b" and not several:
                    continue
                if case[0] in FUNCTIONS and what[-1] != "y":
                    continue
                yield pytest.param(
                    case, dtype, what, scales, id=f"{case[0]}-{i}-{dtype}-{what.replace(' ', '_')}"
                )


def quantized(dtype, shape, scale, zero, data=None):
    zero += 128 if dtype == "uint8" else 0
    data = None if data is None else np.array([data], dtype)
    return T(shape, dtype, scale, 0 if dtype == "int16" else zero, data=data)


def one_operator(rng, case, dtype, scales):
    """The file, values of the tensors that are fed, and the number of outputs."""
    name, inputs, outputs, options, version, _ = case
    tensors, fed, scales = {}, [], list(scales)
    for place, given in enumerate(inputs):
        key = f"i{place}"
        if isinstance(given, np.ndarray):
            tensors[key] = T(data=given)
            continue
        if given == BOOL:
            tensors[key] = T(outputs[0], BOOL)
        else:
            constant = given if isinstance(given, int) else None
            shape = given if constant is None else (1,)
            tensors[key] = quantized(dtype, shape, *scales[0], data=constant)
            scales = scales[-2:]
        if not isinstance(given, int):
            fed.append(key)
    ins = list(tensors)
    tensors |= {f"o{i}": quantized(dtype, shape, *scales[-1]) for i, shape in enumerate(outputs)}
    outs = list(tensors)[len(ins):]
    data = build(tensors, [(name, ins, outs, options, version)], fed, outs)
    return data, [values(rng, tensors[key]) for key in fed], len(outs)


def weft(data, x, mode):
    """The outputs of Weft's own kernels."""
    graph = in_mode(load(data, "net"), mode)
    assert "tflite.model" not in {node.kernel for node in graph.nodes}
    found = run_graph(graph, x)
    return [found[number] for number in graph.outputs]


def answer(function, *arguments):
    """The outputs, or None if the runtime, or Weft, refuses."""
    try:
        return function(*arguments)
    except (ModelError, RuntimeError):
        return None


def same(found, expected):
    if found is None or expected is None:
        return found is expected
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("case, dtype, what, scales", list(all_cases()))
def test_unequal_scales(rng, case, dtype, what, scales):
    """Weft computes the bytes of TFLite Micro, and refuses what a runtime refuses."""
    data, x, count = one_operator(rng, case, dtype, scales)
    found = answer(weft, data, x, "tflite")
    if dtype == "uint8":
        signed, y, _ = one_operator(rng, case, "int8", scales)
        assert (found is None) == (answer(weft, signed, y, "tflite") is None)
    elif (case[0], dtype) not in NOT_MICRO:
        assert same(found, answer(micro, data, x, count))
    single = answer(weft, data, x, "single")
    refused = dtype in case[-1] and (case[0], what[-1]) != ("PADV2", "x")
    assert (single is None) == refused


@pytest.mark.parametrize("case, dtype, what, scales", [
    pytest.param(*case.values, id=case.id, marks=pytest.mark.slow if number % 2 else ())
    for number, case in enumerate(all_cases())
])
def test_unequal_scales_in_litert(rng, case, dtype, what, scales):
    pytest.importorskip("ai_edge_litert")
    data, x, _ = one_operator(rng, case, dtype, scales)
    [expected] = answer(litert, data, [x]) or [None]
    assert same(answer(weft, data, x, "single"), expected)


def joined(dtype, scale):
    tensors = {
        "a": quantized(dtype, (1, 4), 0.05, 3), "b": quantized(dtype, (1, 4), scale, 3),
        "y": quantized(dtype, (1, 8), 0.05, 3),
    }
    options = "ConcatenationOptions", {"axis": 1}
    return build(tensors, [("CONCATENATION", ["a", "b"], ["y"], options, 2)], ["a", "b"], ["y"])


def test_a_refusal_of_both_runtimes_names_the_rule_and_the_values():
    text = (
        "net: operator 0 (CONCATENATION, 'y'): scales and zero points of inputs and outputs must be"
        " equal, not 0.07, 3 ('b') and 0.05, 3 ('y')"
    )
    with rejects(ModelError, text):
        load(joined("int8", 0.07), "net")


def test_a_refusal_of_one_runtime_comes_when_the_network_is_compiled():
    graph = load(joined("uint8", 0.07), "net")
    text = (
        "net: operator 0 (CONCATENATION, 'y'): TFLite Micro refuses it: scales and zero points of"
        " inputs and outputs must be equal, not 0.07, 131 ('b') and 0.05, 131 ('y'); a Config with"
        " requantize = 'single' computes it"
    )
    with rejects(ModelError, text):
        compile_graph(graph, Config(requantize="tflite"))
    assert compile_graph(graph, Config(requantize="single")).mode == "single"


@pytest.mark.parametrize("name, dtype, scale, zero, micro_takes, lite_takes", [
    ("LOGISTIC", "int8", 0.03, -128, True, True), ("LOGISTIC", "int8", 2**-8, 0, False, True),
    ("LOGISTIC", "int16", 2**-15 * 1.0005, 0, True, False),
    ("TANH", "int16", 2**-15 * 1.0005, 0, True, True),
    ("SOFTMAX", "int8", 2**-8 * 1.0005, -128, False, True),
    ("SOFTMAX", "int8", 2**-8 * 1.002, -128, False, False),
    ("MAX_POOL_2D", "int8", 0.05 + 9e-7, 3, True, False),
    ("AVERAGE_POOL_2D", "int8", 0.05 + 9e-7, 3, True, True),
])
def test_tolerances(rng, name, dtype, scale, zero, micro_takes, lite_takes):
    case = next(case for case in CASES if case[0] == name)
    data, x, _ = one_operator(rng, case, dtype, (X, X, (scale, zero)))
    [expected] = answer(micro, data, x) or [None]
    assert (expected is not None) == micro_takes
    found = answer(weft, data, x, "tflite")
    assert same(found and found[0], expected)
    assert (answer(weft, data, x, "single") is not None) == lite_takes


@pytest.mark.parametrize("name, dtype, scale, zero", [
    ("LOGISTIC", "int8", 0.03, -128), ("LOGISTIC", "int8", 2**-8, 0),
    ("TANH", "int16", 2**-15 * 1.0005, 0), ("LOGISTIC", "int16", 2**-15 * 1.0005, 0),
    ("SOFTMAX", "int8", 2**-8 * 1.0005, -128), ("SOFTMAX", "int8", 2**-8 * 1.002, -128),
    ("MAX_POOL_2D", "int8", 0.05 + 9e-7, 3),
])
def test_tolerances_of_litert(rng, name, dtype, scale, zero):
    pytest.importorskip("ai_edge_litert")
    case = next(case for case in CASES if case[0] == name)
    data, x, _ = one_operator(rng, case, dtype, (X, X, (scale, zero)))
    [expected] = answer(litert, data, [x]) or [None]
    assert same(answer(weft, data, x, "single"), expected)


@pytest.mark.parametrize("scale, zero", [(2**-16, -32768), (2**-15, 0), (2**-16, 0)])
def test_softmax_of_int8_to_int16(rng, scale, zero):
    y = T((2, 30), "int16", scale, zero)
    operator = "SOFTMAX", ["x"], ["y"], ("SoftmaxOptions", {"beta": 1.0}), 3
    data = build({"x": T((2, 30), "int8", *X), "y": y}, [operator], ["x"], ["y"])
    x = rng.integers(-128, 128, (2, 30)).astype(np.int8)
    assert same(answer(weft, data, [x], "tflite"), answer(micro, data, [x]))
    pytest.importorskip("ai_edge_litert")
    assert same(weft(data, [x], "single"), litert(data, [[x]])[0])


def test_resize_bilinear_with_both_options(rng):
    """LiteRT computes it, and TFLite Micro refuses it."""
    x, y = T((1, 3, 4, 2), "int8", *X), T((1, 5, 7, 2), "int8", *X)
    options = "ResizeBilinearOptions", {"halfPixelCenters": True, "alignCorners": True}
    tensors = {"x": x, "size": T(data=c(5, 7)), "y": y}
    data = build(tensors, [("RESIZE_BILINEAR", ["x", "size"], ["y"], options, 3)], ["x"], ["y"])
    fed = [values(rng, x)]
    assert answer(micro, data, fed) is answer(weft, data, fed, "tflite") is None
    found = weft(data, fed, "single")
    pytest.importorskip("ai_edge_litert")
    assert same(found, litert(data, [fed])[0])


def test_the_zero_point_of_a_bias(rng):
    """LiteRT refuses one of a bias with one scale; the scale itself means nothing to either."""
    weights = T(None, None, 0.02, data=rng.integers(-99, 99, (5, 2, 2, 3)).astype(np.int8))
    bias = T(None, None, 0.7, 7, data=rng.integers(-3000, 3000, 5).astype(np.int32))
    tensors = {"x": T((1, 4, 4, 3), "int8", *X), "w": weights, "b": bias,
               "y": T((1, 3, 3, 5), "int8", 0.1, 4)}
    options = "Conv2DOptions", {
        "padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1,
    }
    data = build(tensors, [("CONV_2D", ["x", "w", "b"], ["y"], options, 3)], ["x"], ["y"])
    graph, x = load(data, "net"), rng.integers(-128, 128, (1, 4, 4, 3)).astype(np.int8)
    assert same([run_graph(in_mode(graph, "tflite"), [x])[graph.outputs[0]]], micro(data, [x]))
    text = (
        "net: operator 0 (CONV_2D, 'y'): LiteRT refuses it: the zero point of the bias must be 0,"
        " not 7; a Config with requantize = 'tflite' computes it"
    )
    with rejects(ModelError, text):
        in_mode(graph, "single")


@pytest.mark.parametrize("bias, refused", [(0.0089, False), (0.0091, True), (None, False)])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_the_scale_of_the_bias_of_a_fully_connected_layer(bias, refused, dtype):
    """TFLite Micro takes 0.02 steps of a result; LiteRT looks at int16 only."""
    tensors = {
        "x": T((1, 4), dtype, scale=0.05), "w": T(data=np.ones((3, 4), np.int8), scale=0.02),
        "b": T(data=np.ones(3, np.int64 if dtype == "int16" else np.int32), scale=bias),
        "y": T((1, 3), dtype, scale=0.4),
    }
    operator = ("FULLY_CONNECTED", ["x", "w", "b"], ["y"], ("FullyConnectedOptions", {}), 4)
    data = build(tensors, [operator], ["x"], ["y"])
    text = (
        "the scale of the bias must be near x_scale * w_scale: abs(0.05 * 0.02 - 0.0091) / 0.4"
        " must be at most 0.02"
    )
    if not refused:
        assert not load(data, "net").nodes[0].refused
    elif dtype == "int8":
        [node] = load(data, "net").nodes
        assert [*node.refused] == ["tflite"]
        assert node.refused["tflite"].endswith(f"TFLite Micro refuses it: {text}")
    else:
        with rejects(ModelError, f"net: operator 0 (FULLY_CONNECTED, 'y'): {text}"):
            load(data, "net")
    if refused:
        with pytest.raises(RuntimeError, match="failed to allocate tensors"):
            micro(data, [np.zeros((1, 4), dtype)])


@pytest.mark.parametrize("off, refused", [(9e-6, False), (1.1e-5, True), (-1.1e-5, True)])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_the_scale_of_the_bias_of_an_svdf(kind, off, refused):
    """TFLite Micro takes 1e-5, which is small for a state of int8, and large for one of int16."""
    state, time = 3 / np.iinfo(kind).max, 1 / np.iinfo(kind).max
    bias = state * time + off
    tensors = {
        "x": T((1, 4), scale=0.05), "f": T(data=np.ones((3, 4), np.int8), scale=0.01),
        "t": T(data=np.ones((3, 2), kind), scale=time), "y": T((1, 3), scale=0.1),
        "b": T(data=np.ones(3, np.int32), scale=bias),
        "s": T((1, 6), kind, scale=state, variable=True),
    }
    options = "SVDFOptions", {"rank": 1, "fusedActivationFunction": 1}
    data = build(tensors, [("SVDF", ["x", "f", "t", "b", "s"], ["y"], options)], ["x"], ["y"])
    graph, x = load(data, "net"), np.zeros((1, 4), np.int8)
    if not refused:
        assert same([run_graph(in_mode(graph, "tflite"), [x])[graph.outputs[0]]], micro(data, [x]))
        return
    scales = [str(np.float32(scale)) for scale in (state, time, bias)]
    text = (
        "net: operator 0 (SVDF, 'y'): TFLite Micro refuses it: the scale of the bias must be near"
        f" state_scale * time_scale: abs({scales[0]} * {scales[1]} - {scales[2]}) must be below"
        " 1e-05; a Config with requantize = 'single' computes it"
    )
    with rejects(ModelError, text):
        in_mode(graph, "tflite")
    with pytest.raises(RuntimeError, match="failed to allocate tensors"):
        micro(data, [x])
