"""Recurrent layers of ONNX: gates and states; the products come from the caller.

Source: ONNX operators ``LSTM``, ``GRU`` and ``RNN``; the zeros after the end of a short sequence,
and the states of an empty one, are onnxruntime's.
"""

import numpy as np

from weft.models.errors import ModelError
from weft.models.kernels.onnx_elementwise import sigmoid

__all__ = ["RECURRENT"]


def _lstm_cell(direction, fed, attributes, hidden, cell):
    """One product: hidden with the weights of input, output, forget and new value.

    ::

        cell = sigmoid(forget) * cell + sigmoid(input) * tanh(new)
        hidden = sigmoid(output) * tanh(cell)
    """
    enter, leave, forget, new = np.split(fed + (yield direction, hidden), 4, axis=1)
    cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(cell), cell


def _gru_cell(direction, fed, attributes, hidden):
    """One product with the weights of update, reset and new value; or two.

    ::

        new = tanh(fed + reset * (hidden @ weights))       with ``linear_before_reset``
        new = tanh(fed + (reset * hidden) @ weights)       without it: a product of its own
        hidden = (1 - update) * new + update * hidden
    """
    units = hidden.shape[1]
    if attributes["linear_before_reset"]:
        own = yield direction, hidden
        update, reset = np.split(sigmoid(fed[:, : 2 * units] + own[:, : 2 * units]), 2, axis=1)
        new = np.tanh(fed[:, 2 * units :] + reset * own[:, 2 * units :])
    else:
        own = yield 2 * direction, hidden
        update, reset = np.split(sigmoid(fed[:, : 2 * units] + own), 2, axis=1)
        new = np.tanh(fed[:, 2 * units :] + (yield 2 * direction + 1, reset * hidden))
    return ((1 - update) * new + update * hidden,)


def _rnn_cell(direction, fed, attributes, hidden):
    """One product: ``hidden = tanh(fed + hidden @ weights)``."""
    return (np.tanh(fed + (yield direction, hidden)),)


def _layer(cell, states):
    """A kernel whose ``cell`` computes one step in time of one direction; ``states`` : number.

    Inputs: products of the input with the weights of all gates and directions, float32 [time,
    batch, directions * gates * units]; lengths of the sequences, int [batch], or None; the states
    at the start, float32 [directions, batch, units], or None. ``backward`` : for each direction,
    whether it runs from the end; ``units``; ``outputs`` : which of the results (Y, and the states
    at the end) are wanted.
    """
    def kernel(inputs, attributes, state, mode):
        sums, lengths, *starts = inputs
        time, batch, _ = sums.shape
        backward, units = attributes["backward"], attributes["units"]
        shape = len(backward), batch, units
        fed = sums.reshape(time, batch, len(backward), -1)
        lengths = np.full(batch, time) if lengths is None else lengths
        if lengths.min() < 0 or lengths.max() > time:
            wrong = lengths[(lengths < 0) | (lengths > time)][0]
            raise ModelError(f"sequence_lens must be in 0..{time}, not {wrong}")
        starts = [*starts, None][:states]
        values = [np.zeros(shape, np.float32) if v is None else v.copy() for v in starts]
        for value in values:
            value[:, lengths == 0] = 0
        outputs, every = np.zeros((time, *shape), np.float32), np.arange(batch)
        for step in range(time):
            on = step < lengths
            for direction, turned in enumerate(backward):
                place = np.where(on, lengths - 1 - step if turned else step, 0)
                found = yield from cell(
                    direction, fed[place, every, direction], attributes,
                    *(value[direction] for value in values),
                )
                for value, new in zip(values, found, strict=True):
                    value[direction, on] = new[on]
                outputs[place[on], direction, every[on]] = found[0][on]
        results = [outputs, *values]
        return [results[n] for n in attributes["outputs"]]

    return kernel


RECURRENT = {
    "onnx.lstm": _layer(_lstm_cell, 2), "onnx.gru": _layer(_gru_cell, 1),
    "onnx.rnn": _layer(_rnn_cell, 1),
}
