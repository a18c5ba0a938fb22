"""Graphs of one or a few operators, with random weights and plausible scales."""

import numpy as np
from products import integers

from weft.models.ir import (
    Gemm,
    Graph,
    Host,
    Quantization,
    Recurrence,
    Requantization,
    Tensor,
    Window,
)

__all__ = [
    "chain", "convolution", "fully_connected", "graph_of", "lstm", "pair", "table_of", "tensor",
]


def tensor(shape, dtype=np.int8, scale=0.05, zero=0, name="", data=None):
    """A tensor; one of float32 is not quantized."""
    quantization = None
    if np.dtype(dtype).kind in "iu":
        quantization = Quantization(np.array([scale], np.float32), np.array([zero], np.int64))
    return Tensor(name, tuple(shape), np.dtype(dtype), quantization, data)


def graph_of(nodes, tensors, *, inputs=(0,), outputs=None, source="tflite"):
    """A graph whose operators are its nodes."""
    return Graph(
        name="net", source=source, tensors=tuple(tensors), nodes=tuple(nodes), inputs=inputs,
        outputs=outputs or nodes[-1].outputs, operators=tuple(node.operator for node in nodes),
    )


def requantization(rng, dtype, channels, k, zero=0, wide=False):
    """Scales that spread the sums over the results."""
    w_scale = rng.uniform(0.5, 1.0, channels).astype(np.float32)
    spread = {1: 20.0, 2: 0.2}[np.dtype(dtype).itemsize]
    limits = np.iinfo(dtype)
    return Requantization(
        x_scale=1.0, w_scale=w_scale, y_scale=float(spread * np.sqrt(k) * 10), zero=zero,
        low=limits.min + 1, high=limits.max, dtype=np.dtype(dtype), wide=wide,
    )


def fully_connected(
    rng, number, tensors, channels, *, dtype=np.int8, w_dtype=np.int8, w_zero=0, raw=False,
    wide=False, position=0,
):
    """A fully connected layer of tensor ``number``; appends its output to ``tensors``."""
    x = tensors[number]
    k = x.shape[-1]
    result = np.int32 if raw else dtype
    tensors.append(tensor((*x.shape[:-1], channels), result, zero=0))
    return Gemm(
        operator="FULLY_CONNECTED", name=f"fc{position}", position=(position,), inputs=(number,),
        outputs=(len(tensors) - 1,), x=number, x_zero=int(x.quantization.zero[0]),
        weights=integers(rng, w_dtype, 1, k, channels), w_zero=np.full(1, w_zero),
        bias=rng.integers(-5000, 5000, channels),
        requantization=None if raw else requantization(rng, dtype, channels, k, wide=wide),
    )


def convolution(
    rng, number, tensors, columns, *, groups=1, stride=(1, 1), layout="NHWC", w_dtype=np.int8,
    w_zero=0, position=0, dtype=np.int8,
):
    """A convolution of 3 x 3 with a border of 1; appends its output to ``tensors``."""
    x = tensors[number]
    batch, *shape = x.shape
    height, width, channels = shape if layout == "NHWC" else (*shape[1:], shape[0])
    output = (height - 1) // stride[0] + 1, (width - 1) // stride[1] + 1
    window = Window((3, 3), stride, (1, 1), (1, 1, 1, 1), (height, width), output)
    total = groups * columns
    y_shape = (*output, total) if layout == "NHWC" else (total, *output)
    tensors.append(tensor((batch, *y_shape), dtype))
    k = 9 * channels // groups
    return Gemm(
        operator="DEPTHWISE_CONV_2D" if groups == channels > 1 else "CONV_2D",
        name=f"conv{position}", position=(position,), inputs=(number,),
        outputs=(len(tensors) - 1,), x=number, x_zero=int(x.quantization.zero[0]),
        weights=integers(rng, w_dtype, groups, k, columns), w_zero=np.full(1, w_zero),
        bias=rng.integers(-5000, 5000, total), window=window, layout=layout,
        requantization=requantization(rng, dtype, total, k),
    )


def pair(
    rng, x, b, tensors, *, raw=False, x_transposed=False, b_transposed=False, b_zero=0, position=0
):
    """A product of the tensors ``x`` and ``b``; appends its output to ``tensors``."""
    left, right = tensors[x], tensors[b]
    m, k = left.shape[-2:][::-1] if x_transposed else left.shape[-2:]
    n = right.shape[-2 if b_transposed else -1]
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    tensors.append(tensor((*lead, m, n), np.int32 if raw else left.dtype))
    return Gemm(
        operator="BATCH_MATMUL", name=f"pair{position}", position=(position,), inputs=(x, b),
        outputs=(len(tensors) - 1,), x=x, b=b, x_zero=int(left.quantization.zero[0]),
        w_zero=np.array([b_zero]), x_transposed=x_transposed, b_transposed=b_transposed,
        requantization=None if raw else requantization(rng, left.dtype, 1, k),
    )


def table_of(rng, number, tensors, *, position=0):
    """A table operator of tensor ``number``; appends its output to ``tensors``."""
    tensors.append(tensor(tensors[number].shape))
    return Host(
        operator="LOGISTIC", name=f"table{position}", position=(position,), inputs=(number,),
        outputs=(len(tensors) - 1,), kernel="table", reason="a function of one value",
        attributes={"table": integers(rng, np.int8, 256)},
    )


def lstm(rng, number, tensors, units, *, position=0):
    """An LSTM of tensor ``number``, [batch, time, size]: its two nodes; appends its tensors."""
    name, (batch, time, _) = f"lstm{position}", tensors[number].shape
    into = fully_connected(rng, number, tensors, 4 * units, raw=True, position=position)
    [sums] = into.outputs
    state = len(tensors)
    tensors += [
        tensor((batch, units), zero=-5), tensor((batch, 4 * units), np.int32),
        tensor((batch, time, units), zero=-5),
    ]
    own = Gemm(
        operator="LSTM", name=f"{name}/recurrent", position=(position,), inputs=(state,),
        outputs=(state + 1,), x=state, x_zero=-5,
        weights=integers(rng, np.int8, 1, units, 4 * units),
    )
    gates = {f"{part}_scales": ((1 << 30, -1),) * 4 for part in ("input", "recurrent")}
    return [into, Recurrence(
        operator="LSTM", name=name, position=(position,), inputs=(sums,), outputs=(state + 2,),
        kernel="tflite.lstm", products=(own,), steps=time, reason="gates",
        attributes={
            "tflite": {
                **gates, "forget_scale": (1 << 30, -14), "update_scale": (1 << 30, -18),
                "hidden_scale": (1 << 30, -22),
            },
            "single": {**gates, "hidden_scale": (1 << 30, -22)}, "cell_power": -11,
            "hidden_zero": -5, "limit": 0.0, "time_major": False, "wide": False,
        },
    )]


def chain(rng, sizes=(20, 30, 25, 10)):
    """A graph of fully connected layers."""
    tensors = [tensor((1, sizes[0]), zero=3, name="x")]
    nodes = [
        fully_connected(rng, n, tensors, size, position=n) for n, size in enumerate(sizes[1:])
    ]
    return graph_of(nodes, tensors)
