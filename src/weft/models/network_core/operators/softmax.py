"""SOFTMAX: a layer without weights, of a core that has a unit for it."""

import numpy as np

from weft.models.kernels.tflite import exponentials
from weft.models.network_core.layers import Addition, Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.network_core.config import MAX_SOFTMAX

__all__ = ["LOWERINGS", "NO_UNIT"]

NO_UNIT = "the core has no unit for it"  # why the host computes it, if another core would


def _softmax(builder: OperatorBuilder) -> int:
    """Append the SOFTMAX of each pixel of a map: the same steps as the kernel's."""
    x = builder.tensor(0)
    if builder.config is None or not builder.config.softmax:
        raise Refusal(NO_UNIT)
    if builder.output.dtype != x.dtype:
        raise Refusal(f"its results must have 8 bits, not {8 * builder.output.dtype.itemsize}")
    number = builder.read()
    size = builder.size(number)
    if size[2] > MAX_SOFTMAX:
        raise Refusal(f"a row must have at most {MAX_SOFTMAX:,} values, not {size[2]:,}")
    table = exponentials(builder.node.attributes).astype(np.int32).reshape(1, -1)
    return builder.layer(
        number, pointwise(size), np.zeros((1, size[2]), np.int8), layout=WeightLayout.NONE,
        addition=Addition(table, 0, 0, 0, 0, 0),
    )


LOWERINGS = {"tflite.softmax": _softmax}
