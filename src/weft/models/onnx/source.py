"""A model as operators, types and constants: aliases resolved, constants folded."""

import math
import os
import stat
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from weft.models.errors import ModelError
from weft.models.onnx.fallback import one_node_model
from weft.models.onnx.inference import body_of, branch_of, infer, parts_of, renamed
from weft.models.onnx.nodes import (
    OnnxOperator,
    array_of,
    attributes_of,
    captured_names,
    constant_of,
    input_type,
    used_names,
)
from weft.models.onnx.reading import decoded, raw_bytes, tensors_of

__all__ = ["Source", "dequantized", "self_contained"]


# Tensors in files beside an ``.onnx`` file, as exporters write them, become part of the model. Only
# regular files inside the folder of the model are read: a model of somebody else names them.

MAX_BYTES = (1 << 31) - 1  # of a serialized model
DIGITS = 18  # of an offset or a length


def self_contained(data: bytes, name: str, folder: Path) -> bytes:
    """The bytes of a model with all its tensors in itself; ``data`` if they are already.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Name of the file; for messages.
    folder : Path
        Folder of the file.

    Raises
    ------
    ModelError
        If a tensor is in a file outside the folder, in one that is missing, too short or not a
        regular file, or if the model would have 2 GiB or more.
    """
    if b"location" not in data:  # a key that each such tensor must have
        return data
    import onnx

    model = decoded(data, name)
    outside = [t for t in tensors_of(model)
               if t.data_location == onnx.TensorProto.EXTERNAL or t.external_data]
    if not outside:
        return data
    places = [_place(tensor, name, folder) for tensor in outside]
    total = len(data) + sum(size for *_, size in places)
    if total > MAX_BYTES:
        raise ModelError(
            f"{name}: the model and its data in other files must have at most {MAX_BYTES:,} bytes, "
            f"not {total:,}"
        )
    for tensor, (path, offset, size) in zip(outside, places, strict=True):
        values = _read(path, offset, size, _where(tensor, name))
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        tensor.raw_data = values
    return model.SerializeToString()


def _where(tensor, name):
    return f"{name}: tensor {tensor.name}"


def _place(tensor, name, folder):
    """(file, offset, bytes) of the data of a tensor, checked."""
    where, given = _where(tensor, name), {}
    for entry in tensor.external_data:
        if entry.key in given:
            raise ModelError(f"{where}: its data must have one {entry.key}, not two")
        given[entry.key] = entry.value
    size = _size(tensor, where)
    path = _inside(given.get("location", ""), folder, where)
    offset = _number(given.get("offset", "0"), "offset", where)
    length = _number(given.get("length", str(size)), "length", where)
    if length != size:
        raise ModelError(
            f"{where}: its data in {given['location']!r} must have {size} bytes, as its shape says,"
            f" not length {length}"
        )
    end, actual = offset + size, path.stat().st_size
    if end > actual:
        raise ModelError(
            f"{where}: its data file {given['location']!r} must have at least {end} bytes, not "
            f"{actual}"
        )
    return path, offset, size


def _size(tensor, where):
    """Bytes of a tensor, by its shape and type."""
    import onnx

    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind == "O":
        raise ModelError(f"{where}: data in another file must be numbers")
    if any(size < 0 for size in tensor.dims):
        raise ModelError(f"{where}: sizes must be 0 or more, not {tuple(tensor.dims)}")
    return raw_bytes(tensor.data_type, math.prod(tensor.dims), dtype)


def _number(text, what, where):
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        raise ModelError(
            f"{where}: {what} of its data must be a number of 1 to {DIGITS} digits, not "
            f"{text[:40]!r}"
        )
    return int(text)


def _inside(location, folder, where):
    """The regular file at a location inside the folder; links are followed."""
    kinds = PurePosixPath(location), PureWindowsPath(location)
    outside = any(p.is_absolute() or p.drive or p.root or ".." in p.parts for p in kinds)
    if not location or outside:
        raise ModelError(
            f"{where}: location of its data must be a path inside the folder of the model, not "
            f"{location[:200]!r}"
        )
    what = f"{where}: its data file {location[:200]!r}"
    try:
        path, root = folder.joinpath(location).resolve(strict=True), folder.resolve(strict=True)
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise ModelError(f"{what} must be beside the model, but does not exist") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a name with a NUL
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{what} cannot be read: {reason}") from error
    if not path.is_relative_to(root):
        raise ModelError(
            f"{what} must be in the folder of the model, but is a link that leads out of it"
        )
    if not stat.S_ISREG(kind):
        raise ModelError(f"{what} must be a regular file")
    return path


def _read(path, offset, size, where):
    """Bytes of a file. It may have changed since it was checked, but nothing waits for it."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ModelError(f"{where}: its data file {path.name!r} must be a regular file")
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise ModelError(
            f"{where}: its data file {path.name!r} cannot be read: {error.strerror}"
        ) from error
    if len(data) != size:
        raise ModelError(f"{where}: its data file {path.name!r} has become shorter")
    return data


# The model as operators, types and constants.

# Operators that are computed here if all their inputs are constants. DequantizeLinear is missing:
# quantized products need its inputs.
FOLDED = {
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Concat", "ConstantOfShape",
    "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not",
    "Or", "Pow", "QuantizeLinear", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "ScatterElements", "ScatterND", "Sign", "Slice", "Split", "Sqrt", "Squeeze", "Sub",
    "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
}
# Places of the scales among the inputs: of the other tensors; and of the result, which is divided
# by its scale. Those of QLinearConcat depend on the number of its inputs.
_SCALES = {
    "DequantizeLinear": (1,), "DynamicQuantizeMatMul": (2,), "MatMulIntegerToFloat": (2, 3),
    "QAttention": (3, 4), "QGemm": (1, 4),
    **dict.fromkeys((
        "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid",
        "QLinearSoftmax",
    ), (1,)),
    **dict.fromkeys(("QLinearAdd", "QLinearConv", "QLinearMatMul", "QLinearMul"), (1, 4)),
}
_RESULT_SCALES = {
    "QGemm": 7, "QLinearConcat": 0, "QuantizeLinear": 1,
    **dict.fromkeys((
        "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid",
        "QLinearSoftmax",
    ), 3),
    **dict.fromkeys(("QLinearAdd", "QLinearConv", "QLinearMatMul", "QLinearMul"), 6),
}
OPTIONAL = {"BatchNormalization", "Dropout", "LayerNormalization", "MaxPool"}  # outputs after one
MIN_FOLDED_BYTES = 1 << 24  # folding may make constants of this size, or of four times the file's


@dataclass(eq=False)
class Source:
    """A model that is read but not yet lowered.

    Attributes
    ----------
    file, name : str
        Name of the file; the same without its suffix.
    operators : list of OnnxOperator
        Operators that are not folded.
    kinds : list of str
        All operators of the file; for an If with a known condition, those of its branch.
    notes : list of str
        Facts that a user should know.
    types : dict of (dtype, shape) by name
    constants : dict of array by name
    inputs, outputs : list of str
    opsets : list of onnx.OperatorSetIdProto
    producer : dict of OnnxOperator by name
    users : dict of list of OnnxOperator by name
    """

    file: str
    name: str
    opsets: list
    operators: list = field(default_factory=list)
    kinds: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    types: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    producer: dict = field(default_factory=dict)
    users: dict = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, model, file: str, size: int) -> "Source":
        """The source of a model whose file has ``size`` bytes.

        Raises ModelError if types cannot be inferred.
        """
        self = cls(file, file.removesuffix(".onnx"), list(model.opset_import))
        self._limit = max(MIN_FOLDED_BYTES, 4 * size)
        self._alias, self._used, self._branches = {}, used_names(model.graph), 0
        for tensor in model.graph.initializer:
            self._constant(tensor.name, array_of(tensor, file))
        if model.graph.sparse_initializer:
            raise ModelError(f"{file}: sparse initializers are not supported; save dense ones")
        for value in model.graph.input:
            if value.name not in self.constants:
                self.inputs.append(value.name)
                self.types[value.name] = input_type(value, file)
        for node in model.graph.node:
            self._read(node)
        if self._branches:
            self.notes.append(
                f"{self._branches} If with a condition that is known here: the branch that it takes"
                " is in its place, and its operators are counted"
            )
        for value in model.graph.output:
            name = self._alias.get(value.name, value.name)
            if name not in self.types:
                raise ModelError(f"{file}: output {value.name} is not computed")
            self.outputs.append(name)
        for operator in self.operators:
            self.producer.update(dict.fromkeys(filter(None, operator.outputs), operator))
            for name in operator.reads:
                self.users[name].append(operator)
        return self

    def version(self) -> int:
        """The version of the standard operators."""
        return max(entry.version for entry in self.opsets if entry.domain in ("", "ai.onnx"))

    def only_user(self, name: str):
        """The one operator that reads a tensor; None if there are more, or it is an output."""
        users = self.users.get(name, [])
        return users[0] if len(users) == 1 and name not in self.outputs else None

    def constant(self, name: str):
        """Value of a constant, or None."""
        return self.constants.get(name)

    def _read(self, node):
        """Add a node of the file; for an If with a known condition, the branch that it takes."""
        condition = None
        if node.op_type == "If" and node.domain in ("", "ai.onnx") and len(node.input) == 1:
            condition = self.constants.get(self._alias.get(node.input[0], node.input[0]))
        branch = None
        if condition is not None and condition.size == 1 and condition.dtype == np.bool_:
            branch = branch_of(node, bool(condition.ravel()[0]))
        if branch is None:
            self.kinds.append(node.op_type)
            self._add(self._operator(len(self.kinds) - 1, node))
            return
        if branch.sparse:
            raise ModelError(f"{self.file}: sparse initializers are not supported; save dense ones")
        self._branches += 1
        for name, tensor in branch.constants:
            self._constant(name, array_of(tensor, self.file))
        self._used.update(name for _, name in branch.outputs)
        for inner in branch.nodes:
            self._used.update((*inner.input, *captured_names(inner)))
        for inner in branch.nodes:
            self._read(inner)
        for name, inner in branch.outputs:
            self._alias[name] = self._alias.get(inner, inner)

    def _operator(self, index, node):
        proto = renamed(node, self._alias)
        while (
            proto.op_type in OPTIONAL and len(proto.output) > 1
            and proto.output[-1] not in self._used
        ):
            del proto.output[-1]
        name = node.name or next(filter(None, node.output), str(index))
        captured = captured_names(proto)
        missing = [n for n in proto.input if n and n not in self.types]
        captured = tuple(n for n in captured if n in self.types)
        if missing:
            raise ModelError(
                f"{self.file}: node {name} ({node.op_type}) reads {missing[0]}, which no node "
                "before it computes"
            )
        self._check_scales(proto, name)
        return OnnxOperator(
            index, node.op_type, node.domain, name, tuple(proto.input), tuple(proto.output),
            attributes_of(proto, self.file, name), proto, captured, self.kinds[index],
        )

    def _check_scales(self, node, name):
        """Raise ModelError for a constant scale that is not finite, or of a result and not over 0.

        A scale of another tensor may be 0: some quantizers write it for weights that are all 0.
        """
        places = _SCALES.get(node.op_type, ())
        if node.op_type == "QLinearConcat":
            places = range(3, len(node.input), 3)
        for tensor in (node.input[place] for place in places if place < len(node.input)):
            self._check_scale(node, name, tensor, "finite", np.isfinite)
        place = _RESULT_SCALES.get(node.op_type, len(node.input))
        if place < len(node.input):
            self._check_scale(
                node, name, node.input[place], "finite and over 0",
                lambda value: np.isfinite(value) & (value > 0),
            )

    def _check_scale(self, node, name, tensor, rule, holds):
        value = self.constants.get(tensor)
        if value is None or value.dtype.kind != "f" or holds(value).all():
            return
        raise ModelError(
            f"{self.file}: node {name} ({node.op_type}): scales in {tensor} must be {rule},"
            f" not {value[~holds(value)][0]}; quantize the network again"
        )

    def _add(self, operator):
        """Add an operator, or what replaces it: an alias, constants, or other operators."""
        standard = operator.domain in ("", "ai.onnx")
        kind, outputs = operator.kind, [name for name in operator.outputs if name]
        if standard and kind == "Constant":
            self._constant(outputs[0], constant_of(operator, self.file))
            return
        if standard and len(outputs) == 1 and (kind == "Identity" or self._drops_nothing(operator)):
            self._alias[outputs[0]] = operator.inputs[0]
            return
        known = all(name in self.constants for name in operator.reads)
        if standard and kind == "NonZero" and known and self.constants[operator.inputs[0]].ndim:
            places = np.nonzero(self.constants[operator.inputs[0]])
            self._constant(outputs[0], np.asarray(places, np.int64))
            return
        parts = parts_of(operator)
        if parts is not None:
            self._add_all(parts, operator)
            return
        try:
            types = infer(operator, self.types, self.constants, self.opsets, self.file)
        except ModelError:
            parts = body_of(operator, self.types, self.opsets)
            if parts is None:
                raise
            self._add_all(parts, operator)
            return
        self.types.update(types)
        sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in types.values()]
        if standard and kind in ("Shape", "Size"):
            shape = self.types[operator.inputs[0]][1]
            part = shape[operator.attributes.get("start", 0) : operator.attributes.get("end")]
            value = part if kind == "Shape" else math.prod(shape)
            self._constant(outputs[0], np.asarray(value, np.int64))
        elif standard and kind in FOLDED and sum(sizes) <= self._limit and known:
            self._fold(operator)
        else:
            self.operators.append(operator)

    def body(self, operator) -> list:
        """The operators by which ONNX defines an operator; empty if it has no such definition."""
        nodes = body_of(operator, self.types, self.opsets)
        if nodes is None:
            return []
        start = len(self.operators)
        self._add_all(nodes, operator)
        parts = self.operators[start:]
        del self.operators[start:]
        # Nodes after the operator read its outputs by their names.
        return [] if self._alias.keys() & set(operator.outputs) else parts

    def _add_all(self, nodes, operator):
        """Add the nodes that stand for an operator, at its place."""
        for node in nodes:
            self._used.update(node.input)
        for node in nodes:
            node.name = operator.name
            self._add(self._operator(operator.index, node))

    def _drops_nothing(self, operator):
        """Whether an operator is a Dropout that is certain to be used after training."""
        if operator.kind != "Dropout":
            return False
        training = operator.inputs[2] if len(operator.inputs) > 2 else ""
        return not training or not np.any(self.constants.get(training, True))

    def _fold(self, operator):
        """Compute the outputs, which are constants."""
        from onnx.reference import ReferenceEvaluator

        values = {name: self.constants[name] for name in operator.reads}
        names = list(values)
        types = {name: (value.dtype, value.shape) for name, value in values.items()}
        model = one_node_model(operator.proto, types, names, {}, self.opsets)
        try:
            with np.errstate(all="ignore"):
                results = ReferenceEvaluator(model).run(None, values)
        except Exception as error:  # of many types, by values that do not fit
            raise ModelError(
                f"{self.file}: node {operator.name} ({operator.kind}) cannot be computed: {error}"
            ) from error
        for name, value in zip(filter(None, operator.outputs), results, strict=True):
            self._constant(name, np.asarray(value, self.types[name][0]))

    def _constant(self, name, value):
        self.constants[name] = value
        self.types[name] = (value.dtype, value.shape)


def dequantized(data, scale, zero, axis):
    """``(data - zero) * scale`` in float32, with numbers per tensor or per slice along ``axis``.

    None if the numbers do not fit the axis.
    """
    slices = data.shape[axis] if -data.ndim <= axis < data.ndim else 1
    if not {scale.size, zero.size} <= {1, slices}:
        return None
    shape = [1] * data.ndim
    if scale.size > 1:
        shape[axis] = scale.size
    data = data.astype(np.float32) - np.reshape(zero, shape if zero.size > 1 else ()).astype(
        np.float32
    )
    return data * np.reshape(scale, shape if scale.size > 1 else ()).astype(np.float32)
