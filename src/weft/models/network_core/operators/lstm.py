"""LSTM of int8 with a cell of int16: its products, its gates and its cell on the core.

A step in time is two jobs. The first one computes the sums of the hidden values, of 32 bits; the
second one is a job of the unit for LSTM. The sums of all inputs are one layer before the steps.
Columns of both are in the order of the units, with four gates each::

    fed = x * weights + bias                                   all steps in time
    own = hidden * recurrent_weights                           a step, from the hidden values before
    hidden, cell = lstm(fed, own, cell)                        the same step

The state is a variable: a map of two columns. The first one has the cell, 2 bytes a unit, and the
second one the hidden values.
"""

import numpy as np

from weft.models.ir import Gemm, Graph, Host, Recurrence
from weft.models.kernels.recurrent import MicroRules
from weft.models.kernels.tflite import SIGMOID
from weft.models.network_core.layers import Addition, Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.network_core.config import LSTM_PARAMETERS, LSTM_WORDS

__all__ = [
    "HOST_KERNEL", "KERNEL", "MAX_STEPS", "NO_UNIT", "lstm", "reason_of", "table_of", "whole_lstm",
]

GATES = 4
KERNEL = "lstm"  # of a node with all products, the gates and the cell
HOST_KERNEL = "tflite.lstm"  # of the gates and the cell alone
CELL_POWERS = range(-15, -8)  # logarithms of the scales of a cell
MAX_STEPS = 256  # in time: each one is two jobs
NO_UNIT = "the core has no unit for its gates and its cell, of 16 bits"

_SUM, _CELL = 4, 2  # bytes of a value
_SATURATED = 0xFFFF  # the last entry of the table: a tanh of 1
_CELL_SHIFT = 12 + 3  # of a cell with the scale 1, in the job


def whole_lstm(gemm: Gemm, node: Recurrence, number: int) -> tuple[np.ndarray, Host]:
    """Return the state before the first inference, and the node with all parts of an LSTM.

    The state is int8 [1, 1, 2, bytes of the cell], the tensor ``number``.
    """
    [product] = node.products
    units = product.weights.shape[1]
    initial = np.zeros((1, 1, 2, _CELL * units), np.int8)
    initial[..., 1, :units] = node.attributes["hidden_zero"]
    return initial, Host(
        operator=node.operator, name=node.name, position=node.position, inputs=(gemm.x, number),
        outputs=node.outputs, kernel=KERNEL, reason=node.reason,
        macs=node.steps * (gemm.weights.size + product.weights.size),
        attributes={
            **node.attributes, "weights": gemm.weights[0], "x_zero": gemm.x_zero,
            "bias": gemm.bias, "recurrent": product.weights[0], "state_zero": product.x_zero,
        },
    )


def reason_of(graph: Graph, node: Recurrence) -> str:
    """Return why no core computes an LSTM; empty if one may."""
    given = node.attributes
    if given["wide"]:
        return "its activations must have 8 bits, not 16"
    if given["cell_power"] not in CELL_POWERS:
        least, most = CELL_POWERS[0], CELL_POWERS[-1]
        power = given["cell_power"]
        return f"the scale of its cell must be 2**{least} to 2**{most}, not 2**{power}"
    if node.steps > MAX_STEPS:
        return f"its steps in time must be at most {MAX_STEPS}, not {node.steps}"
    batch = graph.tensors[node.inputs[0]].shape[1 if given["time_major"] else 0]
    return "" if batch == 1 else f"its input must have one sequence, not {batch}"


def table_of(given) -> np.ndarray:
    """Return the words of the ADD table of the jobs, int32 [LSTM_WORDS].

    ``given`` are the attributes of the kernel ``tflite.lstm``.
    """
    values, steps = SIGMOID.copy(), np.append(np.diff(SIGMOID), 0)
    values[-1] = _SATURATED
    scales = given["tflite"]
    pairs = [
        *scales["input_scales"], *scales["recurrent_scales"],
        *(scales[f"{name}_scale"] for name in ("forget", "update", "hidden")),
    ]
    limit = MicroRules(given).limit
    low, high = (-limit, limit) if limit is not None else (-(1 << 15), (1 << 15) - 1)
    words = np.zeros(LSTM_WORDS, np.int64)
    words[:LSTM_PARAMETERS] = values | steps << 16
    words[LSTM_PARAMETERS:] = [
        *np.ravel(pairs), high | low << 16, given["cell_power"] + _CELL_SHIFT,
    ]
    return words.astype(np.int32)


def lstm(builder: OperatorBuilder) -> int:
    """Append the layers of an LSTM; Refusal if the core cannot compute it."""
    given = builder.node.attributes
    if builder.config is None or not builder.config.lstm:
        raise Refusal(NO_UNIT)
    weights, recurrent = (_by_unit(given[name]) for name in ("weights", "recurrent"))
    units, state = weights.shape[1] // GATES, builder.kept(1)
    shape = builder.map_size(builder.tensor(0).shape)
    x, (height, width, _) = builder.read(0, shape), shape
    places = [{"row": n} for n in range(height)] if width == 1 else [
        {"column": n} for n in range(width)
    ]
    sums = _SUM * GATES * units
    fed = builder.map((height, width, sums))
    builder.layer(
        x, pointwise(shape), weights[None], layout=WeightLayout.DENSE, sums=True, y=fed,
        bias=_by_unit(given["bias"]) - given["x_zero"] * weights.sum(0, dtype=np.int64),
        x_zero=given["x_zero"],
    )
    own, whole = builder.map((1, 1, sums)), builder.map((height, width, units))
    cell = builder.view(state, (1, 1, _CELL * units), column=0)
    kept = hidden = builder.view(state, (1, 1, units), column=1)
    zero, one = given["hidden_zero"], pointwise((1, 1))
    table = Addition(table_of(given).reshape(1, -1), 0, 0, 0, 0, 0)
    for place in places:
        builder.layer(
            hidden, one, recurrent[None], layout=WeightLayout.DENSE, sums=True, y=own,
            bias=-given["state_zero"] * recurrent.sum(0, dtype=np.int64),
            x_zero=given["state_zero"],
        )
        hidden = builder.view(whole, (1, 1, units), **place)
        builder.layer(
            builder.view(fed, (1, 1, sums), **place), one, np.zeros((1, units), np.int8),
            layout=WeightLayout.LSTM, added=own, cell=cell, addition=table, zero=zero, y=hidden,
        )
    builder.copy(hidden, y=kept)
    return whole


def _by_unit(values):
    """``values`` [..., 4 * units] of all gates, in the order of the units."""
    *front, columns = values.shape
    gates = values.reshape(*front, GATES, columns // GATES)
    return np.ascontiguousarray(gates.swapaxes(-1, -2)).reshape(values.shape)
