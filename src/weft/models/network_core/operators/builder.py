"""`OperatorBuilder`: the layers and the maps of one operator."""

import dataclasses
import math

import numpy as np

from weft.models.arithmetic import lane_parameters
from weft.models.ir import Gemm, Host, Tensor, Window
from weft.models.network_core.layers import (
    Addition,
    NetworkLayer,
    Refusal,
    WeightLayout,
    WrongMap,
)
from weft.models.network_core.map_pitches import MapView
from weft.models.network_core.pools import NO_PADDING
from weft.models.network_core.products import half_of

__all__ = ["DIFFERENCE", "OperatorBuilder", "pointwise", "whole_map"]

_BYTES = np.arange(256).astype(np.int8).astype(np.int32)
# The added map less the result of the layer, both bytes. All operators that compare share it, so
# a list that has several of them loads it once.
DIFFERENCE = np.stack([_BYTES, -_BYTES])


def pointwise(size: tuple[int, ...]) -> Window:
    """Return the window of a layer that reads each pixel of a map alone."""
    return Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], size[:2])


def whole_map(size: tuple[int, ...]) -> Window:
    """Return the window of a layer whose only pixel reads all pixels of a map."""
    return Window(size[:2], (1, 1), (1, 1), NO_PADDING, size[:2], (1, 1))


class OperatorBuilder:
    """Appends the layers of one operator.

    Maps are named by their numbers. All values are int8: those of uint8 tensors less 128.

    Parameters
    ----------
    division : the state of `weft.models.network_core.division.divide`
    node : Host or Gemm

    Attributes
    ----------
    node : Host or Gemm
    mode : str
        Rounding mode.
    cols, depth : int
        Columns of the array, channels of a vector.
    config : NetworkCoreConfig or None
        The core, if it is known.
    batch : int
        Inferences of a list.
    is_wide : bool
        The first output is of int16: the channels of its map are the bytes of its values.
    layers : list of NetworkLayer
    """

    def __init__(self, division, node: Host | Gemm):
        self.node = node
        self.mode, self.cols, self.depth = division.mode, division.cols, division.depth
        self.config, self.batch = division.network_core, division.batch
        self.layers: list[NetworkLayer] = []
        self.is_wide = node.outputs[0] in division.wide
        self._division, self._places = division, division.places
        self._first_list = self._places.core_list(node.inputs)

    def tensor(self, operand: int) -> Tensor:
        """Return an input of the operator."""
        return self._division.tensors[self.node.inputs[operand]]

    @property
    def multiplies_maps(self) -> bool:
        """Whether the core has the option for products of two maps."""
        config = self._division.network_core
        return config is not None and config.multiply_maps

    @property
    def output(self) -> Tensor:
        """The first output of the operator."""
        return self._division.tensors[self.node.outputs[0]]

    def zero(self, value: int, tensor: Tensor) -> int:
        """Return a zero point, or a limit, of a tensor as one of int8 values."""
        return value - half_of(tensor.dtype)

    def read(self, operand: int = 0, size: tuple[int, int, int] | None = None) -> int:
        """Return the map of an input: of its rows, its columns and its channels, or of ``size``.

        Raises Refusal if it is a constant, has no 8 bits, or is no single map.
        """
        tensor = self.tensor(operand)
        if tensor.data is not None or tensor.dtype not in (np.int8, np.uint8):
            raise Refusal("its inputs must be maps of 8 bits")
        size = self.map_size(tensor.shape) if size is None else size
        return self._places.input(self.node.inputs[operand], size)

    def stored_size(self, operand: int) -> tuple[int, int, int] | None:
        """Return the size of the map that has an input; None if the host has it."""
        return self._places.stored(self.node.inputs[operand])

    def stored(self, operand: int = 0) -> tuple[int, bool]:
        """Return the map that has an input, of any size, and whether the core computes it.

        It has all values in their order. Raises Refusal as `read`, and WrongMap if a tensor with
        the channels first lies there with other channels.
        """
        number, tensor, place = self.node.inputs[operand], self.tensor(operand), None
        if tensor.dtype in (np.int8, np.uint8):
            place = self._places.map_of(number)
        if place is not None and tensor.channels_first:
            channels = self.map_size(tensor.shape)[2]
            if self.size(place)[2] != channels:
                raise WrongMap(f"its input must have {channels} channels")
        return (self.read(operand), False) if place is None else (place, True)

    def kept(self, operand: int) -> int:
        """Return the map of a variable that stays in the memory; the operator may write it."""
        number = self.node.inputs[operand]
        return self._places.again(self._places.variables[number], number, self._first_list)

    def shifted(self, operand: int) -> int:
        """Append a copy that moves the columns of a variable to the left; return its map.

        It has no second map: it stores a pixel in the place of the one before, which it has read.
        """
        state = self.kept(operand)
        height, width, channels = self.size(state)
        if width > 1:
            rest = height, width - 1, channels
            self.copy(self.view(state, rest, column=1), y=self.view(state, rest, column=0))
        return state

    @staticmethod
    def map_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the rows, columns and channels of a tensor; Refusal if it is no single map."""
        if math.prod(shape[:-3]) != 1:
            raise Refusal(f"its shape must be one map, not {shape}")
        return (1, 1, 1, *shape)[-3:]

    def size(self, number: int) -> tuple[int, int, int]:
        """Return height, width and channels of a map."""
        return self._places.maps[number].size

    def map(self, size: tuple[int, int, int]) -> int:
        """Return a new map."""
        return self._places.between(size, self._first_list)

    def view(self, whole: int, size: tuple[int, int, int], **place) -> int:
        """Return a map of ``size`` in another one; ``place`` are fields of `MapView`.

        Raises Refusal if its channels begin inside a vector.
        """
        return self._places.view(whole, size, **place)

    def flat(self, number: int) -> int:
        """Return a map of one row with all pixels of a map; the map itself if they lie apart."""
        height, width, channels = self.size(number)
        try:
            return self.reshaped(number, (1, height * width, channels))
        except WrongMap:
            return number

    def reshaped(self, number: int, size: tuple[int, int, int]) -> int:
        """Return a map of ``size`` with the pixels of a map, in their order, where they lie.

        Raises WrongMap if they lie apart.
        """
        return self._places.reshaped(number, size)

    def into(self, number: int, whole: int, **place) -> None:
        """Put a map into another one: where its layer writes it, or as a copy.

        ``place`` are fields of `MapView`.
        """
        if not self._places.put_into(number, MapView(whole, **place)):
            self.copy(number, y=self.view(whole, self.size(number), **place))

    def layer(
        self, x: int, window: Window, weights: np.ndarray, *, y: int | None = None,
        layout: str = WeightLayout.DIAGONAL, groups: int = 1, parts: int = 1, bias=0,
        scale: tuple | None = None,
        x_zero: int = 0, zero: int = 0, low: int = -128, high: int = 127, b: int = -1,
        b_order: tuple[int, ...] = (), added: int = -1, addition: Addition | None = None,
        cell: int = -1, sums: bool = False, digits: str = "", reads_pairs: bool = False,
    ) -> int:
        """Append a layer, and return its map: ``y``, or a new one.

        The parameters are those of `NetworkLayer`; ``bias`` is without the zero point of x, and
        it and ``scale`` are numbers or arrays of columns; without one, the scale is 1. Taps outside
        the map are ``x_zero``.
        """
        scale = lane_parameters(1.0, self.mode) if scale is None else scale
        columns = weights.shape[-1]
        if y is None:
            y = self.map((*window.output, parts * columns))
        bias = np.broadcast_to(np.asarray(bias, np.int64), columns)
        multiplier, shift = (np.broadcast_to(np.asarray(v, np.int64), columns) for v in scale)
        layer = NetworkLayer(
            operators=(), name=self.node.name, position=self.node.position, macs=0, x=x, y=y,
            b=b, b_order=b_order, added=added, addition=addition, cell=cell, sums=sums,
            digits=digits, reads_pairs=reads_pairs, window=window, layout=layout, groups=groups,
            parts=parts,
            weights=weights.astype(np.int8), columns=columns, x_zero=x_zero, bias=bias,
            multiplier=multiplier, shift=shift, zero=zero, low=low, high=high,
        )
        self._division.check_layer(layer, self.size(x)[2])
        self.layers.append(layer)
        return y

    def equal(self, x: int, window: Window, weight: int = 1, **fields) -> int:
        """Append a layer whose column n is the sum of all taps of channel n, times a weight."""
        channels = self.size(x)[2]
        columns = max(self.cols, self.depth)  # whole vectors and whole words of B
        parts = channels // columns
        if window.output != (1, 1) or channels % columns:
            columns, parts = channels, 1
        weights = np.full((math.prod(window.kernel), columns), weight)
        return self.layer(x, window, weights, layout=WeightLayout.EQUAL, parts=parts, **fields)

    def taps(self, x: int, window: Window, weights, **fields) -> int:
        """Append a layer whose column n is the sum of the taps of channel n by their weights."""
        columns = np.repeat(np.asarray(weights).reshape(-1, 1), self.size(x)[2], 1)
        return self.layer(x, window, columns, **fields)

    def copy(self, x: int, window: Window | None = None, **fields) -> int:
        """Append a layer that copies a map, or the pixels that a window of one tap names."""
        return self.equal(x, pointwise(self.size(x)) if window is None else window, **fields)

    def repeated(self, x: int, copies: int) -> int:
        """Append layers that write each pixel of a map several times, side by side."""
        height, width, channels = self.size(x)
        whole = self.map((height, width * copies, channels))
        for column in range(copies):
            part = self.view(whole, self.size(x), column=column, pixel=(0, copies))
            self.copy(x, y=part)
        return whole

    def sum(
        self, x: int, added: int, window: Window | None = None, *, weight: int = 1, bias: int = 0,
        x_zero: int = 0, table: np.ndarray = DIFFERENCE, scale: tuple | None = None, zero: int = 0,
        low: int = -128, high: int = 127, y: int | None = None,
    ) -> int:
        """Append a copy of a map that adds another one through a table, and return its map.

        ``clamp(scale(table[0, added] + table[1, weight * x + bias]) + zero, low, high)``
        """
        scale = lane_parameters(1.0, self.mode) if scale is None else scale
        addition = Addition(table.astype(np.int32), *scale, zero, low, high)
        window = pointwise(self.size(x)) if window is None else window
        return self.equal(
            x, window, weight, bias=bias, x_zero=x_zero, added=added, addition=addition, y=y,
        )

    def finished(self, results: tuple[int, ...]) -> tuple[NetworkLayer, ...]:
        """Return all layers, the last one with the operator and the result that it completes."""
        if self.layers:
            last = self.layers[-1]
            result, views = last.y, self.where(last.y)
            while result not in results and views is not None:
                result, views = views.whole, self.where(views.whole)
            if result not in results:  # a view of what the layer writes
                result = results[-1]
            self.layers[-1] = dataclasses.replace(
                last, operators=(self.node.operator,), result=-1 if result == last.y else result,
                macs=self.node.macs if isinstance(self.node, Host) else 0,
            )
        return tuple(self.layers)

    def where(self, number: int) -> MapView | None:
        """Return the view of a map, None without."""
        return self._places.maps[number].view
