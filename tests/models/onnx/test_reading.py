"""Files that are read, converted or rejected: each message names the file and the rule."""

import re

import numpy as np
import pytest
from graph_runner import run_graph
from onnx_models import Builder, require, run_runtime

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.onnx import load

F32 = np.float32


@pytest.fixture(autouse=True)
def _onnx():
    require("onnx")


def small(batch=1, opset=17):
    """A model of one MatMul, not yet serialized."""
    b = Builder(opset=opset)
    return b.model(b.node("MatMul", b.input("x", [batch, 4], F32), b.weights(4, 3)))


def rejects(model, message, **options):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with pytest.raises(ModelError, match=re.escape(f"net.onnx: {message}")):
        load(data, "net.onnx", **options)


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b"ONNX", bytes(range(256))])
def test_rejects_other_files(data):
    rejects(data, "must be an ONNX model")


def test_rejects_data_in_other_files():
    model = small()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="../../secret.bin")
    rejects(model, "tensor c0 must be in the model itself, not in the file '../../secret.bin'")


def test_rejects_data_in_other_files_inside_a_subgraph():
    import onnx

    model = small()
    tensor = onnx.TensorProto(name="inner", data_type=1, dims=[1], data_location=1)
    body = onnx.helper.make_graph([], "body", [], [], [tensor])
    model.graph.node.append(onnx.helper.make_node("If", ["x"], ["y"], then_branch=body))
    rejects(model, "tensor inner must be in the model itself")


@pytest.mark.parametrize("dims, message", [
    ([4, 1 << 40], "tensor c0 must have 0..2147483648 elements, not shape (4, 1099511627776)"),
    ([-4, 3], "tensor c0 must have 0..2147483648 elements, not shape (-4, 3)"),
    ([5, 3], "tensor c0 of shape (5, 3) and type float32 must have 60 bytes, not 48"),
])
def test_rejects_wrong_sizes(dims, message):
    model = small()
    model.graph.initializer[0].dims[:] = dims
    rejects(model, message)


def test_rejects_an_invalid_node():
    model = small()
    model.graph.node[0].op_type = "Nothing"
    rejects(model, "the ONNX checker rejects it: No Op registered for Nothing")


def test_rejects_an_operator_whose_name_is_no_text():
    data = small().SerializeToString().replace(b"MatMul", b"Mat\xfful")
    rejects(data, "the ONNX checker rejects it: ")


@pytest.mark.parametrize("version", [-1, 1 << 31, 1 << 62])
def test_rejects_an_operator_set_of_any_number(version):
    model = small()
    model.opset_import[0].version = version
    rejects(model, "the ONNX checker rejects it: ")


def test_an_operator_set_that_onnx_does_not_know():
    import onnx

    newest = onnx.defs.onnx_opset_version()
    rejects(small(opset=newest + 1), f"operator set must be at most {newest}, the newest one of ")


def test_an_operator_set_that_the_runtime_does_not_load():
    """The claim of the newest set that onnx knows is as the runtime that is installed."""
    import onnx

    require("onnxruntime")
    import onnxruntime

    newest = onnx.defs.onnx_opset_version()
    data = small(opset=newest).SerializeToString()
    try:
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        expected = {}
    except Exception:  # of many types, from C++
        expected = {"onnx": f"it has no operator set {newest}"}
    assert load(data, "net.onnx").unlike == expected
    assert load(small().SerializeToString(), "net.onnx").unlike == {}


def test_rejects_shapes_that_do_not_fit():
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    rejects(model, "node MatMul0 (MatMul) does not fit its inputs")


def test_rejects_shapes_that_are_computed():
    b = Builder()
    model = b.model(b.node("NonZero", b.input("x", [4])), dtype=np.int64)
    rejects(model, "node NonZero0 (NonZero): the shape of output NonZero0_0 is not known before")


def test_a_dynamic_batch_is_1():
    graph = load(small("n").SerializeToString(), "net.onnx")
    assert graph.tensors[graph.inputs[0]].shape == (1, 4)
    assert graph.notes == ("the dynamic batch of input x is 1",)
    graph = load(small("n").SerializeToString(), "net.onnx", shapes={"x": (5, 4)})
    assert graph.tensors[graph.outputs[0]].shape == (5, 3)


def test_other_dynamic_dimensions_need_a_shape():
    b = Builder()
    x, y = b.input("x", ["n", "width"]), b.input("y", ["n", "width"])
    model = b.model(b.node("Add", x, y))
    rejects(model, "input x has the dynamic dimension 1 (width); give its shape in shapes")
    graph = load(model.SerializeToString(), "net.onnx", shapes={"x": (2, 7)})  # for y, too
    assert [graph.tensors[number].shape for number in graph.inputs] == [(2, 7), (2, 7)]


@pytest.mark.parametrize("shapes, message", [
    (dict(z=(1, 4)), "shapes must name inputs (x), not z"),
    (dict(x=(2, 5)), "shape of input x must fit (None, 4), not (2, 5)"),
    (dict(x=(0, 4)), "sizes of input x must be 1 or more, not 0"),
    (dict(x=(4,)), "shape of input x must fit (None, 4), not (4,)"),
])
def test_rejects_wrong_shapes(shapes, message):
    rejects(small("n"), message, shapes=shapes)


def test_rejects_an_input_without_elements():
    model = small("n")
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 0
    rejects(model, "sizes of input x must be 1 or more, not 0")


def test_rejects_negative_sizes():
    """onnx aborts at them; in subgraphs, too."""
    import onnx

    model = small()
    value = onnx.helper.make_tensor_value_info("inner", 1, [2, -3])
    body = onnx.helper.make_graph([], "body", [value], [])
    model.graph.node.append(onnx.helper.make_node("If", ["x"], ["y"], then_branch=body))
    rejects(model, "sizes of inner must be 0 or more, not -3")


def test_rejects_an_input_that_is_too_large():
    model = small(1 << 40)
    limit = 1 << 31
    rejects(model, f"input x must have at most {limit} elements, not shape ({1 << 40}, 4)")


def test_an_input_without_a_shape():
    model = small()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    rejects(model, "input x has no shape; give one in shapes")
    graph = load(model.SerializeToString(), "net.onnx", shapes={"x": (3, 4)})
    assert graph.tensors[graph.outputs[0]].shape == (3, 3)


def test_old_operator_sets_are_converted():
    """Of operator set 9: Squeeze and Clip have attributes, and initializers are inputs too."""
    import onnx
    from onnx import helper

    h = helper.make_tensor_value_info
    w = onnx.numpy_helper.from_array(np.arange(12, dtype=F32).reshape(4, 3) / 9, "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Clip", ["a"], ["b"], min=0.0, max=6.0),
        helper.make_node("Squeeze", ["b"], ["y"], axes=[0]),
    ]
    graph = helper.make_graph(
        nodes, "g", [h("x", 1, [1, 2, 4]), h("w", 1, [4, 3])], [h("y", 1, [2, 3])], [w]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3)
    data = model.SerializeToString()
    graph = load(data, "net.onnx")
    assert [node.operator for node in graph.nodes] == ["MatMul", "Squeeze"]
    assert isinstance(graph.nodes[0], Gemm) and graph.nodes[0].activation == "relu6"
    assert "converted from operator set 9 to 13" in graph.notes[0]
    x = np.random.default_rng(1).normal(size=(1, 2, 4)).astype(F32)
    require("onnxruntime")
    values = run_graph(graph, [x], mode="onnx")
    np.testing.assert_allclose(values[graph.outputs[0]], run_runtime(data, [x])[0], rtol=1e-5)


def test_local_functions_are_inlined():
    from onnx import helper

    body = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    b = Builder(domains=("com.microsoft", "own"), functions=[body])
    y = b.node("Twice", b.input("x", [2, 3]), domain="own")
    [node] = load(b.bytes(b.node("Relu", y)), "net.onnx").nodes[:1]
    assert (node.operator, node.kernel) == ("Add", "onnx.add")


def test_a_model_without_outputs():
    model = small()
    del model.graph.output[:]
    rejects(model, "outputs must be at least 1, not 0")


SCALE, ZERO = np.float32(0.1), np.int8(0)


@pytest.mark.parametrize("kind, inputs, place, of_result", [
    ("QuantizeLinear", ["f", SCALE, ZERO], 1, True),
    ("DequantizeLinear", ["x", SCALE, ZERO], 1, False),
    *(("QLinearConv", ["x", SCALE, ZERO, np.ones((4, 3, 3, 3), np.int8), SCALE, ZERO, SCALE, ZERO],
       place, place == 6) for place in (1, 4, 6)),
    ("QLinearMatMul", ["x", SCALE, ZERO, np.ones((5, 2), np.int8), SCALE, ZERO, SCALE, ZERO], 6,
     True),
    ("QLinearAdd", ["x", SCALE, ZERO, "x", SCALE, ZERO, SCALE, ZERO], 4, False),
    *(("QLinearConcat", [SCALE, ZERO, "x", SCALE, ZERO], place, not place) for place in (0, 3)),
    ("QLinearGlobalAveragePool", ["x", SCALE, ZERO, SCALE, ZERO], 3, True),
    ("MatMulIntegerToFloat", ["x", np.ones((5, 2), np.int8), SCALE, SCALE], 3, False),
])
@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, 0, -0.5])
def test_rejects_a_scale(kind, inputs, place, of_result, scale):
    """Not finite; or of a result, which is divided by it, and not over 0."""
    b = Builder()
    b.input("x", (1, 3, 5, 5), np.int8)
    b.input("f", (1, 3, 5, 5))
    b.constant(np.float32(scale), "wrong")
    domain = "" if kind.endswith(("zeLinear", "Conv", "QLinearMatMul")) else "com.microsoft"
    axis = {"axis": 1} if kind == "QLinearConcat" else {}
    y = b.node(kind, *inputs[:place], "wrong", *inputs[place + 1:], domain=domain, **axis)
    if np.isfinite(scale) and not of_result:
        assert load(b.bytes(y), "net.onnx").outputs
        return
    rule = "finite and over 0" if of_result else "finite"
    rejects(
        b.model(y), f"node {y[:-2]} ({kind}): scales in wrong must be {rule}, not"
        f" {np.float32(scale)}; quantize the network again",
    )
