"""Quantized products become `Gemm`: the QOperator form, integer products, and QDQ."""

import dataclasses
import math

import numpy as np

from weft.models.ir import Gemm, Requantization
from weft.models.onnx.operands import (
    QuantizedOperand,
    QuantizedResult,
    from_dequantize,
    from_names,
    quantize_bias,
    result_of,
)
from weft.models.onnx.products import layout_of, per_column
from weft.quantize import onnx_scale

__all__ = ["lower"]

IN_FLOATS = "onnxruntime computes it in float32"


def lower(importer, operator) -> bool:
    """Append the nodes of a quantized product; False if the operator is not such a product."""
    standard = operator.domain in ("", "ai.onnx")
    if standard and operator.kind in _NAMED:
        return _NAMED[operator.kind](importer, operator)
    if operator.domain == "com.microsoft" and operator.kind in _MICROSOFT:
        return _MICROSOFT[operator.kind](importer, operator)
    if standard and operator.kind in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return _between(importer, operator)
    return False


def _qlinear_conv(importer, operator):
    source, names = importer.source, [*operator.inputs, *[""] * 9]
    x = from_names(source, *names[:3])
    w = from_names(source, *names[3:6], axis=0)
    bias = source.constant(names[8]) if names[8] else None
    result = _named_result(source, operator, *names[6:8])
    if (names[8] and bias is None) or result is None:
        return False
    bias = None if bias is None else bias.astype(np.int64)
    return _emit(importer, operator, "Conv", x, w, bias, result)


def _qlinear_matmul(importer, operator):
    source, names = importer.source, operator.inputs
    x = from_names(source, *names[:3])
    w = from_names(source, *names[3:6], axis=len(source.types[names[3]][1]) - 1)
    result = _named_result(source, operator, *names[6:8])
    return result is not None and _emit(importer, operator, "MatMul", x, w, None, result)


def _qgemm(importer, operator):
    source, names = importer.source, [*operator.inputs, *[""] * 9]
    x = from_names(source, *names[:3])
    w = from_names(source, *names[3:6], axis=0 if operator.attributes.get("transB", 0) else 1)
    bias = None
    if names[6]:
        bias = source.constant(names[6])
        columns = source.types[operator.outputs[0]][1][-1]
        if bias is None or bias.size not in (1, columns) or bias.shape[-1:] not in (
            (), (1,), (columns,)
        ):
            return False
        bias = np.broadcast_to(bias.ravel(), columns).astype(np.int64)
    alpha = np.float32(operator.attributes.get("alpha", 1.0))
    if x is None or x.scale is None or not alpha > 0:
        return False
    x = dataclasses.replace(x, scale=alpha * x.scale)
    result = None
    if names[7]:
        result = _named_result(source, operator, *names[7:9])
        if result is None:
            return False
    return _emit(importer, operator, "Gemm", x, w, bias, result)


def _conv_integer(importer, operator):
    return _integer(importer, operator, "Conv", 0, _window_sums)


def _matmul_integer(importer, operator):
    axis = len(importer.source.types[operator.inputs[1]][1]) - 1
    return _integer(importer, operator, "MatMul", axis, _column_sums)


def _matmul_to_float(importer, operator):
    """``sum((a - za) * (b - zb)) * (sa * sb) + bias``: the core computes the sums."""
    source = importer.source
    x, w, x_scale, w_scale, x_zero, w_zero, bias = [*operator.inputs, "", "", ""][:7]
    y, shape = operator.outputs[0], source.types[operator.outputs[0]][1]
    if any(source.types[n][0] != np.float32 for n in (x_scale, w_scale, bias) if n):
        return False
    if math.prod(source.types[x_scale][1]) != 1:
        return False
    sums = f"{y}/sums"
    source.types[sums] = np.dtype(np.int32), shape
    product = dataclasses.replace(operator, inputs=(x, w, x_zero, w_zero), outputs=(sums,))
    if not _matmul_integer(importer, product):
        return False
    scales = [source.constant(name) for name in (x_scale, w_scale)]
    of_both = np.broadcast_shapes(*(source.types[name][1] for name in (x_scale, w_scale)))
    constant = None if scales[0] is None or scales[1] is None else scales[0] * scales[1]
    scale = importer.new_tensor(f"{y}/scale", of_both, np.float32, constant)
    if constant is None:
        importer.add_host(
            operator, "onnx.multiply", [importer.value(x_scale), importer.value(w_scale)], scale,
            "no product: the scale of x is computed",
        )
    result = importer.tensor(y)
    scaled = importer.new_tensor(f"{y}/scaled", shape, np.float32) if bias else result
    importer.add_host(
        operator, "onnx.scale", [importer.tensor(sums), scale], scaled,
        "float32 results of integer sums",
    )
    if bias:
        importer.add_host(
            operator, "onnx.add", [scaled, importer.value(bias)], result,
            "a float32 bias of integer sums",
        )
    return True


def _integer(importer, operator, kind, axis, sums_of):
    """``sum((a - za) * (b - zb))``; a zero point za that is computed is subtracted afterwards.

    ``axis`` is the axis of the columns of b; ``sums_of(importer, operator, w)`` are the sums of
    ``b - zb`` for each result, or None.
    """
    source, names = importer.source, [*operator.inputs, "", ""]
    w = from_names(source, names[1], "", names[3], axis=axis)
    computed = names[2] and source.constant(names[2]) is None
    x = from_names(source, names[0], "", "" if computed else names[2])
    if not computed:
        return _emit(importer, operator, kind, x, w, None, None)
    if w is None or w.data is None or source.types[names[2]][1] not in ((), (1,)):
        return False
    columns = sums_of(importer, operator, w)
    if columns is None:
        return False
    output = importer.tensor(operator.outputs[0])
    shape = source.types[operator.outputs[0]][1]
    sums = importer.new_tensor(f"{operator.outputs[0]}_plain", shape, np.int32)
    if not _emit(importer, operator, kind, x, w, None, None, output=sums):
        return False
    columns = importer.new_tensor(f"{w.name}_sums", columns.shape, np.int32, columns)
    importer.add_host(
        operator, "onnx.subtract_zero", [sums, importer.value(names[2]), columns], output,
        "the zero point of x is computed",
    )
    return True


def _column_sums(importer, operator, w):
    """The sums of the columns of a matrix: int32 [columns]."""
    if w.data.ndim != 2 or w.zero.size not in (1, w.data.shape[1]):
        return None
    return (w.data.astype(np.int64) - w.zero).sum(axis=0).astype(np.int32)


def _window_sums(importer, operator, w):
    """The sums of the weights inside the map, for each result of an inference.

    int32 [1, channels, *size of the map]. A weight outside the map meets the zero point of x.
    """
    types = importer.source.types
    shape = types[operator.outputs[0]][1]
    layout = layout_of(
        "Conv", operator.attributes, types[operator.inputs[0]][1], w.data.shape, w.data, shape
    )
    if layout is None or w.zero.size not in (1, w.data.shape[0]):
        return None
    zero = w.zero.reshape(-1, *[1] * (w.data.ndim - 1))
    window = layout.arguments["window"]
    kernel = (w.data.astype(np.int64) - zero).sum(axis=1).reshape(-1, *window.kernel)
    inside = []
    for axis in range(2):
        tap = np.arange(window.kernel[axis])[:, None] * window.dilation[axis]
        place = np.arange(window.output[axis]) * window.stride[axis] + tap
        place -= window.padding[2 * axis]
        inside.append((place >= 0) & (place < window.input[axis]))
    rows = np.einsum("nkl,ko->nlo", kernel, inside[0].astype(np.int64))
    sums = np.einsum("nlo,lp->nop", rows, inside[1].astype(np.int64))
    return sums.reshape(1, *shape[1:]).astype(np.int32)


_NAMED = {
    "QLinearConv": _qlinear_conv, "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer, "MatMulInteger": _matmul_integer,
}
_MICROSOFT = {"MatMulIntegerToFloat": _matmul_to_float, "QGemm": _qgemm}


def _between(importer, operator):
    """A product between DequantizeLinear and QuantizeLinear; without the latter, its sums."""
    source = importer.source
    x, w = (from_dequantize(source, name) for name in operator.inputs[:2])
    if x is None or w is None or x.scale.size != 1:
        return False
    alpha = np.float32(operator.attributes.get("alpha", 1.0))
    if not alpha > 0:
        return False
    x = dataclasses.replace(x, scale=alpha * x.scale)
    bias, rounded, places = None, False, (*x.places, *w.places)
    if len(operator.inputs) > 2 and operator.inputs[2]:
        found = _bias(importer, operator, x, w)
        if found is None:
            return False
        bias, rounded, more = found
        places += more
    result = result_of(source, operator.outputs[0])
    ties = "" if result is None or _is_fused(operator, x, result, rounded) else IN_FLOATS
    if not _emit(
        importer, operator, operator.kind, x, w, bias, result, places=places, ties=ties
    ):
        return False
    if operator.kind == "Gemm" and rounded and x.dtype == np.uint8:
        importer.note(
            operator.name,
            "a known fault of onnxruntime (issue 24711): with its default options it reads the bias"
            " of a Gemm as if its scale were that of x times w; Weft equals onnxruntime without"
            " optimizations"
        )
    importer.fused["sums" if result is None else "result"] += 1
    importer.fused["bias"] += rounded
    return True


def _is_fused(operator, x, result, rounded):
    """Whether onnxruntime, by default, computes the product of integers that Weft computes.

    On x86-64 it does so for uint8 activations alone, without an activation before the
    QuantizeLinear, and with a bias that has the scale of the sums.
    """
    return (
        operator.kind in ("Conv", "Gemm", "MatMul") and x.dtype == result.dtype == np.uint8
        and len(result.places) == 1 and not rounded
    )


def _bias(importer, operator, x, w):
    """The bias as numbers of sums, whether it was rounded, and the nodes it comes from; or None."""
    name = operator.inputs[2]
    values = importer.float_constant(name)
    if values is None:
        return None
    groups = operator.attributes.get("group", 1) if operator.kind == "ConvTranspose" else 1
    columns = _columns(importer.source, operator)
    if values.size not in (1, columns) or values.shape[-1:] not in ((), (1,), (columns,)):
        return None
    scale = per_column(w.scale, columns, groups)
    if scale is None:
        return None
    scale = x.scale * scale
    beta = operator.attributes.get("beta", 1.0)
    producer = importer.source.producer.get(name)
    if producer is not None and producer.kind == "DequantizeLinear" and beta == 1:
        data, given = (importer.source.constant(n) for n in producer.inputs[:2])
        zero = importer.source.constant(producer.inputs[2]) if producer.inputs[2:] else None
        if data is not None and data.dtype == np.int32 and (zero is None or not zero.any()):
            if np.allclose(given, scale if given.size > 1 else scale[:1], rtol=1e-5, atol=0) and (
                given.size in (1, scale.size) and (given.size > 1 or np.ptp(scale) == 0)
            ):
                bias = np.broadcast_to(data.ravel(), columns).astype(np.int64)
                return bias, False, (producer.index,)
    bias = quantize_bias(np.broadcast_to(values.ravel(), columns) * np.float64(beta), scale)
    return None if bias is None else (bias, True, (producer.index,) if producer else ())


def _columns(source, operator):
    shape = source.types[operator.outputs[0]][1]
    return shape[1] if operator.kind in ("Conv", "ConvTranspose") else shape[-1]


def _named_result(source, operator, scale, zero):
    """The result of an operator with a scale and a zero point of its own."""
    scale = source.constant(scale)
    name = operator.outputs[0]
    dtype = source.types[name][0]
    zero = source.constant(zero) if zero else np.zeros((), dtype)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        return None
    if dtype not in (np.int8, np.uint8):
        return None
    limits = np.iinfo(dtype)
    return QuantizedResult(
        name, dtype, float(scale.ravel()[0]), int(zero.ravel()[0]), limits.min, limits.max
    )


def _emit(
    importer, operator, kind, x: QuantizedOperand | None, w: QuantizedOperand | None, bias,
    result: QuantizedResult | None, *, places=(), output=None, ties="",
) -> bool:
    """Append the Gemm; without a result also the node that scales its sums, if they are scaled.

    ``output`` is the tensor of the sums; by default, the operator's output. ``ties``: `Node.ties`.
    """
    source = importer.source
    if x is None or w is None or x.zero.size != 1 or (x.scale is not None and x.scale.size != 1):
        return False
    y_shape = source.types[operator.outputs[0]][1]
    w_shape = w.data.shape if w.data is not None else source.types[w.name][1]
    layout = layout_of(kind, operator.attributes, source.types[x.name][1], w_shape, w.data, y_shape)
    if layout is None:
        return False
    groups = operator.attributes.get("group", 1) if kind == "ConvTranspose" else 1
    sizes = [w.zero.size] + ([] if w.scale is None else [w.scale.size])
    if max(sizes) > 1 and w.axis != layout.weight_axis:
        return False
    w_zero = per_column(w.zero, layout.columns, groups)
    w_scale = None if w.scale is None else per_column(w.scale, layout.columns, groups)
    if w_zero is None or (w.scale is not None and w_scale is None):
        return False
    requantization = None
    if result is not None:
        try:
            onnx_scale(x.scale[0], w_scale, result.scale)
        except ValueError:  # the quotient underflows or overflows
            return False
        requantization = Requantization(
            float(x.scale[0]), w_scale, result.scale, result.zero, result.low, result.high,
            result.dtype,
        )
    b = None
    if layout.weights is None:
        b = importer.tensor(w.name) if w.data is None else importer.new_tensor(
            w.name, w.data.shape, w.data.dtype, w.data
        )
    inputs = [importer.reshaped(operator, importer.tensor(x.name), layout.x_shape)]
    inputs += [] if b is None else [b]
    if x.scale is not None:
        importer.quantize(x.name, x.scale, x.zero)
    if result is not None:
        final = importer.tensor(result.name)
        places = (*places, *result.places)
        importer.take(result.places)
        importer.quantize(result.name, result.scale, result.zero)
    else:
        final = importer.tensor(operator.outputs[0]) if output is None else output
    scaled = result is None and x.scale is not None
    dtype = np.int32 if result is None else result.dtype
    name = operator.outputs[0]
    sums = importer.new_tensor(f"{name}_sums", y_shape, dtype) if scaled else final
    y = sums if layout.y_shape == y_shape else importer.new_tensor(name, layout.y_shape, dtype)
    importer.emit(Gemm(
        operator=operator.title, name=operator.name,
        position=tuple(sorted({operator.index, *places})), inputs=tuple(inputs), outputs=(y,),
        x=inputs[0], x_zero=int(x.zero[0]), weights=layout.weights, w_zero=w_zero, b=b, bias=bias,
        requantization=requantization, ties=ties, **layout.arguments,
    ))
    if y != sums:
        importer.add_host(operator, "reshape", [y], sums, "moves no data", shape=tuple(y_shape))
    if scaled:
        scale = x.scale * w_scale
        if scale.size > 1 and layout.arguments.get("window"):
            scale = scale.reshape(-1, *[1] * (len(y_shape) - 2))
        number = importer.new_tensor(f"{name}_scale", scale.shape, np.float32, scale)
        importer.add_host(
            operator, "onnx.scale", [sums, number], final, "float32 results of integer sums"
        )
    return True
