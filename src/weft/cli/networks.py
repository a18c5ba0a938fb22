"""The network that ``weft sim`` runs for each data type, and its layers by the golden model."""

from dataclasses import dataclass

import numpy as np

from weft.dtypes import DTYPES

__all__ = ["NETWORKS", "GoldenLayer"]


@dataclass(frozen=True)
class GoldenLayer:
    """A fully connected layer for given inputs, by the golden model.

    Attributes
    ----------
    a, b : array [M, K], [K, N]
        Operands of the product.
    arguments : dict
        Further arguments of `weft.Accelerator.matmul` for what the core computes of the layer.
    product : array [M, N]
        The result of the core.
    y : array [M, N]
        The result of the layer.
    """

    a: np.ndarray
    b: np.ndarray
    arguments: dict
    product: np.ndarray
    y: np.ndarray


class _Int8Network:
    """The quantized digits network."""

    kind = "int8"

    @staticmethod
    def layer(gemm, x, program) -> GoldenLayer:
        from weft.golden import add_bias, matmul, requantize
        from weft.quantize import tflite_scale

        given, w = gemm.requantization, gemm.weights[0]
        multiplier, shift = tflite_scale(given.x_scale, given.w_scale, given.y_scale)
        scaling = dict(
            multiplier=multiplier, shift=shift, zero_point=given.zero, low=given.low,
            high=given.high,
        )
        bias = gemm.bias.astype(np.int32)
        arguments = {"a_zero_point": gemm.x_zero}
        sums = matmul(x, w, **arguments)
        y = requantize(add_bias(sums, bias), mode=program.mode, **scaling)
        if program.target.array.requantize != program.mode:
            return GoldenLayer(x, w, arguments, sums, y)
        return GoldenLayer(x, w, {**arguments, "bias": bias, **scaling}, y, y)


class _Bf16Network:
    """The digits network in float32, with operands rounded to bfloat16."""

    kind = "float32"

    @staticmethod
    def layer(gemm, x, program) -> GoldenLayer:
        from weft.golden import clamp, matmul_bf16, to_bfloat16

        config = program.target.array
        x, w = to_bfloat16(x), to_bfloat16(gemm.weights[0])
        low = None if gemm.activation == "none" else np.float32(0)
        start = gemm.bias if config.c_words else None
        sums = matmul_bf16(x, w, start=start, flush_subnormals=config.flush_subnormals)
        y = clamp(sums if config.c_words else sums + gemm.bias, low=low)
        if config.c_words and config.activation == "clamp":
            return GoldenLayer(x, w, {"bias": gemm.bias, "low": low}, y, y)
        return GoldenLayer(x, w, {"bias": start}, sums, y)


# By the name of the data type.
NETWORKS = DTYPES.layer("network", int8=_Int8Network, bf16=_Bf16Network)
