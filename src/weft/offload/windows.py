"""Convolutions as matrix products: the values under the kernel become a row of A.

``y[n, p, o] = sum(x[n, p * stride + q * dilation - padding, c] * w[q, c, o])`` over the positions q
of the kernel and the channels c of the group, in this order: q in row-major order, c innermost.
A position outside x, or between dilated values, has the value +0 and takes part in the sum.
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """How a kernel moves over a map, in any number of dimensions.

    Attributes
    ----------
    strides : tuple of int
    padding : tuple of (int, int)
        Positions before and after each dimension; negative: that many are left out.
    x_dilation : tuple of int
        Distance of the values of x: above 1 there are zeros between them.
    w_dilation : tuple of int
        Distance of the values of the kernel.
    groups : int
        Groups of the channels of x and of the results.
    batch_groups : int
        Groups of the images of x and of the channels of the results: the channels of group g are
        computed from the images of group g.
    """

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    x_dilation: tuple[int, ...]
    w_dilation: tuple[int, ...]
    groups: int = 1
    batch_groups: int = 1

    def size(self, x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The positions of the kernel along each dimension.

        ``x_shape`` is [N, positions..., C] and ``w_shape`` is [positions..., C / groups, O].
        """
        rest = zip(
            x_shape[1:-1], w_shape[:-2], self.strides, self.padding, self.x_dilation,
            self.w_dilation, strict=True,
        )
        return tuple(
            max(0, (spread(size, x_gap) + sum(pad) - spread(kernel, w_gap)) // stride + 1)
            for size, kernel, stride, pad, x_gap, w_gap in rest
        )

    def shape(
        self, x_shape: tuple[int, ...], w_shape: tuple[int, ...]
    ) -> tuple[int, int, int, int]:
        """The products as (count, m, k, n); see `size` for the arguments."""
        count = self.groups * self.batch_groups
        m = x_shape[0] // self.batch_groups * math.prod(self.size(x_shape, w_shape))
        return count, m, math.prod(w_shape[:-1]), w_shape[-1] // count

    def spread_map(self, x: np.ndarray) -> np.ndarray:
        """x [N, positions..., C] with zeros between its values and around them."""
        if all(gap == 1 for gap in self.x_dilation) and not any(map(any, self.padding)):
            return x
        size = [spread(s, gap) for s, gap in zip(x.shape[1:-1], self.x_dilation, strict=True)]
        whole = [max(0, s + low + high) for s, (low, high) in zip(size, self.padding, strict=True)]
        wide = np.zeros((x.shape[0], *whole, x.shape[-1]), x.dtype)
        target, source = [slice(None)], [slice(None)]
        for length, gap, (low, _), end in zip(
            x.shape[1:-1], self.x_dilation, self.padding, whole, strict=True
        ):
            first = max(0, -(low // gap))  # the first value that is not left out
            last = min(length, (end - low - 1) // gap + 1)
            source.append(slice(first, max(first, last)))
            target.append(slice(low + first * gap, max(0, low + last * gap), gap))
            if last <= first:
                target[-1] = slice(0, 0)
        wide[tuple(target)] = x[tuple(source)]
        return wide

    def write_rows(self, rows: np.ndarray, wide: np.ndarray, w_shape: tuple[int, ...]) -> None:
        """Write A: ``rows`` [count, m, k], from some images of a map of `spread_map`."""
        kernel = w_shape[:-2]
        dims = len(kernel)
        reach = tuple(spread(size, gap) for size, gap in zip(kernel, self.w_dilation, strict=True))
        seen = np.lib.stride_tricks.sliding_window_view(wide, reach, tuple(range(1, dims + 1)))
        steps = [slice(None, None, step) for step in self.strides]
        gaps = [slice(None, None, gap) for gap in self.w_dilation]
        seen = seen[(slice(None), *steps, slice(None), *gaps)]
        # images, positions, channels, kernel -> batch group, group, images, positions, kernel, ...
        out = seen.shape[1 : dims + 1]
        seen = seen.reshape(
            self.batch_groups, -1, *out, self.groups, wide.shape[-1] // self.groups, *kernel
        )
        group, channel = dims + 2, dims + 3
        places = tuple(range(2, dims + 2))
        seen = seen.transpose(0, group, 1, *places, *range(channel + 1, seen.ndim), channel)
        rows.reshape(seen.shape)[...] = seen

    def columns(self, w: np.ndarray) -> np.ndarray:
        """B^T [count, n, k] of a kernel [positions..., C / groups, O]."""
        count = self.groups * self.batch_groups
        return w.reshape(-1, count, w.shape[-1] // count).transpose(1, 2, 0)

    def results(self, y: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        """[N, positions..., O] of the products [count, m, n]."""
        count, m, n = y.shape
        images = m // math.prod(size)
        return np.moveaxis(y.reshape(count, images, *size, n), 0, -2).reshape(images, *size, -1)


def spread(size: int, gap: int) -> int:
    """The positions from the first to the last of ``size`` values with distance ``gap``."""
    return max(0, (size - 1) * gap + 1) if size else 0
