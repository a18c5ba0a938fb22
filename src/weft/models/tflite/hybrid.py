"""Products of float32 activations and int8 weights (dynamic range quantization).

Each becomes three nodes, as LiteRT computes it with its default kernels: rows of the activations
are quantized, integers are multiplied, and the sums become float32. TFLite Micro has no such
products.
"""

import dataclasses
import math

import numpy as np

from weft.models.ir import Gemm, Tensor
from weft.models.tflite.quantized import RANGES, per_channel, per_tensor

__all__ = ["hybrid"]

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
    if zero.any():
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
