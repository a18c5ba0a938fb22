"""Convolutions as matrix products: windows of a feature map become the rows of A."""

import math
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Window

__all__ = ["WindowRows"]


@dataclass(frozen=True)
class WindowRows:
    """How a convolution becomes ``count`` products A[m, k] x B[k, n].

    One product computes ``together`` groups, and ``neighbours`` outputs beside each other in a row
    of the map. A row of A holds the inputs of all of them, in the order ky, tap, channel; taps are
    columns of the map. The columns of B are in the order neighbour, group, column of the group. B
    is zero where an input does not belong to an output:

    - ``together`` > 1: B is block-diagonal, with a block for each group.
    - ``neighbours`` > 1: B is a Toeplitz matrix, since the windows of neighbours overlap.

    ::

        count = ceil(groups / together)
        m = batch * output height * ceil(output width / neighbours)
        k = kernel height * taps * together * channels
        n = neighbours * together * columns

    Groups and outputs that do not fill the last product are computed and dropped.

    Attributes
    ----------
    window : Window
    layout : str
        ``NHWC`` or ``NCHW``.
    groups, channels, columns : int
        Groups, channels of x in each, and columns N of each.
    together, neighbours : int
    """

    window: Window
    layout: str
    groups: int
    channels: int
    columns: int
    together: int = 1
    neighbours: int = 1

    @property
    def method(self) -> str:
        """Name of the method, as reports show it."""
        if self.neighbours > 1:
            return "toeplitz"
        if self.together > 1:
            return "block-diagonal"
        whole = self.window.kernel == (1, 1) == self.window.stride == self.window.spread
        return "pointwise" if whole and not any(self.window.padding) else "windows"

    @property
    def count(self) -> int:
        """Number of products."""
        return -(-self.groups // self.together)

    @property
    def _taps(self) -> tuple[int, int]:
        """Number of columns of the map that a window of neighbours reads, and their distance."""
        stride, dilation = self.window.stride[1], self.window.dilation[1]
        step = dilation if self.neighbours == 1 else math.gcd(stride, dilation)
        span = (self.neighbours - 1) * stride + (self.window.kernel[1] - 1) * dilation
        return span // step + 1, step

    @property
    def k(self) -> int:
        """K of the products."""
        return self.window.kernel[0] * self._taps[0] * self.together * self.channels

    @property
    def n(self) -> int:
        """N of the products."""
        return self.neighbours * self.together * self.columns

    @property
    def _across(self) -> int:
        """Rows of A for each row of the output."""
        return -(-self.window.output[1] // self.neighbours)

    def m(self, x_shape: tuple[int, ...]) -> int:
        """Return M of the products for an x of ``x_shape``, which may have more batch axes."""
        return self._batch(x_shape) * self.window.output[0] * self._across

    def macs(self, x_shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulate operations of the convolution, without zeros of B."""
        size = math.prod(self.window.output) * math.prod(self.window.kernel)
        return self._batch(x_shape) * size * self.channels * self.columns * self.groups

    def weights(self, weights: np.ndarray, zero: np.ndarray) -> np.ndarray:
        """Return B, [count, k, n], from the weights [groups, K, N] of the operator.

        ``zero`` [groups * N] has the zero points of the weights.
        """
        (kernel_y, kernel_x), p, c, n = self.window.kernel, self.together, self.channels, \
            self.columns
        taps, step = self._taps
        rest = self.count * p - self.groups
        blocks = np.concatenate([weights, np.zeros((rest, *weights.shape[1:]), weights.dtype)])
        blocks = blocks.reshape(self.count, p, kernel_y, kernel_x, c, n)
        b = np.empty((self.count, kernel_y, taps, p, c, self.neighbours, p, n), weights.dtype)
        b[...] = self.by_columns(zero).astype(weights.dtype).reshape(
            self.count, 1, 1, 1, 1, self.neighbours, p, n
        )
        stride, dilation = self.window.stride[1], self.window.dilation[1]
        for neighbour in range(self.neighbours):
            for kx in range(kernel_x):
                tap = (neighbour * stride + kx * dilation) // step
                for group in range(p):
                    b[:, :, tap, group, :, neighbour, group, :] = blocks[:, group, :, kx]
        return b.reshape(self.count, self.k, self.n)

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """Return values of the output channels, [groups * N], for the columns of B: [count, n].

        Columns that are dropped have the values of channel 0.
        """
        size = self.together * self.columns
        places = np.arange(self.count * size)
        places[self.groups * self.columns :] = 0
        return np.tile(values[places].reshape(self.count, size), self.neighbours)

    def write(self, x: np.ndarray, zero: int, rows: np.ndarray) -> None:
        """Write A to ``rows`` [count, m, k]; outside the map x is ``zero``."""
        x = self._with_border(self._channels_last(x), zero)
        window, (taps, step) = self.window, self._taps
        batch_stride, y, across, channel = x.strides
        shape = (
            self.count, len(x), window.output[0], self._across, window.kernel[0], taps,
            self.together * self.channels,
        )
        strides = (
            self.together * self.channels * channel, batch_stride, window.stride[0] * y,
            window.stride[1] * self.neighbours * across, window.dilation[0] * y, step * across,
            channel,
        )
        windows = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
        np.copyto(rows.reshape(shape), windows)

    def outputs(self, results: np.ndarray) -> np.ndarray:
        """Return the output maps, with channels last, from the results [count, m, n]."""
        height, width = self.window.output
        size = self.together * self.columns
        y = results.reshape(self.count, -1, height, self._across, self.neighbours, size)
        y = y.transpose(1, 2, 3, 4, 0, 5)
        y = y.reshape(len(y), height, self._across * self.neighbours, self.count * size)
        return y[:, :, :width, : self.groups * self.columns]

    def arrange(self, y: np.ndarray) -> np.ndarray:
        """Return maps with channels last in the layout of the operator."""
        return y.transpose(0, 3, 1, 2) if self.layout == "NCHW" else y

    def _batch(self, x_shape):
        return math.prod(x_shape) // (math.prod(self.window.input) * self.groups * self.channels)

    def _channels_last(self, x):
        """Return x as [batch, height, width, channels], without a copy."""
        height, width = self.window.input
        channels = self.groups * self.channels
        if self.layout == "NCHW":
            return x.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
        return x.reshape(-1, height, width, channels)

    def _with_border(self, x, zero):
        """Return the part of the spread and padded map that windows read; x if they are equal."""
        window = self.window
        size = [
            (outputs - 1) * stride + (kernel - 1) * dilation + 1
            for outputs, stride, kernel, dilation in zip(
                (window.output[0], self._across * self.neighbours), window.stride, window.kernel,
                window.dilation, strict=True,
            )
        ]
        channels = self.count * self.together * self.channels
        source, target = [], []
        for wanted, given, before, spread in zip(
            size, window.input, window.padding[::2], window.spread, strict=True
        ):
            first = max(0, -(before // spread))  # the first input at or after the crop
            place = before + first * spread
            last = max(first, min(given, first - (-(wanted - place) // spread)))
            source.append(slice(first, last))
            target.append(slice(place, place + (last - first) * spread, spread))
        inside = x[:, source[0], source[1]]
        if inside.shape[1:] == (*size, channels):
            return inside
        whole = np.full((len(x), *size, channels), zero, x.dtype)
        whole[:, target[0], target[1], : x.shape[-1]] = inside
        return whole
