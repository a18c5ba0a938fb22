"""A TFLite file as plain tensors and operators; and the normalization that its metadata has."""

import struct
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import tflite
from flatbuffers.number_types import Float32Flags, UOffsetTFlags

from weft.models.errors import ModelError
from weft.models.ir import Tensor
from weft.models.media import Normalization

__all__ = ["File", "PARSER_ERRORS", "TfliteOperator", "normalization_of"]

NAME = b"TFLITE_METADATA"
# Places of fields in the tables of the schema, and the number of the union's member.
SUBGRAPHS, INPUTS, UNITS, KIND, OPTIONS, MEAN, STD = 3, 2, 4, 0, 1, 0, 1
NORMALIZATION = 1


def normalization_of(data: bytes) -> Normalization | None:
    """Return the normalization of the first input; None if the file does not say it."""
    try:
        table = _metadata(tflite.Model.GetRootAs(data, 0))
        if table is None:
            return None
        for unit in _tables(_tables(_tables(table, SUBGRAPHS)[0], INPUTS)[0], UNITS):
            kind = unit.Offset(4 + 2 * KIND)
            options = unit.Offset(4 + 2 * OPTIONS)
            if kind and options and unit.Bytes[unit.Pos + kind] == NORMALIZATION:
                target = flatbuffers.table.Table(unit.Bytes, unit.Indirect(unit.Pos + options))
                mean, std = _floats(target, MEAN), _floats(target, STD)
                if mean and std and all(std):
                    return Normalization(mean, std)
    except PARSER_ERRORS:  # metadata are no part of the network: damaged ones say nothing
        return None
    return None


def _metadata(model):
    """The root of the metadata, or None."""
    for n in range(model.MetadataLength()):
        entry = model.Metadata(n)
        if entry.Name() == NAME:
            data = model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()
            root = int.from_bytes(data[:4], "little")
            return flatbuffers.table.Table(data, root)
    return None


def _tables(table, field):
    """The tables of a vector."""
    offset = table.Offset(4 + 2 * field)
    if not offset:
        return []
    start, count = table.Vector(offset), table.VectorLen(offset)
    size = UOffsetTFlags.bytewidth
    return [
        flatbuffers.table.Table(table.Bytes, table.Indirect(start + size * n))
        for n in range(min(count, 64))
    ]


def _floats(table, field):
    """The numbers of a vector."""
    offset = table.Offset(4 + 2 * field)
    if not offset:
        return ()
    start, count = table.Vector(offset), table.VectorLen(offset)
    return tuple(
        float(table.Get(Float32Flags, start + 4 * n)) for n in range(min(count, 64))
    )


# The exceptions of the flatbuffers parser for damaged files.
PARSER_ERRORS = (
    struct.error, IndexError, KeyError, ValueError, TypeError, OverflowError, AttributeError,
    MemoryError, RecursionError, UnicodeError,
)
_EMPTY = struct.pack("<HHi", 4, 4, 4)  # a vtable without fields, and a table that uses it


@dataclass(frozen=True, eq=False)
class TfliteOperator:
    """One operator of the file.

    Attributes
    ----------
    position : int
        Place in the file, from 0.
    name : str
        ``CONV_2D``; ``CUSTOM`` for a custom one.
    custom : str
        Name of a custom operator; empty otherwise.
    code, version : int
        Of its entry in the file's table of operator codes.
    inputs, outputs, intermediates : tuple of int
        Tensors; -1 is an absent input.
    label : str
        The operator in messages: ``resnet8: operator 3 (CONV_2D, conv/Relu)``.
    kind : str
        Type of the options; empty if the file has none.
    table : flatbuffers.Table or None
        The options.
    custom_options : bytes
    """

    position: int
    name: str
    custom: str
    code: int
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    label: str
    kind: str
    table: Any
    custom_options: bytes

    def error(self, rule):
        """A `ModelError` that names the file, the operator and the rule."""
        return ModelError(f"{self.label}: {rule}")

    def options(self, kind):
        """The options as the class ``kind`` of package tflite; all defaults if absent."""
        if self.kind not in ("", kind):
            raise self.error(f"options must be {kind}, not {self.kind}")
        options = getattr(tflite, kind)()
        if self.table is None:
            options.Init(_EMPTY, 4)
        else:
            options.Init(self.table.Bytes, self.table.Pos)
        return _Options(self, options)


class _Options:
    """Options whose fields are read with a check: ``options.StrideH()``."""

    def __init__(self, operator, options):
        self._operator, self._options = operator, options

    def __getattr__(self, field):
        read = getattr(self._options, field)

        def checked():
            try:
                return read()
            except PARSER_ERRORS as error:
                raise self._operator.error(
                    f"option {field} must lie inside the file, which is cut off or damaged"
                ) from error

        return checked


@dataclass(frozen=True, eq=False)
class File:
    """A TFLite file.

    Attributes
    ----------
    name : str
    data : bytes
        The whole file.
    tensors : list of Tensor
        Tensors of one subgraph; constants with their data.
    dynamic : tuple of frozenset of int
        The axes of each tensor that may have any size; the file stores one that may be wrong.
    kinds : tuple of str
        Type of each tensor, as the file names it.
    variables : frozenset of int
        Tensors that an operator keeps from run to run.
    operators : tuple of TfliteOperator
    used : frozenset of str
        Names of the operators of all subgraphs.
    inputs, outputs : tuple of int
    subgraphs : int
        Number of subgraphs in the file.
    sparse : frozenset of int
        Constants with a sparse encoding, which have no data here.
    faults : dict
        Tensors that break a rule, each with its `ModelError`. Nothing may use them.
    notes : list of str
    """

    name: str
    data: bytes
    tensors: list[Tensor]
    dynamic: tuple[frozenset[int], ...]
    kinds: tuple[str, ...]
    variables: frozenset[int]
    operators: tuple[TfliteOperator, ...]
    used: frozenset[str]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: int
    sparse: frozenset[int]
    faults: dict[int, ModelError]
    notes: list[str] = field(default_factory=list)

    def check(self, numbers):
        """Raise the error of the first of these tensors that breaks a rule."""
        for number in numbers:
            if number in self.faults:
                raise self.faults[number]
