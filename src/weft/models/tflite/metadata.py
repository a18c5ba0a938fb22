"""The metadata of a TFLite file: how its converter normalizes a picture.

Source: TensorFlow Lite, ``metadata_schema.fbs``.
"""

import flatbuffers
import tflite
from flatbuffers.number_types import Float32Flags, UOffsetTFlags

from weft.models.media import Normalization
from weft.models.tflite.file import PARSER_ERRORS

__all__ = ["normalization_of"]

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
