"""Operands as the core has them, and what follows a product: zero points, bias, rescaling.

In shapes, ``count`` is the number of products A[m, k] x B[k, n] that an operator becomes
(`weft.models.lowering`). int64 [count or 1, n] is the same for all products if it has one row.
"""

from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from weft.golden import scaled
from weft.host.packing import ENTRY, HALF, scale_bits, signed
from weft.models.ir import Requantization
from weft.models.kernels.fixed_point import multiply_wide
from weft.quantize import onnx_scale, quantize_multiplier, tflite_scale

__all__ = [
    "FloatFinish", "IntegerFinish", "Rescale", "core_parts", "host_operand", "lane_parameters",
    "lane_results", "shifted_zero",
]

@dataclass(frozen=True, eq=False)
class Rescale:
    """The integers, or the float32, of a requantization, for each output channel.

    ::

        y = clip(round(sum * multiplier * 2**(shift - 31)) + zero, low, high)

    `weft.golden.requantize.scaled` tells how each mode rounds, and the scale of mode ``onnx``.

    Attributes
    ----------
    mode : str
        ``tflite``, ``single`` or ``onnx``.
    multiplier : int64 [channels]
        In mode ``onnx`` the bits of a float32 scale.
    shift : int64 [channels]
    zero, low, high : int
        Zero point and limits of the results.
    dtype : numpy.dtype
        int8, uint8 or int16.
    wide : bool
        As of `weft.models.ir.Requantization`.
    """

    mode: str
    multiplier: np.ndarray
    shift: np.ndarray
    zero: int
    low: int
    high: int
    dtype: np.dtype
    wide: bool = False

    @classmethod
    def of(cls, requantization: Requantization, channels: int, mode: str) -> "Rescale":
        """Convert the scales of a node by the rule of a mode.

        Raises ValueError if a scale is not valid.
        """
        scales = requantization.x_scale, np.asarray(requantization.w_scale), requantization.y_scale
        if mode == "onnx":
            multiplier, shift = scale_bits(onnx_scale(*scales)), 0
        else:
            multiplier, shift = tflite_scale(*scales)
        return cls(
            mode, np.broadcast_to(multiplier, channels).astype(np.int64),
            np.broadcast_to(shift, channels).astype(np.int64), int(requantization.zero),
            int(requantization.low), int(requantization.high), np.dtype(requantization.dtype),
            requantization.wide,
        )

    def entries(self, rows, constant: np.ndarray, w_zero: np.ndarray) -> np.ndarray:
        """Return the parameters for the core: `weft.host.packing.ENTRY` [count, n].

        ``rows`` is the lowering of the operator (`weft.models.lowering`), which gives each column
        of B its channel. ``constant`` and ``w_zero`` are [count, n]; ``constant`` wraps to int32.
        """
        entries = np.zeros(constant.shape, ENTRY)
        entries["bias"] = constant.astype(np.int32)
        entries["multiplier"] = rows.by_columns(self.multiplier)
        entries["shift"] = rows.by_columns(self.shift)
        entries["b_zero"] = w_zero
        for name in ("zero", "low", "high"):
            entries[name] = getattr(self, name)
        return entries

    def apply(self, sums: np.ndarray) -> np.ndarray:
        """Return the results of int64 sums [..., channels]; unless `wide`, they wrap to int32."""
        if self.wide:
            whole = multiply_wide(sums, self.multiplier, self.shift)
        else:
            whole = lane_results(sums.astype(np.int32), self.multiplier, self.shift, self.mode)
        whole = whole.astype(np.int64) + self.zero
        return np.clip(whole, self.low, self.high).astype(self.dtype)


def lane_parameters(scale: float, mode: str) -> tuple[int, int]:
    """Return multiplier and shift of a scale above 0, as the lanes of a core have them.

    In mode ``onnx`` the multiplier has the bits of a normal float32, and the shift is 0.
    """
    if mode == "onnx":
        return int(scale_bits(np.float32(scale))), 0
    multiplier, shift = quantize_multiplier(scale)
    return int(multiplier), int(shift)


def lane_results(sums: np.ndarray, multiplier, shift, mode: str) -> np.ndarray:
    """Return int32 ``sums`` as the lanes of a core scale and round them, before the zero point."""
    if mode == "onnx":
        scale = np.asarray(multiplier).astype(np.uint32).view(np.float32)
        return scaled(sums, scale=scale, mode=mode)
    return scaled(sums, multiplier, shift, mode=mode)


def core_parts(x: np.ndarray) -> list[np.ndarray]:
    """Return the operands of the core for the values of an operator.

    ==========  =============================================================
    x           operands
    ==========  =============================================================
    int8        x
    uint8       x - 128, as int8
    int16       ``x >> 8``, and ``(x & 255) - 128``, both as int8
    float32     x rounded to bfloat16
    ==========  =============================================================
    """
    if x.dtype == np.int16:
        return [(x >> 8).astype(np.int8), signed((x & 0xFF).astype(np.uint8))]
    if x.dtype == np.float32:
        # Overflow gives infinity; a signalling NaN becomes a quiet NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            return [x.astype(bfloat16)]
    return [host_operand(x)]


def host_operand(x: np.ndarray) -> np.ndarray:
    """Return the operand of a product on the host: int8 for int8 and uint8, else x itself."""
    return signed(x) if x.dtype == np.uint8 else x


def shifted_zero(zero, dtype, *, split: bool = False):
    """Return the zero point of an operand from ``zero``, that of the operator's values.

    The operand of uint8 is 128 less than the value. So is the sum ``256 * high + low`` of the two
    `core_parts` of an int16, if it is ``split`` into them.
    """
    is_less = dtype == np.uint8 or (dtype == np.int16 and split)
    return zero - HALF if is_less else zero


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerFinish:
    """Sums with zero points and bias, and their conversion to results.

    ``raw`` are the sums of the core, of products of its operands::

        sums = raw - x_zero * column_sums - row_sums * w_zero + k * x_zero * w_zero + bias

    Attributes
    ----------
    k : int
        Products in a sum.
    x_zero : int
        Zero point of the operand A.
    w_zero : int64 [count or 1, n]
        Zero points of the columns of B.
    bias : int64 [count or 1, n]
    column_sums : int64 [count, n] or None
        Sums over the columns of B; None if B is computed.
    rescale : Rescale or None
        None: the results are the sums.
    dtype : numpy.dtype
        Type of the results; int32 sums wrap.
    """

    k: int
    x_zero: int
    w_zero: np.ndarray
    bias: np.ndarray
    column_sums: np.ndarray | None
    rescale: Rescale | None
    dtype: np.dtype

    def constant(self, columns: np.ndarray | None = None) -> np.ndarray:
        """Return the terms that are added to ``raw - row_sums * w_zero``: int64 [count, n].

        ``columns`` [count, n, k] are the columns of a computed B.
        """
        sums = self.column_sums
        if sums is None:
            count, n, _ = columns.shape
            sums = columns.sum(-1, dtype=np.int64) if self.x_zero else np.zeros((count, n), int)
        return self.bias - self.x_zero * sums + self.k * self.x_zero * self.w_zero

    def sums(
        self, raw: np.ndarray, rows: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the sums, int64 [count, m, n], from products ``raw`` of A and B.

        ``rows`` [count, m, k] is A.
        """
        total = raw + self.constant(columns)[:, None, :]
        if self.w_zero.any():
            total -= rows.sum(-1, dtype=np.int64)[..., None] * self.w_zero[:, None, :]
        return total

    def apply(self, sums: np.ndarray) -> np.ndarray:
        """Return the results from sums [..., channels]."""
        return sums.astype(self.dtype) if self.rescale is None else self.rescale.apply(sums)


@dataclass(frozen=True, eq=False)
class FloatFinish:
    """``clamp(y + bias, low, high)`` in float32.

    Attributes
    ----------
    bias : float32 [channels] or None
    low, high : float or None
    """

    bias: np.ndarray | None
    low: float | None
    high: float | None

    def apply(self, y: np.ndarray) -> np.ndarray:
        """Return the results from float32 products [..., channels]."""
        if self.bias is not None:
            y = y + self.bias
        if self.low is not None or self.high is not None:
            y = np.clip(y, self.low, self.high)
        return y
