"""Operators with a state: their products of the input run on Weft, the rest on the host."""

import dataclasses
import math

import numpy as np
import tflite

from weft.models.errors import ModelError
from weft.models.ir import Gemm, Host, Recurrence, State, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.reader import read
from weft.models.tflite.scales import fused_limits, multiplier_and_shift, per_tensor

__all__ = ["BUILDERS", "VARIABLES", "Variables", "layer"]


# Variables of a file: each becomes a state of the graph, and its operators only name tensors.
#
# Source: TFLite Micro, ``var_handle.cc``, ``read_variable.cc``, ``assign_variable.cc``,
# ``call_once.cc``, ``micro_resource_variable.cc``.

_CALL, _HANDLE, _READ, _ASSIGN = "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"
VARIABLES = frozenset({_CALL, _HANDLE, _READ, _ASSIGN})


@dataclasses.dataclass
class _Variable:
    """A variable while the operators of the file follow each other.

    Attributes
    ----------
    name : str
    before : int
        Tensor of its value when an inference starts.
    current : int
        Tensor of its value now.
    """

    name: str
    before: int
    current: int


class Variables:
    """The variables of a file during its import.

    Parameters
    ----------
    graph : Context

    Attributes
    ----------
    called : set of int
        Subgraphs that CALL_ONCE runs.

    Raises
    ------
    Fallback
        If operators do more than reading and assigning variables: a runtime must have the whole
        file. `nodes` raises it, too.
    """

    def __init__(self, graph):
        self._graph, file = graph, graph.file
        self._keys = _handles(file)
        self._initial: dict[tuple, np.ndarray] = {}  # that CALL_ONCE assigns
        self._found: dict[tuple, _Variable] = {}
        self.called: set[int] = set()
        # By variable, the first tensor that is assigned to it.
        self._assigned: dict[tuple, int] = {}
        handles = {i for i, kind in enumerate(file.kinds) if kind in ("RESOURCE", "VARIANT")}
        others = {*file.inputs, *file.outputs}
        for operator in file.operators:
            if operator.name == _ASSIGN and len(operator.inputs) == 2:
                key = self._keys.get(operator.inputs[0])
                self._assigned.setdefault(key, operator.inputs[1])
            if operator.name not in VARIABLES:
                others.update((*operator.inputs, *operator.outputs))
        if handles & others:
            raise Fallback("other operators use the variables")

    @property
    def before(self) -> set[int]:
        """The tensors that have values when an inference starts."""
        return {found.before for found in self._found.values()}

    def states(self) -> tuple[State, ...]:
        """Return the states; all operators must have become nodes."""
        return tuple(
            State(name=found.name, initial=self._first_value(key, found), before=found.before,
                  after=found.current)
            for key, found in self._found.items()
        )

    def nodes(self, operator) -> list[Host]:
        """Return the nodes of an operator of a variable, in the order of the file."""
        if operator.name == _CALL:
            self._call(operator)
        elif operator.name == _READ:
            return [self._read(operator)]
        elif operator.name == _ASSIGN:
            self._assign(operator)
        return []

    def _call(self, operator):
        """Take the constants that a subgraph assigns before the first inference."""
        self._graph.counts(operator, 0, 0, outputs=0)
        if self._found:
            raise Fallback("CALL_ONCE follows other operators of its variables")
        number, file = operator.options("CallOnceOptions").InitSubgraphIndex(), self._graph.file
        part = read(file.data, f"{file.name}: subgraph {number}", number)
        keys = _handles(part)
        for each in part.operators:
            if each.name == _HANDLE:
                continue
            key = keys.get(each.inputs[0]) if each.name == _ASSIGN and each.inputs else None
            value = part.tensors[each.inputs[-1]].data if key else None
            if value is None or len(each.inputs) != 2 or part.inputs or part.outputs:
                raise Fallback("CALL_ONCE does more than assigning constants")
            self._initial[key] = value
        self.called.add(number)

    def _read(self, operator):
        self._graph.counts(operator, 1, 1)
        y = self._graph.output(operator)
        found = self._variable(operator, y)
        return Host(
            operator=operator.name, name=y.name, position=(operator.position,),
            inputs=(found.current,), outputs=operator.outputs, kernel="read_variable",
            attributes={"assigned": self._keys[operator.inputs[0]] in self._initial},
            reason="the session keeps the variable",
        )

    def _assign(self, operator):
        self._graph.counts(operator, 2, 2, outputs=0)
        number = operator.inputs[1]
        if number in self._graph.file.sparse:
            raise Fallback("a constant has a sparse encoding")
        self._variable(operator, self._graph.input(operator, 1)).current = number

    def _variable(self, operator, value):
        """The variable of an operator that gives it, or gets from it, a tensor like ``value``."""
        key = self._keys.get(operator.inputs[0])
        if key is None:
            raise operator.error("input 0 must be the output of a VAR_HANDLE")
        if key not in self._assigned and key not in self._initial:
            raise operator.error(
                "no operator writes the variable, as the converter lost its value; convert the"
                " network from a concrete function alone:"
                " TFLiteConverter.from_concrete_functions([function])"
            )
        if key not in self._found:
            name = "/".join(part for part in key if part) or "variable"
            number = self._graph.add(dataclasses.replace(value, name=name, data=None))
            self._found[key] = _Variable(name, number, number)
        kept = self._tensor(self._found[key].before)
        if (kept.shape, kept.dtype) != (value.shape, value.dtype):
            raise Fallback("a variable has values of different shapes or types")
        return self._found[key]

    def _tensor(self, number) -> Tensor:
        file = self._graph.file
        return self._graph.added[number - len(file.tensors)]

    def _first_value(self, key, found):
        """The value that a variable has before the first inference.

        Without CALL_ONCE, TFLite Micro sets all bytes to the zero point of the first tensor that is
        assigned.
        """
        kept, value = self._tensor(found.before), self._initial.get(key)
        if value is not None:
            if (value.shape, value.dtype) != (kept.shape, kept.dtype):
                raise Fallback("a variable has values of different shapes or types")
            return value
        given = self._graph.file.tensors[self._assigned[key]].quantization
        zero = 0 if given is None else int(given.zero[0])
        size = math.prod(kept.shape) * kept.dtype.itemsize
        return np.full(size, zero & 255, np.uint8).view(kept.dtype).reshape(kept.shape)


def _handles(file):
    """By the tensor of a handle: container and name of its variable."""
    keys = {}
    for operator in file.operators:
        if operator.name == _HANDLE:
            if len(operator.outputs) != 1:
                raise ModelError(f"{operator.label}: outputs must be 1, not {operator.outputs}")
            options = operator.options("VarHandleOptions")
            raw = options.Container(), options.SharedName()
            keys[operator.outputs[0]] = tuple(
                (text or b"").decode("utf-8", "backslashreplace") for text in raw
            )
    return keys


# The operators.

RELU = 1  # the activation, as TFLite numbers it


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


SUMS = {"int8": np.int32, "int16": np.int64, "float32": np.float32}  # by the type of activations
HIDDEN, CELL = 18, 19  # places of the state among the inputs


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


NEEDED = {0, *range(1, 9), *range(12, 16), HIDDEN, CELL}  # input, weights, biases, state
PARTS = (  # places that are absent or present only in LSTMs that TFLite Micro does not have
    ((1, 5, 12), "without an input gate (CIFG)"), (range(9, 12), "with peepholes"),
    ((16, 17), "with a projection"), (range(20, 24), "with a normalization"),
)


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


GATE = 2.0**-12  # scale of a gate before its activation
RESULT = 2.0**-15  # and after it


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


# By the place among the inputs of an LSTM of one direction, the place here.
FORWARD = (*range(18), 35, 36)
BACKWARD = (0, *range(18, 35), 37, 38)
OTHERS = range(39, 48)  # a second input, and its weights


def _bidirectional(graph, operator):
    """The outputs: one for each direction, or both side by side (``merge_outputs``)."""
    graph.counts(operator, 39, 48, None)
    options = operator.options("BidirectionalSequenceLSTMOptions")
    x, merged = graph.input(operator, 0), bool(options.MergeOutputs())
    if x.dtype != np.float32:
        raise Fallback(f"no kernel for {x.dtype}: LiteRT has float32 alone")
    if any(graph.present(operator, place) for place in OTHERS):
        raise Fallback("a bidirectional LSTM with a second input")
    if len(operator.outputs) != 2 - merged:
        raise operator.error(f"outputs must be {2 - merged}, not {len(operator.outputs)}")
    if len(x.shape) != 3:
        raise operator.error(f"input must have 3 dimensions, not {x.shape}")
    parts = [
        dataclasses.replace(operator, inputs=tuple(operator.inputs[place] for place in places))
        for places in (FORWARD, BACKWARD)
    ]
    units = [graph.input(part, 18).shape[-1:] or (0,) for part in parts]
    shapes = [(*x.shape[:2], *count) for count in units]
    if merged:
        graph.expect(operator, (*x.shape[:2], units[0][0] + units[1][0]))
    else:
        for place, shape in enumerate(shapes):
            graph.expect(operator, shape, place)
    name, axis = graph.output(operator).name, 0 if options.TimeMajor() else 1
    results = [Tensor(f"{name}/{way}", shape, x.dtype)
               for way, shape in zip(("forward", "backward"), shapes, strict=True)]
    numbers = [graph.add(tensor) for tensor in results] if merged else operator.outputs
    reverse, late = (graph.add(tensor) for tensor in (
        dataclasses.replace(x, name=f"{name}/reversed", data=None),
        dataclasses.replace(results[1], name=f"{name}/late"),
    ))
    host = _Host(operator, name)
    nodes = [
        *layer(graph, parts[0], options, (operator.inputs[0], x), (numbers[0], results[0])),
        host("reverse", (operator.inputs[0],), reverse, axes=(axis,)),
        *layer(graph, parts[1], options, (reverse, x), (late, results[1])),
        host("reverse", (late,), numbers[1], axes=(axis,)),
    ]
    if merged:
        nodes.append(host("concatenation", tuple(numbers), operator.outputs[0], axis=2))
    return nodes


REASON = "it only moves values"


class _Host:
    """Makes the nodes that move values."""

    def __init__(self, operator, name):
        self._common = {
            "operator": operator.name, "name": name, "position": (operator.position,),
            "reason": REASON,
        }

    def __call__(self, kernel, inputs, output, **attributes):
        return Host(
            **self._common, inputs=inputs, outputs=(output,), kernel=kernel, attributes=attributes
        )


BUILDERS = {
    "SVDF": _svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _bidirectional,
}
