"""Operators for the host: the kernel of each, its inputs, and its attributes as plain values."""

import math

import numpy as np

from weft.models.onnx.movement import COPIES, MOVEMENT

__all__ = ["lower"]

ELEMENTWISE = "no product: a function of each element"
REDUCES = "no product: a reduction"
POOLS = "no product: pooling"
CONVERTS = "no product: converts between numbers and their quantized form"


def lower(operator, source):
    """(kernel, names of the inputs, attributes, reason) of an operator; None without a kernel."""
    if operator.domain in ("", "ai.onnx"):
        rule = _STANDARD.get(operator.kind)
    elif operator.domain == "com.microsoft":
        rule = _MICROSOFT.get(operator.kind)
    else:
        rule = None
    if rule is None or _is_empty(operator, source) or not _axis_exists(operator, source):
        return None
    return rule(operator, source)


def _is_empty(operator, source):
    """Whether the first input or output has no elements; numpy has no largest of them."""
    names = [*operator.inputs[:1], *operator.outputs[:1]]
    return any(0 in source.types[name][1] for name in names if name)


def _axis_exists(operator, source):
    """Whether the attribute ``axis`` of an operator is one of its first input."""
    if operator.kind not in ("ArgMax", "ArgMin", "Concat", "Gather", "Softmax", "Split"):
        return True
    rank = len(source.types[operator.inputs[0]][1])
    return -rank <= operator.attributes.get("axis", -1) < rank


def _elementwise(kernel, **defaults):
    """A rule: the inputs as they are, and attributes of numbers."""
    def rule(operator, source):
        types = [source.types[name][0] for name in operator.inputs if name]
        if any(dtype.kind not in "iufb" for dtype in types):
            return None
        shapes = [source.types[name][1] for name in operator.inputs if name]
        if not _broadcasts(shapes, source.types[operator.outputs[0]][1]):
            return None
        given = operator.attributes
        attributes = {name: given.get(name, value) for name, value in defaults.items()}
        return kernel, operator.inputs, attributes, ELEMENTWISE

    return rule


def _broadcasts(shapes, output):
    """Whether numpy broadcasts ``shapes`` to the shape of the output."""
    try:
        return np.broadcast_shapes(*shapes) == output
    except ValueError:
        return False


def _cast(operator, source):
    before, after = (source.types[n][0] for n in (operator.inputs[0], operator.outputs[0]))
    exact = before.kind in "iub" or (before.kind == after.kind == "f")
    if not exact or after.kind not in "iufb":
        return None  # numbers out of range differ from machine to machine
    if "float8" in before.name + after.name:
        return None  # ONNX saturates, numpy does not
    return "onnx.cast", operator.inputs, {"dtype": after.name}, ELEMENTWISE


def _pool(kernel):
    """A rule: MaxPool and AveragePool, with all sizes resolved."""
    def rule(operator, source):
        attributes, names = operator.attributes, operator.inputs
        shape = source.types[names[0]][1][2:]
        output = source.types[operator.outputs[0]][1][2:]
        if len([name for name in operator.outputs if name]) != 1 or len(names) != 1:
            return None
        if attributes.get("channels_last", 0) or attributes.get("storage_order", 0):
            return None
        window = tuple(attributes["kernel_shape"])
        strides = tuple(attributes.get("strides", ())) or (1,) * len(window)
        dilations = tuple(attributes.get("dilations", ())) or (1,) * len(window)
        pads = _pool_pads(attributes, window, strides, dilations, shape, output)
        if attributes.get("count_include_pad", 0) and attributes.get("ceil_mode", 0):
            return None
        if min(pads) < 0:
            return None
        old = source.version() < 19 and source.types[names[0]][0] == np.float32
        whole = window == shape and output == (1,) * len(window) and not any(pads)
        if kernel == "average_pool" and old and whole:
            y_shape = source.types[operator.outputs[0]][1]
            return "onnx.global_average_pool", names, {"shape": y_shape}, POOLS
        return f"onnx.{kernel}", names, {
            "window": window, "strides": strides, "dilations": dilations, "begin": pads,
            "output": output, "count_padding": bool(attributes.get("count_include_pad", 0)),
            "columns": old and len(window) > 1 and strides[-1] <= 2 and max(window) <= 32,
        }, POOLS

    return rule


def _pool_pads(attributes, window, strides, dilations, shape, output):
    """Padding at the begin of each axis."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule == "NOTSET":
        return tuple(attributes.get("pads", ()))[: len(window)] or (0,) * len(window)
    if rule == "VALID":
        return (0,) * len(window)
    begin = []
    for size, stride, dilation, entry, result in zip(
        window, strides, dilations, shape, output, strict=True
    ):
        total = max((result - 1) * stride + dilation * (size - 1) + 1 - entry, 0)
        begin.append(total - total // 2 if rule == "SAME_LOWER" else total // 2)
    return tuple(begin)


def _global_pool(operator, source):
    dtype, entry = source.types[operator.inputs[0]]
    axes, shape = tuple(range(2, len(entry))), source.types[operator.outputs[0]][1]
    if operator.kind == "GlobalMaxPool":
        return "reduce_max", operator.inputs, {"axes": axes, "shape": shape}, POOLS
    if dtype == np.float32:
        return "onnx.global_average_pool", operator.inputs, {"shape": shape}, POOLS
    return "onnx.reduce_mean", operator.inputs, {"axes": axes, "shape": shape}, POOLS


def _reduce(kernel):
    """A rule: a reduction over constant axes."""
    def rule(operator, source):
        axes = operator.attributes.get("axes")
        if len(operator.inputs) > 1 and operator.inputs[1]:
            axes = source.constant(operator.inputs[1])
            if axes is None:
                return None
        rank = len(source.types[operator.inputs[0]][1])
        axes = [] if axes is None else [int(axis) % rank for axis in np.ravel(axes)]
        if not axes:
            if operator.attributes.get("noop_with_empty_axes", 0):
                return None
            axes = range(rank)
        if len(set(axes)) != len(axes):
            return None
        shape = source.types[operator.outputs[0]][1]
        return kernel, operator.inputs[:1], {"axes": tuple(axes), "shape": shape}, REDUCES

    return rule


def _arg(kernel):
    """A rule: ArgMax or ArgMin."""
    def rule(operator, source):
        if operator.attributes.get("select_last_index", 0):
            return None
        dtype, shape = source.types[operator.outputs[0]]
        return kernel, operator.inputs, {
            "axis": operator.attributes.get("axis", 0), "dtype": dtype.name, "shape": shape,
        }, REDUCES

    return rule


def _softmax(operator, source):
    return "onnx.softmax", operator.inputs, {
        "axis": operator.attributes.get("axis", -1)
    }, "softmax needs a reduction"


def _batch_normalization(operator, source):
    if operator.attributes.get("training_mode", 0) or len(operator.outputs) > 1:
        return None
    shape, *numbers = (source.types[name][1] for name in operator.inputs)
    if len(shape) < 2 or any(number != shape[1:2] for number in numbers):
        return None
    return "onnx.batch_normalization", operator.inputs, {
        "epsilon": operator.attributes.get("epsilon", 1e-5)
    }, ELEMENTWISE


def _quantize(operator, source):
    dtype = source.types[operator.outputs[0]][0]
    if dtype not in (np.int8, np.uint8, np.int16, np.uint16):
        return None
    return _converts("quantize", operator, source, {"dtype": dtype.name})


def _dequantize(operator, source):
    dtype = source.types[operator.inputs[0]][0]
    if dtype not in (np.int8, np.uint8, np.int16, np.uint16, np.int32):
        return None
    return _converts("dequantize", operator, source, {})


def _converts(kernel, operator, source, attributes):
    if operator.attributes.get("block_size", 0) or operator.attributes.get("precision", 0):
        return None
    if any(source.types[name][0] != np.float32 for name in operator.inputs[1:2]):
        return None
    shape = source.types[operator.inputs[0]][1]
    axis = operator.attributes.get("axis", 1)
    slices = shape[axis] if -len(shape) <= axis < len(shape) else 1
    numbers = [math.prod(source.types[name][1]) for name in operator.inputs[1:] if name]
    if not set(numbers) <= {1, slices}:
        return None
    axis = axis % len(shape) if slices > 1 else 0
    return f"onnx.{kernel}", operator.inputs, {**attributes, "axis": axis}, CONVERTS


def _dynamic_quantize(operator, source):
    return "onnx.dynamic_quantize", operator.inputs, {}, CONVERTS


def _qlinear(kernel, reason):
    """A rule: a quantized operator with its scales among its inputs."""
    def rule(operator, source):
        if operator.attributes.get("channels_last", 0):
            return None
        sizes = [math.prod(source.types[name][1]) for name in _numbers(operator) if name]
        if any(size != 1 for size in sizes):
            return None
        if kernel == "qlinear_concat":
            return "onnx.qlinear_concat", operator.inputs, {
                "axis": operator.attributes["axis"]
            }, reason
        count = 5 if kernel == "qlinear_global_average_pool" else 8
        names = (*operator.inputs, "")[:count]  # the last zero point may be absent
        return (f"onnx.{kernel}", names, {}, reason) if len(names) == count else None

    return rule


def _numbers(operator):
    """Names of the scales and zero points of a quantized operator."""
    if operator.kind == "QLinearConcat":
        names = [n for place, n in enumerate(operator.inputs) if place < 2 or (place - 2) % 3]
    elif operator.kind in ("QLinearAdd", "QLinearMul"):
        names = [n for place, n in enumerate(operator.inputs) if place not in (0, 3)]
    else:
        names = operator.inputs[1:]
    return names


_ELEMENTWISE = {
    "Abs": "abs", "Ceil": "ceil", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Log": "log",
    "Neg": "negative", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round",
    "Sigmoid": "sigmoid", "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt",
    "Tanh": "tanh", "HardSwish": "hard_swish", "Clip": "clip", "Add": "add", "Sub": "subtract",
    "Mul": "multiply", "Div": "divide", "Pow": "power", "Sum": "sum", "Equal": "equal",
    "Greater": "greater", "Less": "less",
}
_STANDARD = {
    **MOVEMENT,
    **{kind: _elementwise(f"onnx.{kernel}") for kind, kernel in _ELEMENTWISE.items()},
    "Max": _elementwise("maximum"), "Min": _elementwise("minimum"),
    "Where": _elementwise("select"),
    "LeakyRelu": _elementwise("onnx.leaky_relu", alpha=0.01),
    "Elu": _elementwise("onnx.elu", alpha=1.0),
    "HardSigmoid": _elementwise("onnx.hard_sigmoid", alpha=0.2, beta=0.5),
    "Gelu": _elementwise("onnx.gelu", approximate="none"),
    "Selu": _elementwise("onnx.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "PRelu": _elementwise("onnx.prelu"),
    "Cast": _cast,
    "MaxPool": _pool("max_pool"), "AveragePool": _pool("average_pool"),
    "GlobalAveragePool": _global_pool, "GlobalMaxPool": _global_pool,
    "ReduceMean": _reduce("onnx.reduce_mean"), "ReduceSum": _reduce("onnx.reduce_sum"),
    "ReduceMax": _reduce("reduce_max"), "ReduceMin": _reduce("reduce_min"),
    "ArgMax": _arg("arg_max"), "ArgMin": _arg("arg_min"), "Softmax": _softmax,
    "BatchNormalization": _batch_normalization, "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize, "DynamicQuantizeLinear": _dynamic_quantize,
}
_MICROSOFT = {
    "QuantizeLinear": _quantize, "DequantizeLinear": _dequantize,
    "QLinearAdd": _qlinear("qlinear_add", "no product: an addition"),
    "QLinearMul": _qlinear("qlinear_multiply", "no product of matrices"),
    "QLinearGlobalAveragePool": _qlinear("qlinear_global_average_pool", POOLS),
    "QLinearConcat": _qlinear("qlinear_concat", COPIES),
}
