"""Runs a `weft.models.ir.Graph` in plain numpy, each product by its formula."""

import itertools

import numpy as np

from weft.golden import requantize
from weft.models import kernels
from weft.models.ir import Gemm, Host
from weft.models.kernels import fixed_point
from weft.quantize import onnx_scale, tflite_scale

__all__ = ["product", "run_graph"]


def run_graph(graph, inputs, states=None, mode="tflite"):
    """All values by tensor; ``states`` is a dict that is kept between runs."""
    states = {} if states is None else states
    values = {i: t.data for i, t in enumerate(graph.tensors) if t.data is not None}
    values |= dict(zip(graph.inputs, inputs, strict=True))
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Gemm):
            outputs = [product(graph, node, values, mode)]
        else:
            given = [None if number < 0 else values[number] for number in node.inputs]
            state = states.setdefault(i, {})
            if isinstance(node, Host):
                outputs = kernels.run(node.kernel, given, node.attributes, state)
            else:
                outputs = recur(graph, node, given, state, mode)
        for number, value in zip(node.outputs, outputs, strict=True):
            tensor = graph.tensors[number]
            assert (value.dtype, value.shape) == (tensor.dtype, tensor.shape), node
            values[number] = value
    return values


def recur(graph, node, given, state, mode):
    """The outputs of one `Recurrence`."""
    generator = kernels.recurrence(node.kernel, given, node.attributes, state, mode)
    sums = None
    for count in itertools.count():
        try:
            place, x = generator.send(sums)
        except StopIteration as end:
            assert count == node.steps * len(node.products)
            return end.value
        gemm = node.products[place]
        tensor = graph.tensors[gemm.x]
        assert (x.dtype, x.shape) == (tensor.dtype, tensor.shape), node
        sums = product(graph, gemm, {gemm.x: x})


@np.errstate(all="ignore")  # infinity and NaN are results; OpenBLAS sets flags of unused lanes
def product(graph, node, values, mode="tflite"):
    """The result of one `Gemm`."""
    x = values[node.x]
    kind = np.float32 if x.dtype == np.float32 else np.int64
    x = x.astype(kind) - kind(node.x_zero)
    y = graph.tensors[node.outputs[0]]
    x = x.swapaxes(-1, -2) if node.x_transposed else x
    if node.b is not None:
        b = values[node.b].astype(kind) - node.w_zero.astype(kind)
        sums = x @ (b.swapaxes(-1, -2) if node.b_transposed else b)
    else:
        groups, k, n = node.weights.shape
        zero = np.broadcast_to(node.w_zero, groups * n).reshape(groups, 1, n)
        w = node.weights.astype(kind) - zero.astype(kind)
        if node.window is None:
            sums = x.reshape(-1, k) @ w[0]
        else:
            sums = windows(x, node, groups, k) @ w  # [groups, rows, n]
            sums = sums.transpose(1, 0, 2).reshape(-1, groups * n)
    if node.bias is not None:
        sums = sums + node.bias
    sums = finish(sums, node, mode, values[node.x].dtype == np.int16)
    if node.window is not None and node.layout == "NCHW":
        batch, channels, height, width = y.shape
        return sums.reshape(batch, height, width, channels).transpose(0, 3, 1, 2)
    return sums.reshape(y.shape)


def windows(x, node, groups, k):
    """``x[g]`` of all groups: [groups, rows, K]; x is without its zero point."""
    window = node.window
    if node.layout == "NCHW":
        x = x.transpose(0, 2, 3, 1)
    batch, height, width, channels = x.shape
    rows, columns = (
        (size - 1) * s + 1 for size, s in zip((height, width), window.spread, strict=True)
    )
    spread = np.zeros((batch, rows, columns, channels), x.dtype)
    spread[:, :: window.spread[0], :: window.spread[1]] = x
    (kh, kw), (oh, ow) = window.kernel, window.output
    out = np.zeros((batch, oh, ow, kh, kw, channels), x.dtype)
    for oy in range(oh):
        for ky in range(kh):
            sy = oy * window.stride[0] + ky * window.dilation[0] - window.padding[0]
            if not 0 <= sy < rows:
                continue
            for kx in range(kw):
                sx = np.arange(ow) * window.stride[1] + kx * window.dilation[1] - window.padding[2]
                inside = (sx >= 0) & (sx < columns)
                out[:, oy, inside, ky, kx] = spread[:, sy, sx[inside]]
    out = out.reshape(batch * oh * ow, kh * kw, groups, channels // groups)
    return out.transpose(2, 0, 1, 3).reshape(groups, -1, k)


def finish(sums, node, mode, wide):
    """Requantize, or clamp float32; ``wide`` : raw sums have 64 bits."""
    if node.requantization is None:
        low = {"none": -np.inf}.get(node.activation, 0)
        high = 6 if node.activation == "relu6" else np.inf
        kind = np.int64 if wide else np.int32
        return np.clip(sums, low, high) if sums.dtype == np.float32 else sums.astype(kind)
    r = node.requantization
    if mode == "onnx":
        scale = np.broadcast_to(onnx_scale(r.x_scale, r.w_scale, r.y_scale), sums.shape[-1])
        return requantize(
            sums.astype(np.int32), scale=scale, mode="onnx", zero_point=r.zero, low=r.low,
            high=r.high, dtype=r.dtype,
        )
    multiplier, shift = tflite_scale(r.x_scale, r.w_scale, r.y_scale)
    rule = fixed_point.multiply_wide if r.wide else fixed_point.multiply
    y = rule(sums if r.wide else fixed_point.wrap32(sums), multiplier, shift)
    return np.clip(y + r.zero, r.low, r.high).astype(r.dtype)
