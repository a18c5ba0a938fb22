"""The normalization of a picture in the metadata of a TFLite file."""

import flatbuffers
import pytest
import tflite

from weft.models.media import Normalization
from weft.models.tflite.file import normalization_of


def table(builder, fields):
    """A table with offsets (or a byte, for an int) at the given places."""
    builder.StartObject(8)
    for place, value in fields.items():
        if isinstance(value, bytes):
            builder.PrependUint8Slot(place, value[0], 0)
        else:
            builder.PrependUOffsetTRelativeSlot(place, value, 0)
    return builder.EndObject()


def vector(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def floats(builder, values):
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependFloat32(value)
    return builder.EndVector()


def metadata(mean, std, kind=1):
    """ModelMetadata with one subgraph, whose first input has one process unit."""
    b = flatbuffers.Builder(256)
    options = table(b, {0: floats(b, mean), 1: floats(b, std)})
    unit = table(b, {0: bytes([kind]), 1: options})
    tensor = table(b, {4: vector(b, [unit])})
    graph = table(b, {2: vector(b, [tensor])})
    b.Finish(table(b, {3: vector(b, [graph])}))
    return bytes(b.Output())


def model(data, name="TFLITE_METADATA"):
    """A model whose only contents are metadata."""
    b = flatbuffers.Builder(512)
    content = b.CreateByteVector(data)
    tflite.BufferStart(b)
    tflite.BufferAddData(b, content)
    buffers = vector(b, [tflite.BufferEnd(b)])
    text = b.CreateString(name)
    tflite.MetadataStart(b)
    tflite.MetadataAddName(b, text)
    tflite.MetadataAddBuffer(b, 0)
    entries = vector(b, [tflite.MetadataEnd(b)])
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddBuffers(b, buffers)
    tflite.ModelAddMetadata(b, entries)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def test_mean_and_std_of_each_channel():
    found = normalization_of(model(metadata([123.5, 116, 103], [58, 57, 57.5])))
    assert found == Normalization((123.5, 116.0, 103.0), (58.0, 57.0, 57.5))


@pytest.mark.parametrize("data", [
    model(metadata([1], [2]), name="other"), model(metadata([1], [2], kind=2)),
    model(metadata([], [])), model(metadata([1], [0])), model(b"\xff" * 40), model(b"\x08\0\0\0"),
])
def test_metadata_that_say_nothing(data):
    assert normalization_of(data) is None
