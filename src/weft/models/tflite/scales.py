"""Which scales, zero points and options each runtime refuses.

Operators that move or compare bytes do not look at scales. A runtime refuses some of them if the
scales differ, and others compute the bytes. Some functions need one scale of their results. Weft
refuses in the mode of a runtime what this runtime refuses. TFLite Micro has no uint8: its rules are
those of int8, raised by 128.

Sources: TFLite Micro, ``kernel_util.cc``, ``pooling_common.cc``, ``concatenation.cc``,
``pad_common.cc``, ``reduce_common.cc``, ``softmax_common.cc``, ``logistic_common.cc``,
``svdf_common.cc``, ``tanh.cc``; LiteRT, its kernels of the same names; XNNPACK, ``subgraph/*.c``.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
import tflite

from weft.models.kernels.fixed_point import multiplier_of

__all__ = [
    "FUSED", "RANGES", "float_limits", "fused_limits", "half_away", "is_dense",
    "lite_limits", "multiplier_and_shift", "per_channel", "per_tensor", "refusals",
]

BYTES = frozenset({"int8", "uint8"})
QUANTIZED = BYTES | {"int16"}
NEAR = float(np.float32(1e-6))  # a difference of scales that TFLite Micro's pools take
FAR = 0.02  # steps of a result that the scale of a bias may be wrong by
SVDF_FAR = 1e-5  # what the scale of the bias of an SVDF may be wrong by, whatever its size
PAIR, LOG2 = 1e-3, 6.9e-4  # relative tolerances of the scale of a function

# Types for which inputs and outputs must have equal scales and zero points.
MICRO = {
    "CONCATENATION": BYTES, "PADV2": BYTES, "MAX_POOL_2D": QUANTIZED, "AVERAGE_POOL_2D": QUANTIZED,
    "REDUCE_MAX": QUANTIZED, "REDUCE_MIN": QUANTIZED,
}
LITE = {
    "CONCATENATION": {"int8"}, "REDUCE_MAX": {"int16"}, "REDUCE_MIN": {"int16"},
    **dict.fromkeys(
        ("MAX_POOL_2D", "PAD", "RESIZE_BILINEAR", "SLICE", "SPLIT", "TRANSPOSE"), BYTES
    ),
    **dict.fromkeys((
        "BATCH_TO_SPACE_ND", "DEPTH_TO_SPACE", "EXPAND_DIMS", "FILL", "MIRROR_PAD", "PACK",
        "PADV2", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "UNPACK",
    ), QUANTIZED),
}
# Inputs whose scale does not matter.
IGNORED = {"PADV2": 0}
# Scale (None: any), its tolerance, and zero point of the result of a function, by type; the type of
# the operand before it, if it is another one.
_SIGMOID16 = {"int16": (2.0**-15, LOG2, 0)}
MICRO_RESULTS: dict[str, Mapping] = {
    "LOGISTIC": {"int8": (None, 0, -128), **_SIGMOID16}, "TANH": _SIGMOID16,
    "SOFTMAX": {
        "int8": (2.0**-8, 0, -128), "int8 int16": (2.0**-16, PAIR, -32768),
        "int16": (2.0**-15, PAIR, 0),
    },
}
LITE_RESULTS: dict[str, Mapping] = {
    "LOGISTIC": {"int16": (2.0**-15, 0, 0)}, "TANH": _SIGMOID16,
    "SOFTMAX": {"int8": (2.0**-8, PAIR, -128), "int16": (2.0**-15, PAIR, 0)},
    "L2_NORMALIZATION": {"int8": (2.0**-7, 0, 0), "uint8": (2.0**-7, 0, 128)},
}


def _few_parts(operator):
    return 2 <= len(operator.outputs) <= 4


def is_dense(operator):
    """Whether no value of a map lies between the windows of a pool."""
    options = operator.options("Pool2DOptions")
    return (
        options.StrideH() <= options.FilterHeight() and options.StrideW() <= options.FilterWidth()
    )


# When XNNPACK, which checks the scales, computes an operator; LiteRT's own kernels do not check.
TAKEN: dict[str, Callable] = {"SPLIT": _few_parts, "MAX_POOL_2D": is_dense}


def refusals(graph, operator):
    """Messages by mode, for the modes whose runtime refuses the scales of an operator.

    Raises the operator's error if both runtimes refuse it.
    """
    micro, lite = _micro(graph, operator), _lite(graph, operator)
    if micro and lite:
        raise operator.error(micro)
    found = {}
    if micro:
        found["tflite"] = str(operator.error(f"TFLite Micro refuses it: {micro}"))
    if lite:
        found["single"] = str(operator.error(f"LiteRT refuses it: {lite}"))
    return found


def _kind(graph, operator):
    """The type of the result; before it the type of SOFTMAX's operand, if it is another one."""
    kinds = [str(graph.output(operator).dtype)]
    if operator.name == "SOFTMAX":
        kinds.insert(0, str(graph.input(operator, 0).dtype))
    return " ".join(dict.fromkeys(kinds))


def _micro(graph, operator):
    if operator.name == "RESIZE_BILINEAR":
        options = operator.options("ResizeBilinearOptions")
        if options.AlignCorners() and options.HalfPixelCenters():
            return "align_corners and half_pixel_centers must not both be set"
    kind = _kind(graph, operator)
    if operator.name == "FULLY_CONNECTED" and kind in QUANTIZED and (
        broken := _far_bias(graph, operator)
    ):
        return broken
    if operator.name == "SVDF" and kind == "int8" and graph.present(operator, 3):
        return _far_svdf_bias(graph, operator)
    if kind in MICRO.get(operator.name, ()):
        return _unequal(graph, operator, NEAR if operator.name.endswith("POOL_2D") else 0)
    raised = 128 if kind == "uint8" else 0
    rule = MICRO_RESULTS.get(operator.name, {}).get("int8" if raised else kind)
    return rule and _other(graph, operator, *rule[:2], rule[2] + raised)


def _lite(graph, operator):
    kind = _kind(graph, operator)
    if operator.name == "CONV_2D" and graph.present(operator, 2):
        bias = graph.input(operator, 2)
        zero = _parameters(bias)[1]
        if bias.quantization is not None and bias.quantization.scale.size == 1 and zero:
            return f"the zero point of the bias must be 0, not {zero}"
    if operator.name == "FULLY_CONNECTED" and kind == "int16":  # XNNPACK, which has bytes only
        return _far_bias(graph, operator)
    if kind in LITE.get(operator.name, ()) and TAKEN.get(operator.name, bool)(operator):
        return _unequal(graph, operator, 0)
    rule = LITE_RESULTS.get(operator.name, {}).get(kind)
    return rule and _other(graph, operator, *rule)


def _far_bias(graph, operator):
    """The broken rule of a fully connected layer with one scale of its weights, or None.

    Source: TFLite, ``GetQuantizedConvolutionMultipler``.
    """
    x, w = graph.input(operator, 0), graph.input(operator, 1)
    if w.quantization is None or w.quantization.scale.size != 1:
        return None
    if not graph.present(operator, 2):
        return None
    scales = [_parameters(t)[0] for t in (x, w, graph.input(operator, 2), graph.output(operator))]
    if abs(scales[0] * scales[1] - scales[2]) / scales[3] <= FAR:
        return None
    x_scale, w_scale, bias, y_scale = (str(np.float32(scale)) for scale in scales)
    return (
        f"the scale of the bias must be near x_scale * w_scale: abs({x_scale} * {w_scale} -"
        f" {bias}) / {y_scale} must be at most {FAR}"
    )


def _far_svdf_bias(graph, operator):
    """The broken rule of an SVDF with a bias, or None. Source: TFLite Micro, ``PrepareSvdf``."""
    time, bias, state = (_parameters(graph.input(operator, n))[0] for n in (2, 3, 4))
    if abs(bias - state * time) < SVDF_FAR:
        return None
    state_scale, time_scale, bias_scale = (str(np.float32(scale)) for scale in (state, time, bias))
    return (
        "the scale of the bias must be near state_scale * time_scale:"
        f" abs({state_scale} * {time_scale} - {bias_scale}) must be below {SVDF_FAR}"
    )


def _parameters(tensor):
    """Scale and zero point; 0 without them, as the runtimes take it."""
    quantization = tensor.quantization
    if quantization is None:
        return 0.0, 0
    return float(quantization.scale[0]), int(quantization.zero[0])


def _text(scale, zero):
    return f"{np.float32(scale)!s}, {zero}"


def _unequal(graph, operator, near):
    """The broken rule, or None if scales differ by ``near`` at most."""
    y = graph.output(operator)
    tensors = [graph.output(operator, place) for place in range(len(operator.outputs))]
    for place in range(len(operator.inputs)):
        if graph.present(operator, place) and IGNORED.get(operator.name) != place:
            tensor = graph.input(operator, place)
            if tensor.dtype == y.dtype:
                tensors.append(tensor)
    scale, zero = _parameters(y)
    for tensor in tensors:
        other, point = _parameters(tensor)
        if point != zero or not abs(other - scale) <= near:
            return (
                "scales and zero points of inputs and outputs must be equal, not"
                f" {_text(other, point)} ({tensor.name!r}) and {_text(scale, zero)} ({y.name!r})"
            )
    return None


def _other(graph, operator, scale, tolerance, zero):
    """The broken rule, or None if scale and zero point of the result are as a function needs."""
    found, point = _parameters(graph.output(operator))
    if scale is None:
        return None if point == zero else f"the zero point of y must be {zero}, not {point}"
    if point == zero and abs(found / scale - 1) <= tolerance:
        return None
    return f"scale and zero point of y must be {_text(scale, zero)}, not {_text(found, point)}"


_F = tflite.ActivationFunctionType
FUSED = {
    _F.NONE: "none", _F.RELU: "relu", _F.RELU_N1_TO_1: "relu_n1_to_1", _F.RELU6: "relu6",
}
RANGES = {"relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1), "none": (None, None)}


def half_away(x: float) -> int:
    """``x`` rounded to an integer, ties away from zero, within -2**40..2**40 (``TfLiteRound``)."""
    x = min(max(x, -(2.0**40)), 2.0**40)
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def multiplier_and_shift(operator, ratio):
    """Multiplier and shift of a ratio of scales; raises the operator's error from 2**31 on."""
    if not abs(ratio) < 2.0**31:
        raise operator.error(f"the ratio of scales must be below 2**31, not {ratio}")
    return multiplier_of(ratio)


def per_tensor(operator, tensor):
    """Scale (float) and zero point (int) of a tensor that has one of each."""
    scale, zero = _checked(operator, tensor)
    if scale.size != 1:
        raise operator.error(f"tensor {tensor.name!r} must have one scale, not {scale.size}")
    return float(scale[0]), int(zero[0])


def per_channel(operator, tensor, axis):
    """Scales and zero points of weights: one, or one for each channel along ``axis``."""
    scale, zero = _checked(operator, tensor)
    if scale.size > 1:
        given, size = tensor.quantization.axis, tensor.shape[axis]
        # Of two axes with equal sizes, the runtimes take the one of the operator.
        if not 0 <= given < len(tensor.shape) or tensor.shape[given] != size:
            raise operator.error(
                f"scales of {tensor.name!r} must be along axis {axis}, not {given}"
            )
        if scale.size != size:
            raise operator.error(f"scales of {tensor.name!r} must be 1 or {size}, not {scale.size}")
    return scale, zero


def fused_limits(operator, fused, tensor):
    """Lowest and highest result of a fused activation.

    Source: TFLite, ``CalculateActivationRangeQuantized``.
    """
    limits = np.iinfo(tensor.dtype)
    low, high = RANGES[fused]
    if low is high is None:
        return limits.min, limits.max  # no runtime reads the scale
    scale, zero = per_tensor(operator, tensor)
    step = np.float32(scale)
    with np.errstate(over="ignore"):
        bottom = limits.min if low is None else zero + half_away(float(np.float32(low) / step))
        top = limits.max if high is None else zero + half_away(float(np.float32(high) / step))
    low, high = max(limits.min, bottom), min(limits.max, top)
    if low > high:
        raise operator.error(
            f"the lowest result of {fused} must not exceed the highest, not {low}..{high}"
        )
    return low, high


def lite_limits(operator, fused, tensor):
    """The same in LiteRT's default kernels, for bytes: ties of ``limit / scale + zero`` to even.

    Source: XNNPACK, ``xnn_qs8_quantize``.
    """
    limits = np.iinfo(tensor.dtype)
    if fused == "none":
        return limits.min, limits.max
    scale, zero = per_tensor(operator, tensor)
    with np.errstate(over="ignore"):
        low, high = (
            end if limit is None
            else int(np.rint(
                (np.float32(limit) / np.float32(scale) + np.float32(zero))
                .clip(limits.min, limits.max)
            ))
            for limit, end in zip(RANGES[fused], (limits.min, limits.max), strict=True)
        )
    return low, high


def float_limits(fused):
    """Lowest and highest result of a fused activation in float32.

    A side without a limit has the largest finite number.
    """
    limits = np.finfo(np.float32)
    low, high = RANGES[fused]
    return (
        float(limits.min) if low is None else float(low),
        float(limits.max) if high is None else float(high),
    )


def _checked(operator, tensor):
    quantization = tensor.quantization
    if quantization is None:
        raise operator.error(f"tensor {tensor.name!r} must have a scale")
    scale, zero = quantization.scale, quantization.zero
    if zero.shape != scale.shape:
        raise operator.error(
            f"zero points of {tensor.name!r} must be 1 or {scale.size}, not {zero.size}"
        )
    wrong = scale[~(np.isfinite(scale) & (scale > 0))]
    if wrong.size:
        raise operator.error(
            f"scales of {tensor.name!r} must be finite and above 0, not {wrong[0]}"
        )
    if tensor.dtype.kind in "iu" and tensor.dtype.itemsize < 8:
        limits = np.iinfo(tensor.dtype)
        wrong = zero[(zero < limits.min) | (zero > limits.max)]
        if wrong.size:
            raise operator.error(
                f"zero points of {tensor.name!r} must be in {limits.min}..{limits.max}, "
                f"not {wrong[0]}"
            )
    return scale, zero
