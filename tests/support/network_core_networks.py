"""Random networks of convolutions, pools and sums, for network cores."""

import dataclasses
import math

import numpy as np
from graphs import graph_of, tensor
from products import integers

from weft.models.ir import Gemm, Host, Requantization, Window
from weft.quantize import quantize_multiplier

__all__ = ["NetworkBuilder", "random_divided_network", "random_network"]


class NetworkBuilder:
    """Appends operators to a network; each method returns the tensor of its output.

    Parameters
    ----------
    rng : numpy Generator
    shape : tuple of int
        Of the input, tensor 0.
    dtype : numpy.dtype
        Of all maps.
    """

    def __init__(self, rng, shape, dtype=np.int8):
        self.rng, self.dtype = rng, np.dtype(dtype)
        self.half = 128 if self.dtype == np.uint8 else 0
        self.tensors = [tensor(shape, dtype, zero=self._zero(), name="x")]
        self.nodes = []

    def _zero(self):
        return int(self.rng.integers(-20, 20)) + self.half

    def _output(self, shape, zero=None):
        zero = self._zero() if zero is None else zero
        self.tensors.append(tensor(shape, self.dtype, zero=zero))
        return len(self.tensors) - 1

    def zero_of(self, number):
        """The zero point of a tensor."""
        return int(self.tensors[number].quantization.zero[0])

    def _scales(self, channels, k, number):
        low, high = (-128 + self.half, 127 + self.half)
        return Requantization(
            x_scale=1.0, w_scale=self.rng.uniform(0.5, 1.0, channels).astype(np.float32),
            y_scale=float(200 * np.sqrt(k)), zero=self.zero_of(number), low=low + 3, high=high,
            dtype=self.dtype,
        )

    def _append(self, kind, operator, inputs, output, **fields):
        place = len(self.nodes)
        self.nodes.append(kind(
            operator=operator, name=f"n{place}", position=(place,), inputs=inputs,
            outputs=(output,), **fields,
        ))
        return output

    def convolution(
        self, x, columns, *, kernel=(3, 3), stride=(1, 1), dilation=(1, 1), padding=(1, 1, 1, 1),
        groups=1,
    ):
        """A convolution with ``columns`` channels for each group."""
        _, height, width, channels = self.tensors[x].shape
        output = tuple(
            (size + sum(pads) - (k - 1) * d - 1) // s + 1 for size, pads, k, d, s in zip(
                (height, width), (padding[:2], padding[2:]), kernel, dilation, stride, strict=True
            )
        )
        y = self._output((1, *output, groups * columns))
        k = math.prod(kernel) * channels // groups
        return self._append(
            Gemm, "CONV_2D" if groups == 1 else "DEPTHWISE_CONV_2D", (x,), y, x=x,
            x_zero=self.zero_of(x), weights=integers(self.rng, np.int8, groups, k, columns),
            bias=self.rng.integers(-5000, 5000, groups * columns),
            window=Window(kernel, stride, dilation, padding, (height, width), output),
            requantization=self._scales(groups * columns, k, y),
        )

    def dense(self, x, columns, rows=1):
        """A fully connected layer, with ``rows`` results."""
        k = math.prod(self.tensors[x].shape) // rows
        y = self._output((rows, columns))
        return self._append(
            Gemm, "FULLY_CONNECTED", (x,), y, x=x, x_zero=self.zero_of(x),
            weights=integers(self.rng, np.int8, 1, k, columns),
            bias=self.rng.integers(-5000, 5000, columns),
            requantization=self._scales(columns, k, y),
        )

    def pool(self, x, size, stride):
        """An average pool without padding."""
        _, height, width, channels = self.tensors[x].shape
        output = (height - size) // stride + 1, (width - size) // stride + 1
        return self._append(
            Host, "AVERAGE_POOL_2D", (x,), self._output((1, *output, channels), self.zero_of(x)),
            kernel="tflite.average_pool", reason="no product", attributes=dict(
                kernel_size=(size, size), stride=(stride, stride), padding=(0, 0), output=output,
                low=self.half - 128, high=self.half + 127,
            ),
        )

    def add(self, x, y):
        """The sum of two maps of equal shapes."""
        output = self._output(self.tensors[x].shape)
        scales = [quantize_multiplier(scale) for scale in (*self.rng.uniform(0.2, 1, 2), 0.9e-6)]
        (m, a), (n, b), (total, shift) = (map(int, scale) for scale in scales)
        return self._append(
            Host, "ADD", (x, y), output, kernel="tflite.add", reason="no product", attributes=dict(
                zeros=(self.zero_of(x), self.zero_of(y)), multipliers=(m, n), shifts=(a, b),
                left_shift=20, multiplier=total, shift=shift, zero=self.zero_of(output),
                low=self.half - 128, high=self.half + 120,
            ),
        )

    def multiply(self, x, y):
        """The product of two maps of equal shapes."""
        output = self._output(self.tensors[x].shape)
        multiplier, shift = map(int, quantize_multiplier(self.rng.uniform(0.004, 0.03)))
        return self._append(
            Host, "MUL", (x, y), output, kernel="tflite.mul", reason="no product", attributes=dict(
                zeros=(self.zero_of(x), self.zero_of(y)), multiplier=multiplier, shift=shift,
                zero=self.zero_of(output), low=self.half - 120, high=self.half + 127,
            ),
        )

    def pad(self, x, padding):
        """The map with a border of its zero point: top, bottom, left, right."""
        batch, height, width, channels = self.tensors[x].shape
        top, bottom, left, right = padding
        size = batch, height + top + bottom, width + left + right, channels
        return self.host(
            x, "PAD", "pad", size, padding=((0, 0), (top, bottom), (left, right), (0, 0)),
            value=self.zero_of(x),
        )

    def mean(self, x):
        """The means of the pixels of a map."""
        output = self._output((1, self.tensors[x].shape[-1]))
        return self._append(
            Host, "MEAN", (x,), output, kernel="tflite.mean", reason="no product", attributes=dict(
                axes=(1, 2), shape=self.tensors[output].shape, shift=0,
                multiplier=int(self.rng.integers(1 << 30, 1 << 31)),
                zeros=(self.zero_of(x), self.zero_of(output)),
            ),
        )

    def convert(self, x):
        """The values with another scale and zero point."""
        output = self._output(self.tensors[x].shape)
        multiplier, shift = map(int, quantize_multiplier(self.rng.uniform(0.3, 1.5)))
        return self._append(
            Host, "QUANTIZE", (x,), output, kernel="tflite.requantize", reason="no product",
            attributes=dict(
                zeros=(self.zero_of(x), self.zero_of(output)), multiplier=multiplier, shift=shift,
                dtype=self.dtype.name,
            ),
        )

    def softmax(self, x):
        """An operator that no core computes, with the shape of its input."""
        return self.host(
            x, "SOFTMAX", "tflite.softmax", self.tensors[x].shape, multiplier=1 << 30,
            left_shift=22, least=-248, dtype=self.dtype.name,
        )

    def table(self, x):
        """A function of each value."""
        table = integers(self.rng, self.dtype, 256)
        return self.host(x, "LOGISTIC", "table", self.tensors[x].shape, table=table)

    def concatenation(self, *inputs):
        """The channels of several maps."""
        *size, _ = self.tensors[inputs[0]].shape
        channels = sum(self.tensors[x].shape[-1] for x in inputs)
        zero = self.zero_of(inputs[0])
        return self._append(
            Host, "CONCATENATION", inputs, self._output((*size, channels), zero),
            kernel="concatenation", reason="no product", attributes=dict(axis=-1),
        )

    def on_host(self, node=-1):
        """Shift the zero points of a product's weights, so that no core has them."""
        w_zero = np.full(1, 200)
        self.nodes[node] = dataclasses.replace(self.nodes[node], w_zero=w_zero)

    def host(self, x, operator, kernel, size, **attributes):
        """An operator of the host, with an output of ``size``."""
        return self._append(
            Host, operator, (x,), self._output(size, self.zero_of(x)), kernel=kernel,
            reason="no product", attributes=attributes,
        )

    def graph(self, *outputs):
        """The network; its outputs are the last tensor if none are given."""
        return graph_of(self.nodes, self.tensors, outputs=outputs or None)


def random_network(rng, dtype=np.int8, multiplies=False):
    """A network of a few layers with sizes, strides, paddings and groups at random.

    ``multiplies``: every second residual is a product, not a sum.
    """
    height, width = (int(n) for n in rng.integers(5, 14, 2))
    builder = NetworkBuilder(rng, (1, height, width, int(rng.choice([1, 3, 5, 8, 12]))), dtype)

    def window(x):
        kernel = tuple(int(n) for n in rng.integers(1, 4, 2))
        dilation = (1, 1) if rng.random() < 0.7 else (2, 1)
        padding = tuple(int(n) for n in rng.integers(0, 2, 4))
        _, height, width, _ = builder.tensors[x].shape
        reach = [
            size + sum(pads) - (k - 1) * d for size, pads, k, d in zip(
                (height, width), (padding[:2], padding[2:]), kernel, dilation, strict=True
            )
        ]
        if min(reach) < 1:
            return dict(kernel=(1, 1), padding=(0, 0, 0, 0))
        stride = tuple(int(n) for n in rng.integers(1, 3, 2))
        return dict(kernel=kernel, stride=stride, dilation=dilation, padding=padding)

    x = builder.convolution(0, int(rng.integers(3, 20)), **window(0))
    for _ in range(int(rng.integers(2, 6))):
        channels = builder.tensors[x].shape[-1]
        kind = rng.choice([
            "dense", "depthwise", "groups", "multiplier", "residual", "pool", "pad", "convert",
        ])
        if kind == "pad":
            border = builder.pad(x, tuple(int(n) for n in rng.integers(0, 3, 4)))
            x = builder.convolution(border, 6, **window(border))
        elif kind == "convert":
            x = builder.convert(x)
        elif kind == "dense":
            x = builder.convolution(x, int(rng.integers(3, 20)), **window(x))
        elif kind == "depthwise" and channels > 1:
            x = builder.convolution(x, 1, groups=channels, **window(x))
        elif kind == "groups" and channels % 2 == 0:
            x = builder.convolution(x, int(rng.integers(1, 9)), groups=2, **window(x))
        elif kind == "multiplier" and channels < 9:
            x = builder.convolution(x, 2, groups=channels, **window(x))
        elif kind == "residual":
            y = builder.convolution(x, channels)
            if rng.random() < 0.5:
                y = builder.convolution(y, channels)
            combine = builder.multiply if multiplies and rng.random() < 0.5 else builder.add
            x = combine(*((x, y) if rng.random() < 0.5 else (y, x)))
        elif kind == "pool" and min(builder.tensors[x].shape[1:3]) >= 2:
            x = builder.pool(x, 2, int(rng.integers(1, 3)))
    if rng.random() < 0.3:
        x = builder.mean(x)
    return builder.graph(builder.dense(x, 7))


def random_divided_network(rng, dtype=np.int8):
    """A network of layers with operators between them that a network core lacks."""
    builder = NetworkBuilder(rng, (1, 6, 7, int(rng.choice([1, 3, 8]))), dtype)
    maps = [builder.convolution(0, 8)]
    for _ in range(int(rng.integers(4, 9))):
        x = maps[int(rng.integers(max(0, len(maps) - 2), len(maps)))]
        match rng.choice([
            "layer", "layer", "softmax", "softmax", "table", "join", "add", "product", "turn",
        ]):
            case "layer":
                x = builder.convolution(x, int(rng.choice([4, 8, 16])))
            case "softmax":
                x = builder.softmax(x)
            case "table":
                x = builder.table(x)
            case "join":
                x = builder.concatenation(*rng.permutation(maps[-3:]).tolist())
            case "add":
                equal = [y for y in maps if builder.tensors[y].shape == builder.tensors[x].shape]
                x = builder.add(x, int(rng.choice(equal)))
            case "product":
                x = builder.convolution(x, 8, kernel=(1, 1), padding=(0, 0, 0, 0))
                builder.on_host()
            case "turn":  # a reshape that layers read in place
                size = 1, 7, 6, builder.tensors[x].shape[-1]
                x = builder.host(x, "RESHAPE", "reshape", size, shape=size)
                x, size = builder.convolution(x, 8), (1, 6, 7, 8)
                x = builder.host(x, "RESHAPE", "reshape", size, shape=size)
        maps.append(x)
    y = builder.dense(maps[-1], 5)
    return builder.graph(y) if rng.random() < 0.5 else builder.graph(maps[1], y)
