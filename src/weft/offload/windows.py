"""Convolutions as matrix products: the values under the kernel become a row of A.

``y[n, p, o] = sum(x[n, p * stride + q * dilation - padding, c] * w[q, c, o])`` over the positions q
of the kernel and the channels c of the group, in this order: q in row-major order, c innermost.
A position outside x has the value +0 and takes part in the sum.

In a map with zeros between its values, as in the gradient of a convolution with strides, these
zeros take no part in the sum. Results that read the same positions of the kernel are one product,
a `Phase`; a result that reads none is +0.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Patches", "Phase", "Window"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """How a kernel moves over a map, in any number of dimensions.

    The methods take the shapes of a map [N, positions..., C] and of a kernel
    [positions..., C / groups, O].

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

    def size(self, x_shape: Shape, w_shape: Shape) -> tuple[int, ...]:
        """The positions of the kernel along each dimension."""
        rest = zip(
            x_shape[1:-1], w_shape[:-2], self.strides, self.padding, self.x_dilation,
            self.w_dilation, strict=True,
        )
        return tuple(
            max(0, (spread(size, x_gap) + sum(pad) - spread(kernel, w_gap)) // stride + 1)
            for size, kernel, stride, pad, x_gap, w_gap in rest
        )

    def phases(self, x_shape: Shape, w_shape: Shape) -> "tuple[Phase, ...]":
        """The products; a window without a dilation of x has one, or none if it has no results."""
        return _phases(self, tuple(x_shape), tuple(w_shape))

    def products(self, x_shape: Shape, w_shape: Shape) -> tuple[tuple[int, int, int, int], ...]:
        """The products as (count, m, k, n)."""
        return tuple(phase.shape for phase in self.phases(x_shape, w_shape))


@dataclass(frozen=True, eq=False)  # compared by identity: the same window returns the same phases
class Phase:
    """Results that read the same positions of the kernel.

    Attributes
    ----------
    shape : (int, int, int, int)
        The products: count, m, k and n.
    size : tuple of int
        The number of results along each dimension.
    results, kernel : tuple of slice
        Their positions, and the positions of the kernel that they read.
    taps : tuple of int
        The number of these positions of the kernel.
    strides, gaps : tuple of int
        Distances in x, of results and of positions of the kernel.
    padding : tuple of (int, int)
        Positions before and after each dimension of x; negative: that many are left out.
    groups, batch_groups : int
        As those of the `Window`.
    """

    shape: tuple[int, int, int, int]
    size: tuple[int, ...]
    results: tuple[slice, ...]
    kernel: tuple[slice, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    gaps: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int
    batch_groups: int

    def patches(self, x_shape: Shape, dtype) -> "Patches":
        """The values under the kernel of some images of x [N, positions..., C]."""
        return Patches(self, x_shape, dtype)

    def columns(self, w: np.ndarray) -> np.ndarray:
        """B^T [count, n, k] of a kernel [positions..., C / groups, O]."""
        count, _, k, n = self.shape
        return w[self.kernel].reshape(k, count, n).transpose(1, 2, 0)

    def unfolded(self, y: np.ndarray) -> np.ndarray:
        """[N, positions..., O] of the products [count, m, n]."""
        count, m, n = y.shape
        images = m // math.prod(self.size)
        y = y.reshape(count, images, -1, n).transpose(1, 2, 0, 3)
        return y.reshape(images, *self.size, -1)


class Patches:
    """A map with zeros around its values, which can be written again and again.

    Parameters
    ----------
    phase : Phase
    x_shape : tuple of int
        Of some images: [N, positions..., C].
    dtype : numpy.dtype

    Attributes
    ----------
    rows : array
        A: the values under the kernel; its axes together are [count, m, k].
    nbytes : int
        Bytes of the map.
    """

    def __init__(self, phase: Phase, x_shape: Shape, dtype):
        target, source, sizes = [slice(None)], [slice(None)], []
        for length, (low, high) in zip(x_shape[1:-1], phase.padding, strict=True):
            sizes.append(max(0, length + low + high))
            first = max(0, -low)
            count = max(0, min(length, length + high) - first)
            source.append(slice(first, first + count))
            target.append(slice(max(0, low), max(0, low) + count))
        images, channels = x_shape[0], x_shape[-1]
        whole = np.zeros((images, *sizes, channels), dtype)
        self.nbytes = whole.nbytes
        self._source, self._inside = tuple(source), whole[tuple(target)]
        of_image, *along, of_channel = whole.strides
        groups, parts = phase.batch_groups, phase.groups
        self.rows = np.lib.stride_tricks.as_strided(
            whole,
            (groups, parts, images // groups, *phase.size, *phase.taps, channels // parts),
            (
                of_image * (images // groups), of_channel * (channels // parts), of_image,
                *(step * stride for step, stride in zip(phase.strides, along, strict=True)),
                *(gap * stride for gap, stride in zip(phase.gaps, along, strict=True)),
                of_channel,
            ),
            writeable=False,
        )

    def write(self, x: np.ndarray) -> None:
        """Write the values of x."""
        self._inside[...] = x[self._source]


def spread(size: int, gap: int) -> int:
    """The positions from the first to the last of ``size`` values with distance ``gap``."""
    return max(0, (size - 1) * gap + 1) if size else 0


@functools.lru_cache(256)
def _phases(window, x_shape, w_shape):
    axes = zip(
        x_shape[1:-1], w_shape[:-2], window.size(x_shape, w_shape), window.strides,
        window.padding, window.x_dilation, window.w_dilation, strict=True,
    )
    images, count = x_shape[0] // window.batch_groups, window.groups * window.batch_groups
    phases = []
    for parts in itertools.product(*(_along(*axis) for axis in axes)):
        fields = [tuple(part[place] for part in parts) for place in range(7)]
        size, taps = fields[0], fields[3]
        shape = (
            count, images * math.prod(size), math.prod(taps) * w_shape[-2], w_shape[-1] // count
        )
        phases.append(Phase(shape, *fields, window.groups, window.batch_groups))
    return tuple(phases)


def _along(length, kernel, results, stride, padding, x_gap, w_gap):
    """The fields of the phases along one dimension, from ``size`` to ``padding``.

    Result p reads position ``p * stride + q * w_gap - low`` of the map with its zeros, for each q.
    It is a value of x if ``x_gap`` divides it.
    """
    low, _ = padding
    every = x_gap // math.gcd(x_gap, stride)  # results of one phase
    step = x_gap // math.gcd(x_gap, w_gap)  # positions of the kernel that they read
    for first in range(min(every, results)):
        begin = next(
            (q for q in range(min(step, kernel)) if not (first * stride + q * w_gap - low) % x_gap),
            None,
        )
        if begin is None:
            continue
        size, taps = -(-(results - first) // every), -(-(kernel - begin) // step)
        distance, gap = every * stride // x_gap, step * w_gap // x_gap
        before = -((first * stride + begin * w_gap - low) // x_gap)
        after = (size - 1) * distance + spread(taps, gap) - length - before
        yield (
            size, slice(first, None, every), slice(begin, None, step), taps, distance, gap,
            (before, after),
        )
