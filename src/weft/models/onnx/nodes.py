"""The nodes and tensors of an ONNX graph as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.models.errors import ModelError

__all__ = [
    "OnnxOperator", "array_of", "attributes_of", "captured_names", "constant_of", "input_type",
    "is_quantized", "used_names",
]


@dataclass(frozen=True, eq=False)
class OnnxOperator:
    """One node of the file.

    Attributes
    ----------
    index : int
        Its place in the file.
    kind, domain, name : str
        ``Conv``, the domain of the operator set, and the name or the first output.
    inputs, outputs : tuple of str
        "" for an optional one that is absent.
    attributes : dict
        Numbers, strings, arrays, and tuples of them; subgraphs are missing.
    proto : onnx.NodeProto
    captured : tuple of str
        Tensors of this graph that its subgraphs read.
    title : str
        Operator of the file: another one than ``kind`` if this is a part of it.
    """

    index: int
    kind: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: Any
    captured: tuple[str, ...] = ()
    title: str = ""

    @property
    def reads(self):
        """All tensors that it reads, each once."""
        return list(dict.fromkeys(name for name in (*self.inputs, *self.captured) if name))


def is_quantized(kind: str) -> bool:
    """Whether an operator has quantized operands, or makes them."""
    return kind.startswith("Q") or any(part in kind for part in ("Quant", "Integer", "NBits"))


def array_of(tensor, file):
    from onnx import numpy_helper

    try:
        value = numpy_helper.to_array(tensor)
    except Exception as error:  # of many types, by data that do not fit
        raise ModelError(f"{file}: tensor {tensor.name} cannot be read: {error}") from error
    if value.dtype.kind == "O":
        raise ModelError(f"{file}: tensor {tensor.name} must be numbers, not strings")
    return value


def input_type(value, file):
    from onnx import helper

    tensor = value.type.tensor_type
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except (KeyError, TypeError, ValueError):
        dtype = np.dtype(object)
    if dtype.kind == "O":
        raise ModelError(f"{file}: input {value.name} must be numbers")
    return dtype, tuple(dim.dim_value for dim in tensor.shape.dim)


def attributes_of(node, file, name):
    """The attributes of a node as plain values; subgraphs are left out."""
    from onnx import AttributeProto, helper

    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    found = {}
    for attribute in node.attribute:
        if attribute.type in graphs:
            continue
        if attribute.type == AttributeProto.TENSOR:
            found[attribute.name] = array_of(attribute.t, file)
            continue
        try:
            value = helper.get_attribute_value(attribute)
        except ValueError as error:
            raise ModelError(f"{file}: node {name}: attribute {attribute.name}: {error}") from error
        many = isinstance(value, list)
        found[attribute.name] = tuple(map(_text, value)) if many else _text(value)
    return found


def _text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def constant_of(operator, file):
    """Value of a Constant node."""
    [(kind, value)] = list(operator.attributes.items())[:1] or [("", None)]
    dtypes = {
        "value": None, "value_float": np.float32, "value_floats": np.float32,
        "value_int": np.int64, "value_ints": np.int64,
    }
    if kind not in dtypes:
        raise ModelError(
            f"{file}: node {operator.name} (Constant) must have numbers, not {kind or 'nothing'}"
        )
    return np.asarray(value, dtypes[kind])


def used_names(graph):
    """Names of all tensors that a node, a subgraph or the caller reads."""
    read = {value.name for value in graph.output}
    for node in graph.node:
        read.update(node.input)
        read.update(captured_names(node))
    return read


def captured_names(node):
    """Names that the subgraphs of a node read and do not define."""
    found, graphs = {}, []
    for attribute in node.attribute:
        graphs += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
    for graph in graphs:
        own = {value.name for value in graph.input} | {t.name for t in graph.initializer}
        for inner in graph.node:
            names = (*inner.input, *captured_names(inner))
            found.update((n, None) for n in names if n and n not in own)
            own.update(inner.output)
        found.update((v.name, None) for v in graph.output if v.name not in own)
    return tuple(found)
