"""Random layers of networks on the chip, and their results by direct convolution."""

from dataclasses import dataclass

import numpy as np

from weft.golden import requantize, scaled

__all__ = ["NetworkCoreLayer", "LayerAddition", "random_layer", "scaling"]


def scaling(mode, multiplier, shift) -> dict:
    """The arguments of `weft.golden.scaled` for multipliers and shifts: in ``onnx``, one scale."""
    if mode != "onnx":
        return {"mode": mode, "multiplier": multiplier, "shift": shift}
    scale = np.asarray(multiplier) * 2.0 ** (np.asarray(shift) - 31)
    # A core knows no 0; a result of the smallest normal number is always 0.
    least = np.finfo(np.float32).smallest_normal
    return {"mode": mode, "scale": np.maximum(scale.astype(np.float32), least)}


@dataclass(frozen=True, kw_only=True)
class LayerAddition:
    """The map that ADD adds to a layer.

    Attributes
    ----------
    x : int8 [out_height, out_width, N], or None
        None if a layer before computes it.
    zero : int
    scales : three pairs of int
        Multiplier and shift of the added map, of the result and of the sum (`scaling`).
    sum_zero, low, high : int
    multiply : bool
        The map is multiplied with the result: of ``scales`` only that of the total is used.
    """

    x: np.ndarray | None
    zero: int
    scales: tuple
    sum_zero: int
    low: int
    high: int
    multiply: bool = False


@dataclass(frozen=True, kw_only=True)
class NetworkCoreLayer:
    """A convolution with its values, as mathematics: no vectors, no addresses.

    Attributes
    ----------
    x : int8 [H, W, C]
    weights : int8 [N, kernel_height, kernel_width, C / groups]
    groups : int
        N and C are divided into so many groups; C for a depthwise layer.
    bias, multiplier, shift : int [N]
        In mode ``onnx``, multiplier and shift are a scale (`scaling`).
    out : (int, int)
        Height and width of the output map.
    first, stride, dilation : (int, int)
        y and x of the first tap of the first pixel; distances of pixels, and of taps.
    outside, zero, low, high : int
    addition : LayerAddition or None
    stores_sums : bool
        The results are the bytes of the sums.
    """

    x: np.ndarray
    weights: np.ndarray
    groups: int
    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    out: tuple
    first: tuple
    stride: tuple
    dilation: tuple
    outside: int
    zero: int
    low: int
    high: int
    addition: LayerAddition | None = None
    stores_sums: bool = False

    @property
    def columns(self):
        return len(self.weights)

    @property
    def channels(self):
        """Bytes of a pixel of the output map."""
        return self.columns * (4 if self.stores_sums else 1)

    @property
    def kernel(self):
        return self.weights.shape[1:3]

    def sums(self, x=None) -> np.ndarray:
        """The sums with their biases, tap by tap; int32 [out_height, out_width, N]."""
        x = self.x if x is None else x
        y, z = (self.first[i] + np.arange(self.out[i]) * self.stride[i] for i in range(2))
        total = np.zeros((*self.out, self.columns), np.int64)
        each = self.columns // self.groups
        for ky, kx in np.ndindex(*self.kernel):
            ty, tx = y + ky * self.dilation[0], z + kx * self.dilation[1]
            inside = ((ty >= 0) & (ty < x.shape[0]))[:, None] & ((tx >= 0) & (tx < x.shape[1]))
            tap = x[ty.clip(0, x.shape[0] - 1)][:, tx.clip(0, x.shape[1] - 1)].astype(np.int64)
            tap = np.where(inside[:, :, None], tap, self.outside)
            tap = tap.reshape(*self.out, self.groups, 1, -1)
            w = self.weights[:, ky, kx].astype(np.int64).reshape(self.groups, each, -1)
            total += (tap * w).sum(-1).reshape(total.shape)
        return (total + self.bias).astype(np.int32)

    def results(self, mode, x=None, added=None) -> np.ndarray:
        """The results in a requantization mode; int8 [out_height, out_width, N].

        ``x`` and ``added`` replace the maps of the layer. With ``stores_sums``, bytes [..., 4 * N].
        """
        if self.stores_sums:
            return np.frombuffer(self.sums(x).astype("<i4").tobytes(), np.int8).reshape(
                *self.out, self.channels
            )
        y = requantize(
            self.sums(x), **scaling(mode, self.multiplier, self.shift),
            zero_point=self.zero, low=self.low, high=self.high,
        )
        add = self.addition
        if not add:
            return y
        added = add.x if added is None else added
        of_added, of_result, of_sum = (scaling(mode, *scale) for scale in add.scales)
        terms = added.astype(np.int32) - add.zero, y.astype(np.int32) - self.zero
        if add.multiply:
            total = terms[0] * terms[1]
        else:
            total = (
                scaled(terms[0] * 2**20, **of_added).astype(int)
                + scaled(terms[1] * 2**20, **of_result)
            ).astype(np.int32)
        return requantize(
            total, **of_sum, zero_point=add.sum_zero, low=add.low, high=add.high
        )


def _int8(rng, shape):
    """Random values; one array in four has extreme values only."""
    if rng.integers(4):
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.choice(np.array([-128, -127, 0, 127], np.int8), shape)


def _limits(rng):
    if rng.integers(2):
        return -128, 127
    return tuple(int(v) for v in np.sort(rng.integers(-128, 128, 2)))


def _addition(rng, shape, multiply):
    # Multipliers and shifts as TensorFlow Lite has them: scales of at most 1/2, and a sum of 2^-20;
    # a product of two bytes is divided by some 2^8.
    last = rng.integers(-9, -4) if multiply else rng.integers(-21, -17)
    scales = tuple(
        (int(rng.integers(1 << 30, 1 << 31)), int(shift))
        for shift in (*rng.integers(-4, 1, 2), last)
    )
    low, high = _limits(rng)
    return LayerAddition(
        x=_int8(rng, shape), zero=int(rng.integers(-128, 128)), scales=scales,
        sum_zero=int(rng.integers(-128, 128)), low=low, high=high, multiply=multiply,
    )


def random_layer(
    rng, *, x=None, kind=None, add=None, sums=None, multiplies=False, most_pixels=6,
    most_channels=12, most_kernel=4,
) -> NetworkCoreLayer:
    """A layer with random sizes and values.

    Parameters
    ----------
    rng : numpy Generator
    x : int8 [H, W, C], optional
        The input map; a random one if absent.
    kind : str, optional
        "conv", "depthwise" or "point" (kernel 1 x 1, a pixel for each pixel of the input).
    add, sums : bool, optional
    multiplies : bool
        Every second layer with ADD multiplies instead.
    most_pixels, most_channels, most_kernel : int
        Upper limits of the height and the width of maps, of channels, and of a kernel's sides.
    """
    kind = kind or rng.choice(["conv", "conv", "depthwise", "point"])
    add = bool(rng.integers(3) == 0) if add is None else add
    if x is None:
        height, width = rng.integers(1, most_pixels + 1, 2)
        x = _int8(rng, (height, width, rng.integers(1, most_channels + 1)))
    height, width, channels = x.shape
    columns = channels if kind == "depthwise" else int(rng.integers(1, most_channels + 1))
    groups = channels if kind == "depthwise" else 1
    if kind == "point":
        kernel, stride, dilation, first, out = (1, 1), (1, 1), (1, 1), (0, 0), (height, width)
    else:
        kernel = tuple(int(v) for v in rng.integers(1, most_kernel + 1, 2))
        stride = tuple(int(v) for v in rng.choice([1, 1, 2, 3, 5], 2))
        dilation = tuple(int(v) for v in rng.choice([1, 1, 2, 3], 2))
        first = tuple(int(v) for v in rng.integers(-4, 2, 2))
        if rng.integers(8) == 0:  # one row and one column of taps are near the map
            dilation = tuple(int(v) for v in rng.choice([9, 50, 255], 2))
            first = tuple(
                int(v - d * rng.integers(k))
                for v, d, k in zip(first, dilation, kernel, strict=True)
            )
        out = tuple(int(v) for v in rng.integers(1, most_pixels + 1, 2))
    k = kernel[0] * kernel[1] * channels // groups
    shift = -(int(k).bit_length() // 2 + 6) + rng.integers(-1, 2, columns)
    multiplier = rng.integers(1 << 30, 1 << 31, columns)
    if rng.integers(8) == 0:  # extreme scales
        shift = rng.integers(-31, 8, columns)
        multiplier = rng.choice([0, 1 << 30, (1 << 31) - 1], columns)
    low, high = _limits(rng)
    if sums is None:  # their bytes are the channels of the next layer
        sums = not add and columns <= most_channels and rng.integers(4) == 0
    multiply = bool(add and multiplies and rng.integers(2))
    return NetworkCoreLayer(
        x=x, weights=_int8(rng, (columns, *kernel, channels // groups)), groups=groups,
        bias=rng.integers(-1000 * k, 1000 * k, columns), multiplier=multiplier, shift=shift,
        out=out, first=first, stride=stride, dilation=dilation,
        outside=int(rng.integers(-128, 128)), zero=int(rng.integers(-128, 128)),
        low=low, high=high, addition=_addition(rng, (*out, columns), multiply) if add else None,
        stores_sums=bool(sums),
    )
