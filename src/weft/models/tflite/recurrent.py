"""Operators with a state: their products of the input run on Weft, the rest on the host."""

import dataclasses
import math

import numpy as np
import tflite

from weft.models.ir import Gemm, Host, Recurrence, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.products import FINISH, QUANTIZE
from weft.models.tflite.scales import (
    FUSED,
    RANGES,
    fused_limits,
    multiplier_and_shift,
    per_tensor,
)

__all__ = ["BUILDERS", "layer"]

RELU, TANH = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.TANH
_ROWS = {False: "symmetric", True: "asymmetric"}  # rules of rows that LiteRT quantizes


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
    is_hybrid = kinds in [
        ["float32", kind, kind, "float32", "float32"] for kind in ("int8", "uint8")
    ]
    if not is_hybrid and kinds not in [
        ["int8", "int8", kept, kept, "int8"] for kept in ("int8", "int16")
    ]:
        raise Fallback(f"no kernel for {', '.join(kinds)}")
    fused = options.FusedActivationFunction()
    if not is_hybrid and fused != RELU:
        raise Fallback("TFLite Micro has SVDF with RELU alone")
    if fused not in FUSED:
        raise Fallback(f"fused activation {fused} is not a clamp")
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
        kind = np.dtype(np.float32 if is_hybrid else np.int32)
        if bias.size != filters // rank or bias.dtype != kind:
            raise operator.error(
                f"bias must be {filters // rank} {kind}, not {bias.dtype} {bias.shape}"
            )
        bias = bias.reshape(-1)
    if bias is None and graph.present(operator, 3):
        raise Fallback("the bias is not a constant")
    weights, time_value = graph.constant(operator, 1), graph.constant(operator, 2)
    if is_hybrid:
        low, high = RANGES[FUSED[fused]]
        return _hybrid_svdf(
            graph, operator, weights.view(np.int8), asymmetric=options.AsymmetricQuantizeInputs(),
            time=time_value.view(np.int8) * np.float32(per_tensor(operator, time)[0]),
            bias=bias, rank=rank, low=low, high=high,
        )
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


def _hybrid_svdf(graph, operator, weights, asymmetric, **attributes):
    """An SVDF of float32 with features of 8 bits; the state and the filter in time are float32."""
    x, y = graph.input(operator, 0), graph.output(operator)
    scale = np.float32([per_tensor(operator, graph.input(operator, 1))[0]])
    nodes, features = _hybrid_product(
        graph, operator, (operator.inputs[0], x), f"{y.name}/features", weights, scale, None,
        _ROWS[bool(asymmetric)],
    )
    return [
        *nodes,
        Host(
            operator=operator.name, position=(operator.position,), name=y.name, inputs=(features,),
            outputs=operator.outputs, kernel="litert.svdf", attributes=attributes,
            reason="a state and a filter in time, of float32",
            macs=x.shape[0] * attributes["time"].size,
        ),
    ]


def _hybrid_product(graph, operator, source, name, weights, scale, bias, rule):
    """The nodes of a product of float32 rows with int8 weights, and the tensor of its results.

    Parameters
    ----------
    source : (int, Tensor)
        The rows: [..., K].
    name : str
        Of the results.
    weights : array [N, K]
    scale, bias : float32 array, or None for no bias
        Of the columns.
    rule : str
        How LiteRT quantizes the rows.
    """
    number, x = source
    rows, size = (*x.shape[:-1], 1), (*x.shape[:-1], len(weights))
    values, *scales, sums, results = (
        graph.add(Tensor(f"{name}/{part}" if part else name, shape, np.dtype(kind)))
        for part, shape, kind in (
            ("rows", x.shape, np.int8), ("scale", rows, np.float32), ("zero", rows, np.int32),
            ("sums", size, np.int32), ("", size, np.float32),
        )
    )
    common = {"operator": operator.name, "position": (operator.position,)}
    graph.hybrid += 1
    return [
        Host(
            **common, name=name, inputs=(number,), outputs=(values, *scales),
            kernel="litert.quantize_rows", reason=QUANTIZE, attributes={
                "shape": x.shape, "axes": (len(x.shape) - 1,), "rule": rule, "padding": None,
                "spread": (1, 1),
            },
        ),
        Gemm(
            **common, name=f"{name}/sums", inputs=(values,), outputs=(sums,), x=values,
            weights=weights.T[None],
        ),
        Host(
            **common, name=name, inputs=(sums, *scales), outputs=(results,),
            kernel="litert.float_sums", reason=FINISH, attributes={
                "columns": weights.sum(1, dtype=np.int64), "bias": bias, "rule": rule,
                "scale": scale, "low": -np.inf, "high": np.inf, "shape": size,
            },
        ),
    ], results


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
    is_hybrid = is_float and _is_hybrid(graph, operator)
    if is_hybrid:
        stored = graph.input(operator, 2).dtype
    weights = _stacked(graph, operator, range(1, 5), (units, size), stored)
    recurrent = _stacked(graph, operator, range(5, 9), (units, units), stored)
    bias = _stacked(graph, operator, range(12, 16), (units,), kind)
    if is_hybrid:
        return _hybrid_lstm(
            graph, operator, source, target, weights.view(np.int8), recurrent.view(np.int8), bias,
            _ROWS[bool(options.AsymmetricQuantizeInputs())], time, {
                "time_major": major, "limit": float(clip),
                "range": RANGES.get(FUSED.get(options.FusedActivationFunction())),
            },
        )
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
            reason=f"the host computes the gates and the cell{'' if is_float else ', of 16 bits'}",
            attributes={"time_major": major, **attributes},
            products=(Gemm(
                **common, name=f"{y.name}/recurrent", inputs=(state,), outputs=(own,), x=state,
                x_zero=zeros[1], weights=recurrent.T[None],
            ),),
        ),
    ]


def _hybrid_lstm(
    graph, operator, source, target, weights, recurrent, bias, rule, time, attributes
):
    """The nodes of an LSTM of float32 with weights of 8 bits."""
    (_, x), (output, y), units = source, target, len(recurrent) // 4
    scales = [
        np.float32(per_tensor(operator, graph.input(operator, place))[0]) for place in range(1, 9)
    ]
    of_input, of_state = (np.repeat(scales[part], units) for part in (slice(4), slice(4, 8)))
    nodes, fed = _hybrid_product(
        graph, operator, source, f"{y.name}/input", weights, of_input, bias, rule
    )
    batch = x.shape[1] if attributes["time_major"] else x.shape[0]
    state = graph.add(Tensor(f"{y.name}/state", (batch, units), np.dtype(np.int8)))
    own = graph.add(Tensor(f"{y.name}/recurrent", (batch, 4 * units), np.dtype(np.int32)))
    common = {"operator": operator.name, "position": (operator.position,)}
    graph.hybrid += 1  # of the state
    return [
        *nodes,
        Recurrence(
            **common, name=y.name, inputs=(fed,), outputs=(output,), kernel="litert.lstm",
            steps=time, reason="the host computes the gates and the cell",
            attributes=attributes | {
                "rule": rule, "scale": of_state, "columns": recurrent.sum(1, dtype=np.int64),
            },
            products=(Gemm(
                **common, name=f"{y.name}/recurrent", inputs=(state,), outputs=(own,), x=state,
                weights=recurrent.T[None],
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
    fused = options.FusedActivationFunction()
    if kinds[0] == "float32" and _is_hybrid(graph, operator):
        # LiteRT leaves values out without an activation; TFLite Micro takes the weights for floats.
        if fused != TANH and FUSED.get(fused, "none") == "none":
            raise operator.error(
                f"activation must be TANH or a clamp in an LSTM with weights of 8 bits, not {fused}"
            )
    elif fused != TANH:
        raise Fallback("an LSTM whose activation is not TANH")
    if kinds[0] == "float32":
        return 0, 0
    zeros = per_tensor(operator, x)[1], per_tensor(operator, hidden)[1]
    if kinds[0] == "int16" and any(zeros):
        raise Fallback("int16 with a zero point")
    return zeros


def _is_hybrid(graph, operator):
    """Whether the weights of an LSTM of float32 have 8 bits."""
    return graph.input(operator, 2).dtype in (np.int8, np.uint8)


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
