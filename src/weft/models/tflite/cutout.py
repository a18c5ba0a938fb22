"""Cuts one operator out of a TFLite file: a model of its own, for the runtime.

The parser has no classes that write whole models, so the tables are written with flatbuffers. The
options of an operator are copied field by field, whatever their types are.
"""

import struct

import flatbuffers
import numpy as np
import tflite

__all__ = ["cut"]

# The options with a vector of integers, by their fields; other vectors cannot be copied.
VECTORS = {"ReshapeOptions": (0,), "SqueezeOptions": (0,)}
CODES = {name: getattr(tflite.BuiltinOptions, name) for name in vars(tflite.BuiltinOptions)}
KINDS = {name: getattr(tflite.TensorType, name) for name in vars(tflite.TensorType)}


def cut(file, operator, values):
    """A model with one operator.

    Parameters
    ----------
    file : File
    operator : TfliteOperator
    values : mapping
        Constants by tensor.

    Returns
    -------
    model : bytes
    fed : tuple of int
        Tensors of the file that are the inputs of the model, in their order.
    """
    used = (*operator.inputs, *operator.outputs, *operator.intermediates)
    numbers = sorted({number for number in used if number >= 0})
    place = {number: i for i, number in enumerate(numbers)} | {-1: -1}
    fed = tuple(dict.fromkeys(
        number for number in operator.inputs
        if number >= 0 and number not in values and number not in file.variables
    ))
    builder = flatbuffers.Builder(1024)
    buffers, tensors = [_buffer(builder, None)], []
    for number in numbers:
        value = values.get(number)
        if value is not None:
            buffers.append(_buffer(builder, _bytes(value, file.kinds[number])))
        index = len(buffers) - 1 if value is not None else 0
        tensors.append(_tensor(builder, file, number, index))
    options = _options(builder, operator)
    custom = _vector(builder, np.frombuffer(operator.custom_options, np.uint8))
    lists = [
        _vector(builder, np.array([place[i] for i in group], np.int32))
        for group in (operator.inputs, operator.outputs, operator.intermediates)
    ]
    tflite.OperatorStart(builder)
    tflite.OperatorAddOpcodeIndex(builder, 0)
    tflite.OperatorAddInputs(builder, lists[0])
    tflite.OperatorAddOutputs(builder, lists[1])
    if operator.intermediates:
        tflite.OperatorAddIntermediates(builder, lists[2])
    if operator.custom_options:
        tflite.OperatorAddCustomOptions(builder, custom)
    if options is not None:
        tflite.OperatorAddBuiltinOptionsType(builder, CODES[operator.kind])
        tflite.OperatorAddBuiltinOptions(builder, options)
    operators = _tables(builder, [tflite.OperatorEnd(builder)])
    tensors = _tables(builder, tensors)
    inputs = _vector(builder, np.array([place[i] for i in fed], np.int32))
    outputs = _vector(builder, np.array([place[i] for i in operator.outputs], np.int32))
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddTensors(builder, tensors)
    tflite.SubGraphAddInputs(builder, inputs)
    tflite.SubGraphAddOutputs(builder, outputs)
    tflite.SubGraphAddOperators(builder, operators)
    subgraphs = _tables(builder, [tflite.SubGraphEnd(builder)])
    buffers = _tables(builder, buffers)
    codes = _tables(builder, [_code(builder, operator)])
    tflite.ModelStart(builder)
    tflite.ModelAddVersion(builder, 3)
    tflite.ModelAddOperatorCodes(builder, codes)
    tflite.ModelAddSubgraphs(builder, subgraphs)
    tflite.ModelAddBuffers(builder, buffers)
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output()), fed


def _bytes(value, kind):
    if kind == "INT4":
        flat = np.zeros(value.size + value.size % 2, np.uint8)
        flat[: value.size] = value.ravel().view(np.uint8) & 15
        return flat[::2] | flat[1::2] << 4
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _buffer(builder, data):
    vector = _vector(builder, data, 16) if data is not None else None
    tflite.BufferStart(builder)
    if vector is not None:
        tflite.BufferAddData(builder, vector)
    return tflite.BufferEnd(builder)


def _vector(builder, array, alignment=1):
    """A vector of numbers whose first byte is aligned."""
    builder.StartVector(array.itemsize, array.size, max(alignment, array.itemsize))
    builder.head -= array.nbytes
    builder.Bytes[builder.head : builder.head + array.nbytes] = array.tobytes()
    return builder.EndVector()


def _tables(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _tensor(builder, file, number, buffer):
    tensor = file.tensors[number]
    quantization = tensor.quantization
    if quantization is not None:
        scale = _vector(builder, np.asarray(quantization.scale, np.float32))
        zero = _vector(builder, np.asarray(quantization.zero, np.int64))
        tflite.QuantizationParametersStart(builder)
        tflite.QuantizationParametersAddScale(builder, scale)
        tflite.QuantizationParametersAddZeroPoint(builder, zero)
        tflite.QuantizationParametersAddQuantizedDimension(builder, quantization.axis)
        quantization = tflite.QuantizationParametersEnd(builder)
    shape = _vector(builder, np.array(tensor.shape, np.int32))
    tflite.TensorStart(builder)
    tflite.TensorAddShape(builder, shape)
    tflite.TensorAddType(builder, KINDS[file.kinds[number]])
    tflite.TensorAddBuffer(builder, buffer)
    tflite.TensorAddIsVariable(builder, number in file.variables)
    if quantization is not None:
        tflite.TensorAddQuantization(builder, quantization)
    return tflite.TensorEnd(builder)


def _code(builder, operator):
    name = builder.CreateString(operator.custom) if operator.custom else None
    tflite.OperatorCodeStart(builder)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, min(operator.code, 127))
    tflite.OperatorCodeAddBuiltinCode(builder, operator.code)
    tflite.OperatorCodeAddVersion(builder, operator.version)
    if name is not None:
        tflite.OperatorCodeAddCustomCode(builder, name)
    return tflite.OperatorCodeEnd(builder)


def _options(builder, operator):
    """A copy of the table of options, or None."""
    table = operator.table
    if table is None:
        return None
    data, position = table.Bytes, table.Pos
    fields = VECTORS.get(operator.kind, ())
    methods = dir(getattr(tflite, operator.kind))
    if sum(name.endswith("Length") for name in methods) != len(fields):
        raise operator.error(f"options of type {operator.kind} cannot be copied")
    try:
        start = position - struct.unpack_from("<i", data, position)[0]
        size, end = struct.unpack_from("<HH", data, start)
        places = struct.unpack_from(f"<{max(size - 4, 0) // 2}H", data, start + 4)
        ends = sorted({*places, end} - {0})
        if min(start, position) < 0 or position + end > len(data):
            raise ValueError("they end outside it")
        values = {}
        for slot, at in enumerate(places):
            if at and slot in fields:
                where = position + at
                where += struct.unpack_from("<I", data, where)[0]
                count = struct.unpack_from("<I", data, where)[0]
                array = np.frombuffer(data, "<i4", count, where + 4)
                values[slot] = 0, _vector(builder, array)
            elif at:
                room = next((e for e in ends if e > at), at + 1) - at
                width = next(w for w in (8, 4, 2, 1) if w <= room and not (position + at) % w)
                raw = data[position + at : position + at + width]
                values[slot] = width, int.from_bytes(raw, "little")
    except (struct.error, ValueError) as error:
        raise operator.error(f"options must lie inside the file: {error}") from error
    builder.StartObject(len(places))
    for slot, (width, value) in values.items():
        if not width:
            builder.PrependUOffsetTRelative(value)
        else:
            getattr(builder, f"PrependUint{8 * width}")(value)
        builder.Slot(slot)
    return builder.EndObject()
