"""Operators with a state: their products of the input run on Weft, the rest on the host."""

import numpy as np

from weft.models.ir import Gemm, Host, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.quantized import fused_limits, multiplier_and_shift, per_tensor

__all__ = ["BUILDERS"]

RELU = 1


def _svdf(graph, operator):
    """Inputs: x, weights of features, weights of time, bias, state.

    The features ``x @ features.T`` are a product; the state and the filter in time are the host's.
    """
    graph.counts(operator, 5, 5)
    options = operator.options("SVDFOptions")
    rank = options.Rank()
    x, features, time = graph.inputs(operator, 0, 3)
    state, y = graph.input(operator, 4), graph.output(operator)
    kinds = [str(tensor.dtype) for tensor in (x, features, time, state, y)]
    if kinds not in [["int8", "int8", kept, kept, "int8"] for kept in ("int8", "int16")]:
        raise Fallback(f"no kernel for {', '.join(kinds)}")
    if options.FusedActivationFunction() != RELU:
        raise Fallback("TFLite Micro has SVDF with RELU alone")
    if len(x.shape) != 2 or len(features.shape) != 2 or len(time.shape) != 2:
        raise operator.error("input and weights must have 2 dimensions")
    batch, size = x.shape
    filters, memory = time.shape
    if features.shape != (filters, size):
        raise operator.error(f"features must be {(filters, size)}, not {features.shape}")
    if rank < 1 or filters % rank or memory < 1:
        raise operator.error(f"rank must divide {filters} filters, not {rank}")
    if state.shape != (batch, filters * memory) or operator.inputs[4] not in graph.file.variables:
        raise operator.error(f"state must be a variable of {(batch, filters * memory)}")
    graph.expect(operator, (batch, filters // rank))
    bias = graph.constant(operator, 3, required=False)
    if bias is not None:
        if bias.size != filters // rank or bias.dtype != np.int32:
            raise operator.error(f"bias must be {filters // rank} int32, not {bias.shape}")
        bias = bias.reshape(-1)
    if bias is None and graph.present(operator, 3):
        raise Fallback("the bias is not a constant")
    weights, time_value = graph.constant(operator, 1), graph.constant(operator, 2)
    (x_scale, x_zero), (f_scale, _) = per_tensor(operator, x), per_tensor(operator, features)
    (s_scale, s_zero), (t_scale, _) = per_tensor(operator, state), per_tensor(operator, time)
    y_scale, y_zero = per_tensor(operator, y)
    into = multiplier_and_shift(operator, x_scale * f_scale / s_scale)
    out = multiplier_and_shift(operator, s_scale * t_scale / y_scale)
    low, high = fused_limits(operator, "none", y)
    sums = graph.add(Tensor(f"{y.name}/features", (batch, filters), np.dtype(np.int32)))
    common = {"operator": operator.name, "position": (operator.position,)}
    return [
        Gemm(
            **common, name=f"{y.name}/features", inputs=(operator.inputs[0],), outputs=(sums,),
            x=operator.inputs[0], x_zero=x_zero, weights=weights.T[None],
        ),
        Host(
            **common, name=y.name, inputs=(sums,), outputs=operator.outputs, kernel="tflite.svdf",
            reason=f"a state and a filter in time, of {8 * state.dtype.itemsize} bits",
            macs=batch * time_value.size,
            attributes={
                "time": time_value, "bias": bias, "rank": rank, "multipliers": (into[0], out[0]),
                "shifts": (into[1], out[1]), "zero": y_zero, "low": low, "high": high,
                "state_zero": s_zero if state.dtype == np.int8 else 0,
            },
        ),
    ]


BUILDERS = {"SVDF": _svdf}
