"""Whole quantized networks against onnxruntime: each byte of each quantized tensor."""

from types import SimpleNamespace

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, attention, cnn, require, run_runtime

import weft
from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.onnx import load
from weft.models.onnx.importer import macs_of
from weft.models.report import placement_line

F32, U8 = np.float32, np.uint8
SIGNS = [("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8")]


NETWORKS = {"cnn": cnn, "attention": attention}


def quantized(tmp_path, network, form, per_channel, signs):
    """The file of a network that onnxruntime quantized, and inputs."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    b, y = NETWORKS[network]()
    shape = (1, 3, 10, 10) if network == "cnn" else (1, 6, 16)
    inputs = b.rng.normal(size=(3, *shape)).astype(np.float32)

    class Reader:
        """Gives the inputs one after another."""

        feeds = iter([{"x": x} for x in inputs])

        def get_next(self):
            return next(self.feeds, None)

    onnx.save(b.model(y), tmp_path / "float.onnx")
    quantize_static(
        tmp_path / "float.onnx", tmp_path / "int8.onnx", Reader(),
        quant_format=QuantFormat[form], per_channel=per_channel,
        activation_type=QuantType[signs[0]], weight_type=QuantType[signs[1]],
    )
    return (tmp_path / "int8.onnx").read_bytes(), inputs


def all_outputs(data, graph, values, x):
    """(name, ours, onnxruntime's) of all tensors of the file that the graph has."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    computed = {name for node in model.graph.node for name in node.output}
    numbers = {
        t.name: n for n, t in enumerate(graph.tensors) if t.name in computed and t.data is None
    }
    types = onnx.shape_inference.infer_shapes(model).graph.value_info
    known = {value.name: value for value in types}
    contrib = {n.output[0]: n for n in model.graph.node if n.domain == "com.microsoft"}
    for name in numbers:
        if name not in known and name in contrib:
            dtype = onnx.helper.np_dtype_to_tensor_dtype(graph.tensors[numbers[name]].dtype)
            known[name] = onnx.helper.make_tensor_value_info(name, dtype, None)
    names = [name for name in numbers if name in known]
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in names)
    results = run_runtime(model.SerializeToString(), [x])
    return [(n, values[numbers[n]], y) for n, y in zip(names, results, strict=True)]


@pytest.mark.filterwarnings("ignore")  # of onnxruntime's quantization
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network, per_channel, signs", [
    ("cnn", True, SIGNS[0]),
    ("attention", False, SIGNS[1]),
    *(pytest.param(network, per_channel, signs, marks=pytest.mark.slow)
      for network in NETWORKS for per_channel in (False, True) for signs in SIGNS),
])
def test_every_byte_equals_onnxruntime(tmp_path, form, network, per_channel, signs):
    """With onnxruntime's optimizations off, where QDQ products are float32 between roundings."""
    require("onnx", "onnxruntime")
    data, inputs = quantized(tmp_path, network, form, per_channel, signs)
    graph = load(data, "int8.onnx")
    products = [node for node in graph.nodes if isinstance(node, Gemm)]
    assert len(products) == (5 if network == "cnn" else 7)
    floats = [node.operator for node in products if graph.tensors[node.x].dtype == np.float32]
    assert floats == (["ConvTranspose"] if (network, form) == ("cnn", "QOperator") else [])
    for x in inputs[:2]:
        values = run_graph(graph, [x], mode="onnx")
        compared = 0
        for name, ours, theirs in all_outputs(data, graph, values, x):
            if theirs.dtype.kind in "iu":
                assert np.array_equal(ours, theirs), name
                compared += theirs.size
        assert compared > 500


def quantized_layers(count):
    """Layers of uint8 whose float biases have no scale, and a shape that is computed."""
    b = Builder(seed=230)
    y = b.node("Identity", b.input("x", [2, 12]))
    y = b.node("QuantizeLinear", y, F32(0.02), U8(128))
    for _ in range(count):
        y = b.node("DequantizeLinear", y, F32(0.02), U8(128))
        w = b.constant(b.rng.integers(-100, 100, (12, 12)).astype(np.int8))
        w = b.node("DequantizeLinear", w, F32(0.01), np.int8(0))
        y = b.node("Relu", b.node("Gemm", y, w, b.weights(12)))
        y = b.node("QuantizeLinear", y, F32(0.02), U8(128))
    y = b.node("DequantizeLinear", y, F32(0.02), U8(128))
    return b.bytes(b.node("Reshape", y, b.node("Shape", y)))


@pytest.mark.parametrize("count", [1, 3])
def test_a_note_about_many_layers_is_one_line(count):
    require("onnx")
    notes = [n for n in load(quantized_layers(count), "net.onnx").notes if "24711" in n]
    [note] = notes
    others = " and 2 more" if count == 3 else ""
    assert note.startswith(f"Gemm4{others}: a known fault of onnxruntime")


def test_operators_that_nothing_executes_are_not_counted():
    """Conversions around a product are part of it; Identity and Shape are names and constants."""
    require("onnx")
    network = weft.load(quantized_layers(3), "net")
    program = network.compile(weft.Config(rows=4, cols=4, depth=4, requantize="onnx"))
    assert placement_line(program).startswith(
        "net: 6 of 9 operators on Weft (100 % of 864 MAC), 3 on the host (QuantizeLinear, "
        "DequantizeLinear, Reshape); "
    )


@pytest.mark.parametrize("dtype, build, told", [
    ("int8", attention, True), ("bf16", attention, False), ("int8", None, False),
])
def test_a_float_network_on_a_core_for_integers_has_a_note(dtype, build, told):
    require("onnx")
    if build:
        b, y = build()
        data = b.bytes(y)
    else:
        data = quantized_layers(1)
    core = {} if dtype == "bf16" else {"requantize": "onnx"}
    program = weft.load(data).compile(weft.Config(rows=4, cols=4, dtype=dtype, **core))
    assert sum("weft quantize makes an int8 network" in note for note in program.notes) == told


def test_long_names_are_shortened():
    require("onnx")
    b = Builder(seed=231)
    model = b.model(b.node("Squeeze", b.input("x", [2, 3]), np.int64([0])))
    name = "/".join(f"layer{n}" for n in range(40))
    model.graph.node[0].name = name
    with pytest.raises(ModelError) as caught:
        load(model.SerializeToString(), "net.onnx")
    assert str(caught.value).startswith(f"net.onnx: node {name[:60]}...{name[-37:]} (Squeeze) does")


NODES = {  # kind: attributes, shapes of the inputs, shape of the output, MAC by hand
    "Conv": ({}, [(1, 4, 9, 9), (6, 2, 3, 3)], (1, 6, 7, 7), 49 * 6 * 18),
    "ConvTranspose": ({}, [(1, 4, 5, 5), (4, 6, 3, 3)], (1, 6, 7, 7), 25 * 4 * 54),
    "QLinearConv": ({}, [(1, 4, 9, 9), (), (), (6, 4, 1, 1)], (1, 6, 9, 9), 81 * 6 * 4),
    "MatMul": ({}, [(2, 3, 4), (4, 5)], (2, 3, 5), 2 * 3 * 4 * 5),
    "Gemm": ({"transA": 1}, [(4, 3), (4, 5)], (3, 5), 3 * 4 * 5),
    "LSTM": ({}, [(7, 2, 6), (1, 16, 6), (1, 16, 4)], (7, 1, 2, 4), 14 * (96 + 64)),
    "com.microsoft.Attention": (
        {}, [(2, 3, 8), (8, 20), (20,)], (2, 3, 4), 2 * 3 * (8 * 20 + 3 * 8 + 3 * 4)
    ),
    "Attention": (
        {}, [(1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 6), (), (1, 2, 4, 8)], (1, 2, 3, 6),
        2 * 3 * (5 + 4) * (8 + 6),
    ),
    "com.microsoft.QAttention": (
        {}, [(2, 3, 8), (8, 12), (12,), (), (), (), (), (), (2, 2, 2, 5, 2)], (2, 3, 4),
        2 * 3 * (8 * 12 + (3 + 5) * (4 + 4)),
    ),
    "com.microsoft.MultiHeadAttention": (
        {}, [(2, 3, 8), (2, 5, 8), (2, 5, 6)], (2, 3, 6), 2 * 3 * 5 * (8 + 6)
    ),
    "com.microsoft.MultiHeadAttention of one tensor": (
        {}, [(2, 3, 4, 3, 2)], (2, 3, 8), 2 * 3 * 3 * (8 + 8)
    ),
    "com.microsoft.MultiHeadAttention of k and v in one": (
        {}, [(2, 3, 8), (2, 5, 4, 2, 2)], (2, 3, 8), 2 * 3 * 5 * (8 + 8)
    ),
    "com.microsoft.MultiHeadAttention by heads": (
        {}, [(2, 3, 8), (2, 4, 5, 2), (2, 4, 5, 2)], (2, 3, 8), 2 * 3 * 5 * (8 + 8)
    ),
    "com.microsoft.MultiHeadAttention with a past": (
        {}, [(2, 3, 8), (2, 3, 8), (2, 3, 8), (), (), (), (2, 4, 7, 2), (2, 4, 7, 2)], (2, 3, 8),
        2 * 3 * (3 + 7) * (8 + 8),
    ),
    "com.microsoft.GroupQueryAttention": (
        {}, [(2, 3, 32), (2, 3, 16), (2, 3, 16), (), (), (2,), ()], (2, 3, 32),
        2 * 3 * 3 * (32 + 32),
    ),
    "com.microsoft.GroupQueryAttention of one tensor with a past": (
        {}, [(2, 3, 64), (), (), (2, 2, 5, 8), (2, 2, 5, 8), (2,), ()], (2, 3, 32),
        2 * 3 * (3 + 5) * (32 + 32),
    ),
    "Softmax": ({}, [(2, 3)], (2, 3), 0),
}


@pytest.mark.parametrize("kind", NODES)
def test_macs(kind):
    attributes, inputs, y, macs = NODES[kind]
    types = {f"i{n}": ("", shape) for n, shape in enumerate(inputs)} | {"y": ("", y)}
    domain, _, kind = kind.partition(" ")[0].rpartition(".")
    operator = SimpleNamespace(
        kind=kind, domain=domain, attributes=attributes,
        inputs=[f"i{n}" for n in range(len(inputs))], outputs=["y"],
    )
    assert macs_of(operator, types) == macs
