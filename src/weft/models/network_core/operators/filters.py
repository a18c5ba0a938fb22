"""SVDF, whose state stays in the memory of the core.

`weft.models.network_core.operators.wide_filters` has the layers for a state of int16; those for a
state of int8 are here.

The state is a map of ``rank`` rows and ``memory`` columns with a channel for each output: a row has
the last values of a filter, the newest one at the end. A step is three parts::

    state[:, :-1] = state[:, 1:]                                    a copy into the same map
    state[:, -1] = wrap(clamp(scale(x * features)) + state_zero)    a layer for each rank
    y = clamp(scale(state * time + bias) + zero)                    a depthwise convolution

The copy stores a pixel after it has read it: jobs read and store pixels in the order of their rows,
and each one is stored in the place of the pixel before.

The runtime clamps a new value to 8 bits, and then adds the zero point of the state, modulo 256. So
a large value c gets the other sign. Where the weights allow such values, the newest column is::

    c = clamp(scale(x * features), -128, 127)
    t = clamp(4 * (c - 127 + state_zero), 0, 4)       4 if c + state_zero exceeds 127
    state[:, -1] = c - 64 * t + state_zero            the same for state_zero < 0, with other signs
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.models.ir import Gemm, Graph, Host, Node, Recurrence, State, Tensor, Window
from weft.models.kernels.fixed_point import multiply
from weft.models.network_core.layers import NotKept, WeightLayout
from weft.models.network_core.operators import lstm
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise, whole_map
from weft.models.network_core.operators.wide_filters import first_state, wide_filter
from weft.models.network_core.pools import NO_PADDING

__all__ = [
    "HOST_FILTER", "LOWERINGS", "WHOLE", "StateFilter", "check_filter", "filters_of", "is_filter",
    "with_filters", "without_filter",
]

FILTER = "filter"  # kernel of a node with the product and the filter in time
HOST_FILTER = "tflite.svdf"  # kernel of the filter in time alone
WHOLE = FILTER, lstm.KERNEL  # kernels of nodes with a product and a state

_LEAST, _MOST = -128, 127
_WRAPS = 4  # t of a value that wraps; times 64 it is 256
_MODE = "tflite"  # whose rounding the filters of the runtime have


@dataclass(frozen=True, eq=False)
class StateFilter:
    """An SVDF or an LSTM: the two nodes that the importer makes, and the one for the core.

    Attributes
    ----------
    nodes : (Gemm, Host or Recurrence)
        The product of the input, and the filter in time, or the gates and the cell.
    node : Host
        Both of them; its inputs are x and the state, which it changes.
    state : State
    """

    nodes: tuple[Gemm, Host | Recurrence]
    node: Host
    state: State


def filters_of(
    graph: Graph, mode: str, cols: int, depth: int, batch: int, variables: bool
) -> tuple[Graph, tuple[StateFilter, ...]]:
    """Return the filters whose state a core may keep, and the graph with tensors of the states.

    They are SVDF of int8, with a state of int8 or int16, and LSTM of int8.

    The nodes of others have the reason. The parameters are those of
    `weft.models.network_core.division.divide`.
    """
    tensors, found, reasons = list(graph.tensors), [], {}
    makers = {node.outputs[0]: node for node in graph.nodes if isinstance(node, Gemm)}
    for node in graph.nodes:
        is_lstm = isinstance(node, Recurrence) and node.kernel == lstm.HOST_KERNEL
        if not is_lstm and not (
            isinstance(node, Host) and is_filter(node.kernel, node.attributes)
        ):
            continue
        gemm, number = makers[node.inputs[0]], len(tensors)
        name = f"state of {node.name or f'operator {node.position[0]}'}"
        reason = _reason_of_state(mode, batch, variables)
        reason = reason or (lstm.reason_of(graph, node) if is_lstm else _reason(graph, gemm))
        if reason:
            reasons[node] = reason
            continue
        initial, whole = (
            lstm.whole_lstm(gemm, node, number) if is_lstm
            else _whole_filter(gemm, node, number, cols, depth)
        )
        tensors.append(Tensor(name, initial.shape, initial.dtype))
        found.append(StateFilter((gemm, node), whole, State(
            name=name, initial=initial, before=number, after=number, position=node.position,
        )))
    nodes = tuple(
        dataclasses.replace(node, reason=reasons[node]) if node in reasons else node
        for node in graph.nodes
    )
    return dataclasses.replace(graph, nodes=nodes, tensors=tuple(tensors)), tuple(found)


def is_filter(kernel: str, attributes: Mapping[str, Any]) -> bool:
    """Return whether an operator of the host is the filter in time of an SVDF of integers."""
    return kernel == HOST_FILTER and attributes["time"].dtype in (np.int8, np.int16)


def _whole_filter(gemm, node, number, cols, depth):
    """Return the state before the first inference, and the node with both parts of a filter."""
    given = node.attributes
    (filters, memory), rank = given["time"].shape, given["rank"]
    if given["time"].dtype == np.int16:
        initial = first_state(given, cols, depth)
    else:
        initial = np.full((1, rank, memory, filters // rank), given["state_zero"], np.int8)
    return initial, dataclasses.replace(
        node, inputs=(gemm.x, number), kernel=FILTER, macs=node.macs + gemm.weights.size,
        attributes={**given, "features": gemm.weights[0], "x_zero": gemm.x_zero},
    )


def _reason(graph, gemm):
    """Return why the host computes a filter; empty if the core may."""
    rows = graph.tensors[gemm.outputs[0]].shape[0]
    return "" if rows == 1 else f"its input must have one row, not {rows}"


def _reason_of_state(mode, batch, variables):
    """Return why no state stays in the memory of the core; empty if it may."""
    if mode != _MODE:
        return f"the core keeps its state in mode {_MODE}, not {mode}"
    if batch > 1:
        return "the core keeps its state in lists of one inference"
    if not variables:
        return "the program keeps no state in the memory of the core"
    return ""


def with_filters(
    graph: Graph, filters: tuple[StateFilter, ...], kept: tuple[State, ...]
) -> tuple[Graph, tuple[State, ...]]:
    """Return the graph with one node for each of ``filters``, and their states behind ``kept``."""
    whole = {part.nodes[1]: part.node for part in filters}
    products = {part.nodes[0] for part in filters}
    nodes = (whole.get(node, node) for node in graph.nodes if node not in products)
    states = tuple(part.state for part in filters)
    return (
        dataclasses.replace(graph, nodes=tuple(nodes), states=(*graph.states, *states)),
        (*kept, *states),
    )


def without_filter(
    graph: Graph, filters: tuple[StateFilter, ...], refused: NotKept
) -> tuple[Graph, tuple[StateFilter, ...]]:
    """Return the graph, and the filters without the one that the core refuses.

    The node of the graph that the host computes in its place has the reason.
    """
    lost = {part.nodes[1] for part in filters if part.state is refused.state}
    nodes = (
        dataclasses.replace(node, reason=refused.reason or node.reason) if node in lost else node
        for node in graph.nodes
    )
    return (
        dataclasses.replace(graph, nodes=tuple(nodes)),
        tuple(part for part in filters if part.state is not refused.state),
    )


def check_filter(node: Node, states: tuple[State, ...], reason: str) -> None:
    """Raise NotKept if a node has one of ``states``: the host has two nodes for it."""
    if isinstance(node, Host) and node.kernel in WHOLE:
        state, = (state for state in states if state.before == node.inputs[1])
        raise NotKept(state, reason)


def _filter(builder: OperatorBuilder) -> int:
    """Append the layers; Refusal if they do not give the results of the kernel."""
    if builder.node.attributes["time"].dtype == np.int16:
        return wide_filter(builder)
    given, rank = builder.node.attributes, builder.node.attributes["rank"]
    features, time, zero = given["features"], given["time"], given["state_zero"]
    (x, _), state, memory = builder.stored(0), builder.shifted(1), time.shape[1]
    units, (height, width, channels) = builder.size(state)[2], builder.size(x)
    whole = whole_map((height, width))
    newest = builder.view(state, (rank, 1, units), column=memory - 1)
    wraps = zero and _may_wrap(given)
    both = builder.map((rank, 2, units)) if wraps else -1  # c and t
    for row in range(rank):
        weights = features[:, row::rank]
        builder.layer(
            x, whole, weights.reshape(height * width, channels, -1), layout=WeightLayout.DENSE,
            bias=-given["x_zero"] * weights.sum(0, dtype=np.int64), x_zero=given["x_zero"],
            scale=(given["multipliers"][0], given["shifts"][0]),
            y=builder.view(both if wraps else newest, (1, 1, units), row=row),
            **({} if wraps else {
                "zero": zero, "low": max(_LEAST, _LEAST + zero), "high": min(_MOST, _MOST + zero),
            }),
        )
    if wraps:
        _wrap(builder, both, newest, zero)
    # From [units, rank, memory] to taps of columns.
    taps = time.reshape(units, rank, memory).transpose(1, 2, 0).reshape(rank * memory, units)
    bias = 0 if given["bias"] is None else given["bias"].astype(np.int64)
    return builder.layer(
        state, whole_map((rank, memory)), taps,
        bias=bias - zero * taps.sum(0, dtype=np.int64), x_zero=zero,
        scale=(given["multipliers"][1], given["shifts"][1]), zero=given["zero"],
        low=given["low"], high=given["high"],
    )


def _wrap(builder, both, newest, zero):
    """Append the layers that add the zero point to the first column of a map, modulo 256."""
    rank, _, units = builder.size(both)
    values, signs = (
        builder.view(both, (rank, 1, units), column=column) for column in range(2)
    )
    sign = 1 if zero > 0 else -1
    limit = (_MOST if zero > 0 else _LEAST) - zero  # of the values that do not wrap
    builder.equal(
        values, pointwise((rank, 1, units)), sign * _WRAPS, bias=-sign * _WRAPS * limit,
        low=0, high=_WRAPS, y=signs,
    )
    window = Window((1, 2), (1, 1), (1, 1), NO_PADDING, (rank, 2), (rank, 1))
    builder.taps(both, window, [1, -sign * 256 // _WRAPS], zero=zero, y=newest)


def _may_wrap(given):
    """Whether a new value with the zero point may exceed 8 bits."""
    features, zero = given["features"].astype(np.int64), given["state_zero"]
    ends = [features * (value - given["x_zero"]) for value in (_LEAST, _MOST)]
    (multiplier, _), (shift, _) = given["multipliers"], given["shifts"]
    sums = [choose(*ends).sum(0) for choose in (np.minimum, np.maximum)]
    values = np.clip(multiply(np.stack(sums), multiplier, shift), _LEAST, _MOST) + zero
    return values.min() < _LEAST or values.max() > _MOST


LOWERINGS = {FILTER: _filter, lstm.KERNEL: lstm.lstm}
