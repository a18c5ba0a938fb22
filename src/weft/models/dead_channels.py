"""Channels that are constant or that nobody reads are left out of a network."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.models import kernels
from weft.models.arithmetic import Rescale
from weft.models.ir import Gemm, Graph, Host

__all__ = ["Channels", "ConstantProduct", "Constants", "LeftOut", "leave_out_channels", "notes_of"]


_BYTES = np.dtype(np.int8), np.dtype(np.uint8)
_MAX_BIAS = 1 << 30  # with the constants in it: all sums stay far from the limits of int32
# Kernels that compute each channel of their output from the same channel of their inputs.
_EACH_VALUE = {"table", "tflite.requantize", "tflite.add", "litert.add"}
_EACH_MAP = {"tflite.average_pool", "tflite.max_pool", "pad"}  # NHWC
_MEANS = {"tflite.mean", "tflite.sum", "litert.sum"}
_AVERAGES = {"tflite.average_pool", "tflite.mean", "litert.sum"}


class Channels(NamedTuple):
    """Which channel a value of a tensor belongs to: ``index // inner % count`` of its place.

    Along ``axis`` of the tensor the places are [more, count, step].
    """

    count: int
    inner: int
    axis: int
    step: int

    @classmethod
    def of(cls, shape, count, inner) -> "Channels | None":
        """Return the channels of a tensor of ``shape``; None if they lie on several axes."""
        tail = 1
        for axis in reversed(range(len(shape))):
            if inner % tail == 0 and shape[axis] % (inner // tail * count) == 0:
                return cls(count, inner, axis, inner // tail)
            tail *= shape[axis]
        return None

    def shape(self, shape, count):
        """Return the shape of a tensor with ``count`` channels."""
        size = shape[self.axis] // self.count * count
        return (*shape[: self.axis], size, *shape[self.axis + 1 :])


@dataclass(frozen=True)
class ConstantProduct:
    """What a Gemm with constant weights reads.

    Attributes
    ----------
    needs : bool [groups, channels, N]
        Whether a column depends on a channel of its group that is not in its bias.
    folds : int64 [groups, channels, N]
        What a constant channel adds to the bias.
    """

    needs: np.ndarray
    folds: np.ndarray


class Constants:
    """The tensors whose channels are known, and which of them are constant.

    Attributes
    ----------
    channels : dict of Channels
        By tensor.
    products : dict of ConstantProduct
        By the first output of a Gemm.
    """

    def __init__(self, graph, mode):
        self.graph, self._mode = graph, mode
        self.channels: dict[int, Channels] = {}
        self.products: dict[int, ConstantProduct] = {}
        # By tensor: the value of each channel, and whether it has this one everywhere.
        self._values: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for node in graph.nodes:
            if isinstance(node, Gemm):
                self._product(node)
            elif self.is_tied(node):
                self._host(node)

    def read_by(self, gemm) -> Channels | None:
        """Return the channels of x as a product reads them; None if it reads others."""
        found = self.channels.get(gemm.x)
        if found is None:
            return None
        groups, k, _ = gemm.weights.shape
        if gemm.window is None:
            return found if k % (found.count * found.inner) == 0 else None
        inner = 1 if gemm.layout == "NHWC" else math.prod(self.graph.tensors[gemm.x].shape[2:])
        each = k // math.prod(gemm.window.kernel)
        return found if (found.count, found.inner) == (groups * each, inner) else None

    def is_tied(self, node) -> bool:
        """Whether the channels of a node's output are those of all its inputs."""
        if not isinstance(node, Host) or len(node.outputs) != 1:
            return False
        found = [self.channels.get(number) for number in node.inputs]
        if not found or None in found or len(set(found)) > 1:
            return False
        y, after = self._after(node, found[0]), self.graph.tensors[node.outputs[0]]
        return y is not None and after.dtype in _BYTES and _is_whole(after)

    def is_average(self, node) -> bool:
        """Whether a node gives each channel of a map one value."""
        return self.is_tied(node) and node.kernel in _AVERAGES and (
            math.prod(self.graph.tensors[node.outputs[0]].shape)
            == self.channels[node.inputs[0]].count
        )

    def _after(self, node, x):
        """The channels of a node's output, if each is computed from one of x."""
        shapes = [self.graph.tensors[number].shape for number in (*node.inputs, *node.outputs)]
        y = shapes[-1]
        if node.kernel in _EACH_VALUE:
            return x if len(set(shapes)) == 1 else None
        if node.kernel == "reshape":
            return Channels.of(y, x.count, x.inner)
        is_last = (x.inner, x.axis, x.count) == (1, len(shapes[0]) - 1, shapes[0][-1])
        if not is_last or len(node.inputs) != 1 or y[-1:] != (x.count,):
            return None
        if node.kernel in _MEANS:
            axes = {axis % len(shapes[0]) for axis in node.attributes["axes"]}
            return None if x.axis in axes else Channels.of(y, x.count, 1)
        if node.kernel == "pad":
            return None if any(node.attributes["padding"][-1]) else x
        return x if node.kernel in _EACH_MAP else None

    def _host(self, node):
        """Compute the constant channels of an output by the kernel."""
        x, number = self.channels[node.inputs[0]], node.outputs[0]
        y = self._after(node, x)
        self.channels[number] = y
        masks, inputs = [], []
        for place in node.inputs:
            values, constant = self._values[place]
            tensor = self.graph.tensors[place]
            index = np.arange(math.prod(tensor.shape)) // x.inner % x.count
            inputs.append(values[index].reshape(tensor.shape).astype(tensor.dtype))
            masks.append(constant)
        constant = np.logical_and.reduce(masks)
        values = np.zeros(x.count, np.int64)
        if constant.any():
            [found] = kernels.run(node.kernel, inputs, node.attributes)
            rows = found.reshape(-1, y.count, y.inner).swapaxes(1, 2).reshape(-1, y.count)
            constant = constant & (rows == rows[0]).all(0)
            values = rows[0].astype(np.int64)
        self._values[number] = values, constant

    def _product(self, gemm):
        """Find the channels of a Gemm's output, and which are constant."""
        y, shape = gemm.outputs[0], self.graph.tensors[gemm.outputs[0]].shape
        if not self._is_open(gemm):
            return
        groups, k, n = gemm.weights.shape
        try:
            rescale = Rescale.of(gemm.requantization, groups * n, self._mode)
        except ValueError:  # the compiler names the operator
            return
        nchw = gemm.window is not None and gemm.layout == "NCHW"
        if shape[1 if nchw else -1] != groups * n:
            return
        x = self.read_by(gemm)
        zero = np.broadcast_to(gemm.w_zero, groups * n).reshape(groups, 1, n)
        whole = gemm.weights.astype(np.int64) - zero
        size = k // math.prod(gemm.window.kernel) if gemm.window is not None else k
        inner = 1
        if x is not None and gemm.window is None:
            size, inner = x.count, x.inner
        # [groups, channels of a group, their taps, N]
        whole = whole.reshape(groups, -1, size, inner, n).swapaxes(1, 2)
        whole = whole.reshape(groups, size, -1, n)
        values, constant = np.zeros((groups, size), np.int64), np.zeros((groups, size), bool)
        if x is not None:
            values, constant = (part.reshape(groups, size) for part in self._values[gemm.x])
        steps = values - gemm.x_zero
        bias = np.zeros(groups * n, np.int64) if gemm.bias is None else gemm.bias
        bias = bias.astype(np.int64).reshape(groups, n)
        folds = np.where(constant[..., None], steps[..., None] * whole.sum(2), 0)
        if (np.abs(bias) + np.abs(folds).sum(1)).max() >= _MAX_BIAS or _leaves_map(gemm.window):
            constant = constant & (steps == 0)
            folds = np.zeros_like(folds)
        needs = (whole != 0).any(2) & ~constant[..., None]
        self.products[y] = ConstantProduct(needs, folds)
        results = rescale.apply((bias + folds.sum(1)).reshape(1, -1))[0].astype(np.int64)
        inner = math.prod(shape[2:]) if nchw else 1
        self.channels[y] = Channels(groups * n, inner, 1 if nchw else len(shape) - 1, 1)
        self._values[y] = results, ~needs.any(1).reshape(-1)

    def _is_open(self, gemm):
        """Whether a product has constant weights, and operands and results of 8 bits."""
        tensors, given = self.graph.tensors, gemm.requantization
        return (
            gemm.weights is not None and given is not None and not gemm.x_transposed
            and gemm.table is None and not given.wide
            and tensors[gemm.x].dtype in _BYTES and _is_whole(tensors[gemm.x])
            and tensors[gemm.outputs[0]].dtype in _BYTES and _is_whole(tensors[gemm.outputs[0]])
        )


def _is_whole(tensor):
    """Whether all values of a tensor have one scale."""
    return tensor.quantization is None or len(tensor.quantization.scale) == 1


def _leaves_map(window):
    """Whether a window reads values that are not in its map."""
    if window is None:
        return False
    if window.spread != (1, 1):
        return True
    return any(
        before > 0 or (out - 1) * stride + (kernel - 1) * dilation - before >= size
        for size, out, stride, kernel, dilation, before in zip(
            window.input, window.output, window.stride, window.kernel, window.dilation,
            window.padding[::2], strict=True,
        )
    )


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

    ``graph`` has the kernels of ``mode`` (`weft.models.exactness.in_mode`). Averages of whole maps
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
