"""Matrix operators as products for the core: how tensors become A and B, and results y."""

import math
from dataclasses import dataclass

import numpy as np

from weft.models.errors import ModelError
from weft.models.ir import Gemm, Window

__all__ = ["MatrixRows", "PairRows", "WindowRows", "candidates"]


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


@dataclass(frozen=True)
class MatrixRows:
    """A product with constant weights, without a window: all rows of x are the rows of A.

    Attributes
    ----------
    k, n : int
    transposed : bool
        x is [..., K, M].
    """

    k: int
    n: int
    transposed: bool = False

    method = "matrix"
    count = 1

    def m(self, x_shape: tuple[int, ...]) -> int:
        """Return M of the product for an x of ``x_shape``, which may have more batch axes."""
        return math.prod(x_shape) // self.k

    def macs(self, x_shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulate operations."""
        return math.prod(x_shape) * self.n

    def weights(self, weights: np.ndarray, zero: np.ndarray) -> np.ndarray:
        """Return B, [1, k, n], from the weights [1, K, N]."""
        return weights

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """Return values of the columns, [N], as [1, n]."""
        return values[None]

    def write(self, x: np.ndarray, zero: int, rows: np.ndarray) -> None:
        """Write A to ``rows`` [1, m, k]."""
        if not self.transposed:
            rows[0] = x.reshape(-1, self.k)
            return
        x = x.reshape(-1, *x.shape[-2:]).swapaxes(1, 2)
        rows.reshape(x.shape)[...] = x

    def outputs(self, results: np.ndarray) -> np.ndarray:
        """Return y as [M, N] from the results [1, m, n]."""
        return results[0]

    def arrange(self, y: np.ndarray) -> np.ndarray:
        """Return y."""
        return y


@dataclass(frozen=True)
class PairRows:
    """A product of two activations: x [..., M, K] and b [..., K, N], whose batches broadcast.

    If b has no batch, all rows of x of one inference are the rows of one A.

    Attributes
    ----------
    x_shape, b_shape : tuple of int
        Shapes of one inference.
    x_transposed, b_transposed : bool
        x is [..., K, M], or b is [..., N, K].
    """

    x_shape: tuple[int, ...]
    b_shape: tuple[int, ...]
    x_transposed: bool = False
    b_transposed: bool = False

    method = "matrix"

    @property
    def k(self) -> int:
        """K of the products."""
        return self.x_shape[-2 if self.x_transposed else -1]

    @property
    def n(self) -> int:
        """N of the products."""
        return self.b_shape[-2 if self.b_transposed else -1]

    @property
    def _rows(self):
        return self.x_shape[-1 if self.x_transposed else -2]

    @property
    def _lead(self):
        return np.broadcast_shapes(self.x_shape[:-2], self.b_shape[:-2])

    @property
    def _folds(self):
        return math.prod(self.b_shape[:-2]) == 1

    @property
    def count(self) -> int:
        """Number of products of one inference."""
        return 1 if self._folds else math.prod(self._lead)

    def m(self, x_shape: tuple[int, ...]) -> int:
        """Return M of the products."""
        return self._rows * (math.prod(self._lead) if self._folds else 1)

    def macs(self, x_shape: tuple[int, ...]) -> int:
        """Return the multiply-accumulate operations of one inference."""
        return math.prod(self._lead) * self._rows * self.k * self.n

    def write(self, x: np.ndarray, zero: int, rows: np.ndarray) -> None:
        """Write A to ``rows`` [inferences * count, m, k] from x [inferences, ...]."""
        x = x.swapaxes(-1, -2) if self.x_transposed else x
        rows[...] = self._broadcast(x, self.x_shape).reshape(rows.shape)

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """Return values of the columns, [N] or [1], as [1, n]."""
        return np.broadcast_to(values, (1, self.n))

    def write_columns(self, b: np.ndarray, columns: np.ndarray) -> None:
        """Write the columns of B to ``columns`` [inferences * count, n, k]."""
        b = b if self.b_transposed else b.swapaxes(-1, -2)
        whole = b.reshape(-1, *b.shape[-2:]) if self._folds else self._broadcast(b, self.b_shape)
        columns[...] = whole.reshape(columns.shape)

    def outputs(self, results: np.ndarray) -> np.ndarray:
        """Return y as [..., M, N] from the results."""
        return results

    def arrange(self, y: np.ndarray) -> np.ndarray:
        """Return y."""
        return y

    def _broadcast(self, values, shape):
        """Return values [inferences, ...] with the batch axes of the product."""
        lead = self._lead
        added = (1,) * (len(lead) - len(shape) + 2)
        values = values.reshape(len(values), *added, *values.shape[1:])
        return np.broadcast_to(values, (len(values), *lead, *values.shape[-2:]))


def candidates(gemm: Gemm, x_shape, b_shape, cols: int) -> list[MatrixRows | PairRows | WindowRows]:
    """Return the ways to compute an operator on an array of ``cols`` columns.

    The first one has the weights as they are. Operators with groups of few columns have others:
    block-diagonal and Toeplitz weights, and both at once, as many as fill the columns of the array.

    Raises ModelError if the shapes of the operator do not fit together.
    """
    if gemm.weights is None:
        return [PairRows(tuple(x_shape), tuple(b_shape), gemm.x_transposed, gemm.b_transposed)]
    groups, k, n = gemm.weights.shape
    if gemm.window is None:
        depth = x_shape[-2 if gemm.x_transposed else -1] if x_shape else 0
        if groups != 1 or math.prod(x_shape) % k or gemm.x_transposed and depth != k:
            raise ModelError(f"{gemm.operator} {gemm.name}: x {x_shape} does not fit K of {k}")
        return [MatrixRows(k, n, gemm.x_transposed)]
    area = math.prod(gemm.window.kernel)
    if k % area or math.prod(x_shape) % (math.prod(gemm.window.input) * groups * (k // area)):
        raise ModelError(f"{gemm.operator} {gemm.name}: x {x_shape} does not fit K of {k}")

    def rows(together, neighbours):
        return WindowRows(
            gemm.window, gemm.layout, groups, k // area, n, together, neighbours
        )

    # Groups together: neighbours. Of equal numbers of groups, the most neighbours.
    found: dict[int, int] = {}
    if groups > 1:
        for neighbours in range(1, min(cols, gemm.window.output[1]) + 1):
            together = min(groups, cols // (n * neighbours))
            if together:
                found[together] = neighbours
    ways = [rows(together, neighbours) for together, neighbours in found.items()]
    plain = rows(1, 1)
    return [plain, *(way for way in ways if way != plain)]
