"""Writes TFLite files with the schema classes of TFLite Micro's or LiteRT's package."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "OperatorSpec", "TensorSpec", "assign", "fully_connected_file", "handle", "read", "schema",
    "tflite_file",
]

SCHEMA = 3
TYPES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int32": "INT32", "uint8": "UINT8",
    "int64": "INT64", "bool": "BOOL", "int16": "INT16", "int8": "INT8", "int4": "INT4",
    "uint32": "UINT32", "resource": "RESOURCE",
}


@dataclass(eq=False)
class TensorSpec:
    """A tensor.

    Attributes
    ----------
    shape : tuple of int, or None
        None: the shape of ``data``.
    dtype : str or numpy type
        One of `TYPES`; a constant has the type of its ``data`` unless this is int4.
    scale : float, array or None
        One scale, or one for each slice along ``axis``; None: not quantized.
    zero : int or array
        Zero point.
    axis : int
        Axis of the scales.
    data : array or None
        Value of a constant.
    any_size : tuple of int
        Axes that may have any size; ``shape`` has the stored one.
    variable : bool
        Whether the tensor keeps its value from one run to the next.
    """

    shape: Any = None
    dtype: Any = "int8"
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    data: Any = None
    any_size: Any = ()
    variable: bool = False

    def __post_init__(self):
        self.data = None if self.data is None else np.asarray(self.data)
        if self.data is not None and self.dtype != "int4":
            self.dtype = self.data.dtype
        if self.dtype not in ("int4", "resource"):
            self.dtype = str(np.dtype(self.dtype))
        self.shape = tuple(self.data.shape if self.shape is None else self.shape)

    def bytes(self):
        """The constant as the file has it; two int4 values a byte, the first in the low half."""
        if self.dtype == "int4":
            flat = np.append(self.data.ravel(), np.zeros(self.data.size % 2)).astype(np.int8)
            flat = flat.view(np.uint8) & 15
            return (flat[::2] | flat[1::2] << 4).tobytes()
        return self.data.tobytes()


class OperatorSpec(NamedTuple):
    """An operator.

    Attributes
    ----------
    name : str or int
        Name in the schema's BuiltinOperator or its number, or ``custom:NAME``.
    inputs, outputs : sequence
        Tensors by name (None: absent) or by number.
    options : tuple or None
        Class name of the options, and their values by name.
    version : int
    intermediates : sequence of str
        Names of further tensors, which have scales for LiteRT.
    """

    name: str | int
    inputs: Any
    outputs: Any
    options: tuple[str, dict] | None = None
    version: int = 4
    intermediates: Any = ()


def tflite_file(tensors, operators, inputs, outputs, extra=(), description=None) -> bytes:
    """Return the file of a network.

    Parameters
    ----------
    tensors : dict of TensorSpec
        By name.
    operators : sequence of OperatorSpec
        Or tuples of their values.
    inputs, outputs : sequence of str
        Names of tensors.
    extra : sequence of tuple
        Further subgraphs, each (tensors, operators, inputs, outputs).
    description : str or None
    """
    import flatbuffers

    s = schema()
    model = s.ModelT()
    model.version, model.description, model.buffers = SCHEMA, description, [s.BufferT()]
    codes = {}
    model.subgraphs = [
        _subgraph(s, model, codes, *part)
        for part in ((tensors, operators, inputs, outputs), *extra)
    ]
    model.operatorCodes = [_code(s, *code) for code in codes]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def fully_connected_file(layers, activations, rows=1, description=None) -> bytes:
    """Return the file of a sequence of layers, each with its fused activation function.

    A layer has ``weights`` [N, K], ``bias`` [N], ``x_scale``, ``x_zero_point``, ``w_scale``,
    ``y_scale`` and ``y_zero_point``. A layer in float32 has None as its scales.
    """
    first = layers[0]
    dtype = first.weights.dtype
    tensors = {
        "x0": TensorSpec(
            (rows, first.weights.shape[1]), dtype, scale=first.x_scale, zero=first.x_zero_point
        )
    }
    operators = []
    for n, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
        scale = None
        if layer.w_scale is not None:
            scale = np.float32(np.float64(layer.x_scale) * layer.w_scale)
        tensors |= {
            f"x{n + 1}": TensorSpec(
                (rows, len(layer.bias)), dtype, scale=layer.y_scale, zero=layer.y_zero_point
            ),
            f"L{n}_weights": TensorSpec(scale=layer.w_scale, data=layer.weights),
            f"L{n}_bias": TensorSpec(scale=scale, data=layer.bias),
        }
        operators.append(OperatorSpec(
            "FULLY_CONNECTED", (f"x{n}", f"L{n}_weights", f"L{n}_bias"), (f"x{n + 1}",),
            ("FullyConnectedOptions", {"fusedActivationFunction": activation}), 5,
        ))
    return tflite_file(
        tensors, operators, ["x0"], [f"x{len(layers)}"], description=description
    )


def handle(variable) -> OperatorSpec:
    """Return the operator that names a variable; its output is ``h_`` and the name."""
    options = {"container": "", "sharedName": variable}
    return OperatorSpec("VAR_HANDLE", [], [f"h_{variable}"], ("VarHandleOptions", options))


def read(variable, tensor) -> OperatorSpec:
    """Return the operator that reads a variable."""
    return OperatorSpec(
        "READ_VARIABLE", [f"h_{variable}"], [tensor], ("ReadVariableOptions", {})
    )


def assign(variable, tensor) -> OperatorSpec:
    """Return the operator that writes a variable."""
    return OperatorSpec(
        "ASSIGN_VARIABLE", [f"h_{variable}", tensor], [], ("AssignVariableOptions", {})
    )


def schema():
    """Return the generated classes of the schema; both packages have the same."""
    try:
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated
    except ImportError:
        from ai_edge_litert import schema_py_generated
    return schema_py_generated


def _subgraph(s, model, codes, tensors, operators, inputs, outputs):
    """A subgraph; it appends to the buffers of ``model``, and new operators to ``codes``."""
    graph = s.SubGraphT()
    graph.tensors = [_tensor(s, model, name, spec) for name, spec in tensors.items()]
    place = {name: i for i, name in enumerate(tensors)} | {None: -1}
    graph.operators = []
    for values in operators:
        spec = OperatorSpec(*values)
        operator = s.OperatorT()
        operator.opcodeIndex = codes.setdefault((spec.name, spec.version), len(codes))
        operator.inputs = [place.get(i, i) for i in spec.inputs]
        operator.outputs = [place.get(i, i) for i in spec.outputs]
        operator.intermediates = [place[i] for i in spec.intermediates]
        if spec.options is not None:
            kind, fields = spec.options
            operator.builtinOptionsType = getattr(s.BuiltinOptions, kind)
            operator.builtinOptions = getattr(s, f"{kind}T")()
            for key, value in fields.items():
                assert hasattr(operator.builtinOptions, key), key
                setattr(operator.builtinOptions, key, value)
        graph.operators.append(operator)
    graph.inputs, graph.outputs = [place[i] for i in inputs], [place[i] for i in outputs]
    return graph


def _tensor(s, model, name, spec):
    tensor = s.TensorT()
    tensor.name, tensor.shape, tensor.buffer = name, list(spec.shape), 0
    if spec.any_size:
        rank = max(len(spec.shape), *(axis + 1 for axis in spec.any_size))
        tensor.shapeSignature = [
            -1 if axis in spec.any_size else spec.shape[axis] for axis in range(rank)
        ]
    tensor.type, tensor.isVariable = getattr(s.TensorType, TYPES[spec.dtype]), spec.variable
    if spec.scale is not None:
        tensor.quantization = quantization = s.QuantizationParametersT()
        quantization.scale = scale = np.atleast_1d(np.float32(spec.scale))
        quantization.zeroPoint = np.broadcast_to(np.int64(spec.zero), scale.shape).copy()
        quantization.quantizedDimension = spec.axis
    if spec.data is not None:
        model.buffers.append(s.BufferT())
        model.buffers[-1].data = np.frombuffer(spec.bytes(), np.uint8)
        tensor.buffer = len(model.buffers) - 1
    return tensor


def _code(s, name, version):
    entry = s.OperatorCodeT()
    if isinstance(name, str) and name.startswith("custom:"):
        entry.customCode, code = name.removeprefix("custom:"), s.BuiltinOperator.CUSTOM
    else:
        code = name if isinstance(name, int) else getattr(s.BuiltinOperator, name)
    entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), version
    return entry
