"""Writes quantized TFLite files with the schema classes of TFLite Micro's package."""

from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

__all__ = ["OperatorSpec", "TensorSpec", "tflite_file"]

SCHEMA = 3
TYPES = {np.dtype(np.int8): schema.TensorType.INT8, np.dtype(np.int32): schema.TensorType.INT32}


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """A quantized tensor.

    Attributes
    ----------
    name : str
    shape : tuple of int
    scale : float or array
        One scale, or one for each slice along ``axis``.
    zero : int
    data : array of int8 or int32, or None
        Value of a constant; None for an int8 feature map.
    axis : int
    """

    name: str
    shape: tuple[int, ...]
    scale: Any
    zero: int = 0
    data: np.ndarray | None = None
    axis: int = 0


@dataclass(frozen=True, eq=False)
class OperatorSpec:
    """An operator of ``tensors`` by their names; ``options`` is an options object of the schema.

    ``code`` is a number of ``schema.BuiltinOperator``, ``kind`` one of ``schema.BuiltinOptions``.
    """

    code: int
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kind: int
    options: Any


def tflite_file(tensors, operators, inputs, outputs, description) -> bytes:
    """The file of a network of one subgraph; ``inputs`` and ``outputs`` are names of tensors."""
    place = {tensor.name: n for n, tensor in enumerate(tensors)}
    model = schema.ModelT()
    model.version, model.description, model.buffers = SCHEMA, description, [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors = [_tensor(tensor, model.buffers) for tensor in tensors]
    codes = list(dict.fromkeys((operator.code, operator.version) for operator in operators))
    model.operatorCodes = [_code(*code) for code in codes]
    graph.operators = []
    for spec in operators:
        operator = schema.OperatorT()
        operator.opcodeIndex = codes.index((spec.code, spec.version))
        operator.inputs = [place[name] for name in spec.inputs]
        operator.outputs = [place[name] for name in spec.outputs]
        operator.builtinOptionsType, operator.builtinOptions = spec.kind, spec.options
        graph.operators.append(operator)
    graph.inputs = [place[name] for name in inputs]
    graph.outputs = [place[name] for name in outputs]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1 << 14)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(spec, buffers):
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.buffer = spec.name, list(spec.shape), 0
    tensor.type = TYPES[np.dtype(np.int8) if spec.data is None else spec.data.dtype]
    tensor.quantization = quantization = schema.QuantizationParametersT()
    quantization.scale = np.atleast_1d(np.float32(spec.scale))
    quantization.zeroPoint = np.full(quantization.scale.shape, spec.zero, np.int64)
    quantization.quantizedDimension = spec.axis
    if spec.data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(spec.data).tobytes(), np.uint8)
        buffers.append(buffer)
        tensor.buffer = len(buffers) - 1
    return tensor


def _code(code, version):
    entry = schema.OperatorCodeT()
    entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), version
    return entry
