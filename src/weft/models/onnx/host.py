"""Operators for the host: the kernel of each, its inputs, and its attributes as plain values."""

import math

import numpy as np

__all__ = ["COPIES", "MOVEMENT", "lower", "nearest_indices"]


# Operators that only move values: shapes, joins, parts, padding, gathering.

MOVES = "moves no data"
COPIES = "no product: copies values"


def _reshape(operator, source):
    before, shape = (source.types[n][1] for n in (operator.inputs[0], operator.outputs[0]))
    if math.prod(before) != math.prod(shape):
        return None
    return "reshape", operator.inputs[:1], {"shape": shape}, MOVES


def _transpose(operator, source):
    rank = len(source.types[operator.inputs[0]][1])
    axes = operator.attributes.get("perm", tuple(range(rank))[::-1])
    if sorted(axes) != list(range(rank)):
        return None
    return "transpose", operator.inputs, {"axes": tuple(axes)}, COPIES


def _concat(operator, source):
    return "concatenation", operator.inputs, {"axis": operator.attributes["axis"]}, COPIES


def _split(operator, source):
    axis = operator.attributes.get("axis", 0)
    sizes = tuple(source.types[name][1][axis] if name else -1 for name in operator.outputs)
    if -1 in sizes:
        return None
    return "split", operator.inputs[:1], {"axis": axis, "sizes": sizes}, COPIES


def _slice(operator, source):
    values = [source.constant(name) if name else None for name in operator.inputs[1:]]
    values += [None] * (4 - len(values))
    if any(v is None and n for v, n in zip(values, operator.inputs[1:], strict=False)):
        return None
    starts, ends, axes, steps = values
    shape = source.types[operator.inputs[0]][1]
    axes = range(len(starts)) if axes is None else [int(axis) % len(shape) for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    begin, end, step = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, first, last, stride in zip(axes, starts, ends, steps, strict=True):
        begin[axis], end[axis] = _bounds(int(first), int(last), int(stride), shape[axis])
        step[axis] = int(stride)
    return "slice", operator.inputs[:1], {
        "begin": tuple(begin), "end": tuple(end), "step": tuple(step),
        "shape": source.types[operator.outputs[0]][1],
    }, COPIES


def _bounds(start, end, step, size):
    """The bounds of a Python slice of an axis; ONNX clips both to the axis."""
    start, end = (number + size if number < 0 else number for number in (start, end))
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return start, None if end < 0 else end


def _gather(operator, source):
    return "onnx.gather", operator.inputs, {"axis": operator.attributes.get("axis", 0)}, COPIES


def _pad(operator, source):
    mode = operator.attributes.get("mode", "constant")
    inputs = [*operator.inputs, "", ""]
    pads = source.constant(inputs[1])
    value = source.constant(inputs[2]) if inputs[2] else np.zeros(1)
    rank = len(source.types[inputs[0]][1])
    if pads is None or value is None or mode not in ("constant", "reflect", "edge"):
        return None
    if inputs[3] or pads.size != 2 * rank or (pads < 0).any():
        return None
    pads = tuple(int(number) for number in pads)
    attributes = {"padding": tuple(zip(pads[:rank], pads[rank:], strict=True))}
    if mode == "constant":
        return "pad", inputs[:1], {**attributes, "value": value.ravel()[0].item()}, COPIES
    return "mirror_pad", inputs[:1], {**attributes, "mode": mode}, COPIES


def _expand(operator, source):
    shape = source.types[operator.outputs[0]][1]
    return "broadcast", operator.inputs[:1], {"shape": shape}, COPIES


def _resize(operator, source):
    selected = nearest_indices(operator, source)
    if selected is None:
        return None
    return "onnx.select", operator.inputs[:1], {"indices": selected}, COPIES


# By the operator's name, its rule; `weft.models.onnx.host.lower` has the result of a rule.
MOVEMENT = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
    "Transpose": _transpose, "Concat": _concat, "Split": _split, "Slice": _slice,
    "Gather": _gather, "Pad": _pad, "Expand": _expand, "Resize": _resize,
}


def nearest_indices(operator, source):
    """Indices [output size] of each axis, a tuple of arrays; None for other interpolations.

    ``round(transform(i))`` along each axis, clipped to the input, where the coordinate transform
    is ``(i + 0.5) / scale - 0.5``, ``i / scale``, or one of the other two of the operator.
    """
    attributes, inputs = operator.attributes, [*operator.inputs, "", "", ""]
    rule = attributes.get("coordinate_transformation_mode", "half_pixel")
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    if attributes.get("mode", "nearest") != "nearest" or rule not in _COORDINATES:
        return None
    if rounding not in _ROUNDINGS or attributes.get("axes") or inputs[1] and (
        source.types[inputs[1]][1] not in ((0,), ()) and source.constant(inputs[1]) is None
    ):
        return None
    shape, output = source.types[operator.inputs[0]][1], source.types[operator.outputs[0]][1]
    scales = np.divide(output, shape)
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    if inputs[2] and source.types[inputs[2]][1] != (0,):
        given = source.constant(inputs[2])
        if given is None or given.size != len(shape):
            return None
        scales = given.ravel()
    found = []
    for size, count, scale in zip(shape, output, scales.astype(np.float32), strict=True):
        if count == size and scale == 1:
            found.append(np.arange(size))
            continue
        places = _COORDINATES[rule](np.arange(count, dtype=np.float32), scale, size, count)
        found.append(np.clip(_ROUNDINGS[rounding](places), 0, size - 1).astype(np.int64))
    return tuple(found)


def _half_pixel(i, scale, size, count):
    return (i + np.float32(0.5)) / scale - np.float32(0.5)


def _pytorch(i, scale, size, count):
    return _half_pixel(i, scale, size, count) if count > 1 else np.zeros_like(i)


def _align_corners(i, scale, size, count):
    return np.zeros_like(i) if count == 1 else i * np.float32(size - 1) / np.float32(count - 1)


def _asymmetric(i, scale, size, count):
    return i / scale


def _prefer_floor(x):
    return np.ceil(x - np.float32(0.5))


def _prefer_ceil(x):
    return np.floor(x + np.float32(0.5))


_COORDINATES = {
    "half_pixel": _half_pixel, "pytorch_half_pixel": _pytorch,
    "align_corners": _align_corners, "asymmetric": _asymmetric,
}
_ROUNDINGS = {
    "round_prefer_floor": _prefer_floor, "round_prefer_ceil": _prefer_ceil, "floor": np.floor,
    "ceil": np.ceil,
}


# All operators with a kernel.

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
