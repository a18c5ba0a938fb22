"""Reads a TFLite file into plain tensors and operators, each number checked before it is used.

The parser of flatbuffers has no verifier. So every index, length and offset that leads to memory is
checked here, and every exception of the parser becomes a `ModelError`. The memory and time that a
file takes are bounded by its size: vectors that overlap are counted each time, up to a limit.

A tensor that breaks a rule is no error until something uses it: runtimes do not read the others.
But each tensor must lie inside the file: otherwise the file is damaged.
"""

import itertools
import math

import numpy as np
import tflite
from flatbuffers.number_types import Int32Flags

from weft.hints import short, visible
from weft.models.errors import ModelError
from weft.models.ir import Quantization, Tensor
from weft.models.tflite.file import PARSER_ERRORS, File, TfliteOperator

__all__ = ["read"]

OPERATORS = dict(tflite.utils.BUILTIN_OPCODE2NAME)
# The newest operators, which the package does not name yet.
OPERATORS |= {
    getattr(tflite.BuiltinOperator, name): name
    for name in vars(tflite.BuiltinOperator) if name.isupper()
}
OPTIONS = {
    getattr(tflite.BuiltinOptions, name): name
    for name in vars(tflite.BuiltinOptions) if name[0].isupper()
}
CUSTOM = 32  # code of a custom operator
BUILTIN_CODE = 10  # place of the field in the table of an operator code
_TYPES = {
    name: np.dtype(kind) for name, kind in {
        "FLOAT32": "<f4", "FLOAT16": "<f2", "INT32": "<i4", "UINT8": "u1", "INT64": "<i8",
        "BOOL": "?", "INT16": "<i2", "COMPLEX64": "<c8", "INT8": "i1", "FLOAT64": "<f8",
        "UINT64": "<u8", "UINT32": "<u4", "UINT16": "<u2",
        "INT4": "i1",  # two values in each byte, the first one low
        # Handles of resources and variants: four bytes without a meaning of their own.
        "RESOURCE": "<i4", "VARIANT": "<i4",
    }.items()
}
TYPES = {getattr(tflite.TensorType, name): kind for name, kind in _TYPES.items()}
NAMES = {
    getattr(tflite.TensorType, name): name
    for name in vars(tflite.TensorType) if name.isupper()
}
_FIELDS_OF_ONNX = tuple(bytes([8 * n + 2]) for n in (2, 3, 4, 6, 7, 8))
RANK, ELEMENTS, TEXT = 8, (1 << 31) - 1, 256  # limits of a tensor's shape, size and name


def read(data: bytes, name: str, subgraph: int = 0) -> File:
    """Read a file; ModelError if it is damaged.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        Name of the file, for messages.
    subgraph : int
        The subgraph whose tensors and operators it has.
    """
    data = bytes(data)
    check_kind(data, name)
    reader = _Reader(data, name)
    try:
        return reader.file(subgraph)
    except ModelError:
        raise
    except PARSER_ERRORS as error:
        raise ModelError(
            f"{name}: {reader.where} must lie inside the file ({len(data)} bytes); the file is cut"
            " off or damaged"
        ) from error


def check_kind(data: bytes, name: str) -> None:
    """Raise ModelError unless a file begins as a TFLite file does."""
    if not data:
        raise ModelError(f"{name}: the file must have a network, and is empty")
    if data[4:8] == b"TFL3":
        return
    # Field 1 of an ONNX model is its version, a small number; another field follows.
    if data[:1] == b"\x08" and b"\0" < data[1:2] < b"\x20" and data[2:3] in _FIELDS_OF_ONNX:
        raise ModelError(
            f"{name}: the file must be a TFLite file, and is an ONNX file; name it .onnx"
        )
    found = f"not {data[4:8].hex(' ')}" if data[4:] else f"and the file has {len(data)} bytes"
    raise ModelError(f"{name}: bytes 4..7 of a TFLite file must be TFL3 (54 46 4c 33), {found}")


class _Reader:
    """Reads one file; ``where`` is the part that it reads, for messages."""

    def __init__(self, data, name):
        self.data, self.name, self.where = data, name, "the model"
        self.budget = 16 * len(data) + 4096  # bytes that all vectors may have together

    def error(self, rule):
        return ModelError(f"{self.name}: {self.where}: {rule}")

    def spend(self, size):
        self.budget -= size
        if self.budget < 0:
            raise self.error("vectors must not have more bytes than 16 files: they overlap")

    def vector(self, table, field):
        """Field ``field`` of a table as an array, a view of the file; empty if it is absent."""
        array = getattr(table, f"{field}AsNumpy")()
        if isinstance(array, int):
            return np.zeros(0, np.int32)
        self.spend(array.nbytes)
        return array

    def tables(self, parent, field):
        """The tables in a vector of tables."""
        count = getattr(parent, f"{field}Length")()
        if 4 * count > len(self.data):
            raise self.error(f"{field} must fit the file, not have {count} entries")
        self.spend(4 * count)
        get = getattr(parent, field)
        return [get(i) for i in range(count)]

    def text(self, raw):
        """At most ``TEXT`` characters of a name."""
        return visible((raw or b"")[:TEXT].decode("utf-8", "replace"))

    def file(self, subgraph):
        model = tflite.Model.GetRootAs(self.data)
        if model.Version() != 3:
            raise self.error(f"version must be 3, not {model.Version()}")
        self.where = "the buffers"
        buffers = self.tables(model, "Buffers")
        self.where = "the operator codes"
        codes = [self.code(entry) for entry in self.tables(model, "OperatorCodes")]
        self.where = "the subgraphs"
        graphs = self.tables(model, "Subgraphs")
        if not graphs:
            raise self.error("there must be at least one")
        if not 0 <= subgraph < len(graphs):
            raise self.error(f"a called subgraph must be in 0..{len(graphs) - 1}, not {subgraph}")
        graph = graphs[subgraph]
        self.where = "the tensors"
        raw = self.tables(graph, "Tensors")
        tensors, dynamic, sparse, faults = [], [], set(), {}
        for i, tensor in enumerate(raw):
            try:
                found, axes = self.tensor(i, tensor, buffers, sparse)
            except ModelError as error:
                faults[i] = error
                found, axes = Tensor(self.text(tensor.Name()), (), np.dtype(np.uint8)), ()
            tensors.append(found)
            dynamic.append(frozenset(axes))
        self.where = "the inputs"
        inputs = self.indices(graph, "Inputs", len(tensors))
        for i in inputs:
            if tensors[i].data is not None:
                raise self.error(
                    f"Inputs must have no constant; tensor {i} ({tensors[i].name!r}) is one"
                )
        self.where = "the outputs"
        outputs = self.indices(graph, "Outputs", len(tensors))
        operators = []
        for i, operator in enumerate(self.tables(graph, "Operators")):
            operators.append(self.operator(i, operator, codes, tensors))
        return File(
            name=self.name, data=self.data, tensors=tensors, dynamic=tuple(dynamic),
            kinds=tuple(NAMES.get(tensor.Type(), str(tensor.Type())) for tensor in raw),
            variables=frozenset(i for i, tensor in enumerate(raw) if tensor.IsVariable()),
            operators=tuple(operators),
            used=frozenset(OPERATORS.get(code, "") for code, *_ in codes), inputs=inputs,
            outputs=outputs, subgraphs=len(graphs),
            sparse=frozenset(sparse), faults=faults, notes=_notes(dynamic),
        )

    def code(self, entry):
        """Code, version and custom name of an entry of the operator codes."""
        # The larger of the old field of a byte and the new field of 32 bits, as in the runtimes.
        # The package's BuiltinCode ignores the new field if its code fits the old one.
        place = entry._tab.Offset(BUILTIN_CODE)
        code = entry._tab.Get(Int32Flags, entry._tab.Pos + place) if place else 0
        code = max(code, entry.DeprecatedBuiltinCode())
        return code, entry.Version(), self.text(entry.CustomCode()) if code == CUSTOM else ""

    def indices(self, table, field, count, optional=False):
        """Numbers of tensors; with ``optional`` also -1."""
        values = self.vector(table, field).tolist()
        low = -1 if optional else 0
        for value in values:
            if not low <= value < count:
                raise self.error(f"{field} must be tensors {low}..{count - 1}, not {value}")
        return tuple(values)

    def operator(self, i, raw, codes, tensors):
        self.where = f"operator {i}"
        index = raw.OpcodeIndex()
        if not 0 <= index < len(codes):
            raise self.error(f"operator code must be in 0..{len(codes) - 1}, not {index}")
        code, version, custom = codes[index]
        name = OPERATORS.get(code, f"code {code}")
        self.where = f"operator {i} ({custom or name})"
        inputs = self.indices(raw, "Inputs", len(tensors), optional=True)
        outputs = self.indices(raw, "Outputs", len(tensors))
        middle = self.indices(raw, "Intermediates", len(tensors), optional=True)
        kind = raw.BuiltinOptionsType()
        table = raw.BuiltinOptions() if kind else None
        if table is not None and not 0 <= table.Pos < len(self.data):
            raise self.error(f"options must lie inside the file, not at {table.Pos}")
        output = tensors[outputs[0]].name if outputs else ""
        label = f"{self.name}: operator {i} ({custom or name}, {short(output)!r})"
        return TfliteOperator(
            position=i, name=name, custom=custom, code=code, version=version, inputs=inputs,
            outputs=outputs, intermediates=middle, label=label,
            kind=OPTIONS.get(kind, f"type {kind}") if table is not None else "", table=table,
            custom_options=self.vector(raw, "CustomOptions").tobytes(),
        )

    def tensor(self, i, raw, buffers, sparse):
        """Return a tensor, and its axes that may have any size."""
        self.where = f"tensor {i}"
        name = self.text(raw.Name())
        self.where = f"tensor {i} ({name!r})"
        kind = raw.Type()
        if kind not in TYPES:
            types = ", ".join(_TYPES)
            raise self.error(f"type must be one of {types}, not {NAMES.get(kind, kind)}")
        shape, axes = self.shape(raw)
        if raw.Sparsity() is not None:
            sparse.add(i)
            data = None
        else:
            data = self.constant(raw, buffers, shape, kind)
        if data is not None and -1 in self.vector(raw, "Shape"):
            raise self.error("dimensions of a constant must be at least 0, not -1")
        if data is not None and raw.IsVariable():  # LiteRT refuses it; TFLite Micro clears the data
            raise self.error("a variable must have no data in the file")
        return Tensor(name, shape, TYPES[kind], self.quantization(raw), data), axes

    def shape(self, raw):
        """Return the shape, where dimensions of any size are 1, and the axes of any size."""
        dimensions, signature = (
            self.vector(raw, field).tolist() for field in ("Shape", "ShapeSignature")
        )
        if len(dimensions) > RANK:
            raise self.error(f"rank must be in 0..{RANK}, not {len(dimensions)}")
        for size in dimensions:
            if size < -1:
                raise self.error(f"dimensions must be at least 0 (-1 for any), not {size}")
        shape = tuple(1 if size == -1 else size for size in dimensions)
        if math.prod(shape) > ELEMENTS:
            raise self.error(f"elements must be at most {ELEMENTS}, not {math.prod(shape)}")
        pairs = itertools.zip_longest(dimensions, signature[: len(dimensions)], fillvalue=0)
        return shape, [axis for axis, sizes in enumerate(pairs) if min(sizes) < 0]

    def constant(self, raw, buffers, shape, kind):
        """The data of a constant, or None."""
        index = raw.Buffer()
        if not 0 <= index < len(buffers):
            raise self.error(f"buffer must be in 0..{len(buffers) - 1}, not {index}")
        if index == 0 or NAMES[kind] in ("RESOURCE", "VARIANT"):
            return None
        buffer = buffers[index]
        offset, size = buffer.Offset(), buffer.Size()
        if offset > 1:  # data of a large file, after its flatbuffer
            if offset + size > len(self.data):
                raise self.error(f"data must end inside the file, not at {offset + size}")
            data = np.frombuffer(self.data, np.uint8, size, offset)
        else:
            data = buffer.DataAsNumpy()
            if isinstance(data, int) or data.size == 0:
                return np.zeros(shape, TYPES[kind]) if 0 in shape else None
        count, dtype = math.prod(shape), TYPES[kind]
        packed = NAMES[kind] == "INT4"
        wanted = (count + 1) // 2 if packed else count * dtype.itemsize
        if data.size < wanted:
            raise self.error(f"data of shape {shape} must have {wanted} bytes, not {data.size}")
        data = data[:wanted]  # no runtime reads the rest
        if packed:
            self.spend(count)
            low = (data.view(np.int8) << 4) >> 4
            return np.stack([low, data.view(np.int8) >> 4], -1).ravel()[:count].reshape(shape)
        return data.view(dtype).reshape(shape)

    def quantization(self, raw):
        """The quantization, not checked; None if the tensor has no scale."""
        quantization = raw.Quantization()
        if quantization is None:
            return None
        scale = self.vector(quantization, "Scale")
        if not scale.size:
            return None
        zero = self.vector(quantization, "ZeroPoint")
        # One zero point, or none, is that of all scales; who uses the tensor checks other numbers.
        if zero.size < 2 and zero.size != scale.size:
            self.spend(8 * scale.size)
            zero = np.broadcast_to(zero if zero.size else np.zeros(1, np.int64), scale.shape)
        axis = quantization.QuantizedDimension() if scale.size > 1 else 0
        return Quantization(scale.view("<f4"), np.asarray(zero, np.int64), axis)


def _notes(dynamic):
    count = sum(map(bool, dynamic))
    if not count:
        return []
    tensors = "1 tensor has" if count == 1 else f"{count} tensors have"
    return [f"{tensors} dimensions of any size; each is fixed to its stored size, or 1"]
