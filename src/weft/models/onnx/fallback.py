"""Operators without a kernel: a model of one node, which onnxruntime runs.

Its products are made exact first.
"""

import importlib.util
import math
from typing import NamedTuple

import numpy as np

from weft.hints import to_install
from weft.models.errors import ModelError

__all__ = [
    "check_runs", "cut_out", "lacks_opset", "needs_runtime", "one_node_model", "open_session",
    "probe", "run_model", "run_session", "with_exact_products",
]

SURE_OPSET = 21  # operator set of the oldest onnxruntime that Weft works with
MAX_PROBE = 1 << 28  # bytes of zeros that a node of unknown results is tried with


def one_node_model(node, types, names, constants, opsets):
    """A model with ``node`` alone.

    Its inputs are ``names`` of the types ``types``; ``constants`` (arrays by name) are in it.
    """
    from onnx import ValueInfoProto, helper, numpy_helper

    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(types[name][0]), types[name][1]
        )
        for name in names
    ]
    graph = helper.make_graph(
        [node], "one", inputs,
        [ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def cut_out(operator, types, constants, opsets) -> tuple[bytes, tuple[str, ...]]:
    """A model of one node, and the names of its inputs.

    Constants of up to 64 numbers are in the model, where operators may need them to be.
    """
    inside = {n: constants[n] for n in operator.reads if n in constants and constants[n].size <= 64}
    names = tuple(name for name in operator.reads if name not in inside)
    model = one_node_model(
        operator.proto, types, names, inside, _oldest(operator.proto, opsets)
    )
    return model.SerializeToString(), names


def _oldest(node, opsets):
    """The operator sets, the standard one as old as the node allows: the runtime may lack new ones.

    It is not older than the oldest one that this package reads, so that nodes of it can be added.
    """
    import onnx

    from weft.models.onnx.reading import OPSET

    oldest = []
    for entry in opsets:
        entry = type(entry).FromString(entry.SerializeToString())
        if entry.domain in ("", "ai.onnx"):
            nodes, since = [node], OPSET
            while nodes:
                part = nodes.pop()
                for attribute in part.attribute:
                    for graph in (attribute.g, *attribute.graphs):
                        nodes += graph.node
                if part.domain in ("", "ai.onnx"):
                    since = max(since, _since(onnx, part.op_type, entry.version))
            entry.version = min(entry.version, since)
        oldest.append(entry)
    return oldest


def _since(onnx, kind, version):
    """The operator set in which the operator has become as it is in ``version``."""
    try:
        return onnx.defs.get_schema(kind, version, "").since_version
    except onnx.defs.SchemaError:
        return version


def check_runs(model: bytes, operator, why: str, types, file: str) -> None:
    """Raise ModelError with the file and the node if onnxruntime cannot run a model of it.

    ``why`` is the reason for onnxruntime. Without it nothing is checked but the types, which must
    be of numpy.
    """
    where = f"{file}: node {operator.name} ({operator.kind}): {why}"
    for name in (*operator.reads, *filter(None, operator.outputs)):
        dtype = types[name][0]
        if dtype.isbuiltin != 1:
            raise ModelError(f"{where}; but {name} is {dtype}, which it does not exchange")
    if importlib.util.find_spec("onnxruntime") is None:
        return
    try:
        open_session(model, _title(model))
    except ModelError as error:
        raise ModelError(f"{where}; but {error}") from error


def run_model(model: bytes, inputs, state) -> list[np.ndarray]:
    """The outputs of a model of one node.

    Parameters
    ----------
    model : bytes
    inputs : sequence of array
        In the order of the model's inputs.
    state : dict
        Keeps the session from call to call.

    Raises
    ------
    ModelError
        If onnxruntime is missing, or cannot load or run the model.
    """
    if "session" not in state:
        state["session"] = open_session(model, _title(model))
    session = state["session"]
    names = [value.name for value in session.get_inputs()]
    return run_session(session, dict(zip(names, inputs, strict=True)), _title(model))


def run_session(session, feeds, what) -> list[np.ndarray]:
    """The outputs of a session for inputs by name; ModelError if the runtime reports an error."""
    try:
        return list(session.run(None, feeds))
    except Exception as error:  # of many types, from C++
        raise ModelError(f"onnxruntime cannot run {what}: {_line(error)}") from error


def probe(operator, types, constants, opsets, file):
    """Types of the outputs of a node that onnx does not know, from a run with zeros."""
    model, names = cut_out(operator, types, constants, opsets)
    size = sum(types[name][0].itemsize * math.prod(types[name][1]) for name in names)
    if size > MAX_PROBE:
        raise ModelError(
            f"{file}: node {operator.name} ({operator.domain}.{operator.kind}) must have inputs of "
            f"at most {MAX_PROBE} bytes, not {size}, as onnx does not know its results"
        )
    try:
        zeros = [np.zeros(types[name][1], types[name][0]) for name in names]
        results = run_model(model, [constants.get(n, z) for n, z in zip(names, zeros, strict=True)],
                            {})
    except ModelError as error:
        raise ModelError(
            f"{file}: node {operator.name} ({operator.domain}.{operator.kind}): {error}"
        ) from error
    outputs = [name for name in operator.outputs if name]
    return {n: (v.dtype, v.shape) for n, v in zip(outputs, results, strict=True)}


def needs_runtime(what):
    """Raise ModelError if onnxruntime is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise ModelError(
            f"{what} needs the package onnxruntime; {to_install(extra='onnx')}"
        )


def lacks_opset(version: int) -> bool:
    """Whether the onnxruntime that is installed loads no file of this standard operator set."""
    if version <= SURE_OPSET or importlib.util.find_spec("onnxruntime") is None:
        return False
    from onnx import helper

    types = {"x": (np.dtype(np.float32), (1,))}
    node = helper.make_node("Identity", ["x"], ["y"])
    model = one_node_model(node, types, ["x"], {}, [helper.make_opsetid("", version)])
    try:
        open_session(model.SerializeToString(), "the operator set")
    except ModelError:
        return True
    return False


def open_session(model: bytes, what: str, *, optimized: bool = False):
    """onnxruntime with a model, on one core, node by node as the model has them.

    ``optimized``: with the default optimizations. The products of integers of the model are exact
    on each processor (`with_exact_products`), and so are those that an optimization makes of a
    product between DequantizeLinear and QuantizeLinear, except in a model with a QGemm of int8.

    Raises ModelError if onnxruntime is missing or cannot load the model, or if the model needs
    other files.
    """
    needs_runtime(what)
    import onnxruntime

    from weft.models.onnx.reading import parse

    proto = parse(model, what)  # refuses data in other files
    levels = onnxruntime.GraphOptimizationLevel
    exact = with_exact_products(proto).SerializeToString()
    # On x86 without VNNI, the products of an optimization saturate without this option. With it,
    # onnxruntime makes a QGemm of int8 and uint8 of one of int8, and then it has no kernel for it.
    for precise in (["1", "0"] if optimized else ["0"]):
        options = onnxruntime.SessionOptions()  # a second value of an option would be a warning
        options.graph_optimization_level = (
            levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
        )
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.x64quantprecision", precise)
        try:
            return onnxruntime.InferenceSession(
                exact, options, providers=["CPUExecutionProvider"], enable_fallback=0,
            )
        except Exception as error:  # of many types, from C++
            failure = error
    raise ModelError(f"onnxruntime cannot load {what}: {_line(failure)}") from failure


def _title(model):
    """The operator of a model of one node."""
    try:
        import onnx

        return onnx.ModelProto.FromString(model).graph.node[0].op_type
    except Exception:  # damaged, or onnx is missing: only the name is lost
        return "a sub-model"


def _line(error):
    return " ".join(str(error).split())[:300]


class Places(NamedTuple):
    """Numbers of the inputs of a product; None for activations that the product quantizes."""

    activations: int | None
    weights: int
    zero_point: int


PRODUCTS = {
    "ConvInteger": Places(0, 1, 3),
    "DynamicQuantizeMatMul": Places(None, 1, 3),
    "MatMulInteger": Places(0, 1, 3),
    "MatMulIntegerToFloat": Places(0, 1, 5),
    "QGemm": Places(0, 3, 5),
    "QLinearConv": Places(0, 3, 5),
    "QLinearMatMul": Places(0, 3, 5),
}


def with_exact_products(model):
    """Return the model with ``uint8`` weights in place of ``int8`` ones, if activations are uint8.

    On x86 processors without VNNI, onnxruntime adds two products of uint8 and int8 in 16 bits, and
    saturates the sum. It computes products of uint8 and uint8 exactly on all processors. The
    results are equal, as weights and their zero point both move by 128:

        (w + 128) - (zero_point + 128) = w - zero_point

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    onnx.ModelProto
        A new one, unless no product needs it.
    """
    if not any(node.op_type in PRODUCTS for node in model.graph.node):
        return model
    types = _types(model)
    if not any(_saturates(node, types) for node in model.graph.node):
        return model
    moved = _with_casts(model)
    nodes = list(moved.graph.node)
    nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del moved.graph.node[:]
    for node in nodes:
        if _saturates(node, types):
            moved.graph.node.extend(_moved(node, moved.graph))
        else:
            moved.graph.node.append(node)
    return moved


OLDEST = 7  # the operator set in which Cast and Add have the form of today


def _with_casts(model):
    """A copy of the model in an operator set that has the nodes of `_moved`."""
    from onnx import helper

    from weft.models.onnx.reading import OPSET, convert

    moved = type(model)()
    moved.CopyFrom(model)
    standard = [entry for entry in moved.opset_import if entry.domain in ("", "ai.onnx")]
    if not standard:
        moved.opset_import.append(helper.make_opsetid("", OPSET))
    elif standard[0].version < OLDEST:
        if any(node.domain in ("", "ai.onnx") for node in moved.graph.node):
            return type(model).FromString(convert(model.SerializeToString(), "the model", OPSET))
        standard[0].version = OPSET
    return moved


def _types(model):
    """The element types of tensors by name, as far as onnx knows them."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(model).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _saturates(node, types):
    from onnx import TensorProto

    if node.op_type not in PRODUCTS:
        return False
    places = PRODUCTS[node.op_type]
    if places.activations is not None:
        # The zero point of QLinear products follows the activations and their scale.
        known = [types.get(name) for name in node.input[places.activations :][:3:2]]
        if TensorProto.UINT8 not in known:
            return False
    return types.get(node.input[places.weights]) == TensorProto.INT8


def _moved(node, graph):
    """Nodes that move the weights and their zero point by 128, and the product."""
    from onnx import NodeProto, TensorProto, helper, numpy_helper

    places = PRODUCTS[node.op_type]
    prefix = f"{node.output[0]}/exact"
    constants = {"128": np.int32(128), "zero": np.int8(0)}
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), f"{prefix}/{name}")
        for name, value in constants.items()
    )
    product = NodeProto()
    product.CopyFrom(node)
    while len(product.input) <= places.zero_point:
        product.input.append("")
    nodes = []
    for place in (places.weights, places.zero_point):
        name = f"{prefix}/{place}"
        signed = product.input[place] or f"{prefix}/zero"
        nodes += [
            helper.make_node("Cast", [signed], [f"{name}/wide"], to=TensorProto.INT32),
            helper.make_node("Add", [f"{name}/wide", f"{prefix}/128"], [f"{name}/sum"]),
            helper.make_node("Cast", [f"{name}/sum"], [f"{name}/uint8"], to=TensorProto.UINT8),
        ]
        product.input[place] = f"{name}/uint8"
    return [*nodes, product]
