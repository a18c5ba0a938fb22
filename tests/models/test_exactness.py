"""What Weft claims of the outputs of a network: each case makes one part of the claim false."""

import contextlib
import dataclasses

import numpy as np
import pytest
from graphs import chain, convolution, fully_connected, graph_of, lstm, table_of, tensor
from tflite_files import T, build, micro

from weft.config import Config
from weft.models.exactness import BFLOAT16, FLOAT32, exactness_of
from weft.models.ir import Gemm, Host, Quantization, Recurrence, Tensor
from weft.models.tflite import load

PADS = (
    "not SPACE_TO_BATCH_ND: TFLite Micro pads with bytes that it does not initialize (a known"
    " fault)"
)
INT8, BF16 = Config(), Config(dtype="bf16")
F32 = np.dtype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(43)


def host(operator, kernel, number, tensors, *, y=None, ties="", **attributes):
    """An operator of the host that reads ``number``; appends its output, of ``y`` or as its input.
    """
    tensors.append(y or dataclasses.replace(tensors[number], data=None))
    return Host(
        operator=operator, name=operator, position=(len(tensors),), inputs=(number,),
        outputs=(len(tensors) - 1,), kernel=kernel, attributes=attributes, reason="", ties=ties,
    )


def claim(nodes, tensors, mode="tflite", config=INT8, source="tflite"):
    graph = graph_of(nodes, tensors, source=source)
    found = exactness_of(graph, mode, config)
    return found.claim, found.absolute[0], found.relative[0]


@pytest.mark.parametrize("mode, runtime", [
    ("tflite", "TFLite Micro"), ("single", "LiteRT"), ("onnx", "onnxruntime"),
])
def test_integers_are_equal(rng, mode, runtime):
    tensors = [tensor((4, 6))]
    nodes = [host("Reshape", "reshape", 0, tensors)]
    assert claim(nodes, tensors, mode) == (f"equal to {runtime} in mode {mode}", 0.0, 0.0)


def test_products_of_bytes_in_litert_have_ties(rng):
    """LiteRT has a scale of float32, and ties to even; in int16 its rule is the one of Weft."""
    for mode in ("tflite", "onnx"):
        found = exactness_of(chain(rng), mode, INT8)
        assert found.claim.endswith(f"in mode {mode}")
        assert found.absolute == found.relative == (0.0,)
    text = "values of FULLY_CONNECTED next to ties may differ by 1"
    found = exactness_of(chain(rng), "single", INT8)
    assert found.claim == f"equal to LiteRT in mode single, but {text}"
    assert found.absolute[0] >= 1
    tensors = [tensor((1, 4, 4, 2), np.int16)]
    node = convolution(rng, 0, tensors, 3, dtype=np.int16)
    wide = dataclasses.replace(node.requantization, wide=True)
    node = dataclasses.replace(node, requantization=wide)
    assert claim([node], tensors, "single") == ("equal to LiteRT in mode single", 0.0, 0.0)


def test_a_convolution_of_int16_with_a_bias_of_32_bits(rng):
    tensors = [tensor((1, 4, 4, 2), np.int16)]
    node = dataclasses.replace(convolution(rng, 0, tensors, 3, dtype=np.int16), operator="CONV_2D")
    assert claim([node], tensors)[0] == "equal to TFLite Micro in mode tflite"
    assert claim([node], tensors, "single")[0].endswith(
        "not CONV_2D: LiteRT takes its bias of 32 bits for one of 64 bits (a known fault)"
    )


@pytest.mark.parametrize("name", ["EXP", "GELU", "RELU_N1_TO_1", "TILE", "SELECT", "REDUCE_PROD"])
def test_functions_that_tflite_micro_lacks(name):
    tensors = [tensor((4, 6))]
    node = host(name, "table", 0, tensors)
    assert claim([node], tensors)[0] == (
        f"equal to TFLite Micro in mode tflite, but not {name}: TFLite Micro does not have it, and"
        " Weft computes it as LiteRT"
    )
    assert claim([node], tensors, "single")[0] == "equal to LiteRT in mode single"


LACKS = ", but not {}: TFLite Micro does not have it, and Weft computes it as LiteRT"
REARRANGED = "DEPTH_TO_SPACE", ("DepthToSpaceOptions", {"blockSize": 2}), (1, 2, 2, 8), (1, 4, 4, 2)


@pytest.mark.parametrize(("name", "options", "shape", "result", "kinds", "runs"), [
    (*REARRANGED, ("int8", "int8"), True), (*REARRANGED, ("int16", "int16"), False),
    ("TRANSPOSE", None, (2, 3), (3, 2), ("int16", "int16"), True),
    ("TRANSPOSE", None, (2, 3), (3, 2), ("int32", "int32"), False),
    ("GREATER", None, (2, 3), (2, 3), ("int64", "bool"), True),
    ("GREATER", None, (2, 3), (2, 3), ("bool", "bool"), False),
    ("CAST", ("CastOptions", {}), (2, 3), (2, 3), ("int32", "int16"), True),
    ("CAST", ("CastOptions", {}), (2, 3), (2, 3), ("int64", "int16"), False),
    ("CAST", ("CastOptions", {}), (2, 3), (2, 3), ("int16", "int64"), False),
])
def test_types_that_tflite_micro_lacks(name, options, shape, result, kinds, runs):
    """The claim is "equal" where the runtime runs the operator, and else it is not."""
    scales = [0.1 if kind in ("int8", "int16") and name != "CAST" else None for kind in kinds]
    tensors = {"x": T(shape, kinds[0], scale=scales[0]), "y": T(result, kinds[1], scale=scales[1])}
    inputs = {"TRANSPOSE": ["x", "p"], "GREATER": ["x", "x"]}.get(name, ["x"])
    if "p" in inputs:
        tensors["p"] = T(data=np.int32([1, 0]))
    data = build(tensors, [(name, inputs, ["y"], options)], ["x"], ["y"])
    claimed = exactness_of(load(data, "net"), "tflite", INT8).claim
    assert claimed == "equal to TFLite Micro in mode tflite" + ("" if runs else LACKS.format(name))
    with contextlib.nullcontext() if runs else pytest.raises(RuntimeError):
        micro(data, [np.ones(shape, kinds[0])])


def float_product(tensors):
    x = tensors[0]
    tensors.append(Tensor("y", (4, 3), F32))
    return Gemm(
        operator="MatMul", name="m", position=(0,), inputs=(0,), outputs=(1,), x=0,
        weights=np.ones((1, x.shape[1], 3), np.float32),
    )


@pytest.mark.parametrize("config, text, relative", [
    (INT8, "products in float32, so close to onnxruntime but not always equal", FLOAT32),
    (BF16, "products in bfloat16, so close to onnxruntime but not equal", BFLOAT16),
])
def test_products_of_floats_are_close(config, text, relative):
    tensors = [Tensor("x", (4, 5), F32)]
    node = float_product(tensors)
    assert claim([node], tensors, "onnx", config, "onnx") == (text, 0.0, relative)


def test_functions_of_floats_are_close():
    tensors = [Tensor("x", (4, 5), F32)]
    nodes = [host("Softmax", "onnx.softmax", 0, tensors), host("Relu", "onnx.relu", 1, tensors)]
    text = "equal to onnxruntime in mode onnx, but float32 results of Softmax are close"
    assert claim(nodes, tensors, "onnx", source="onnx") == (text, 0.0, FLOAT32)
    assert claim(nodes[1:], [*tensors], "onnx", source="onnx")[0].endswith("mode onnx")


def test_integers_of_close_floats_may_be_the_other_step():
    """DequantizeLinear, Softmax, QuantizeLinear; then DequantizeLinear gives floats again."""
    tensors = [tensor((4, 5), scale=0.1)]
    nodes = [
        host("DequantizeLinear", "onnx.dequantize", 0, tensors, y=Tensor("", (4, 5), F32)),
        host("Softmax", "onnx.softmax", 1, tensors),
        host("QuantizeLinear", "onnx.quantize", 2, tensors, y=tensor((4, 5), scale=0.25)),
    ]
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (1.0, 0.0)
    nodes.append(host("DequantizeLinear", "onnx.dequantize", 3, tensors, y=tensors[1]))
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (0.25, 0.0)
    exact = [nodes[0], host("QuantizeLinear", "onnx.quantize", 1, tensors, y=tensors[3])]
    assert claim(exact, tensors, "onnx", source="onnx")[1:] == (0.0, 0.0)


def test_a_step_is_several_steps_of_a_smaller_scale():
    """An average before a Concat may have a larger scale than the result of the Concat."""
    tensors = [tensor((4, 5), scale=0.3)]
    nodes = [
        host("AveragePool", "onnx.average", 0, tensors, ties="by floats"),
        host("DequantizeLinear", "onnx.dequantize", 1, tensors, y=Tensor("", (4, 5), F32)),
        host("QuantizeLinear", "onnx.quantize", 2, tensors, y=tensor((4, 5), scale=0.1)),
    ]
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (3.0, 0.0)
    nodes[1:] = [host("LeakyRelu", "table", 1, tensors, y=tensor((4, 5), scale=0.12))]
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (3.0, 0.0)
    nodes[1:] = [host("LeakyRelu", "table", 1, tensors, y=tensor((4, 5), scale=0.5))]
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (1.0, 0.0)


def test_each_operator_with_ties_adds_a_step(rng):
    tensors = [tensor((4, 6))]
    nodes = [
        dataclasses.replace(
            fully_connected(rng, n, tensors, 6, position=n), operator="Gemm", ties="by floats"
        ) for n in range(2)
    ]
    text = "equal to onnxruntime in mode onnx, but values of Gemm next to ties may differ by 1"
    assert claim(nodes, tensors, "onnx", source="onnx") == (text, 2.0, 0.0)


def test_float_sums_of_values_with_ties_may_differ_by_a_part(rng):
    tensors = [tensor((4, 6))]
    nodes = [
        dataclasses.replace(fully_connected(rng, 0, tensors, 6), ties="by floats"),
        fully_connected(rng, 1, tensors, 5, raw=True),
    ]
    nodes[1] = dataclasses.replace(nodes[1], requantization=None)
    tensors[2] = Tensor("sums", (4, 5), np.dtype(np.int32))
    nodes.append(host("MatMul", "onnx.scale", 2, tensors, y=Tensor("y", (4, 5), F32)))
    assert claim(nodes, tensors, "onnx", source="onnx")[1:] == (0.0, 1 / 128)


def test_a_model_of_tflite_micro_is_not_litert(rng):
    tensors = [tensor((4, 6))]
    nodes = [host("UNIDIRECTIONAL_SEQUENCE_LSTM", "tflite.model", 0, tensors)]
    assert claim(nodes, tensors)[0] == "equal to TFLite Micro in mode tflite"
    assert claim(nodes, tensors, "single")[0] == (
        "equal to LiteRT in mode single, but not UNIDIRECTIONAL_SEQUENCE_LSTM: it runs in TFLite"
        " Micro"
    )
    whole = [dataclasses.replace(nodes[0], position=(0, 1, 2))]
    assert claim(whole, tensors, "single")[0].endswith(
        ", but not the whole file: it runs in TFLite Micro"
    )


@pytest.mark.parametrize("power, wide, known", [
    (-9, False, True), (-15, False, True), (-8, False, False), (-16, False, False),
    (-11, True, False),
])
def test_an_lstm_that_litert_lacks(rng, power, wide, known):
    tensors = [tensor((2, 3, 4))]
    *_, node = lstm(rng, 0, tensors, 5)
    attributes = {"wide": wide, "cell_power": power}
    node = dataclasses.replace(
        node, kernel="tflite.lstm", attributes=attributes, inputs=(0,), products=()
    )
    text = claim([node], tensors, "single")[0]
    assert text.endswith("in mode single" if known else (
        f", but not {node.operator}: LiteRT does not have it, and Weft computes it as TFLite Micro"
    ))
    assert claim([node], tensors)[0] == "equal to TFLite Micro in mode tflite"


def of_int16(scale):
    return Tensor(
        "", (4, 6), np.dtype(np.int16), Quantization(np.float32([scale]), np.zeros(1, np.int64))
    )


@pytest.mark.parametrize("operator, kernel, x, y, attributes, mode, part", [
    ("QUANTIZE", "table", tensor((4, 6)), tensor((4, 6), np.uint8), {}, "single",
     "values of QUANTIZE next to ties may differ by 1"),
    ("QUANTIZE", "table", tensor((4, 6)), tensor((4, 6), scale=0.1), {}, "single", None),
    ("QUANTIZE", "table", tensor((4, 6)), tensor((4, 6), np.uint8), {}, "tflite", None),
    ("SUM", "tflite.sum", of_int16(0.1), of_int16(0.3), {}, "single",
     "values of SUM next to ties may differ by 1"),
    ("ADD", "tflite.add", of_int16(2.0**-9), of_int16(2.0**-8), {}, "single",
     "values of ADD next to ties may differ by 1"),
    ("ADD", "tflite.add", of_int16(0.1), of_int16(0.3), {}, "single", None),
    ("ADD", "tflite.plain_add", of_int16(1), of_int16(1), {"low": 0, "high": 9}, "single",
     "not ADD: LiteRT applies its activation, Weft and TFLite Micro do not"),
    ("SPACE_TO_BATCH_ND", "pad", tensor((4, 6)), tensor((4, 8)), {"padding": ((0, 0), (1, 1))},
     "tflite", PADS),
    ("SVDF", "tflite.svdf", tensor((1, 6)), tensor((1, 6)), {"bias": None}, "tflite",
     "not SVDF: TFLite Micro reads a bias that is not there (a known fault)"),
    ("SVDF", "tflite.svdf", tensor((1, 6)), tensor((1, 6)), {"bias": np.zeros(6)}, "tflite", None),
    ("SPACE_TO_BATCH_ND", "pad", tensor((4, 6)), tensor((4, 6)), {"padding": ((0, 0), (0, 0))},
     "tflite", None),
])
def test_operators_that_a_runtime_computes_in_another_way(
    operator, kernel, x, y, attributes, mode, part
):
    tensors = [x]
    node = host(operator, kernel, 0, tensors, y=y, **attributes)
    if operator == "ADD":
        node = dataclasses.replace(node, inputs=(0, 0))
    text = claim([node], tensors, mode)[0]
    assert text.endswith(f", but {part}" if part else f"in mode {mode}" if mode == "single" else "")
    assert part or ", but " not in text


def test_sums_of_litert_overflow():
    tensors = [tensor((4, 6), scale=1.0), tensor((4, 6), scale=1 / 256), tensor((4, 6), scale=1.0)]
    node = Host(
        operator="ADD", name="a", position=(0,), inputs=(0, 1), outputs=(2,), kernel="tflite.add",
        attributes={}, reason="",
    )
    assert claim([node], tensors, "single")[0].endswith(
        ", but not ADD: sums in LiteRT overflow (a known fault)"
    )
    tensors[1] = tensor((4, 6), scale=1 / 255)
    assert claim([node], tensors, "single")[0].endswith("in mode single")


def test_tflite_micro_has_no_uint8(rng):
    tensors = [tensor((1, 4, 4, 2), np.uint8)]
    node = convolution(rng, 0, tensors, 3, dtype=np.uint8, w_dtype=np.uint8)
    assert claim([node], tensors)[0] == "equal to int8 in TFLite Micro, which has no uint8"
    text = f"values of {node.operator} next to ties may differ by 1"
    assert claim([node], tensors, "single")[0] == f"equal to LiteRT in mode single, but {text}"


def test_several_limits_are_named(rng):
    tensors = [Tensor("x", (4, 5), F32)]
    nodes = [
        host("LOGISTIC", "onnx.sigmoid", 0, tensors), host("COS", "tflite.model", 1, tensors),
        host("LOGISTIC", "onnx.sigmoid", 2, tensors),
    ]
    assert claim(nodes, tensors, "single")[0] == (
        "equal to LiteRT in mode single, but float32 results of LOGISTIC are close, and not COS: it"
        " runs in TFLite Micro"
    )


def test_a_table_is_exact(rng):
    tensors = [tensor((4, 6))]
    assert claim([table_of(rng, 0, tensors)], tensors)[1:] == (0.0, 0.0)


def test_a_recurrent_layer_in_bfloat16_adds_the_error_of_each_step():
    shapes = (5, 2, 3), (5, 2, 16), (5, 4)
    tensors = [Tensor("", shape, F32) for shape in shapes]
    state = len(tensors)
    tensors += [Tensor("state", (2, 4), F32), Tensor("own", (2, 16), F32)]
    own = Gemm(
        operator="LSTM", name="own", position=(0,), inputs=(state,), outputs=(state + 1,), x=state,
        weights=np.ones((1, 4, 16), np.float32),
    )
    node = Recurrence(
        operator="LSTM", name="l", position=(0,), inputs=(1,), outputs=(2,), kernel="onnx.lstm",
        attributes={}, products=(own,), steps=5, reason="gates",
    )
    text, absolute, relative = claim([node], tensors, "onnx", BF16, "onnx")
    assert (absolute, relative) == (0.0, 6 * BFLOAT16)
    assert text.endswith("but not equal, but differences grow with the steps of LSTM")
    assert claim([node], tensors, "onnx", INT8, "onnx")[2] == FLOAT32


def test_a_file_that_a_runtime_reads_in_another_way(rng):
    graph = dataclasses.replace(chain(rng), unlike={"tflite": "it takes other sizes"})
    claimed = exactness_of(graph, "tflite", INT8).claim
    assert claimed == "not equal to TFLite Micro: it takes other sizes"
    assert exactness_of(graph, "single", INT8).claim.startswith("equal to LiteRT in mode single")
