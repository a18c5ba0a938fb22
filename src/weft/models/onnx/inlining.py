"""Nodes that stand for one node: a branch of an If, the body of a function, parts of a product."""

from typing import NamedTuple

from weft.models.onnx.nodes import captured_names

__all__ = ["Branch", "body_of", "branch_of", "parts_of", "renamed"]


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
