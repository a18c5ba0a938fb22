"""Turns a TFLite file into a `Graph`."""

import dataclasses
import difflib
import math

from weft.models.errors import ModelError
from weft.models.ir import Graph, Host
from weft.models.tflite import arithmetic, moving, products, recurrent, reducing, shapes, unary
from weft.models.tflite.context import Context, Fallback
from weft.models.tflite.reader import read
from weft.models.tflite.runtime import attempt, cut, memory
from weft.models.tflite.scales import refusals
from weft.models.tflite.variables import VARIABLES, Variables

__all__ = ["CALLERS", "COMPILED", "CUSTOM", "RUNTIME", "import_file", "macs_of"]

BUILDERS = {
    **products.BUILDERS, **arithmetic.BUILDERS, **unary.BUILDERS, **moving.BUILDERS,
    **reducing.BUILDERS, **recurrent.BUILDERS, **shapes.BUILDERS,
}


def import_file(data: bytes, name: str) -> Graph:
    """`weft.models.tflite.load`, if the package tflite is installed."""
    file = read(data, name)
    file.check((*file.inputs, *file.outputs))
    if not file.outputs:
        raise ModelError(f"{name}: outputs must be at least 1, not 0")
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
    # Weights alone may be bytes of float32 layers.
    if any(file.kinds[i] == "UINT8" and i not in graph.values for i in used):
        notes.append(
            "TFLite Micro has no uint8: values are computed as int8 and then raised by 128"
        )
    if graph.hybrid:
        notes.append(
            f"{graph.hybrid} product{'s' * (graph.hybrid > 1)} with float32 activations and int8"
            " weights (dynamic range quantization): rows of the activations are quantized at run"
            " time, as LiteRT does"
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
            f"variables keep their values from inference to inference ({names}), so inferences run"
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


def macs_of(operator, tensors) -> int:
    """Return the MAC of an operator in one inference; 0 if it has no product.

    ``tensors`` are those of the file. As for products of the core, padding counts, and zeros that
    a transposed convolution inserts do, too.
    """
    shapes = [tensors[n].shape if n >= 0 else () for n in operator.inputs]
    y = tensors[operator.outputs[0]].shape if operator.outputs else ()
    try:
        return _MACS[operator.name](shapes, y) if operator.name in _MACS else 0
    except (IndexError, ZeroDivisionError):  # of a damaged file, which the runtime refuses
        return 0


def _convolution(shapes, y):
    return math.prod(y[:3]) * math.prod(shapes[1])


def _fully_connected(shapes, y):
    return math.prod(shapes[0]) // shapes[1][-1] * math.prod(shapes[1])


def _batch_matmul(shapes, y):
    # K is what both operands have, and y has not; the transposed axes do not matter.
    m, n = y[-2:]
    return math.prod(y) * (math.prod(shapes[0][-2:]) // m if m else 0)


def _svdf(shapes, y):
    return shapes[0][0] * (math.prod(shapes[1]) + math.prod(shapes[2]))


def _lstm(shapes, y):
    matrices = sum(math.prod(shape) for shape in shapes[1:9] if len(shape) == 2)
    projection = math.prod(shapes[16]) if len(shapes) > 16 and len(shapes[16]) == 2 else 0
    return math.prod(shapes[0][:2]) * (matrices + projection)


_MACS = {
    "BATCH_MATMUL": _batch_matmul, "CONV_2D": _convolution, "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _fully_connected, "SVDF": _svdf, "TRANSPOSE_CONV": _convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}


# Operators that call subgraphs or keep resources: they need the whole file.
CALLERS = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE",
})
RUNTIME = CALLERS | {
    "ABS", "ADD", "ADD_N", "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "BATCH_MATMUL",
    "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO", "CAST", "CEIL", "CONCATENATION",
    "CONV_2D", "COS", "CUMSUM", "DEPTH_TO_SPACE", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "DIV",
    "DYNAMIC_UPDATE_SLICE", "ELU", "EMBEDDING_LOOKUP", "EQUAL", "EXP", "EXPAND_DIMS", "FILL",
    "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "FULLY_CONNECTED", "GATHER", "GATHER_ND", "GREATER",
    "GREATER_EQUAL", "HARD_SWISH", "L2_NORMALIZATION", "L2_POOL_2D", "LEAKY_RELU", "LESS",
    "LESS_EQUAL", "LOG", "LOG_SOFTMAX", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC",
    "MAX_POOL_2D", "MAXIMUM", "MEAN", "MINIMUM", "MIRROR_PAD", "MUL", "NEG", "NOT_EQUAL", "PACK",
    "PAD", "PADV2", "PRELU", "QUANTIZE", "REDUCE_ALL", "REDUCE_MAX",
    "REDUCE_MIN", "RELU", "RELU6", "RESHAPE",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "ROUND", "RSQRT", "SELECT_V2",
    "SHAPE", "SIN", "SLICE", "SOFTMAX", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT",
    "SPLIT_V", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SQUEEZE", "STRIDED_SLICE", "SUB", "SUM",
    "SVDF", "TANH", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNPACK",
    "ZEROS_LIKE",
}
# Custom operators of its package.
CUSTOM = (
    "CIRCULAR_BUFFER", "SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank",
    "SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot",
    "SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN", "SignalRfft",
    "SignalStacker", "SignalWindow", "TFLite_Detection_PostProcess",
)
# Custom operators that the compilers of other accelerators write, by what runs them.
COMPILED = {
    "edgetpu-custom-op": "a Coral Edge TPU (by edgetpu_compiler)",
    "ethos-u": "an Arm Ethos-U (by Vela)",
    "neutron_graph": "an NXP eIQ Neutron (by its converter)", "NeutronGraph": "an NXP eIQ Neutron",
}
