"""`Layer`, a fully connected layer in INT8."""

from dataclasses import dataclass

import numpy as np

from weft.demo.arrays import require_arrays
from weft.demo.run import Runnable
from weft.golden import add_bias, requantize

__all__ = ["Layer"]

_TYPES = {
    "weights": np.int8, "bias": np.int32, "multiplier": np.int32, "shift": np.int32,
    "w_scale": np.float32, "float_weights": np.float32, "float_bias": np.float32,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer(Runnable):
    """``y = clamp(requantize((x - x_zero_point) @ weights.T + bias) + y_zero_point, low, high)``.

    Quantized as TFLite does: weights symmetric and per output channel, activations asymmetric.

    Attributes
    ----------
    name : str
    weights : int8 [N, K]
    bias : int32 [N]
        In units of ``x_scale * w_scale``.
    multiplier, shift : int32 [N]
        ``x_scale * w_scale / y_scale`` as ``multiplier / 2**31 * 2**shift``.
    x_zero_point, y_zero_point : int
    low, high : int
        The limits of the clamp, in int8; a fused ReLU has ``low = y_zero_point``.
    x_scale, y_scale : float
        The real value of one step of x, of y.
    w_scale : float32 [N]
        The real value of one step of the weights.
    float_weights, float_bias : float32 [N, K], [N]
        The layer before quantization.

    Raises
    ------
    TypeError, ValueError
        If an attribute has a wrong type, shape or value.
    """

    name: str
    weights: np.ndarray
    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    x_zero_point: int
    y_zero_point: int
    low: int
    high: int
    x_scale: float
    y_scale: float
    w_scale: np.ndarray
    float_weights: np.ndarray
    float_bias: np.ndarray

    def __post_init__(self):
        require_arrays(self, _TYPES)
        for name in ("x_zero_point", "y_zero_point", "low", "high"):
            value = getattr(self, name)
            if not -128 <= value <= 127:
                raise ValueError(f"{name} must be in -128..127, not {value}")
        for name in ("x_scale", "y_scale", "w_scale"):
            value = np.ravel(getattr(self, name))
            valid = (value > 0) & np.isfinite(value)
            if not valid.all():
                raise ValueError(f"{name} must be positive and finite, not {value[~valid][0]}")
        # This checks multiplier, shift, low and high.
        self.finish(np.zeros((1, self.n), np.int32))

    def finish(self, sums) -> np.ndarray:
        """Output, int8 [M, N], from raw sums, int32 [M, N]: bias, requantization, clamp."""
        acc = add_bias(sums, self.bias)
        return requantize(
            acc, self.multiplier, self.shift, zero_point=self.y_zero_point, low=self.low,
            high=self.high,
        )

    @staticmethod
    def on_chip(config) -> bool:
        """Whether ``Config.requantize`` is ``tflite``."""
        return config.requantize == "tflite"

    def arguments(self, *, on_chip) -> dict:
        """Further arguments of `weft.Accelerator.matmul`; ``on_chip``: for the whole layer."""
        arguments = {"a_zero_point": self.x_zero_point}
        if on_chip:
            arguments |= {
                "bias": self.bias, "multiplier": self.multiplier, "shift": self.shift,
                "zero_point": self.y_zero_point, "low": self.low, "high": self.high,
            }
        return arguments

    def run_float(self, x, relu) -> np.ndarray:
        """``x @ float_weights.T + float_bias``, then ReLU if ``relu``: the unquantized layer."""
        y = x @ self.float_weights.T + self.float_bias
        return np.maximum(y, 0) if relu else y
