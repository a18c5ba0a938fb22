"""Convolutions and matrix products as layers of a network core.

A first layer of few channels reads blocks of pixels as pixels of many channels.
"""

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np

from weft.models.arithmetic import Rescale
from weft.models.ir import Gemm, Tensor, Window
from weft.models.network_core.layers import InputForm, Refusal, WeightLayout, WrongMap
from weft.models.network_core.pools import NO_PADDING
from weft.models.network_core.wide_maps import (
    INT16,
    NO_INT16,
    PairGemm,
    pair_scales,
    pair_zeros,
)

__all__ = [
    "NetworkCoreProduct", "best_block", "half_of", "narrow", "product_of", "space_to_depth",
    "weights_of",
]


def best_block(window: Window, channels: int, depth: int) -> tuple[int, int]:
    """Return the block, height and width, with the fewest array steps; (1, 1) is no block.

    Height and width divide the stride. A step multiplies ``depth`` channels of a block.
    """
    def steps(block):
        taps = math.prod(-(-k // b) for k, b in zip(window.kernel, block, strict=True))
        return taps * -(-math.prod(block) * channels // depth), math.prod(block)

    divisors = ([b for b in range(1, s + 1) if s % b == 0] for s in window.stride)
    return min(itertools.product(*divisors), key=steps)


def space_to_depth(
    window: Window, form: InputForm, weights: np.ndarray, fill: int, block: tuple[int, int]
) -> tuple[Window, InputForm, np.ndarray]:
    """Return window, input and weights with blocks of pixels as pixels.

    With e = padding mod block, block Y holds rows ``Y * block - e`` and following. The kernel is
    ``ceil(kernel / block)`` blocks, the map ``ceil((input + e) / block)`` blocks, the stride
    ``stride / block`` blocks. Weights that no tap of the kernel has are 0.

    Parameters
    ----------
    window : Window
        Without dilation and spread.
    form : InputForm
        Of single pixels.
    weights : array [taps, channels, columns]
    fill : int
        Value of the pixels of blocks that lie outside the map.
    block : (int, int)
        Height and width, which divide the stride.
    """
    (by, bx), (top, _, left, _) = block, window.padding
    (ky, kx), (_, channels, columns) = window.kernel, weights.shape
    kernel = -(-ky // by), -(-kx // bx)
    form = dataclasses.replace(form, block=block, offset=(top % by, left % bx), fill=fill)
    height, width, _ = form.map_size
    blocks = dataclasses.replace(
        # The core reads no padding at the bottom and at the right: ``output`` ends the window.
        window, stride=(window.stride[0] // by, window.stride[1] // bx),
        padding=(top // by, 0, left // bx, 0), kernel=kernel, input=(height, width),
    )
    whole = np.zeros((kernel[0] * by, kernel[1] * bx, channels, columns), weights.dtype)
    whole[:ky, :kx] = weights.reshape(ky, kx, channels, columns)
    whole = whole.reshape(kernel[0], by, kernel[1], bx, channels, columns)
    whole = whole.transpose(0, 2, 1, 3, 4, 5)
    return blocks, form, whole.reshape(math.prod(kernel), by * bx * channels, columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkCoreProduct:
    """The part of a `NetworkLayer` that a Gemm defines.

    Attributes
    ----------
    size : (int, int, int)
        Height, width and channels of the map that it reads.
    form : InputForm or None
        If the host writes this map.
    copies : int
        So often the layer reads each pixel: the window is over a map with as many copies of each
        one, side by side.
    window, layout, groups, weights, x_zero, bias, multiplier, shift, zero, low, high, digits,
    reads_pairs
        As in `NetworkLayer`.
    """

    size: tuple[int, int, int]
    form: InputForm | None
    copies: int
    window: Window
    layout: str
    groups: int
    weights: np.ndarray
    x_zero: int
    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    zero: int
    low: int
    high: int
    digits: str
    reads_pairs: bool


def weights_of(gemm: Gemm) -> int:
    """Return the number of weights of an operator."""
    given = gemm.whole if isinstance(gemm, PairGemm) else gemm
    assert given.weights is not None
    return given.weights.size


def half_of(dtype: np.dtype) -> int:
    """Return what the host subtracts from values of a type: 128 from uint8, else 0."""
    return 128 if dtype == np.uint8 else 0


def product_of(
    gemm: Gemm, tensors: tuple[Tensor, ...], mode: str, cols: int, depth: int,
    stored: tuple[int, int, int] | None,
) -> NetworkCoreProduct:
    """Return the layer of a Gemm.

    Parameters
    ----------
    stored : (int, int, int) or None
        Size of the map on the core that has x; None if the host writes x.

    Raises
    ------
    Refusal
        If the core cannot compute it; WrongMap if it can when the host writes x (``stored`` None).
    """
    x, given = tensors[gemm.x], gemm.requantization
    pairs = isinstance(gemm, PairGemm)
    _check(gemm, x, pairs, mode)
    weights = _centred(gemm)
    x_zero = gemm.x_zero - half_of(x.dtype)
    window, size = _window(gemm, x, stored)
    taps = math.prod(window.kernel)
    if weights.shape[0] * weights.shape[1] != taps * size[2]:
        raise Refusal(f"K must be {taps} taps of {size[2]} channels, not {weights.shape}")
    layout, groups, weights = _arranged(weights, taps, cols, depth)
    form = None
    if stored is None:
        planes = gemm.window is not None and x.channels_first
        form = InputForm(gemm.x, *size, channels_first=planes)
        dense = layout == WeightLayout.DENSE and groups == 1
        block = best_block(window, size[2], depth)
        if dense and window.dilation == (1, 1) and block != (1, 1):
            window, form, weights = space_to_depth(window, form, weights, x_zero, block)
            size = form.map_size
        form = dataclasses.replace(form, pairs=pairs)
    total = weights.sum((0, 1) if weights.ndim == 3 else 0, dtype=np.int64)
    window, copies, weights = narrow(window, weights)
    columns = weights.shape[-1]
    bias = np.zeros(columns, np.int64) if gemm.bias is None else gemm.bias.astype(np.int64)
    y_half = half_of(np.dtype(given.dtype))
    if isinstance(gemm, PairGemm):
        scale = pair_scales(gemm, mode)
        bias = bias - pair_zeros(columns) * total
    else:
        rescale = Rescale.of(given, columns, mode)
        scale = rescale.multiplier, rescale.shift
        bias = bias - x_zero * total
    return NetworkCoreProduct(
        size=size, form=form, copies=copies, window=window, layout=layout, groups=groups,
        weights=weights, x_zero=x_zero, bias=bias, multiplier=scale[0], shift=scale[1],
        zero=int(given.zero) - y_half, low=int(given.low) - y_half, high=int(given.high) - y_half,
        digits="pairs" if pairs else "", reads_pairs=pairs,
    )


def _check(gemm, x, pairs, mode):
    """Raise Refusal for a Gemm with properties that the core lacks."""
    given = gemm.requantization
    if gemm.weights is None:
        raise Refusal("its second operand is computed, and B has constant weights")
    if x.dtype not in (np.int8, np.uint8):
        raise Refusal(
            NO_INT16 if x.dtype == INT16 and mode == "tflite"
            else f"its input must be of 8 bits, not {x.dtype}"
        )
    if given is None or not pairs and np.dtype(given.dtype) not in (np.int8, np.uint8):
        raise Refusal("its results must be of 8 bits")
    if gemm.x_transposed or gemm.layout != "NHWC":
        raise Refusal("its channels must be the last axis")
    if gemm.table is not None:
        raise Refusal("its activation is a table")


def _centred(gemm):
    """Return the weights without their zero points, of up to 9 bits: int16 [groups, K, N]."""
    groups, _, n = gemm.weights.shape
    zero = np.broadcast_to(gemm.w_zero, groups * n).reshape(groups, 1, n)
    weights = gemm.weights.astype(np.int64) - zero
    if weights.min() < -255 or weights.max() > 255:
        raise Refusal(
            "weights minus their zero points must be in -255..255,"
            f" not in {weights.min()}..{weights.max()}"
        )
    return weights.astype(np.int16)


def narrow(window: Window, weights: np.ndarray) -> tuple[Window, int, np.ndarray]:
    """Return a window, copies of each pixel, and weights in int8 with the same sums.

    Weights of 9 bits are sums of two or three weights, each for a tap of its own on the same pixel.
    An axis of the kernel with one tap has these taps. Without such an axis they read copies.
    """
    low, high = int(weights.min()), int(weights.max())
    count = max(-(-low // -128), -(-high // 127), 1)
    if count == 1:
        return window, 1, weights.astype(np.int8)
    parts = np.stack([(weights + part) // count for part in range(count)]).astype(np.int8)
    (rows, columns), (stride_y, stride_x) = window.kernel, window.stride
    if rows == 1:
        window = dataclasses.replace(
            window, kernel=(count, columns), dilation=(0, window.dilation[1])
        )
        return window, 1, parts.reshape(-1, *weights.shape[1:])
    parts = parts.swapaxes(0, 1).reshape(-1, *weights.shape[1:])  # beside each other
    if columns == 1:
        window = dataclasses.replace(
            window, kernel=(rows, count), dilation=(window.dilation[0], 0)
        )
        return window, 1, parts
    if window.dilation[1] > 1:
        raise Refusal("a kernel with weights of 9 bits must have no dilation of its columns")
    top, bottom, left, right = window.padding
    window = dataclasses.replace(
        window, kernel=(rows, columns * count), stride=(stride_y, stride_x * count),
        padding=(top, bottom, left * count, right * count),
        input=(window.input[0], window.input[1] * count),
    )
    return window, count, parts


def _window(gemm, x, stored):
    """Return the window over the stored map, and the size of this map."""
    k = gemm.weights.shape[1]
    if gemm.window is not None:
        channels = gemm.weights.shape[0] * (k // math.prod(gemm.window.kernel))
        size = (*gemm.window.input, channels)
        if math.prod(x.shape) != math.prod(size):
            raise Refusal("its input must be one map, not a batch")
        if stored is not None and stored != size:
            raise WrongMap(f"its input must be a map of {size}, not of {stored}")
        return gemm.window, size
    m = math.prod(x.shape) // k
    height, width, channels = stored or (1, m, k)
    if channels == k and height * width == m:
        kernel, output = (1, 1), (height, width)
    elif m == 1:
        kernel, output = (height, width), (1, 1)
    elif m == height and width * channels == k:
        kernel, output = (1, width), (height, 1)
    else:
        raise WrongMap(f"M must be the pixels or the rows of a map of {stored}, not {m}")
    window = Window(kernel, (1, 1), (1, 1), NO_PADDING, (height, width), output)
    return window, (height, width, channels)


def _arranged(weights, taps, cols, depth):
    """Return the layout, the groups, and the weights [taps, ...].

    Groups that do not fill vectors and tiles become one, with zeros between them.
    """
    groups, k, n = weights.shape
    channels = k // taps
    weights = weights.reshape(groups, taps, channels, n)
    if channels == n == 1 < groups:  # depthwise
        return WeightLayout.DIAGONAL, 1, np.ascontiguousarray(weights[:, :, 0, 0].T)
    if channels % depth == 0 and n % cols == 0 and n % depth == 0:
        arranged = weights.transpose(1, 2, 0, 3).reshape(taps, channels, groups * n)
        return WeightLayout.DENSE, groups, arranged
    whole = np.zeros((taps, groups, channels, groups, n), weights.dtype)
    for group in range(groups):
        whole[:, group, :, group] = weights[group]
    return WeightLayout.DENSE, 1, whole.reshape(taps, groups * channels, groups * n)
