"""UNIDIRECTIONAL_SEQUENCE_LSTM: its products run on Weft, gates and cell on the host.

Source: TFLite Micro, ``lstm_eval_general.cc``, ``unidirectional_sequence_lstm.cc``.
"""

import math

import numpy as np
import tflite

from weft.models.ir import Gemm, Recurrence, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.quantized import multiplier_and_shift, per_tensor

__all__ = ["BUILDERS", "layer"]

GATE = 2.0**-12  # scale of a gate before its activation
RESULT = 2.0**-15  # and after it
SUMS = {"int8": np.int32, "int16": np.int64, "float32": np.float32}  # by the type of activations
HIDDEN, CELL = 18, 19  # places of the state among the inputs
NEEDED = {0, *range(1, 9), *range(12, 16), HIDDEN, CELL}  # input, weights, biases, state
PARTS = (  # places that are absent or present only in LSTMs that TFLite Micro does not have
    ((1, 5, 12), "without an input gate (CIFG)"), (range(9, 12), "with peepholes"),
    ((16, 17), "with a projection"), (range(20, 24), "with a normalization"),
)


def _lstm(graph, operator):
    graph.counts(operator, 20, None)
    options = operator.options("UnidirectionalSequenceLSTMOptions")
    x, y = graph.input(operator, 0), graph.output(operator)
    nodes = layer(graph, operator, options, (operator.inputs[0], x), (operator.outputs[0], y))
    graph.expect(operator, (*x.shape[:2], graph.input(operator, HIDDEN).shape[1]))
    return nodes


def layer(graph, operator, options, source, target):
    """The nodes of one pass over the time.

    Parameters
    ----------
    graph : Context
    operator : TfliteOperator
        Inputs 1..4 and 5..8 are the weights of input and recurrence, 12..15 the biases, 18 and 19
        the states.
    options : options of the operator
    source, target : (int, Tensor)
        Input and output.
    """
    (number, x), (output, y) = source, target
    zeros = _supported(graph, operator, options, x, y)
    major = bool(options.TimeMajor())
    time, batch, size, units = _sizes(graph, operator, x, major)
    clip = options.CellClip()
    if not math.isfinite(clip) or clip < 0:
        raise operator.error(f"limit of the cell must be 0 or above, not {clip}")
    is_float, kind = x.dtype == np.float32, np.dtype(SUMS[str(x.dtype)])
    stored = np.dtype(np.float32 if is_float else np.int8)
    weights = _stacked(graph, operator, range(1, 5), (units, size), stored)
    recurrent = _stacked(graph, operator, range(5, 9), (units, units), stored)
    bias = _stacked(graph, operator, range(12, 16), (units,), kind)
    sums = graph.add(Tensor(f"{y.name}/input", (*x.shape[:2], 4 * units), kind))
    state = graph.add(Tensor(f"{y.name}/state", (batch, units), x.dtype))
    own = graph.add(Tensor(f"{y.name}/recurrent", (batch, 4 * units), kind))
    attributes = {"limit": float(clip)} if is_float else _scales(graph, operator, x, clip)
    common = {"operator": operator.name, "position": (operator.position,)}
    return [
        Gemm(
            **common, name=f"{y.name}/input", inputs=(number,), outputs=(sums,), x=number,
            x_zero=zeros[0], weights=weights.T[None],
            bias=bias if is_float else bias.astype(np.int64),
        ),
        Recurrence(
            **common, name=y.name, inputs=(sums,), outputs=(output,),
            kernel="tflite.float_lstm" if is_float else "tflite.lstm", steps=time,
            reason="the host computes the gates and the cell",
            attributes={"time_major": major, **attributes},
            products=(Gemm(
                **common, name=f"{y.name}/recurrent", inputs=(state,), outputs=(own,), x=state,
                x_zero=zeros[1], weights=recurrent.T[None],
            ),),
        ),
    ]


def _supported(graph, operator, options, x, y):
    """The zero points of input and state; Fallback for an LSTM without a kernel."""
    for places, what in PARTS:
        if any((place in NEEDED) != graph.present(operator, place) for place in places):
            raise Fallback(f"an LSTM {what}")
    hidden, cell = graph.input(operator, HIDDEN), graph.input(operator, CELL)
    kinds = [str(tensor.dtype) for tensor in (x, hidden, cell, y)]
    of_cell = "float32" if kinds[0] == "float32" else "int16"
    if kinds[0] not in SUMS or kinds != [kinds[0], kinds[0], of_cell, kinds[0]]:
        raise Fallback(f"no kernel for {', '.join(kinds)}")
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.TANH:
        raise Fallback("an LSTM whose activation is not TANH")
    if kinds[0] == "float32":
        return 0, 0
    zeros = per_tensor(operator, x)[1], per_tensor(operator, hidden)[1]
    if kinds[0] == "int16" and any(zeros):
        raise Fallback("int16 with a zero point")
    return zeros


def _sizes(graph, operator, x, major):
    """Steps in time, batch, inputs and units."""
    states = [graph.input(operator, place).shape for place in (HIDDEN, CELL)]
    if len(x.shape) != 3 or len(states[0]) != 2:
        raise operator.error(
            f"input must have 3 dimensions and the state 2, not {x.shape}, {states[0]}"
        )
    units = states[0][1]
    time, batch = x.shape[:2] if major else x.shape[1::-1]
    if min(*x.shape, units) < 1:
        raise operator.error(f"input and state must have elements, not {x.shape}, {states[0]}")
    for place, shape in zip((HIDDEN, CELL), states, strict=True):
        if shape != (batch, units) or operator.inputs[place] not in graph.file.variables:
            raise operator.error(f"input {place} must be a variable of {(batch, units)}")
    return time, batch, x.shape[2], units


def _stacked(graph, operator, places, shape, dtype):
    """The constants of the gates (input, forget, cell, output) along their first axis."""
    parts = [graph.constant(operator, place) for place in places]
    for place, part in zip(places, parts, strict=True):
        if part.dtype != dtype:
            raise Fallback(f"input {place} is {part.dtype}, not {dtype}")
        if part.shape != shape and (len(shape) > 1 or part.size != shape[0]):
            raise operator.error(f"input {place} must be of shape {shape}, not {part.shape}")
    graph.spend(operator, 9 * sum(part.nbytes for part in parts))
    return np.concatenate([part.reshape(shape) for part in parts])


def _scales(graph, operator, x, clip):
    """Attributes of the kernel: scales of all products, and the limit of the cell."""
    hidden, cell = graph.input(operator, HIDDEN), graph.input(operator, CELL)
    (x_scale, _), (h_scale, h_zero) = per_tensor(operator, x), per_tensor(operator, hidden)
    c_scale, c_zero = per_tensor(operator, cell)
    power = math.log2(c_scale)
    if c_zero or power != int(power):
        raise operator.error(f"scale of the cell must be a power of two, not {c_scale}")
    weights = [per_tensor(operator, graph.input(operator, place))[0] for place in range(1, 9)]
    pairs = list(zip([x_scale] * 4 + [h_scale] * 4, weights, strict=True))
    with np.errstate(over="ignore", under="ignore"):  # LiteRT's products are of float32
        narrow = [
            np.float32(weight) * np.float32(scale) / np.float32(GATE) for scale, weight in pairs
        ]
        narrow_hidden = np.float32(RESULT) / np.float32(h_scale) * np.float32(RESULT)

    def scales(gates, **others):
        found = [multiplier_and_shift(operator, float(scale)) for scale in gates]
        return {
            "input_scales": tuple(found[:4]), "recurrent_scales": tuple(found[4:]),
            **{
                name: multiplier_and_shift(operator, float(scale))
                for name, scale in others.items()
            },
        }

    return {
        "tflite": scales(
            [scale * weight / GATE for scale, weight in pairs], forget_scale=RESULT,
            update_scale=RESULT**2 / c_scale, hidden_scale=RESULT**2 / h_scale,
        ),
        "single": scales(narrow, hidden_scale=narrow_hidden),
        "cell_power": int(power), "hidden_zero": h_zero, "wide": x.dtype == np.int16,
        "limit": clip / c_scale,
    }


BUILDERS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm}
