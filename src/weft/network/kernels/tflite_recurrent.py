"""TFLite's operators with a state, which lasts from run to run.

Sources: TFLite Micro, ``svdf_common.cc``, ``lstm_eval_general.cc``.
"""

import numpy as np

from weft.network.kernels.fixed_point import clamp, multiply, multiply_wide, wrap32
from weft.network.kernels.onnx_elementwise import sigmoid
from weft.network.kernels.tflite_unary import logistic16, tanh16

__all__ = ["KERNELS", "RECURRENT"]


def _svdf(inputs, attributes, state):
    """The state and the filter in time of a singular value decomposition filter.

    ::

        state = state[:, :, 1:] with int16(sums * scale_0) at the end
        y = clamp((bias + sum of time * state over time and rank) * scale_1 + zero, low, high)

    The input has the sums of the features: int32 [batch, filters]. ``time`` : int16 [filters,
    memory]; ``bias`` : int32 [filters / rank] or None; ``rank``; ``multipliers``, ``shifts`` :
    pairs, of both scales; ``zero``, ``low``, ``high`` of y.
    """
    [sums] = inputs
    time, rank = attributes["time"].astype(np.int64), attributes["rank"]
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    batch, filters = sums.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.int64)
    newest = np.clip(multiply(sums, m, s), -(1 << 15), (1 << 15) - 1)
    new = state["svdf"] = np.concatenate([old[:, :, 1:], newest[:, :, None]], 2)
    total = wrap32((new * time).sum(2)).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        total = total + attributes["bias"]
    y = multiply(wrap32(total), n, t) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], np.int8)]


def _lstm(inputs, attributes, state):
    """The recurrence of a long short-term memory, for all steps in time.

    ::

        gates = int16(sums * input_scales) + int16((hidden @ weights) * recurrent_scales)
        cell = sigmoid(forget) * cell + sigmoid(input) * tanh(new), within +-limit
        hidden = sigmoid(output) * tanh(cell) + hidden_zero

    Each sum saturates to int16, and each product is scaled. The input has the products of the
    input with the weights of all gates (input, forget, new, output), with their biases: int32
    [batch, time, 4 * units], or [time, batch, ...] if ``time_major``. It asks for one product a
    step: int8 hidden [batch, units] to int32 [batch, 4 * units], with the zero point subtracted.
    ``wide`` : hidden is int16, and sums are int64. A scale is a pair of multiplier and shift;
    ``cell_power`` : logarithm of the cell's scale; ``limit`` : 0 for none.
    """
    sums = np.asarray(inputs[0], np.int64)
    sums = sums if attributes["time_major"] else sums.swapaxes(0, 1)
    steps, batch, units = *sums.shape[:2], sums.shape[2] // 4
    zero = attributes["hidden_zero"]
    scaled, dtype = (multiply_wide, np.int16) if attributes["wide"] else (multiply, np.int8)
    limits = np.iinfo(dtype)
    hidden, cell = state.get("lstm", (
        np.full((batch, units), zero, dtype), np.zeros((batch, units), np.int64)
    ))
    outputs = np.empty((steps, batch, units), dtype)
    for step in range(steps):
        own = yield 0, hidden
        gates = []
        for gate in range(4):
            part = slice(gate * units, (gate + 1) * units)
            fed = _int16(scaled(sums[step, :, part], *attributes["input_scales"][gate]))
            back = _int16(scaled(own[:, part], *attributes["recurrent_scales"][gate]))
            gates.append(_int16(fed + back))
        new = tanh16(gates[2], 3, 0)
        enter, forget, leave = (logistic16(gates[gate], 3, 0) for gate in (0, 1, 3))
        kept = _int16(multiply(forget * cell, *attributes["forget_scale"]))
        cell = _int16(kept + _int16(multiply(enter * new, *attributes["update_scale"])))
        if attributes["limit"]:
            cell = cell.clip(-attributes["limit"], attributes["limit"])
        shift = attributes["cell_power"] + 12
        shown = tanh16(cell, 3 << max(shift, 0), max(-shift, 0))
        hidden = multiply(leave * shown, *attributes["hidden_scale"]) + zero
        hidden = outputs[step] = clamp(hidden, limits.min, limits.max, dtype)
    state["lstm"] = hidden, cell
    return [outputs if attributes["time_major"] else np.array(outputs.swapaxes(0, 1))]


def _float_lstm(inputs, attributes, state):
    """The same in float32, without scales; ``limit`` : float, 0 for none."""
    sums = inputs[0] if attributes["time_major"] else inputs[0].swapaxes(0, 1)
    shape = *sums.shape[:2], sums.shape[2] // 4
    hidden, cell = state.get("lstm", (np.zeros(shape[1:], np.float32),) * 2)
    outputs = np.empty(shape, np.float32)
    for step, fed in enumerate(sums):
        enter, forget, new, leave = np.split(fed + (yield 0, hidden), 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        if attributes["limit"]:
            cell = cell.clip(-np.float32(attributes["limit"]), np.float32(attributes["limit"]))
        hidden = outputs[step] = sigmoid(leave) * np.tanh(cell)
    state["lstm"] = hidden, cell
    return [outputs if attributes["time_major"] else np.array(outputs.swapaxes(0, 1))]


def _int16(x):
    """Saturated to 16 bits, in int64."""
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


KERNELS = {"tflite.svdf": _svdf}
RECURRENT = {"tflite.lstm": _lstm, "tflite.float_lstm": _float_lstm}
