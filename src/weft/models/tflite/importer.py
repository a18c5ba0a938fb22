"""Turns a TFLite file into a `Graph`."""

import dataclasses
import difflib

from weft.models.errors import ModelError
from weft.models.ir import Graph, Host
from weft.models.tflite import (
    arithmetic,
    bidirectional,
    lstm,
    moving,
    products,
    recurrent,
    reducing,
    shapes,
    strided_slice,
    unary,
)
from weft.models.tflite.context import Context, Fallback
from weft.models.tflite.cutout import cut
from weft.models.tflite.macs import macs_of
from weft.models.tflite.reader import read
from weft.models.tflite.runtime import attempt, memory
from weft.models.tflite.scales import refusals
from weft.models.tflite.supported import CALLERS, COMPILED, CUSTOM, RUNTIME
from weft.models.tflite.variables import VARIABLES, Variables

__all__ = ["import_file"]

BUILDERS = {
    **products.BUILDERS, **arithmetic.BUILDERS, **unary.BUILDERS, **moving.BUILDERS,
    **strided_slice.BUILDERS, **reducing.BUILDERS, **recurrent.BUILDERS, **lstm.BUILDERS,
    **bidirectional.BUILDERS, **shapes.BUILDERS,
}


def import_file(data: bytes, name: str) -> Graph:
    """`weft.models.tflite.load`, if the package tflite is installed."""
    file = read(data, name)
    file.check((*file.inputs, *file.outputs))
    for operator in file.operators:
        _check(operator)
        file.check((*operator.inputs, *operator.outputs, *operator.intermediates))
    callers = sorted({o.name for o in file.operators if o.name in CALLERS - VARIABLES})
    if callers:
        return _whole(file, "it has " + " and ".join(callers))
    try:
        return _imported(file)
    except Fallback as fallback:
        # A failed import may have changed the shapes of tensors.
        return _whole(read(data, name), str(fallback))


def _imported(file):
    """The graph of a file; Fallback if a runtime must have the whole file, for its variables."""
    graph = Context(file)
    variables = Variables(graph)
    nodes = []
    for operator in file.operators:
        if operator.name in VARIABLES:
            nodes += variables.nodes(operator)
            continue
        if not operator.outputs:
            raise operator.error("outputs must be at least 1, not 0")
        nodes += _refused(graph, operator, _nodes(graph, operator))
    states = variables.states()
    _order(file, graph, nodes, states)
    tensors = [
        dataclasses.replace(tensor, data=graph.values.get(i))
        for i, tensor in enumerate(file.tensors)
    ] + graph.added
    unlike = {"tflite": "it takes the sizes that the file stores"} if graph.resized else {}
    notes = _notes(graph, variables, states)
    return _graph(file, nodes, tensors, notes, states=states, unlike=unlike)


def _notes(graph, variables, states):
    file = graph.file
    used = {i for o in file.operators for i in (*o.inputs, *o.outputs) if i >= 0}
    notes = []
    if any(file.kinds[i] == "UINT8" for i in used):
        notes.append(
            "TFLite Micro has no uint8: values are computed as int8 and then raised by 128"
        )
    if graph.hybrid:
        notes.append(
            f"{graph.hybrid} products have float32 activations and int8 weights (dynamic range"
            " quantization); rows of the activations are quantized at run time, as LiteRT does"
        )
    if graph.resized:
        notes.append(
            f"{len(graph.resized)} tensors have other sizes than the file stores, as its batch is"
            " dynamic; TFLite Micro takes the stored sizes"
        )
    unused = file.subgraphs - 1 - len(variables.called)
    if unused:
        notes.append(f"the file has {file.subgraphs} subgraphs; {unused} of them never run")
    if states:
        names = ", ".join(state.name for state in states)
        notes.append(
            f"the session keeps variables from inference to inference ({names}), so inferences run"
            " one after the other"
        )
    return notes


def _graph(file, nodes, tensors, notes, **more):
    tensors = tuple(
        tensor if _is_described(tensor) else dataclasses.replace(tensor, quantization=None)
        for tensor in tensors
    )
    return Graph(
        name=file.name, source="tflite", tensors=tensors, nodes=tuple(nodes),
        inputs=file.inputs, outputs=file.outputs,
        operators=tuple(o.custom or o.name for o in file.operators),
        notes=(*file.notes, *notes), **more,
    )


def _is_described(tensor):
    """Whether the quantization has a scale and a zero point for each slice of the tensor.

    Nothing has read another one: old converters give scales of a bias an axis that it lacks.
    """
    given = tensor.quantization
    if given is None or given.scale.size == given.zero.size == 1:
        return True
    size = tensor.shape[given.axis] if 0 <= given.axis < len(tensor.shape) else None
    return given.scale.size == given.zero.size == size


def _check(operator):
    """Raise ModelError for an operator that neither Weft nor TFLite Micro has."""
    if operator.custom or operator.name == "CUSTOM":
        if operator.custom in COMPILED:
            raise operator.error(
                f"the network was compiled for {COMPILED[operator.custom]}; use the .tflite file"
                " from before this compilation"
            )
        if operator.custom.startswith("Flex"):
            raise operator.error(
                f"{operator.custom} is an operator of TensorFlow, which only its Flex delegate"
                " runs; convert the network without SELECT_TF_OPS, or end it before this operator"
            )
        if operator.custom not in CUSTOM:
            raise operator.error(
                f"neither Weft nor TFLite Micro has the custom operator {operator.custom!r};"
                " convert the network without it, or end the network before it"
            )
    elif operator.name not in BUILDERS and operator.name not in RUNTIME:
        near = difflib.get_close_matches(operator.name, sorted({*BUILDERS, *RUNTIME}), 1)
        hint = f"; the nearest supported operator is {near[0]}" if near else ""
        raise operator.error(f"neither Weft nor TFLite Micro has this operator{hint}")


def _refused(graph, operator, nodes):
    """The nodes of an operator, with the modes whose runtime refuses its scales."""
    if not nodes:
        return nodes
    refused = refusals(graph, operator)
    return [dataclasses.replace(nodes[0], refused=refused), *nodes[1:]] if refused else nodes


def _nodes(graph, operator):
    """The nodes of an operator: an empty list if its outputs became constants."""
    reason = "Weft has no kernel of its own for it"
    if operator.name in BUILDERS:
        try:
            nodes = BUILDERS[operator.name](graph, operator)
            nodes = [] if nodes is None else nodes if isinstance(nodes, list) else [nodes]
            return [] if graph.folded(nodes) else nodes
        except Fallback as fallback:
            if shapes.constant(graph, operator):
                return []
            reason = str(fallback)
    if not operator.custom and operator.name not in RUNTIME:
        raise operator.error(f"{reason}; TFLite Micro does not have this operator")
    used = [i for i in (*operator.inputs, *operator.outputs, *operator.intermediates) if i >= 0]
    if graph.resized.intersection(used):
        raise operator.error(
            f"{reason}, and the file stores wrong sizes of its tensors, as its batch is dynamic;"
            " convert the network with a fixed batch of 1"
        )
    if graph.file.sparse.intersection(used):
        raise operator.error("constants must not have a sparse encoding")
    model, fed = cut(graph.file, operator, graph.values)
    graph.spend(operator, len(model))
    tensors = graph.file.tensors
    attributes = _attributes(
        operator.label, model, [tensors[i] for i in used], len(operator.outputs)
    )
    try:
        attempt(attributes, [tensors[i] for i in fed])
    except ModelError as error:
        text = str(error).removeprefix(f"{operator.label}: ")
        raise operator.error(f"{reason}, and {text}") from error
    return [Host(
        operator=operator.custom or operator.name, name=graph.output(operator).name,
        position=(operator.position,), inputs=fed, outputs=operator.outputs,
        kernel="tflite.model", reason=reason, attributes=attributes,
        macs=macs_of(operator, graph.file.tensors),
    )]


def _attributes(label, model, tensors, outputs):
    return {
        "model": model, "memory": memory(tensors), "label": label, "outputs": outputs,
    }


def _whole(file, reason):
    """The whole file as one operator of the runtime."""
    if not file.outputs:
        raise ModelError(f"{file.name}: outputs must be at least 1, not 0")
    if file.sparse:
        raise ModelError(f"{file.name}: constants must not have a sparse encoding")
    attributes = _attributes(file.name, file.data, file.tensors, len(file.outputs))
    # A loop may never end with the values of a trial.
    attempt(attributes, [file.tensors[i] for i in file.inputs], run="WHILE" not in file.used)
    node = Host(
        operator=file.operators[-1].name, name=file.tensors[file.outputs[0]].name,
        position=tuple(range(len(file.operators))), inputs=file.inputs, outputs=file.outputs,
        kernel="tflite.model", reason=f"the whole file runs in TFLite Micro: {reason}",
        attributes=attributes,
        macs=sum(macs_of(operator, file.tensors) for operator in file.operators),
    )
    return _graph(file, [node], file.tensors, [node.reason])


def _order(file, graph, nodes, states):
    """Check that every tensor is written once, before it is used."""
    known = {*graph.values, *file.inputs, *file.variables, *(state.before for state in states)}
    for node in nodes:
        for number in node.inputs:
            if number >= 0 and number not in known:
                raise ModelError(
                    f"{file.name}: operator {node.position[0]} ({node.operator}): input "
                    f"{file.tensors[number].name!r} must be computed before"
                )
        for number in node.outputs:
            if number in known:
                raise ModelError(
                    f"{file.name}: operator {node.position[0]} ({node.operator}): output "
                    f"{file.tensors[number].name!r} must be written once"
                )
            known.add(number)
    for what, number in (
        *(("output", number) for number in file.outputs),
        *((f"the value of variable {state.name}", state.after) for state in states),
    ):
        if number not in known:
            raise ModelError(
                f"{file.name}: {what} {file.tensors[number].name!r} must be computed"
            )
