"""Nodes that others stand for: branches of If, bodies of functions, products that quantize."""

import re

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime

from weft.models.errors import ModelError
from weft.models.ir import Gemm
from weft.models.onnx import fallback, importer, load

F32, I64, I8, U8 = np.float32, np.int64, np.int8, np.uint8
pytestmark = pytest.mark.usefixtures("onnxruntime")


def branch(*nodes, outputs, constants=()):
    """A subgraph without inputs; outputs of float32, of any shape."""
    from onnx import helper, numpy_helper

    return helper.make_graph(
        list(nodes), "branch", [],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants],
    )


def node(kind, inputs, outputs, **attributes):
    from onnx import helper

    return helper.make_node(kind, inputs, outputs, **attributes)


def squeezed(b, y, axis=1):
    """As exporters of PyTorch write ``y.squeeze(axis)``: the branches have other ranks."""
    size = b.node("Gather", b.node("Shape", y), I64(axis), axis=0)
    if b.opset < 13:
        squeeze = node("Squeeze", [y], ["s"], axes=[axis])
        then = branch(squeeze, outputs=["s"])
    else:
        then = branch(node("Squeeze", [y, "axes"], ["s"]), outputs=["s"],
                      constants=[("axes", I64([axis]))])
    other = branch(node("Identity", [y], ["s"]), outputs=["s"])
    return b.node("If", b.node("Equal", size, I64(1)), then_branch=then, else_branch=other)


@pytest.mark.parametrize("opset", [11, 17])
def test_the_branch_of_a_known_shape_is_inlined(opset):
    b = Builder(seed=200, opset=opset)
    y = b.node("Relu", b.input("x", ["n", 1, 5]))
    y = b.node("MatMul", squeezed(b, y), b.weights(5, 4))
    x = b.rng.normal(size=(1, 1, 5)).astype(F32)
    graph = equal_to_runtime(b, y, [x], tolerance=1e-6)
    assert [n.operator for n in graph.nodes] == ["Relu", "Squeeze", "MatMul"]
    assert "If" not in graph.operators and any("1 If with a condition" in n for n in graph.notes)
    for n in graph.nodes:
        assert [graph.operators[place] for place in n.position] == [n.operator]


def test_two_branches_with_the_same_names_and_captured_tensors():
    b = Builder(seed=201)
    y = squeezed(b, squeezed(b, b.node("Relu", b.input("x", [1, 1, 5]))), 0)
    equal_to_runtime(b, b.node("Neg", y), [b.rng.normal(size=(1, 1, 5)).astype(F32)])


def test_the_output_of_a_branch_is_an_output_of_the_network():
    b = Builder(seed=202)
    y = squeezed(b, b.input("x", [1, 1, 5]))
    graph = equal_to_runtime(b, y, [b.rng.normal(size=(1, 1, 5)).astype(F32)])
    assert graph.tensors[graph.outputs[0]].name == y


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_nested_branches(outer, inner):
    """The inner If is in one branch; both read tensors of the graphs around them."""
    b = Builder(seed=203)
    x = b.input("x", [2, 5])
    deepest = branch(node("Add", ["t", x], ["u"]), outputs=["u"])
    other = branch(node("Mul", ["t", "two"], ["u"]), outputs=["u"], constants=[("two", F32(2))])
    then = branch(
        node("Exp", [x], ["t"]), node("If", ["yes"], ["v"], then_branch=deepest, else_branch=other),
        node("Neg", ["v"], ["w"]), outputs=["w"],
    )
    b.constant(np.asarray(inner), "yes")
    other = branch(node("Abs", [x], ["t"]), outputs=["t"])
    y = b.node("If", np.asarray(outer), then_branch=then, else_branch=other)
    graph = equal_to_runtime(b, b.node("Relu", y), [b.rng.normal(size=(2, 5)).astype(F32)],
                             tolerance=1e-6)
    kinds = ["Exp", "Add" if inner else "Mul", "Neg", "Relu"] if outer else ["Abs", "Relu"]
    assert list(graph.operators) == kinds


def test_outputs_of_a_branch_that_no_node_of_it_computes():
    """A constant, and a tensor around it."""
    b = Builder(seed=204)
    x = b.input("x", [3])
    outer = b.node("Relu", x)
    then = branch(node("Neg", [x], ["n"]), node("Identity", [outer], ["o"]),
                  outputs=["k", "o", "n"], constants=[("k", F32([1, 2, 3]))])
    names = b.node("If", np.asarray(True), outputs=3, then_branch=then, else_branch=then)
    y = b.node("Concat", *names, axis=0)
    x = F32([-1, 0.5, 2])
    equal_to_runtime(b, y, [x])


@pytest.mark.parametrize("kind", ["NonZero", "GreaterOrEqual", "Or", "Size"])
def test_conditions_that_follow_from_shapes(kind):
    b = Builder(seed=205)
    x = b.input("x", [2, 1, 3])
    shape = b.node("Shape", x)
    if kind == "Size":
        condition = b.node("Equal", b.node("Size", x), I64(6))
    elif kind == "NonZero":
        places = b.node("NonZero", b.node("Sub", shape, I64(1)))
        condition = b.node("Equal", b.node("Gather", b.node("Shape", places), I64(1)), I64(2))
    else:
        sizes = [b.node("Gather", shape, I64(n)) for n in (0, 1)]
        condition = b.node("GreaterOrEqual", *sizes)
        if kind == "Or":
            condition = b.node("Or", condition, b.node("Less", *sizes))
    then = branch(node("Neg", [x], ["s"]), outputs=["s"])
    other = branch(node("Abs", [x], ["s"]), outputs=["s"])
    y = b.node("If", condition, then_branch=then, else_branch=other)
    graph = equal_to_runtime(b, y, [b.rng.normal(size=(2, 1, 3)).astype(F32)])
    assert [n.operator for n in graph.nodes] == ["Neg"]


def test_a_computed_condition_stays_with_the_runtime():
    """Its branches read a tensor by another name than the one of the node that computes it."""
    b = Builder(seed=206)
    x, flag = b.input("x", [3]), b.input("flag", [], np.bool_)
    alias = b.node("Identity", b.node("Relu", x))
    then = branch(node("Neg", [alias], ["s"]), outputs=["s"])
    other = branch(node("Exp", [alias], ["s"]), outputs=["s"])
    y = b.node("If", flag, then_branch=then, else_branch=other)
    for taken in (True, False):
        equal_to_runtime(b, y, [F32([-1, 0.5, 2]), np.asarray(taken)],
                         kinds=["onnx.relu", "onnx.model"])


@pytest.mark.parametrize("kind, shape", [
    ("Squeeze", "(3,)"), ("Transpose", "(3, 1)"), ("ReduceSum", "(1, 1)"),
])
def test_branches_of_a_computed_condition_with_other_shapes_are_refused(kind, shape):
    b = Builder(seed=207)
    x, flag = b.input("x", [1, 3]), b.input("flag", [], np.bool_)
    then = branch(node("Neg", [x], ["s"]), outputs=["s"])
    other = branch(node(kind, [x], ["s"]), outputs=["s"])
    y = b.node("Relu", b.node("If", flag, then_branch=then, else_branch=other))
    message = (
        "net.onnx: node If0 (If): both branches must give output If0_0 the same shape, not (1, 3)"
        f" and {shape}: the condition flag is not known before it runs"
    )
    with pytest.raises(ModelError, match=f"^{re.escape(message)}$"):
        load(b.bytes(y), "net.onnx")


def test_a_branch_whose_shape_depends_on_values_is_refused():
    b = Builder(seed=208)
    x, flag = b.input("x", [1, 3]), b.input("flag", [], np.bool_)
    then = branch(node("Neg", [x], ["s"]), outputs=["s"])
    other = branch(
        node("NonZero", [x], ["t"]), node("Cast", ["t"], ["s"], to=1), outputs=["s"],
    )
    y = b.node("If", flag, then_branch=then, else_branch=other)
    message = "net.onnx: node If0 (If): the shape of output If0_0 is not known before it runs"
    with pytest.raises(ModelError, match=f"^{re.escape(message)}$"):
        load(b.bytes(y), "net.onnx")


@pytest.mark.parametrize("w_type", [I8, U8])
@pytest.mark.parametrize("per_column, bias", [(False, False), (True, True)])
@pytest.mark.parametrize("opset", [None, 1, 10, 17])
def test_dynamic_quantize_matmul(w_type, per_column, bias, opset):
    """Also in a model that imports no standard operators, or old ones."""
    b = Builder(seed=210)
    columns = 6 if per_column else ()
    names = [b.input("x", [2, 3, 20]), b.rng.integers(0, 100, (20, 6)).astype(w_type),
             b.rng.uniform(0.01, 0.02, columns).astype(F32),
             b.rng.integers(0, 9, columns).astype(w_type)]
    names += [b.weights(6)] if bias else []
    y = b.node("DynamicQuantizeMatMul", *names, domain="com.microsoft")
    model = b.model(y)
    if opset is None:
        del model.opset_import[0]
    else:
        model.opset_import[0].version = opset
    b.model = lambda *_, **__: model
    x = b.rng.normal(size=(2, 3, 20)).astype(F32)
    graph = equal_to_runtime(b, y, [x], tolerance=1e-4)
    assert graph.operators == ("DynamicQuantizeMatMul",)
    assert {n.operator for n in graph.nodes} == {"DynamicQuantizeMatMul"}
    [product] = [n for n in graph.nodes if isinstance(n, Gemm)]
    assert graph.tensors[product.x].dtype == U8 and product.weights is not None


@pytest.mark.parametrize("x_type", [I8, U8])
@pytest.mark.parametrize("computed", [True, False])
def test_matmul_integer_to_float(x_type, computed):
    b = Builder(seed=211)
    x = b.input("x", [4, 20], x_type)
    numbers = [F32(0.02), x_type(9)]
    if computed:
        numbers = [b.input("scale", []), b.input("zero", [], x_type)]
    y = b.node("MatMulIntegerToFloat", x, b.rng.integers(-100, 100, (20, 6)).astype(I8), numbers[0],
               b.rng.uniform(0.01, 0.02, 6).astype(F32), numbers[1], np.zeros(6, I8), b.weights(6),
               domain="com.microsoft")
    inputs = [b.rng.integers(0, 100, (4, 20)).astype(x_type)]
    inputs += [np.asarray(F32(0.03)), np.asarray(x_type(7))] if computed else []
    graph = equal_to_runtime(b, y, inputs, tolerance=1e-4)
    assert len([n for n in graph.nodes if isinstance(n, Gemm)]) == 1


def test_a_product_with_computed_weights_stays_with_the_runtime():
    b = Builder(seed=212)
    y = b.node("DynamicQuantizeMatMul", b.input("x", [4, 20]), b.input("w", [20, 6], I8), F32(0.1),
               domain="com.microsoft")
    inputs = [b.rng.normal(size=(4, 20)).astype(F32), b.rng.integers(-99, 99, (20, 6)).astype(I8)]
    equal_to_runtime(b, y, inputs, kinds=["onnx.dynamic_quantize", "onnx.model"], tolerance=1e-4)


@pytest.mark.parametrize("kind, opset, attributes, sizes", [
    ("GroupNormalization", 18, {"num_groups": 2}, [2, 2]),
    ("GroupNormalization", 21, {"num_groups": 2}, [4, 4]),
    ("MeanVarianceNormalization", 13, {}, []),
])
def test_operators_of_which_onnx_knows_the_body_alone(kind, opset, attributes, sizes):
    b = Builder(seed=213, opset=opset)
    y = b.node(kind, b.input("x", [1, 4, 5, 3]), *(b.weights(n) for n in sizes), **attributes)
    x = b.rng.normal(2, 3, (1, 4, 5, 3)).astype(F32)
    graph = equal_to_runtime(b, b.node("Relu", y), [x], tolerance=1e-5)
    assert graph.operators == (kind, "Relu")
    assert "onnx.model" not in {getattr(n, "kernel", "") for n in graph.nodes}


@pytest.mark.parametrize("kind, opset, sizes", [
    ("LayerNormalization", 17, [6, 6]), ("RMSNormalization", 23, [6]), ("Mish", 18, []),
])
def test_operators_that_the_runtime_lacks_are_computed_by_their_body(
    kind, opset, sizes, monkeypatch
):
    b = Builder(seed=214, opset=opset)
    y = b.node(kind, b.input("x", [2, 5, 6]), *(b.weights(n) for n in sizes))
    y = b.node("MatMul", y, b.weights(6, 3))
    refused = []

    def check_runs(model, operator, *rest):
        if operator.kind == kind:
            refused.append(kind)
            raise ModelError("not here")
        fallback.check_runs(model, operator, *rest)

    monkeypatch.setattr(importer, "check_runs", check_runs)
    x = b.rng.normal(2, 3, (2, 5, 6)).astype(F32)
    graph = equal_to_runtime(b, y, [x], tolerance=1e-5)
    assert refused == [kind] and graph.operators == (kind, "MatMul")


def test_an_operator_without_a_body_that_the_runtime_lacks_is_refused(monkeypatch):
    def check_runs(model, operator, *rest):
        raise ModelError("not here")

    monkeypatch.setattr(importer, "check_runs", check_runs)
    b = Builder(seed=215)
    with pytest.raises(ModelError, match="not here"):
        load(b.bytes(b.node("Det", b.input("x", [2, 2]))), "net.onnx")
