"""The types of a node's outputs, inferred from its inputs: by onnx, one node at a time.

Some nodes stand for others: a branch of an If, the body of a function, parts of a product.
"""

import math
from typing import NamedTuple

import numpy as np

from weft.models.errors import ModelError
from weft.models.onnx.fallback import one_node_model, probe
from weft.models.onnx.nodes import captured_names

__all__ = ["Branch", "body_of", "branch_of", "infer", "parts_of", "renamed"]


class Branch(NamedTuple):
    """What stands for an If, in the names of the graph around it.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    constants : list of (name, onnx.TensorProto)
    sparse : bool
        Whether the branch has sparse initializers.
    outputs : list of (name, name)
        Outputs of the If that no node of the branch computes, and the tensors that they are.
    """

    nodes: list
    constants: list
    sparse: bool
    outputs: list


def branch_of(node, taken: bool) -> Branch | None:
    """The branch that an If takes, with names that no other branch has; None if it has none.

    An output of the branch gets the name of the output of the If.
    """
    which = "then_branch" if taken else "else_branch"
    graphs = [a.g for a in node.attribute if a.name == which and a.HasField("g")]
    if len(graphs) != 1 or len(graphs[0].output) != len(node.output):
        return None
    [graph] = graphs
    computed = {name for inner in graph.node for name in inner.output if name}
    own = computed | {tensor.name for tensor in graph.initializer}
    prefix = f"{next(filter(None, node.output), node.name)}/{which}"
    names = {name: f"{prefix}/{name}" for name in own}
    outputs, given = [], set()
    for value, name in zip(graph.output, node.output, strict=True):
        if name and value.name in computed - given:
            given.add(value.name)
            names[value.name] = name
        elif name:
            outputs.append((name, value.name))
    return Branch(
        [renamed(inner, names) for inner in graph.node],
        [(names[tensor.name], tensor) for tensor in graph.initializer],
        bool(graph.sparse_initializer),
        [(name, names.get(inner, inner)) for name, inner in outputs],
    )


def renamed(node, names):
    """A copy of a node with other names of tensors, inside its subgraphs, too.

    A subgraph keeps the names that it defines itself.
    """
    copy = type(node)()
    copy.CopyFrom(node)
    for field in (copy.input, copy.output):
        for place, name in enumerate(field):
            field[place] = names.get(name, name)
    if names.keys() & set(captured_names(node)):
        for attribute in copy.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _rename(graph, names)
    return copy


def _rename(graph, names):
    """Rename the tensors of the outer graph in a subgraph."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own.update(name for node in graph.node for name in node.output)
    names = {name: other for name, other in names.items() if name not in own}
    nodes = [renamed(node, names) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in graph.output:
        value.name = names.get(value.name, value.name)


def body_of(operator, types, opsets) -> list | None:
    """The nodes by which ONNX defines a standard operator; None if it has no such definition.

    ``types`` has (dtype, shape) by the names of its inputs.
    """
    import onnx
    from onnx import helper

    versions = [entry.version for entry in opsets if entry.domain in ("", "ai.onnx")]
    if operator.domain not in ("", "ai.onnx") or not versions:
        return None
    [version] = versions
    try:
        schema = onnx.defs.get_schema(operator.kind, version, "")
    except onnx.defs.SchemaError:
        return None
    node = type(operator.proto)()
    node.CopyFrom(operator.proto)
    given = {attribute.name for attribute in node.attribute}
    node.attribute.extend(
        rule.default_value for name, rule in schema.attributes.items()
        if name not in given and rule.default_value.name
    )
    kinds = [_type_proto(types, name) for name in node.input]
    plain = [v for v in schema.function_opset_versions if v <= version]
    built = [v for v in schema.context_dependent_function_opset_versions if v <= version]
    if built:
        data = schema.get_context_dependent_function_with_opset_version(
            max(built), node.SerializeToString(), [kind.SerializeToString() for kind in kinds]
        )
    elif plain:
        data = schema.get_function_with_opset_version(max(plain))
    else:
        return None
    body = onnx.FunctionProto.FromString(data)
    del body.opset_import[:]
    body.opset_import.append(helper.make_opsetid("", version))
    values = [
        onnx.ValueInfoProto(name=name, type=kind)
        for name, kind in dict(zip(node.input, kinds, strict=True)).items() if name
    ]
    graph = helper.make_graph(
        [node], "one", values, [onnx.ValueInfoProto(name=name) for name in node.output if name]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", version)], functions=[body], ir_version=10
    )
    nodes = list(onnx.inliner.inline_local_functions(model).graph.node)
    outputs = set(node.output)
    prefix = next(filter(None, node.output))
    inner = {name for part in nodes for name in part.output if name and name not in outputs}
    names = {name: f"{prefix}/body/{name}" for name in inner}
    return [renamed(part, names) for part in nodes]


def _type_proto(types, name):
    from onnx import TypeProto, helper

    if not name:
        return TypeProto()
    dtype, shape = types[name]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), shape)


def parts_of(operator) -> list | None:
    """A product that quantizes its activations, as that quantization and a product of integers."""
    from onnx import helper

    if operator.domain != "com.microsoft" or operator.kind != "DynamicQuantizeMatMul":
        return None
    x, w, scale, zero, bias = [*operator.inputs, "", "", ""][:5]
    values = [f"{operator.outputs[0]}/{what}" for what in ("x", "x_scale", "x_zero")]
    return [
        helper.make_node("DynamicQuantizeLinear", [x], values, operator.name),
        helper.make_node(
            "MatMulIntegerToFloat", [values[0], w, values[1], scale, values[2], zero, bias],
            operator.outputs, operator.name, domain="com.microsoft",
        ),
    ]


# The inference.

MAX_ELEMENTS = 1 << 31  # of one tensor
SMALL = 4096  # constants of at most so many elements take part, such as the shape of a Reshape

# Operators and which input is a shape; onnx makes as many dimensions as it has numbers.
SHAPED = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}

# Pools drop a last window that lies in the padding alone, as onnxruntime does, since this set.
POOLS, POOLS_OPSET = ("AveragePool", "LpPool", "MaxPool"), 22

# Quantized operators of com.microsoft, which onnx does not know: the operator with the same shapes,
# the inputs that carry the shapes, and the input with the type of the result.
TWINS = {
    "QLinearAdd":               ("Add", (0, 3), 0),
    "QLinearMul":               ("Mul", (0, 3), 0),
    "QLinearSigmoid":           ("Identity", (0,), 0),
    "QLinearLeakyRelu":         ("Identity", (0,), 0),
    "QLinearSoftmax":           ("Identity", (0,), 0),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 0),
    "QLinearAveragePool":       ("AveragePool", (0,), 0),
    "QLinearConcat":            ("Concat", None, 1),
    "QGemm":                    ("Gemm", (0, 3), 8),
    "QuantizeLinear":           ("Identity", (0,), 2),
    "DequantizeLinear":         ("Identity", (0,), 1),
    "MatMulIntegerToFloat":     ("MatMul", (0, 1), 2),
}


def infer(operator, types, constants, opsets, file):
    """Types of the outputs of ``operator``: a dict from name to (dtype, shape).

    Parameters
    ----------
    operator : weft.models.onnx.nodes.OnnxOperator
    types : dict of (dtype, shape) by name
    constants : dict of array by name
    opsets : list of onnx.OperatorSetIdProto
    file : str
        Name of the file; for messages.

    Raises
    ------
    ModelError
        If the node does not fit its inputs, or the shape of an output depends on their values.
    """
    if operator.domain == "com.microsoft" and operator.kind in TWINS:
        if not operator.attributes.get("channels_last"):
            return _infer_twin(operator, types, opsets, file)
    elif operator.domain in ("", "ai.onnx", "ai.onnx.ml"):
        return _infer_standard(operator, types, constants, opsets, file)
    return probe(operator, types, constants, opsets, file)


def _infer_standard(operator, types, constants, opsets, file):
    import onnx

    for name in operator.inputs[SHAPED[operator.kind] :][:1] if operator.kind in SHAPED else ():
        if name and math.prod(types[name][1]) > SMALL:
            raise ModelError(
                f"{file}: node {operator.name} ({operator.kind}): {name} must have one number for "
                f"each dimension, not {math.prod(types[name][1])}"
            )
    known = {
        name: constants[name] for name in operator.reads
        if name in constants and constants[name].size <= SMALL
    }
    names = [name for name in operator.reads if name not in known]
    if operator.proto.op_type in POOLS:
        versions = [entry.version for entry in opsets if entry.domain in ("", "ai.onnx")]
        opsets = [onnx.helper.make_opsetid("", max(POOLS_OPSET, *versions))]
    try:
        model = one_node_model(operator.proto, types, names, known, opsets)
        inferred = onnx.shape_inference.infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=True
        )
    except Exception as error:  # of many types, from C++
        text = " ".join(str(error).split())
        raise ModelError(
            f"{file}: node {operator.name} ({operator.kind}) does not fit its inputs: {text[:300]}"
        ) from error
    values = inferred.graph.output
    if operator.kind == "If" and not all(_is_fixed(value.type) for value in values):
        _refuse_branches(operator, model, file)
    return {value.name: _tensor_type(value.type, operator, value.name, file) for value in values}


def _is_fixed(value):
    """Whether the type of a value has a shape of numbers."""
    tensor = value.tensor_type
    return tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim)


def _refuse_branches(operator, model, file):
    """Raise ModelError if the branches of an If give different shapes.

    ``model`` has the node alone. A branch gives what an If of twice this branch gives.
    """
    import onnx

    outputs = []
    for which in ("then_branch", "else_branch"):
        twice = type(model)()
        twice.CopyFrom(model)
        [graph] = [a.g for a in operator.proto.attribute if a.name == which]
        for attribute in twice.graph.node[0].attribute:
            attribute.g.CopyFrom(graph)
        outputs.append(onnx.shape_inference.infer_shapes(twice, data_prop=True).graph.output)
    for one, other in zip(*outputs, strict=True):
        if _is_fixed(one.type) and _is_fixed(other.type) and one.type != other.type:
            first, second = (
                tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
                for value in (one, other)
            )
            raise ModelError(
                f"{file}: node {operator.name} (If): both branches must give output {one.name} the"
                f" same shape, not {first} and {second}: the condition {operator.inputs[0]} is not"
                " known before it runs"
            )


def _tensor_type(value, operator, name, file):
    import onnx

    where = f"{file}: node {operator.name} ({operator.kind})"
    if not value.HasField("tensor_type"):
        raise ModelError(f"{where}: output {name} must be a tensor")
    tensor = value.tensor_type
    if not _is_fixed(value):
        raise ModelError(f"{where}: the shape of output {name} is not known before it runs")
    shape = tuple(dim.dim_value for dim in tensor.shape.dim)
    if any(size < 0 for size in shape) or math.prod(shape) > MAX_ELEMENTS:
        raise ModelError(
            f"{where}: output {name} must have 0..{MAX_ELEMENTS} elements, not shape {shape}"
        )
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if dtype.kind == "O":
        raise ModelError(f"{where}: output {name} must be numbers, not strings")
    return dtype, shape


def _infer_twin(operator, types, opsets, file):
    from onnx import helper

    twin, places, typed_by = TWINS[operator.kind]
    places = range(2, len(operator.inputs), 3) if places is None else places
    if max([*places, 0]) >= len(operator.inputs):
        raise ModelError(
            f"{file}: node {operator.name} ({operator.kind}) has too few inputs, "
            f"{len(operator.inputs)}"
        )
    names = [operator.inputs[place] for place in places]
    floats = {f"i{place}": (np.dtype(np.float32), types[name][1])
              for place, name in enumerate(names)}
    attributes = {
        name: value for name, value in operator.attributes.items()
        if name not in ("channels_last", "opset") and twin != "Identity"
    }
    node = helper.make_node(twin, list(floats), ["y"], **attributes)
    proxy = type(operator)(
        operator.index, operator.kind, "", operator.name, tuple(floats), ("y",), {}, node
    )
    _, shape = _infer_standard(proxy, floats, {}, opsets, file)["y"]
    has_type = typed_by < len(operator.inputs) and operator.inputs[typed_by]
    if has_type:
        dtype = types[operator.inputs[typed_by]][0]
    else:
        dtype = np.dtype(np.float32 if operator.kind == "QGemm" else np.uint8)
    return {operator.outputs[0]: (dtype, shape)}
