"""BIDIRECTIONAL_SEQUENCE_LSTM: two LSTMs, one of which gets the reversed input.

Source: LiteRT, ``bidirectional_sequence_lstm.cc``.
"""

import dataclasses

import numpy as np

from weft.models.ir import Host, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.lstm import layer

__all__ = ["BUILDERS"]

# By the place among the inputs of an LSTM of one direction, the place here.
FORWARD = (*range(18), 35, 36)
BACKWARD = (0, *range(18, 35), 37, 38)
OTHERS = range(39, 48)  # a second input, and its weights
REASON = "it only moves values"


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


BUILDERS = {"BIDIRECTIONAL_SEQUENCE_LSTM": _bidirectional}
