"""Kernels of TFLite's operators with state: LSTM, SVDF and simple recurrences."""

import numpy as np

from weft.models.kernels.fixed_point import (
    INT16,
    clamp,
    multiply,
    multiply_wide,
    round_shift,
    wrap32,
)
from weft.models.kernels.litert import float_sums, quantize_rows
from weft.models.kernels.onnx import sigmoid
from weft.models.kernels.tflite import logistic16, tanh16

__all__ = ["KERNELS", "RECURRENT", "LiteRules", "MicroRules"]


# The recurrence of TFLite's LSTM: in integers as TFLite Micro or LiteRT computes it, in float32.
#
# Sources: TFLite Micro, ``lstm_eval.cc``; LiteRT, ``lstm_eval.cc``, ``portable_tensor_utils.cc``.

int16 = INT16.saturate


class MicroRules:
    """TFLite Micro: each product is scaled and saturated; functions by a table."""

    def __init__(self, attributes):
        self._scales = attributes["tflite"]
        self.scaled = multiply_wide if attributes["wide"] else multiply
        # It is cut to a whole number, also to 0: then the cell is always 0.
        self.limit = int(min(attributes["limit"], 32767)) if attributes["limit"] else None
        shift = attributes["cell_power"] + 12
        self._to_cell = 3 << max(shift, 0), max(-shift, 0)

    def gate(self, gate, fed, own):
        """The sum of the two products of a gate."""
        fed = int16(self.scaled(fed, *self._scales["input_scales"][gate]))
        return int16(fed + int16(self.scaled(own, *self._scales["recurrent_scales"][gate])))

    def functions(self, gates):
        """Input, forget, new and output, after their functions."""
        return [tanh16(x, 3, 0) if n == 2 else logistic16(x, 3, 0) for n, x in enumerate(gates)]

    def cell(self, forget, cell, enter, new):
        """The cell before its limit."""
        kept = int16(multiply(forget * cell, *self._scales["forget_scale"]))
        return int16(kept + int16(multiply(enter * new, *self._scales["update_scale"])))

    def hidden(self, leave, cell):
        """The state without its zero point."""
        return multiply(leave * tanh16(cell, *self._to_cell), *self._scales["hidden_scale"])


class LiteRules:
    """LiteRT: products with the cell are rounded once; functions of gemmlowp."""

    def __init__(self, attributes):
        self._scales = attributes["single"]
        self.limit = int(min(attributes["limit"], 32767)) or None
        self._power = attributes["cell_power"]

    def gate(self, gate, fed, own):
        """The sum of the two products of a gate."""
        fed = int16(multiply(fed, *self._scales["input_scales"][gate]))
        return int16(fed + multiply(own, *self._scales["recurrent_scales"][gate]))

    def functions(self, gates):
        """Input, forget, new and output, after their functions."""
        return [
            (INT16.tanh if n == 2 else INT16.logistic)(x, 3)
            for n, x in enumerate(gates)
        ]

    def cell(self, forget, cell, enter, new):
        """The cell before its limit."""
        kept = INT16.wrap(round_shift(forget * cell, 15))
        return int16(kept + INT16.wrap(round_shift(enter * new, 30 + self._power)))

    def hidden(self, leave, cell):
        """The state without its zero point."""
        shown = INT16.tanh(cell, 15 + self._power)
        return multiply(leave * shown, *self._scales["hidden_scale"])


def _rules(attributes, mode):
    """The rules of a mode: LiteRT has no LSTM of int16, and cells of 2**-15 to 2**-9 alone."""
    has_kernel = not attributes["wide"] and -15 <= attributes["cell_power"] <= -9
    return (LiteRules if mode == "single" and has_kernel else MicroRules)(attributes)


def _lstm(inputs, attributes, state, mode):
    """The recurrence of a long short-term memory, for all steps in time.

    ::

        gates = int16(sums * input_scales) + int16((hidden @ weights) * recurrent_scales)
        cell = sigmoid(forget) * cell + sigmoid(input) * tanh(new), within +-limit
        hidden = sigmoid(output) * tanh(cell) + hidden_zero

    Sums saturate to int16. The input has the products of the input with the weights of all gates
    (input, forget, new, output), with their biases: int32 [batch, time, 4 * units], or [time,
    batch, ...] if ``time_major``. It asks for one product a step: int8 hidden [batch, units] to
    int32 [batch, 4 * units], with the zero point subtracted. ``wide`` : hidden is int16, and sums
    are int64. ``tflite`` and ``single`` have the scales of these modes, each a pair of multiplier
    and shift. ``cell_power`` : logarithm of the cell's scale; ``limit`` : in steps of the cell, 0
    for none.
    """
    sums = np.asarray(inputs[0], np.int64)
    sums = sums if attributes["time_major"] else sums.swapaxes(0, 1)
    steps, batch, units = *sums.shape[:2], sums.shape[2] // 4
    rules, zero = _rules(attributes, mode), attributes["hidden_zero"]
    dtype = np.int16 if attributes["wide"] else np.int8
    limits = np.iinfo(dtype)
    hidden, cell = state.get("lstm", (
        np.full((batch, units), zero, dtype), np.zeros((batch, units), np.int64)
    ))
    outputs = np.empty((steps, batch, units), dtype)
    for step in range(steps):
        own = yield 0, hidden
        parts = [slice(gate * units, (gate + 1) * units) for gate in range(4)]
        enter, forget, new, leave = rules.functions([
            rules.gate(gate, sums[step, :, part], own[:, part]) for gate, part in enumerate(parts)
        ])
        cell = rules.cell(forget, cell, enter, new)
        if rules.limit is not None:
            cell = cell.clip(-rules.limit, rules.limit)
        hidden = rules.hidden(leave, cell) + zero
        hidden = outputs[step] = clamp(hidden, limits.min, limits.max, dtype)
    state["lstm"] = hidden, cell
    return [outputs if attributes["time_major"] else np.array(outputs.swapaxes(0, 1))]


def _float_lstm(inputs, attributes, state, mode):
    """The same in float32, without scales; ``limit`` : float, 0 for none."""
    def own(hidden):
        return (yield 0, hidden)

    return (yield from _float_steps(inputs, attributes, state, own, np.tanh))


def _hybrid_lstm(inputs, attributes, state, mode):
    """The same in float32, with a product of int8.

    The hidden values are quantized by ``rule`` (`weft.models.kernels.litert`), and ``scale``
    and ``columns`` are those of the weights. ``range`` : None for tanh, or limits in its place.
    """
    def own(hidden):
        rows, scale, zero = quantize_rows(hidden, (1,), attributes["rule"])
        sums = yield 0, rows
        return float_sums(sums, scale, zero, attributes, None)

    limits = attributes["range"]
    function = np.tanh if limits is None else lambda x: x.clip(*limits)
    return (yield from _float_steps(inputs, attributes, state, own, function))


def _float_steps(inputs, attributes, state, product, function):
    """All steps in time; ``product`` gives the product of the hidden values.

    ``function`` is that of new values and of the cell.
    """
    sums = inputs[0] if attributes["time_major"] else inputs[0].swapaxes(0, 1)
    shape = *sums.shape[:2], sums.shape[2] // 4
    hidden, cell = state.get("lstm", (np.zeros(shape[1:], np.float32),) * 2)
    outputs = np.empty(shape, np.float32)
    for step, fed in enumerate(sums):
        enter, forget, new, leave = np.split(fed + (yield from product(hidden)), 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * function(new)
        if attributes["limit"]:
            cell = cell.clip(-np.float32(attributes["limit"]), np.float32(attributes["limit"]))
        hidden = outputs[step] = sigmoid(leave) * function(cell)
    state["lstm"] = hidden, cell
    return [outputs if attributes["time_major"] else np.array(outputs.swapaxes(0, 1))]


RECURRENT = {
    "litert.lstm": _hybrid_lstm, "tflite.lstm": _lstm, "tflite.float_lstm": _float_lstm,
}


# SVDF, whose state lasts from run to run.
#
# Source: TFLite Micro, ``svdf_common.cc``.

def _svdf(inputs, attributes, state):
    """The state and the filter in time of a singular value decomposition filter.

    ::

        state = state[:, :, 1:] with clip(sums * scale_0) + state_zero at the end
        total = bias + sum of time * (state - state_zero) over time and rank
        y = clamp(total * scale_1 + zero, low, high)

    The input has the sums of the features: int32 [batch, filters]. ``time`` : int8 or int16
    [filters, memory], the type of the state; ``state_zero`` : its zero point, which may wrap the
    clipped sum; ``bias`` : int32 [filters / rank] or None; ``rank``; ``multipliers``, ``shifts`` :
    pairs, of both scales; ``zero``, ``low``, ``high`` of y.
    """
    [sums] = inputs
    kind, zero = attributes["time"].dtype, attributes["state_zero"]
    time, rank, limits = attributes["time"].astype(np.int64), attributes["rank"], np.iinfo(kind)
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    batch, filters = sums.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.int64)
    newest = np.clip(multiply(sums, m, s), limits.min, limits.max) + zero
    newest = newest.astype(kind).astype(np.int64) - zero  # it wraps
    new = state["svdf"] = np.concatenate([old[:, :, 1:], newest[:, :, None]], 2)
    total = wrap32((new * time).sum(2)).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        total = total + attributes["bias"]
    y = multiply(wrap32(total), n, t) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], np.int8)]


@np.errstate(all="ignore")  # infinity and NaN are results
def _float_svdf(inputs, attributes, state):
    """The same of float32, without scales; ``low``, ``high`` : numbers, or None for no limit."""
    [features], time, rank = inputs, attributes["time"], attributes["rank"]
    batch, filters = features.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.float32)
    new = state["svdf"] = np.concatenate([old[:, :, 1:], features[:, :, None]], 2)
    y = (new * time).sum(2).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        y = y + attributes["bias"]
    if attributes["low"] is not None or attributes["high"] is not None:
        y = y.clip(attributes["low"], attributes["high"])
    return [y.astype(np.float32)]


KERNELS = {"litert.svdf": _float_svdf, "tflite.svdf": _svdf}
