"""Operators that are matrix products: fully connected layers, convolutions, batched products."""

import dataclasses
import math

import numpy as np
import tflite

from weft.models.ir import Gemm, Requantization, Tensor, Window
from weft.models.tflite.context import Fallback
from weft.models.tflite.scales import (
    FUSED,
    RANGES,
    fused_limits,
    lite_limits,
    per_channel,
    per_tensor,
)

__all__ = ["BUILDERS", "FINISH", "QUANTIZE", "hybrid", "padding_of", "positive"]

SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
# Operators whose bias has 64 bits in both runtimes, if the activations are int16.
WIDE = ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
INTEGERS = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16))


def _fully_connected(graph, operator):
    options = operator.options("FullyConnectedOptions")
    graph.counts(operator, 2, 3)
    if options.WeightsFormat() != 0:
        raise Fallback("weights are shuffled")
    x, w = graph.input(operator, 0), graph.input(operator, 1)
    if len(w.shape) < 2 or math.prod(w.shape[:-2]) != 1:
        raise operator.error(f"weights must be [channels, inputs], not {w.shape}")
    channels, k = w.shape[-2:]
    size = math.prod(x.shape)
    if k == 0 or size % k:
        raise operator.error(f"size of the input ({size}) must be a multiple of {k}")
    lead = x.shape[:-1] if options.KeepNumDims() and x.shape[-1:] == (k,) else (size // k,)
    graph.expect_size(operator, size // k * channels, (*lead, channels))
    fused = _fused(options.FusedActivationFunction())
    weights = graph.constant(operator, 1, required=False)
    if weights is None and (len(x.shape) < 2 or x.shape[-1] != k):
        raise Fallback("two activations are multiplied, and the first one is not [..., M, K]")
    return _product(
        graph, operator, fused, bias=2, x=0, w=1, axis=len(w.shape) - 2, channels=channels,
        weights=None if weights is None else weights.reshape(channels, k).T[None],
        b=None if weights is not None else operator.inputs[1],
        b_transposed=weights is None,
    )


def _batch_matmul(graph, operator):
    options = operator.options("BatchMatMulOptions")
    graph.counts(operator, 2, 2)
    x, b = graph.input(operator, 0), graph.input(operator, 1)
    if len(x.shape) < 2 or len(b.shape) < 2:
        raise operator.error(f"inputs must have 2 dimensions or more, not {x.shape}, {b.shape}")
    m, k = x.shape[-2:][::-1] if options.AdjX() else x.shape[-2:]
    rows, n = b.shape[-2:][::-1] if options.AdjY() else b.shape[-2:]
    if k != rows:
        raise operator.error(f"inner dimensions must be equal, not {k} and {rows}")
    batch = graph.broadcast(operator, x.shape[:-2], b.shape[:-2])
    graph.expect(operator, (*batch, m, n))
    return _product(
        graph, operator, "none", bias=None, x=0, w=1, axis=None, channels=n, weights=None,
        b=operator.inputs[1], x_transposed=bool(options.AdjX()),
        b_transposed=bool(options.AdjY()),
    )


def _conv_2d(graph, operator):
    options = operator.options("Conv2DOptions")
    graph.counts(operator, 2, 3)
    x, w = _maps(graph, operator, 0)
    channels, height, width, depth = w.shape
    if depth == 0 or x.shape[3] % depth or channels % (x.shape[3] // depth):
        raise operator.error(
            f"weights {w.shape} must divide the {x.shape[3]} channels of the input into groups"
        )
    groups = x.shape[3] // depth
    weights = graph.constant(operator, 1).reshape(groups, channels // groups, -1)
    return _convolution(graph, operator, options, x, w, 0, weights.transpose(0, 2, 1))


def _depthwise_conv_2d(graph, operator):
    options = operator.options("DepthwiseConv2DOptions")
    graph.counts(operator, 2, 3)
    x, w = _maps(graph, operator, 0)
    one, height, width, channels = w.shape
    groups = x.shape[3]
    if one != 1 or channels % groups:
        raise operator.error(
            f"weights must be [1, height, width, multiple of {groups}], not {w.shape}"
        )
    if options.DepthMultiplier() != channels // groups:
        raise operator.error(
            f"the depth multiplier must be {channels} / {groups}, not {options.DepthMultiplier()}"
        )
    weights = graph.constant(operator, 1).reshape(height * width, groups, -1)
    return _convolution(graph, operator, options, x, w, 3, weights.transpose(1, 0, 2))


def _convolution(graph, operator, options, x, w, axis, weights):
    """The product of a convolution whose channels are ``axis`` of ``w``."""
    window, channels = _window(operator, options, x.shape[1:3], w.shape[1:3]), w.shape[axis]
    graph.expect(operator, (x.shape[0], *window.output, channels))
    fused = _fused(options.FusedActivationFunction())
    return _product(
        graph, operator, fused, bias=2, x=0, w=1, axis=axis, channels=channels, weights=weights,
        window=window,
    )


def _transpose_conv(graph, operator):
    options = operator.options("TransposeConvOptions")
    graph.counts(operator, 3, 4)
    x, w = _maps(graph, operator, 2)
    channels, height, width, depth = w.shape
    if depth != x.shape[3]:
        raise operator.error(f"weights must have depth {x.shape[3]}, not {depth}")
    y = graph.output(operator)
    if len(y.shape) != 4 or y.shape[0] != x.shape[0] or y.shape[3] != channels:
        raise operator.error(
            f"output must be [{x.shape[0]}, height, width, {channels}], not {y.shape}"
        )
    stride = positive(operator, "stride", options.StrideH(), options.StrideW())
    tops = []
    for size, given, step, kernel in zip(
        y.shape[1:3], x.shape[1:3], stride, (height, width), strict=True
    ):
        out, top, _ = padding_of(operator, options.Padding(), size, kernel, step, 1)
        if out != given:
            raise operator.error(f"an output of {size} must come from {out} inputs, not {given}")
        before = kernel - 1 - top
        after = size - ((given - 1) * step + 1) - before + kernel - 1
        tops.append((before, after))
    window = Window(
        kernel=(height, width), stride=(1, 1), dilation=(1, 1), spread=stride,
        padding=(*tops[0], *tops[1]), input=x.shape[1:3], output=y.shape[1:3],
    )
    weights = graph.constant(operator, 1)[:, ::-1, ::-1]
    graph.spend(operator, weights.nbytes)
    weights = weights.reshape(1, channels, -1).transpose(0, 2, 1)
    fused = _fused(options.FusedActivationFunction())
    return _product(
        graph, operator, fused, bias=3, x=2, w=1, axis=0, channels=channels, weights=weights,
        window=window,
    )


def _maps(graph, operator, place):
    """Feature maps (input ``place``) and weights (input 1), both with four dimensions."""
    x, w = graph.input(operator, place), graph.input(operator, 1)
    for what, tensor in (("input", x), ("weights", w)):
        if len(tensor.shape) != 4:
            raise operator.error(f"{what} must have 4 dimensions, not {len(tensor.shape)}")
        if 0 in tensor.shape:
            raise operator.error(f"{what} must not be empty, not {tensor.shape}")
    return x, w


def positive(operator, what, *values):
    for value in values:
        if value < 1:
            raise operator.error(f"{what} must be at least 1, not {value}")
    return values


def _window(operator, options, size, kernel):
    stride = positive(operator, "stride", options.StrideH(), options.StrideW())
    dilation = positive(
        operator, "dilation", options.DilationHFactor(), options.DilationWFactor()
    )
    parts = [
        padding_of(operator, options.Padding(), *numbers)
        for numbers in zip(size, kernel, stride, dilation, strict=True)
    ]
    return Window(
        kernel=kernel, stride=stride, dilation=dilation,
        padding=tuple(side for _, *sides in parts for side in sides), input=size,
        output=tuple(out for out, *_ in parts),
    )


def padding_of(operator, padding, size, kernel, stride, dilation):
    """Outputs, and padding before and after, along one axis (``ComputePaddingHeightWidth``)."""
    if padding not in (SAME, VALID):
        raise operator.error(f"padding must be 0 (SAME) or 1 (VALID), not {padding}")
    reach = (kernel - 1) * dilation + 1
    out = (size + stride - (1 if padding == SAME else reach)) // stride
    if out < 1:
        raise operator.error(f"a window of {reach} must fit a map of {size}")
    total = max(0, (out - 1) * stride + reach - size)
    return out, total // 2, total - total // 2


def _fused(code):
    if code not in FUSED:
        raise Fallback(f"fused activation {code} is not a clamp")
    return FUSED[code]


def _product(
    graph, operator, fused, *, bias, x, w, axis, channels, weights, window=None, b=None,
    x_transposed=False, b_transposed=False,
):
    """The product; ``bias``, ``x`` and ``w`` are places among the inputs."""
    left, right, y = graph.input(operator, x), graph.input(operator, w), graph.output(operator)
    for what, tensor in (("input", left), ("weights", right), ("output", y)):
        if 0 in tensor.shape:
            raise operator.error(f"{what} must not be empty, not {tensor.shape}")
    added = graph.constant(operator, bias, required=False) if bias is not None else None
    if bias is not None and added is None and graph.present(operator, bias):
        raise Fallback("the bias is not a constant")
    if added is not None and added.size != channels:  # the runtimes ignore the shape
        raise operator.error(f"bias must have {channels} values, not shape {added.shape}")
    common = dict(
        operator=operator.name, name=y.name, position=(operator.position,),
        inputs=tuple(i for i in (operator.inputs[x], b) if i is not None),
        outputs=operator.outputs, x=operator.inputs[x], b=b, x_transposed=x_transposed,
        b_transposed=b_transposed, weights=weights, window=window,
    )
    kinds = [str(tensor.dtype) for tensor in (left, right, y)]
    if added is not None and kinds[0] == "float32" and added.dtype != np.float32:
        raise operator.error(f"bias must be float32, not {added.dtype}")
    if _is_hybrid(operator, kinds) and operator.inputs[w] in graph.values:
        bias = None if added is None else added.reshape(-1)
        return hybrid(graph, operator, fused, bias, axis, common)
    if kinds == ["float32"] * 3:
        if fused == "relu_n1_to_1":
            raise Fallback("a float32 product has no limits of -1 and 1")
        bias = None if added is None else added.reshape(-1)
        return Gemm(**common, bias=bias, activation=fused)
    if left.dtype not in INTEGERS or y.dtype != left.dtype:
        raise Fallback(f"a product of {kinds[0]} and {kinds[1]} to {kinds[2]}")
    if right.dtype not in ((left.dtype,) if b is not None else _weights_of(left.dtype)):
        raise Fallback(f"a product of {kinds[0]} and {kinds[1]} to {kinds[2]}")
    x_scale, x_zero = per_tensor(operator, left)
    y_scale, y_zero = per_tensor(operator, y)
    if axis is None or b is not None:
        scale, zero = (np.array([number]) for number in per_tensor(operator, right))
    else:
        scale, zero = per_channel(operator, right, axis)
    if window is not None and left.dtype != np.uint8 and zero.any():
        raise Fallback("TFLite Micro ignores the zero points of weights of int8 convolutions")
    _check_scales(operator, x_scale, scale, y_scale)
    low, high = fused_limits(operator, fused, y)
    # With int16 and a bias of 32 bits, TFLite Micro has sums of 32 bits.
    narrow = added is not None and added.dtype == np.int32
    if added is not None and added.dtype not in (known := _biases_of(left.dtype)):
        names = " or ".join(np.dtype(kind).name for kind in known)
        raise operator.error(f"bias must be {names}, not {added.dtype}")
    if left.dtype == np.int16 and narrow and operator.name in WIDE:
        raise operator.error(
            "bias must be int64 for activations of int16, not int32: the runtimes read 64 bits"
        )
    requantization = Requantization(
        x_scale=x_scale, w_scale=np.asarray(scale, np.float32), y_scale=y_scale, zero=y_zero,
        low=low, high=high, dtype=y.dtype, wide=left.dtype == np.int16 and not narrow,
    )
    limits = lite_limits(operator, fused, y) if y.dtype != np.int16 else (low, high)
    single = None
    if limits != (low, high):
        single = dataclasses.replace(requantization, low=limits[0], high=limits[1])
    return Gemm(
        **common, x_zero=x_zero, w_zero=np.asarray(zero, np.int64),
        bias=None if added is None else graph.converted(
            operator, operator.inputs[bias], np.int64
        ).reshape(-1),
        requantization=requantization, single=single,
    )


def _is_hybrid(operator, kinds):
    """Whether LiteRT quantizes the rows of a product of float32 with weights of these types."""
    allowed = ["int8"]
    if operator.name in ("CONV_2D", "FULLY_CONNECTED"):
        allowed.append("uint8")
    return kinds[::2] == ["float32", "float32"] and kinds[1] in allowed


def _check_scales(operator, x_scale, w_scale, y_scale):
    """Every rounding mode needs float32 ratios above 0, and below 2**31."""
    with np.errstate(over="ignore", under="ignore"):
        product = np.float32(x_scale) * np.asarray(w_scale, np.float32)
        ratio = product / np.float32(y_scale)
    if not ((product > 0) & (ratio > 0) & (ratio < 2.0**30)).all():
        raise operator.error(
            "x_scale * w_scale / y_scale must be above 0 and below 2**30, "
            f"not {x_scale} * {np.max(w_scale)} / {y_scale}"
        )


def _weights_of(dtype):
    """Types of the weights that go with activations of ``dtype``."""
    return (np.uint8,) if dtype == np.uint8 else (np.int8,)


def _biases_of(dtype):
    return (np.int32, np.int64) if dtype == np.int16 else (np.int32,)


BUILDERS = {
    "FULLY_CONNECTED": _fully_connected, "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv_2d, "TRANSPOSE_CONV": _transpose_conv,
    "BATCH_MATMUL": _batch_matmul,
}


QUANTIZE = "the host quantizes rows of float32, as LiteRT does"
FINISH = "the host converts sums to float32"


def hybrid(graph, operator, fused, bias, axis, common):
    """The nodes of a product.

    Parameters
    ----------
    graph : Context
    operator : TfliteOperator
    fused : str
        Its activation.
    bias : array or None
    axis : int or None
        Axis of the channels of the weights; None: they have one scale.
    common : dict
        Fields of its `Gemm`, which are those of a product of float32.
    """
    rule = "builtin" if operator.name == "DEPTHWISE_CONV_2D" else "xnnpack"
    x, w = graph.file.tensors[common["x"]], graph.input(operator, 1)
    scale, zero = _scales(operator, w, axis)
    if w.dtype == np.uint8:  # of old converters: LiteRT takes the bytes as int8
        if scale.size > 1:
            raise operator.error(
                f"uint8 weights of a product with float32 must have 1 scale, not {scale.size}"
            )
        is_symmetric = operator.name == "CONV_2D" or not operator.options(
            "FullyConnectedOptions"
        ).AsymmetricQuantizeInputs()
        rule = "symmetric" if is_symmetric else "asymmetric"
        common = common | {"weights": common["weights"].view(np.int8)}
    elif zero.any():
        raise operator.error("weights of a product with float32 must have zero points of 0")
    before = []
    if common["x_transposed"]:
        x, before, common = _upright(graph, operator, x, common)
    window, weights, y = common["window"], common["weights"], graph.output(operator)
    spread = (1, 1)
    if window is not None:
        is_product = window.kernel == window.stride == (1, 1) and len(weights) == 1
        # XNNPACK computes such a convolution as a matrix product, whose rows are pixels.
        axes = (3,) if is_product and rule == "xnnpack" else (1, 2, 3)
        shape, sums = x.shape, y.shape
        spread, padding = window.spread, (window.padding[:2], window.padding[2:])
        inner = (
            (n - 1) * step + 1 + sum(pair)
            for n, step, pair in zip(window.input, spread, padding, strict=True)
        )
        size = (x.shape[0], *inner, x.shape[3])
        window = dataclasses.replace(
            window, padding=(0, 0, 0, 0), spread=(1, 1), input=size[1:3]
        )
    else:
        shape = x.shape if weights is None else (math.prod(x.shape) // weights.shape[1],
                                                 weights.shape[1])
        size, axes, padding = shape, (len(shape) - 1,), None
        sums = y.shape if weights is None else (shape[0], weights.shape[2])
    rows = tuple(1 if n in axes else size for n, size in enumerate(shape))
    parts = [
        graph.add(Tensor(f"{y.name}/{name}", of, np.dtype(kind))) for name, of, kind in (
            ("rows", size, np.int8), ("scale", rows, np.float32), ("zero", rows, np.int32),
            ("sums", sums, np.int32),
        )
    ]
    low, high = RANGES[fused]
    values = graph.values.get(operator.inputs[1]) if weights is None else None
    columns = _column_sums(graph, operator, weights, values, common["b_transposed"])
    graph.hybrid += 1
    quantize = graph.host(
        operator, "litert.quantize_rows", QUANTIZE, shape=shape, axes=axes, rule=rule,
        padding=padding, spread=spread,
    )
    finish = graph.host(
        operator, "litert.float_sums", FINISH, columns=columns, bias=bias, rule=rule,
        scale=scale.astype(np.float32), low=-np.inf if low is None else float(low),
        high=np.inf if high is None else float(high), shape=y.shape,
    )
    return [
        *before,
        dataclasses.replace(quantize, inputs=(common["x"],), outputs=tuple(parts[:3])),
        Gemm(**common | {
            "name": f"{y.name}/sums", "x": parts[0], "outputs": (parts[3],), "window": window,
            "inputs": (parts[0], *common["inputs"][1:]),
        }),
        dataclasses.replace(finish, inputs=(parts[3], *parts[1:3])),
    ]


def _scales(operator, w, axis):
    """Scales and zero points of the weights."""
    if axis is None:
        return tuple(np.array([number]) for number in per_tensor(operator, w))
    return per_channel(operator, w, axis)


def _upright(graph, operator, x, common):
    """The first operand as [..., M, K], of a product that has it as [..., K, M].

    Returns its tensor, the nodes that compute it, and the fields of the product.
    """
    axes = tuple(range(len(x.shape) - 2)) + (len(x.shape) - 1, len(x.shape) - 2)
    upright = Tensor(f"{x.name}/transposed", tuple(x.shape[n] for n in axes), x.dtype)
    number = graph.add(upright)
    node = dataclasses.replace(
        graph.host(operator, "transpose", "it only moves values", inputs=(0,), axes=axes),
        outputs=(number,),
    )
    return upright, [node], common | {"x": number, "x_transposed": False}


def _column_sums(graph, operator, weights, values, transposed):
    """Sums over K: [channels], or [..., 1, N] of a second operand with a batch."""
    if weights is not None:
        return weights.sum(1, dtype=np.int64).ravel()
    graph.spend(operator, values.nbytes)
    return values.sum(-1 if transposed else -2, dtype=np.int64)[..., None, :]
