"""Conversion of sums to quantized results on the host, bit for bit as the runtimes do."""

from dataclasses import dataclass

import numpy as np

from weft.golden import scaled
from weft.host.packing import ENTRY
from weft.models.ir import Requantization
from weft.models.kernels.fixed_point import multiply_wide
from weft.quantize import onnx_scale, tflite_scale

__all__ = ["Rescale"]

_MIN_NORMAL = np.finfo(np.float32).tiny


@dataclass(frozen=True, eq=False)
class Rescale:
    """The integers, or the float32, of a requantization, for each output channel.

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
        `weft.models.ir.Requantization.wide`.
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
    def of(cls, given: Requantization, channels: int, mode: str) -> "Rescale":
        """Convert the scales of a node by the rule of a mode.

        Raises ValueError if a scale is not valid.
        """
        scales = given.x_scale, np.asarray(given.w_scale), given.y_scale
        if mode == "onnx":
            scale = np.maximum(onnx_scale(*scales), _MIN_NORMAL)
            multiplier, shift = np.asarray(scale, np.float32).view(np.uint32), 0
        else:
            multiplier, shift = tflite_scale(*scales)
        return cls(
            mode, np.broadcast_to(multiplier, channels).astype(np.int64),
            np.broadcast_to(shift, channels).astype(np.int64), int(given.zero), int(given.low),
            int(given.high), np.dtype(given.dtype), given.wide,
        )

    def entries(self, rows, constant: np.ndarray, w_zero: np.ndarray) -> np.ndarray:
        """Return the parameters for the core: `weft.host.packing.ENTRY` [count, n].

        ``constant`` and ``w_zero`` are [count, n]; ``constant`` wraps to int32.
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
        elif self.mode == "onnx":
            scale = self.multiplier.astype(np.uint32).view(np.float32)
            whole = scaled(sums.astype(np.int32), scale=scale, mode=self.mode)
        else:
            whole = scaled(sums.astype(np.int32), self.multiplier, self.shift, mode=self.mode)
        whole = whole.astype(np.int64) + self.zero
        return np.clip(whole, self.low, self.high).astype(self.dtype)
