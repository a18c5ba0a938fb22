"""LSTM, GRU and RNN: a product of all inputs, and products of the state at each step in time."""

import numpy as np

from weft.models.ir import Gemm, Recurrence

__all__ = ["lower"]

FLOAT = np.dtype(np.float32)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
ACTIVATIONS = {
    "LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",),
}
BACKWARD = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def lower(importer, operator) -> bool:
    """Append the nodes of a recurrent layer; False if the operator is something else.

    A layer that has no kernel runs in onnxruntime, with the reason.
    """
    if operator.domain not in ("", "ai.onnx") or operator.kind not in GATES:
        return False
    names = (*operator.inputs, *[""] * 8)[:8]
    constants = [importer.float_constant(name) if name else None for name in names[1:4]]
    reason = _refusal(importer.source, operator, names, constants)
    if reason:
        importer.host(operator, f"{reason}: onnxruntime computes it")
    else:
        _RecurrentLayer(importer, operator, names, *constants).emit()
    return True


def _refusal(source, operator, names, constants):
    """Why a layer has no kernel here; empty if it has one."""
    kind, attributes = operator.kind, operator.attributes
    backward = BACKWARD[attributes.get("direction", "forward")]
    used = [name.lower() for name in attributes.get("activations", ())]
    if any(source.types[name][0] != FLOAT for name in (names[0], names[1], names[2])):
        return f"a product of {source.types[names[0]][0]}"
    if constants[0] is None or constants[1] is None or names[3] and constants[2] is None:
        return "weights or biases are computed"
    if used and tuple(used) != ACTIVATIONS[kind] * len(backward):
        return f"{kind} with the activations {', '.join(attributes['activations'])}"
    if kind == "LSTM" and names[7]:
        return "LSTM with peepholes"
    for name, what in (("clip", "a limit"), ("input_forget", "coupled gates")):
        if attributes.get(name, 0):
            return f"{kind} with {what} ({name})"
    if attributes.get("layout", 0):
        return f"{kind} whose first axis is the batch (layout)"
    if 0 in (*source.types[names[0]][1], *source.types[names[2]][1]):
        return f"{kind} without elements"
    return ""


class _RecurrentLayer:
    """Makes the nodes of one layer from its constants: W, R and B of ONNX."""

    def __init__(self, importer, operator, names, w, r, b):
        self._importer, self._operator, self._names = importer, operator, names
        self._backward = BACKWARD[operator.attributes.get("direction", "forward")]
        self._linear = bool(operator.attributes.get("linear_before_reset", 0))
        x = importer.source.types[names[0]][1]
        if len(x) != 3:
            raise ValueError(f"X must have 3 dimensions, not {len(x)}")
        (self._time, self._batch, size), units = x, r.shape[-1]
        self._units, count, columns = units, len(self._backward), GATES[operator.kind] * units
        b = np.zeros((count, 2 * columns), FLOAT) if b is None else b
        wanted = [
            ("W", w.shape, (count, columns, size)), ("R", r.shape, (count, columns, units)),
            ("B", b.shape, (count, 2 * columns)),
        ]
        for name, title, shape in (
            (names[4], "sequence_lens", (self._batch,)),
            (names[5], "initial_h", (count, self._batch, units)),
            (names[6], "initial_c", (count, self._batch, units)),
        ):
            if name:
                wanted.append((title, importer.source.types[name][1], shape))
        for title, found, shape in wanted:
            if found != shape:
                raise ValueError(f"{title} must be of shape {shape}, not {found}")
        self._w, self._r, self._b = w, r, b.reshape(count, 2, columns)

    def emit(self):
        """Append the product of the inputs, and the recurrence."""
        importer, operator, names = self._importer, self._operator, self._names
        products, bias = self._products()
        columns = bias.size
        sums = importer.new_tensor(
            f"{operator.name}/input", (self._time, self._batch, columns), FLOAT
        )
        x = importer.value(names[0])
        importer.emit(Gemm(
            **self._common(f"{operator.name}/input"), inputs=(x,), outputs=(sums,), x=x,
            weights=self._w.reshape(columns, -1).T[None], bias=bias.ravel(),
        ))
        starts = names[4 : 5 + STATES[operator.kind]]
        places = [place for place, name in enumerate(operator.outputs) if name]
        importer.emit(Recurrence(
            **self._common(operator.name),
            inputs=(sums, *(importer.value(name) if name else -1 for name in starts)),
            outputs=tuple(importer.tensor(operator.outputs[place]) for place in places),
            kernel=f"onnx.{operator.kind.lower()}", products=tuple(products), steps=self._time,
            reason="the host computes the gates",
            attributes={
                "backward": self._backward, "units": self._units, "outputs": tuple(places),
                "linear_before_reset": self._linear,
            },
        ))

    def _common(self, name):
        return {
            "operator": self._operator.kind, "name": name, "position": (self._operator.index,),
        }

    def _products(self):
        """The products of the state, and the biases of the products of the inputs.

        The bias of the state is added with that of the input, unless a GRU multiplies it by a gate.
        """
        first, late = self._b[:, 0] + self._b[:, 1], np.zeros_like(self._b[:, 1])
        gates = 2 * self._units  # rows of the weights of update and reset
        if self._operator.kind != "GRU":
            return [self._product(weights, None) for weights in self._r], first
        if self._linear:
            first[:, gates:], late[:, gates:] = self._b[:, 0, gates:], self._b[:, 1, gates:]
            return [self._product(*each) for each in zip(self._r, late, strict=True)], first
        parts = [part for weights in self._r for part in (weights[:gates], weights[gates:])]
        return [self._product(weights, None) for weights in parts], first

    def _product(self, weights, bias):
        """The product of the state [batch, units] with weights [columns, units]."""
        importer, name = self._importer, f"{self._operator.name}/state"
        x = importer.new_tensor(name, (self._batch, self._units), FLOAT)
        y = importer.new_tensor(name, (self._batch, len(weights)), FLOAT)
        return Gemm(
            **self._common(name), inputs=(x,), outputs=(y,), x=x, weights=weights.T[None],
            bias=bias,
        )
