"""Errors of TFLite files: a message names the file, the operator and the rule."""

from types import SimpleNamespace

import numpy as np
import pytest
from tflite_files import T, build

from weft.models import ModelError
from weft.models.tflite import load
from weft.models.tflite.importer import macs_of
from weft.models.tflite.reader import read
from weft.models.tflite.runtime import cut

X, Y = T((1, 8), scale=0.1), T((1, 8), scale=0.1)


def file(name="RELU", tensors=None, ins=("x",), outs=("y",), options=None, fed=("x",)):
    return build(
        {"x": X, "y": Y} | (tensors or {}), [(name, list(ins), list(outs), options)], list(fed),
        list(outs),
    )


def conv(**changes):
    tensors = {
        "x": T((1, 4, 4, 3), scale=0.1), "y": T((1, 4, 4, 5), scale=0.1),
        "w": T(data=np.ones((5, 3, 3, 3), np.int8), scale=np.full(5, 0.1)),
        "b": T(data=np.ones(5, np.int32)),
    }
    options = {
        "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1,
        "padding": 0,
    }
    tensors |= {key: value for key, value in changes.items() if key in tensors}
    options |= {key: value for key, value in changes.items() if key not in tensors}
    return file("CONV_2D", tensors, ["x", "w", "b"], options=("Conv2DOptions", options))


@pytest.mark.parametrize("data, message", [
    (b"", "net: the file must have a network, and is empty$"),
    (b"abc", r"net: bytes 4..7 of .* must be TFL3 \(54 46 4c 33\), and the file has 3 bytes$"),
    (b"abcdefghi", r"net: bytes 4..7 of .* must be TFL3 \(54 46 4c 33\), not 65 66 67 68$"),
    (b"\x08\x0a\x3a\x05graph", "net: the file must be a TFLite file, and is an ONNX file; "),
    (b"\x08\0\0\0TFL3" + b"\xff" * 8,
     r"net: the model must lie inside the file \(16 bytes\); the file is cut off or damaged$"),
])
def test_rejects_what_is_no_tflite_file(data, message):
    with pytest.raises(ModelError, match=message):
        load(data, "net")


@pytest.mark.parametrize("changes, message", [
    (dict(w=T(data=np.ones((5, 3, 3, 2), np.int8), scale=0.1)),
     r"weights \(5, 3, 3, 2\) must divide the 3 channels of the input into groups"),
    (dict(strideH=0), "stride must be at least 1, not 0"),
    (dict(dilationWFactor=-1), "dilation must be at least 1, not -1"),
    (dict(padding=1), r"output 0 must be of shape \(1, 2, 2, 5\), not \(1, 4, 4, 5\)"),
    (dict(b=T(data=np.ones(4, np.int32))), r"bias must have 5 values, not shape \(4,\)"),
    (dict(b=T(data=np.ones(5, np.float32))), "bias must be int32, not float32"),
    (dict(b=T(data=np.ones(5, np.int8))), "bias must be int32, not int8"),
    (dict(x=T((1, 4, 4, 3), scale=np.nan)), "scales of 'x' must be finite and above 0, not nan"),
    (dict(x=T((1, 4, 4, 3))), "tensor 'x' must have a scale"),
    (dict(x=T((1, 4, 4, 3), scale=0.1, zero=200)),
     "zero points of 'x' must be in -128..127, not 200"),
    (dict(y=T((1, 4, 4, 5), scale=np.full(5, 0.1), axis=3)),
     "tensor 'y' must have one scale, not 5"),
    (dict(w=T(data=np.ones((5, 3, 3, 3), np.int8), scale=np.full(3, 0.1), axis=3)),
     "scales of 'w' must be along axis 0, not 3"),
    (dict(x=T((1, 4, 4, 3), scale=1e30)),
     r"x_scale \* w_scale / y_scale must be above 0 and below 2\*\*30"),
    (dict(x=T((4, 4, 3), scale=0.1)), "input must have 4 dimensions, not 3"),
])
def test_rejects_a_convolution(changes, message):
    with pytest.raises(ModelError, match=rf"^net: operator 0 \(CONV_2D, 'y'\): {message}"):
        load(conv(**changes), "net")


def test_rejects_what_breaks_a_rule_of_its_operator():
    data = file()
    graph = load(data, "net")
    assert graph.operators == ("RELU",)
    tensors = {"w": T(data=np.ones((3, 8), np.int8), scale=0.1)}
    with pytest.raises(ModelError, match=r"\(FULLY_CONNECTED, 'y'\): the output must have 3"):
        load(file("FULLY_CONNECTED", tensors, ["x", "w"]), "net")
    with pytest.raises(ModelError, match="input 1 must be present|inputs must be 2..3, not 1"):
        load(file("FULLY_CONNECTED"), "net")
    with pytest.raises(ModelError, match="options must be FullyConnectedOptions, not AddOptions"):
        load(file("FULLY_CONNECTED", tensors, ["x", "w"], options=("AddOptions", {})), "net")


def test_the_output_of_a_concatenation_has_all_inputs():
    options = "ConcatenationOptions", {"axis": 1}
    with pytest.raises(ModelError, match=r"output 0 must be of shape \(1, 16\), not \(1, 8\)"):
        load(file("CONCATENATION", {}, ["x", "x"], options=options), "net")


@pytest.mark.parametrize("name, message", [
    ("UNIDIRECTIONAL_SEQUENCE_RNN",
     "this operator; the nearest supported operator is UNIDIRECTIONAL_SEQUENCE_LSTM"),
    (9999, r"\(code 9999, 'y'\): neither Weft nor TFLite Micro has this operator"),
    ("DENSIFY", "neither Weft nor TFLite Micro has this operator$"),
    ("custom:Sharpen",
     "has the custom operator 'Sharpen'; convert the network without it, or end the network "),
    ("custom:", "has the custom operator ''; "),
    ("custom:ethos-u", r"was compiled for an Arm Ethos-U \(by Vela\); use the .tflite file from"),
    ("custom:FlexErf", "FlexErf is an operator of TensorFlow, .*; convert the network without SEL"),
])
def test_rejects_operators_that_nothing_runs(name, message):
    with pytest.raises(ModelError, match=message):
        load(file(name), "net")


def test_rejects_what_is_not_computed():
    with pytest.raises(ModelError, match="input 'z' must be computed before"):
        load(file("ADD", {"z": X}, ["x", "z"]), "net")
    with pytest.raises(ModelError, match="output 'x' must be written once"):
        load(build({"x": X}, [("RELU", ["x"], ["x"], None)], ["x"], ["x"]), "net")
    with pytest.raises(ModelError, match="output 'y' must be computed"):
        load(build({"x": X, "y": Y}, [], ["x"], ["y"]), "net")


def test_a_constant_must_fill_its_tensor():
    wrong = T((3, 7), "int8", scale=0.1)
    wrong.data = np.ones((3, 6), np.int8)
    with pytest.raises(ModelError, match=r"'w'\): data of shape \(3, 7\) must have 21 bytes"):
        load(file("FULLY_CONNECTED", {"w": wrong}, ["x", "w"]), "net")


@pytest.mark.parametrize("changes, message", [
    (dict(shape=(5, -1)), "dimensions of a constant must be at least 0, not -1"),
    (dict(variable=True), "a variable must have no data in the file"),
])
def test_constants_that_the_runtimes_take_for_something_else(changes, message):
    tensors = {"x": T((2, 1), scale=0.1), "y": T((2, 5), scale=0.2)}
    tensors["w"] = T(data=np.ones((5, 1), np.int8), scale=0.1, **changes)
    options = "FullyConnectedOptions", {"keepNumDims": True}
    data = file("FULLY_CONNECTED", tensors, ["x", "w", None], options=options)
    with pytest.raises(ModelError, match=rf"^net: tensor \d \('w'\): {message}$"):
        load(data, "net")


def test_an_input_must_not_be_a_constant():
    tensors = {"x": X, "z": T(data=np.ones((1, 8), np.int8), scale=0.1), "y": Y}
    data = build(tensors, [("ADD", ["x", "z"], ["y"])], ["x", "z"], ["y"])
    rule = r"^net: the inputs: Inputs must have no constant; tensor 1 \('z'\) is one$"
    with pytest.raises(ModelError, match=rule):
        load(data, "net")


@pytest.mark.parametrize("number", [2, 99, -2])
def test_tensors_of_an_operator_must_exist(number):
    message = rf"net: operator 0 \(ADD\): Inputs must be tensors -1..1, not {number}"
    with pytest.raises(ModelError, match=message):
        load(file("ADD", ins=["x", number]), "net")


def test_scales_must_be_as_many_as_channels():
    wrong = T(data=np.ones((5, 3, 3, 3), np.int8), scale=np.full(3, 0.1))
    with pytest.raises(ModelError, match="scales of 'w' must be 1 or 5, not 3"):
        load(conv(w=wrong), "net")


def test_a_cut_operator_has_its_constants_and_options():
    constants = {
        "w": T(data=np.arange(-8, 7).reshape(5, 3).astype(np.int8), dtype="int4", scale=0.1),
        "b": T(data=np.arange(5, dtype=np.int32)),
    }
    tensors = {"x": T((2, 3), scale=0.1, zero=4), "y": T((2, 5), scale=0.2), **constants}
    options = "FullyConnectedOptions", {"fusedActivationFunction": 1, "keepNumDims": True}
    whole = read(file("FULLY_CONNECTED", tensors, ["x", "w", "b"], options=options), "net")
    values = {i: t.data for i, t in enumerate(whole.tensors) if t.data is not None}
    data, fed = cut(whole, whole.operators[0], values)
    part = read(data, "part")
    assert [whole.tensors[i].name for i in fed] == ["x"]
    [operator] = part.operators
    found = [part.tensors[i] for i in (*operator.inputs, *operator.outputs)]
    for tensor, name in zip(found, ("x", "w", "b", "y"), strict=True):
        [given] = [t for t in whole.tensors if t.name == name]
        assert (tensor.shape, tensor.dtype) == (given.shape, given.dtype)
        assert np.array_equal(tensor.data, given.data) or tensor.data is given.data is None
        if given.quantization is not None:
            assert tensor.quantization.scale == given.quantization.scale
            assert tensor.quantization.zero == given.quantization.zero
    options = operator.options("FullyConnectedOptions")
    assert (options.FusedActivationFunction(), options.KeepNumDims()) == (1, True)


def test_constants_that_are_converted_are_folded():
    """float16 weights behind a DEQUANTIZE, as converters write them."""
    half = np.arange(24).reshape(3, 8).astype(np.float16)
    tensors = {
        "x": T((1, 8), "float32"), "y": T((1, 3), "float32"), "h": T(data=half),
        "w": T((3, 8), "float32"),
    }
    data = build(tensors, [
        ("DEQUANTIZE", ["h"], ["w"], None),
        ("FULLY_CONNECTED", ["x", "w"], ["y"], ("FullyConnectedOptions", {})),
    ], ["x"], ["y"])
    [node] = load(data, "net").nodes
    assert node.position == (1,)
    assert np.array_equal(node.weights[0], half.T) and node.weights.dtype == np.float32


def test_dimensions_of_any_size_are_fixed_and_noted():
    tensors = {"x": T((-1, 8), scale=0.1), "y": T((-1, 8), scale=0.1)}
    graph = load(file("RELU", tensors), "net")
    assert [tensor.shape for tensor in graph.tensors] == [(1, 8), (1, 8)]
    assert graph.notes[0].startswith("2 tensors have dimensions of any size")


def test_a_name_is_short_and_printable():
    name = "a\x1b[31m" + "b" * 5000
    tensors = {"x": X, name: Y}
    graph = load(build(tensors, [("RELU", ["x"], [name], None)], ["x"], [name]), "net")
    assert graph.tensors[1].name == r"a\x1b[31m" + "b" * 250


@pytest.mark.parametrize("bias, macs", [
    (T((5,), "int32"), 2 * 2 * 5 * 27), (T(data=np.ones(5, np.int32)), 0),
])
def test_a_product_that_the_runtime_computes_has_its_macs(bias, macs):
    """They count in the share of the core: here the bias is computed, which Weft lacks."""
    tensors = {
        "x": T((1, 4, 4, 3), scale=0.1), "y": T((1, 2, 2, 5), scale=0.1), "b": bias,
        "w": T(data=np.ones((5, 3, 3, 3), np.int8), scale=np.full(5, 0.1)),
    }
    options = {
        "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": 1,
    }
    data = file(
        "CONV_2D", tensors, ["x", "w", "b"], options=("Conv2DOptions", options),
        fed=("x", "b") if macs else ("x",),
    )
    [node] = load(data, "net").nodes
    assert getattr(node, "macs", 0) == macs
    assert (getattr(node, "kernel", "") == "tflite.model") == bool(macs)


SHAPES = {  # shapes of the inputs and the output of a small operator, and its MAC by hand
    "CONV_2D": ([(1, 9, 9, 4), (6, 3, 3, 4)], (1, 7, 7, 6), 49 * 6 * 36),
    "DEPTHWISE_CONV_2D": ([(2, 9, 9, 4), (1, 3, 3, 8)], (2, 7, 7, 8), 2 * 49 * 9 * 8),
    "TRANSPOSE_CONV": ([(4,), (6, 3, 3, 4), (1, 5, 5, 4)], (1, 10, 10, 6), 100 * 6 * 36),
    "FULLY_CONNECTED": ([(3, 5, 4), (7, 20)], (3, 7), 3 * 7 * 20),
    "BATCH_MATMUL": ([(2, 3, 4), (2, 4, 5)], (2, 3, 5), 2 * 3 * 4 * 5),
    "SVDF": ([(2, 10), (8, 10), (8, 6)], (2, 4), 2 * (80 + 48)),
    "SOFTMAX": ([(1, 9)], (1, 9), 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_macs(name):
    inputs, y, macs = SHAPES[name]
    tensors = [SimpleNamespace(shape=shape) for shape in (*inputs, y)]
    operator = SimpleNamespace(
        name=name, inputs=tuple(range(len(inputs))), outputs=(len(inputs),)
    )
    assert macs_of(operator, tensors) == macs


def test_an_lstm_multiplies_all_matrices_at_each_step():
    """Weights of the input gate are absent (CIFG); there is a projection."""
    shapes = [(2, 5, 6)] + [()] + [(8, 6)] * 3 + [()] + [(8, 4)] * 3 + [()] * 7 + [(4, 8)]
    tensors = [SimpleNamespace(shape=shape) for shape in (*shapes, (2, 5, 4))]
    inputs = tuple(-1 if shape == () else n for n, shape in enumerate(shapes))
    operator = SimpleNamespace(
        name="UNIDIRECTIONAL_SEQUENCE_LSTM", inputs=inputs, outputs=(len(shapes),)
    )
    assert macs_of(operator, tensors) == 10 * (3 * 48 + 3 * 32 + 32)


def test_a_file_without_outputs():
    data = build({"x": X, "y": Y}, [("RELU", ["x"], ["y"])], ["x"], [])
    with pytest.raises(ModelError, match="^net: outputs must be at least 1, not 0$"):
        load(data, "net")
