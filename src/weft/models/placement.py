"""Decides where a product runs, and which part of it the host must compute."""

from dataclasses import dataclass

import numpy as np

from weft.config import Config
from weft.models.arithmetic import shifted_zero
from weft.models.ir import Gemm, Tensor

__all__ = ["Decision", "decide", "mode_of"]

_MAX_K = 131_071  # largest K for which all sums of int8 products fit int32


@dataclass(frozen=True)
class Decision:
    """Where a product runs.

    Attributes
    ----------
    on_weft : bool
        Whether the core computes the products.
    requantizes : bool
        Whether the core converts the sums, too.
    reason, field : str
        As in `weft.models.program.Placement`.
    """

    on_weft: bool
    requantizes: bool = False
    reason: str = ""
    field: str = ""


def mode_of(source: str, config: Config) -> str:
    """Return the rounding mode of a network on a Config.

    TFLite's runtimes have two, and the Config decides; ONNX has one.
    """
    if source == "onnx":
        return "onnx"
    return config.requantize if config.requantize in ("tflite", "single") else "tflite"


def decide(gemm: Gemm, tensors: tuple[Tensor, ...], config: Config, mode: str) -> Decision:
    """Decide where a product runs."""
    x = tensors[gemm.x].dtype
    b = gemm.weights.dtype if gemm.b is None else tensors[gemm.b].dtype
    wanted = "bf16" if x == np.float32 else "int8"
    if wanted != config.dtype:
        return Decision(False, reason=f"{x} product", field=f"dtype={wanted}")
    if x == np.float32:
        return _float(gemm, config)
    if b == np.int16:
        return Decision(False, reason="both operands are int16")
    if x == np.int16 and gemm.weights is not None and gemm.weights.shape[1] > _MAX_K:
        return Decision(False, reason=f"int16 product with K over {_MAX_K}")
    given = gemm.requantization
    if given is None:
        return Decision(True)
    if given.dtype == np.int16:
        return Decision(
            True, reason="int16 results: the host requantizes sums of two products"
        )
    if config.requantize != mode:
        return Decision(
            True, reason=f"requantization in mode {mode}: the host converts raw sums",
            field=f"requantize={mode}",
        )
    if np.any(shifted_zero(gemm.w_zero, b)) and config.b_zero_point == "none":
        operand = "weights have zero points" if gemm.b is None else "operand B has a zero point"
        return Decision(
            True, reason=f"{operand}: the host corrects raw sums",
            field="b_zero_point=column",
        )
    return Decision(True, requantizes=True)


def _float(gemm, config):
    if gemm.bias is not None and not config.c_words:
        return Decision(True, reason="the host adds the bias", field="c_words=1024")
    if gemm.activation != "none" and config.activation != "clamp":
        return Decision(
            True, reason=f"the host computes {gemm.activation}", field="activation=clamp"
        )
    return Decision(True)
