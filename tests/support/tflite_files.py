"""Builds TFLite files of a few operators, and runs them in TFLite Micro."""

import numpy as np
import pytest

__all__ = ["T", "build", "micro"]

TYPES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int32": "INT32", "uint8": "UINT8",
    "int64": "INT64", "bool": "BOOL", "int16": "INT16", "int8": "INT8", "int4": "INT4",
    "uint32": "UINT32",
}


class T:
    """A tensor: shape, type, scales, zero points, axis of the scales, data of a constant."""

    def __init__(
        self, shape=None, dtype="int8", scale=None, zero=0, axis=0, data=None, variable=False,
        resource=False,
    ):
        self.data = None if data is None else np.asarray(data)
        if self.data is not None and dtype != "int4":
            dtype = self.data.dtype
        if dtype != "int4":
            dtype = str(np.dtype(dtype))
        self.shape = tuple(self.data.shape if shape is None else shape)
        self.dtype, self.scale, self.zero, self.axis = dtype, scale, zero, axis
        self.variable, self.resource = variable, resource

    def bytes(self):
        if self.dtype == "int4":
            flat = np.append(self.data.ravel(), np.zeros(self.data.size % 2)).astype(np.int8)
            flat = flat.view(np.uint8) & 15
            return (flat[::2] | flat[1::2] << 4).tobytes()
        return self.data.tobytes()


def schema():
    pytest.importorskip("tflite_micro")
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated

    return schema_py_generated


def build(tensors, operators, inputs, outputs, extra=()):
    """A file as bytes.

    ``tensors`` maps names to `T`. An operator is (name, inputs, outputs, options): tensors by name
    (None: absent) or by number, options None or a pair of class name and values. ``extra`` are
    further subgraphs, each (tensors, operators, inputs, outputs). An operator's name may be a
    number, or ``custom:NAME``.
    """
    import flatbuffers

    s = schema()
    model = s.ModelT()
    model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, [s.BufferT()], [], []
    codes = {}
    for part in ((tensors, operators, inputs, outputs), *extra):
        model.subgraphs.append(_subgraph(s, model, codes, *part))
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _subgraph(s, model, codes, tensors, operators, inputs, outputs):
    graph = s.SubGraphT()
    graph.tensors, graph.operators = [], []
    place = {name: i for i, name in enumerate(tensors)} | {None: -1}
    for name, t in tensors.items():
        tensor = s.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(t.shape), 0
        tensor.type, tensor.isVariable = getattr(s.TensorType, TYPES[t.dtype]), t.variable
        if t.resource:
            tensor.type = s.TensorType.RESOURCE
        if t.scale is not None:
            tensor.quantization = s.QuantizationParametersT()
            scale = np.atleast_1d(np.float32(t.scale))
            tensor.quantization.scale = scale
            tensor.quantization.zeroPoint = np.broadcast_to(np.int64(t.zero), scale.shape).copy()
            tensor.quantization.quantizedDimension = t.axis
        if t.data is not None:
            model.buffers.append(s.BufferT())
            model.buffers[-1].data = np.frombuffer(t.bytes(), np.uint8)
            tensor.buffer = len(model.buffers) - 1
        graph.tensors.append(tensor)
    for name, ins, outs, options in operators:
        operator = s.OperatorT()
        if name not in codes:
            codes[name] = len(codes)
            model.operatorCodes.append(_code(s, name))
        operator.opcodeIndex = codes[name]
        operator.inputs = [place.get(i, i) for i in ins]
        operator.outputs = [place.get(i, i) for i in outs]
        if options is not None:
            kind, values = options
            operator.builtinOptionsType = getattr(s.BuiltinOptions, kind)
            operator.builtinOptions = getattr(s, f"{kind}T")()
            for key, value in values.items():
                assert hasattr(operator.builtinOptions, key), key
                setattr(operator.builtinOptions, key, value)
        graph.operators.append(operator)
    graph.inputs, graph.outputs = [place[i] for i in inputs], [place[i] for i in outputs]
    return graph


def _code(s, name):
    entry = s.OperatorCodeT()
    if isinstance(name, str) and name.startswith("custom:"):
        entry.customCode, code = name.removeprefix("custom:"), s.BuiltinOperator.CUSTOM
    else:
        code = name if isinstance(name, int) else getattr(s.BuiltinOperator, name)
    entry.builtinCode, entry.deprecatedBuiltinCode = code, min(code, 127)
    entry.version = 4
    return entry


def micro(data, inputs, outputs=1, memory=1 << 21):
    """The outputs of one run in TFLite Micro."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=memory)
    for i, value in enumerate(inputs):
        interpreter.set_input(value, i)
    interpreter.invoke()
    return [np.array(interpreter.get_output(i)) for i in range(outputs)]
