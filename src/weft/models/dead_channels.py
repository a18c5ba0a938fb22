"""Leaves out the channels of a network that no result depends on, or that are constant.

A channel is **constant** if it has the same value at all places of its map, for every input: the
weights of its column are 0, or read constant channels only. A convolution reads the zero point
outside a map, so a constant channel stays constant there only if it is the zero point, or if no
window reaches outside. A channel is **dead** if the weights of all products that read it are 0, or
if these products add its constant value to their bias.

Dead channels are left out through pools, tables, sums, and convolutions with groups, whose outputs
have the channels of their inputs. The outputs of the network keep all channels, and their bytes.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.models.constant_channels import Constants
from weft.models.ir import Gemm, Graph, Host

__all__ = ["LeftOut", "leave_out_channels", "notes_of"]


@dataclass(frozen=True)
class LeftOut:
    """What a program does not compute.

    Attributes
    ----------
    channels : int
        Output channels of products.
    macs : int
        Multiply-accumulate operations.
    tensors : tuple of int
        Those without some of their channels.
    """

    channels: int = 0
    macs: int = 0
    tensors: tuple[int, ...] = ()

    def __str__(self):
        return (
            f"left out: {self.channels:,} channels of products, which are constant or which no"
            f" result depends on, with {self.macs:,} MAC"
        )


def leave_out_channels(graph: Graph, mode: str, multiple: int = 1) -> tuple[Graph, LeftOut]:
    """Return the network without dead channels, and what it lacks.

    ``graph`` has the kernels of ``mode`` (`weft.models.host_modes.in_mode`). Averages of whole maps
    keep a ``multiple`` of channels if they have so many: a network core computes groups of them at
    once.
    """
    return _Reduction(graph, _Liveness(graph, Constants(graph, mode), multiple)).result()


def notes_of(graph: Graph, left_out: LeftOut | None) -> tuple[str, ...]:
    """Return the notes of a program: those of the network, and what it leaves out."""
    return (*graph.notes, *([str(left_out)] if left_out and left_out.channels else []))


class _Liveness:
    """Which channels are needed: by tensor, bool [channels]; a tensor keeps at least one.

    It grows from the outputs of the network, and its variables, until no operator needs more.
    """

    def __init__(self, graph, constants, multiple):
        self.constants = constants
        self.live = {
            number: np.zeros(found.count, bool) for number, found in constants.channels.items()
        }
        for number in graph.results:
            self._need(number, True)
        self._grow(graph)
        for live in self.live.values():
            live[0] |= not live.any()
        self._grow(graph)
        for node in graph.nodes:
            if constants.is_average(node):
                live = self.live[node.outputs[0]]
                live[np.flatnonzero(~live)[: -live.sum() % multiple]] = True
        self._grow(graph)

    def _need(self, number, needed) -> int:
        """Add channels of a tensor; return how many are new."""
        live = self.live.get(number)
        if live is None:
            return 0
        before = live.sum()
        live |= needed
        return int(live.sum() - before)

    def _grow(self, graph):
        while sum(self._node(node) for node in reversed(graph.nodes)):  # each node, each time
            pass

    def _node(self, node) -> int:
        """Add what a node needs; return how many channels are new."""
        number = node.outputs[0]
        if number in self.constants.products:
            return self._product(node)
        if self.constants.is_tied(node):
            needed = self.live[number].copy()
            for other in node.inputs:
                needed |= self.live[other]
            return sum(self._need(other, needed) for other in (*node.inputs, number))
        return sum(self._need(other, True) for other in node.inputs)

    def _product(self, gemm):
        y, needs = gemm.outputs[0], self.constants.products[gemm.outputs[0]].needs
        groups, size, n = needs.shape
        known = self.constants.read_by(gemm) is not None
        if groups == 1:
            needed = needs[0][:, self.live[y]].any(1) if known else True
            return self._need(gemm.x, needed)
        # A group stays whole.
        each = self.live[y].reshape(groups, n).any(1)
        each |= self.live[gemm.x].reshape(groups, size).any(1) if known else True
        needed = np.repeat(each, size) if known else True
        return self._need(y, np.repeat(each, n)) + self._need(gemm.x, needed)


class _Reduction:
    """Makes the network without the channels that are not live."""

    def __init__(self, graph, liveness):
        self._graph, self._constants, self._live = graph, liveness.constants, liveness.live

    def result(self):
        graph, tensors = self._graph, list(self._graph.tensors)
        changed = [number for number, live in self._live.items() if not live.all()]
        for number in changed:
            found, live = self._constants.channels[number], self._live[number]
            shape = found.shape(tensors[number].shape, int(live.sum()))
            tensors[number] = dataclasses.replace(tensors[number], shape=shape)
        nodes = tuple(self._node(node, tensors) for node in graph.nodes)
        products = [number for number in changed if number in self._constants.products]
        return dataclasses.replace(graph, tensors=tuple(tensors), nodes=nodes), LeftOut(
            channels=sum(int((~self._live[number]).sum()) for number in products),
            macs=sum(node.left_out for node in nodes if isinstance(node, Gemm)),
            tensors=tuple(changed),
        )

    def _node(self, node, tensors):
        number = node.outputs[0]
        if number in self._constants.products:
            return self._product(node, tensors)
        if isinstance(node, Host) and number in self._live and "shape" in node.attributes:
            attributes: Mapping = {**node.attributes, "shape": tensors[number].shape}
            return dataclasses.replace(node, attributes=attributes)
        return node

    def _product(self, gemm, tensors):
        y, found = gemm.outputs[0], self._constants.products[gemm.outputs[0]]
        groups, size, n = found.needs.shape
        kept, x = self._live[y].reshape(groups, n), self._constants.read_by(gemm)
        rows = np.ones((groups, size), bool)
        if x is not None:
            rows = self._live[gemm.x].reshape(groups, size)
        if kept.all() and rows.all():
            return gemm
        inner = x.inner if x is not None and gemm.window is None else 1
        weights = gemm.weights.reshape(groups, -1, size, inner, n)
        bias = None if gemm.bias is None else gemm.bias.reshape(groups, n)
        if groups == 1:
            weights = weights[:, :, rows[0]][..., kept[0]]
            added = found.folds[0][~rows[0]].sum(0)
            if bias is not None or added.any():
                bias = (added if bias is None else bias + added)[..., kept[0]]
        else:
            whole = kept.all(1)
            weights = weights[whole]
            bias = None if bias is None else bias[whole]
        scaled = gemm.requantization
        flat = kept.reshape(-1)
        reduced = dataclasses.replace(
            gemm, weights=np.ascontiguousarray(weights).reshape(
                len(weights), -1, weights.shape[-1]
            ),
            w_zero=_of_columns(gemm.w_zero, flat), bias=None if bias is None else bias.reshape(-1),
            requantization=dataclasses.replace(
                scaled, w_scale=_of_columns(np.asarray(scaled.w_scale), flat)
            ),
        )
        left_out = _macs(gemm, self._graph.tensors) - _macs(reduced, tensors)
        return dataclasses.replace(reduced, left_out=left_out)


def _macs(gemm, tensors):
    """The multiply-accumulate operations of a product."""
    groups, _, n = gemm.weights.shape
    return math.prod(tensors[gemm.outputs[0]].shape) // (groups * n) * gemm.weights.size


def _of_columns(values, kept):
    """The values of some columns, if each column has one."""
    return values if values.size == 1 else values[kept]
