"""Operators without a kernel: a model of one node, which onnxruntime runs."""

import importlib.util
import math

import numpy as np

from weft.hints import to_install
from weft.models.errors import ModelError

__all__ = [
    "check_runs", "cut_out", "needs_runtime", "one_node_model", "open_session", "probe", "run_model",
    "run_session",
]

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


def open_session(model: bytes, what: str, *, optimized: bool = False):
    """onnxruntime with a model, on one core, node by node as the model has them.

    ``optimized``: with the default optimizations. The products of integers of the model are exact
    on each processor (`with_exact_products`); those that an optimization makes of a product between
    DequantizeLinear and QuantizeLinear may saturate on x86 without VNNI.

    Raises ModelError if onnxruntime is missing or cannot load the model, or if the model needs
    other files.
    """
    needs_runtime(what)
    import onnxruntime

    from weft.models.onnx.exact_products import with_exact_products
    from weft.models.onnx.reading import parse

    proto = parse(model, what)  # refuses data in other files
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            with_exact_products(proto).SerializeToString(), options,
            providers=["CPUExecutionProvider"], enable_fallback=0,
        )
    except Exception as error:  # of many types, from C++
        raise ModelError(f"onnxruntime cannot load {what}: {_line(error)}") from error


def _title(model):
    """The operator of a model of one node."""
    try:
        import onnx

        return onnx.ModelProto.FromString(model).graph.node[0].op_type
    except Exception:  # damaged, or onnx is missing: only the name is lost
        return "a sub-model"


def _line(error):
    return " ".join(str(error).split())[:300]
