"""The layers of a network as a network core computes them, and the maps between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Host, State, Tensor, Window
from weft.models.network_core.map_pitches import MapView
from weft.models.program import Step

__all__ = [
    "LOW_ZERO", "PAIRS", "Addition", "GraphSegment", "InputForm", "NetworkCoreGraph",
    "NetworkLayer", "NetworkMap", "NotKept", "Refusal", "WeightLayout", "WrongMap",
]

PAIRS = "pairs", "quad_pairs"  # `NetworkLayer.digits` of results of 16 bits
LOW_ZERO = -128  # the low byte of a value of int16 that is 0; its high byte is 0

# Multipliers and shifts of a scale of 1: of TensorFlow Lite, and the bits of a float32.
_ONE = ({1 << 30}, {1}), ({0x3F800000}, {0})


class Refusal(Exception):
    """An operator that the core cannot compute; the text is the reason."""


class WrongMap(Refusal):
    """A layer whose input is on the core, but not as a map that the layer can read."""


class NotKept(Exception):
    """The memory cannot keep a state, so the session does.

    Attributes
    ----------
    state : State
    reason : str
        Why the operator that has it is no layer; empty without such an operator.
    """

    def __init__(self, state: State, reason: str = ""):
        super().__init__(state.name)
        self.state = state
        self.reason = reason


class WeightLayout:
    """How a layer's columns read the channels of its input.

    ``DENSE``: each column reads all channels of its group. ``DIAGONAL``: column n reads only
    channel n. ``EQUAL``: as DIAGONAL, and all weights are equal. Two are no convolutions:
    ``NONE``, the SOFTMAX of each pixel, and ``LSTM``, a step in time of its gates and its cell.
    """

    DENSE = "dense"
    DIAGONAL = "diagonal"
    EQUAL = "equal"
    NONE = "none"
    LSTM = "lstm"


@dataclass(frozen=True)
class InputForm:
    """How a tensor of the host becomes a map: blocks of pixels become one pixel.

    Channel ``(by * block[1] + bx) * channels + c`` of map pixel (Y, X) is the value at row ``Y *
    block[0] - offset[0] + by``, column ``X * block[1] - offset[1] + bx``, channel c. Outside the
    tensor it is ``fill``.

    Attributes
    ----------
    tensor : int
    height, width, channels : int
        Of the tensor's values.
    fill : int
        int8: the zero point, if blocks have pixels outside the tensor.
    block, offset : (int, int)
    channels_first : bool
        The tensor's values have the order channel, row, column.
    pairs : bool
        The channels are the bytes of values of int16, which are 0 outside the tensor.
    """

    tensor: int
    height: int
    width: int
    channels: int
    fill: int = 0
    block: tuple[int, int] = (1, 1)
    offset: tuple[int, int] = (0, 0)
    channels_first: bool = False
    pairs: bool = False

    @property
    def map_size(self) -> tuple[int, int, int]:
        """Height, width and channels of the map."""
        height, width = (
            -(-(size + offset) // block) for size, block, offset in zip(
                (self.height, self.width), self.block, self.offset, strict=True
            )
        )
        return height, width, self.channels * math.prod(self.block)

    def arrange(self, values: np.ndarray) -> np.ndarray:
        """Return int8 ``values`` of the tensor as a map [height, width, channels]."""
        height, width, channels = self.map_size
        (by, bx), (oy, ox) = self.block, self.offset
        whole = np.full((height * by, width * bx, self.channels), self.fill, np.int8)
        if self.pairs:
            whole[..., 1::2] = LOW_ZERO
        whole[oy : oy + self.height, ox : ox + self.width] = self._pixels(values)
        blocks = whole.reshape(height, by, width, bx, self.channels).transpose(0, 2, 1, 3, 4)
        return blocks.reshape(height, width, channels)

    def _pixels(self, values):
        if self.channels_first:
            return values.reshape(self.channels, self.height, self.width).transpose(1, 2, 0)
        return values.reshape(self.height, self.width, self.channels)


@dataclass(frozen=True)
class NetworkMap:
    """A map in the memory of the core.

    Attributes
    ----------
    tensor : int
        The tensor whose values it has; -1: values between the layers of one operator.
    height, width, channels : int
    form : InputForm or None
        None: layers compute it.
    view : MapView or None
        If its values lie in another map.
    linear : bool
        `choose_pitches` has it.
    """

    tensor: int
    height: int
    width: int
    channels: int
    form: InputForm | None = None
    view: MapView | None = None
    linear: bool = False

    @property
    def size(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.height, self.width, self.channels

    def vectors(self, depth: int) -> int:
        """Return the vectors of a pixel."""
        return -(-self.channels // depth)


@dataclass(frozen=True)
class Addition:
    """ADD or MUL after a layer, or a table of its results: see ``docs/network-core.md``.

    Of a SOFTMAX and of an LSTM only the table counts.

    Attributes
    ----------
    table : int32 [2, 256]
        The scaled values of the added map, and of the layer's result, by their bytes. Of a SOFTMAX
        the exponentials, [1, 256]; of an LSTM the words of its job, [1, LSTM_WORDS].
    multiplier, shift : int
        Scale of the sum.
    zero, low, high : int
        Zero point and limits of the sum.
    multiply : bool
        Both values are multiplied instead of added; they have 16 bits.
    """

    table: np.ndarray
    multiplier: int
    shift: int
    zero: int
    low: int
    high: int
    multiply: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkLayer:
    """A convolution, rescaled: ``y = clamp(scale(sums + bias) + zero, low, high)``, and ADD.

    The taps outside the map have the value ``x_zero``, so that ``bias`` may contain the term of the
    zero point: ``-x_zero * sum(weights)``.

    Attributes
    ----------
    operators : tuple of str
        Operators of the file that the layer completes. A layer without operators is a step on the
        way to the result of the next layer that has some.
    name : str
        Name of the first one, for messages.
    position : tuple of int
        Their places in the file.
    macs, left_out : int
        Multiply-accumulate operations of the operators: computed ones, and those left out.
    x, y : int
        Maps, by their place in `NetworkCoreGraph.maps`.
    b : int
        Map whose vectors are the words of B, tile by tile; -1 if ``weights`` has them.
    b_order : tuple of int
        For each word of a tile its place among the words of the tile in ``b``, which has each of
        them once.
    added : int
        Map that ADD adds; -1 without ADD. A table reads the place of ``y``, whatever is there. A
        map of one row or one column is added to all rows or columns.
    cell : int
        Map of the cell of an LSTM, which it changes; -1 of others.
    sums : bool
        The channels of y are bytes of sums of 32 bits, before the scale.
    digits : str
        The flag of `weft.network_core.descriptors.ListJob` for a layer whose columns are the digits
        of sums: ``pairs``, ``quads``, ``quad_pairs`` or ``words``. Empty: a column is a sum.
    reads_pairs : bool
        x has the bytes of values of int16. The ones outside the map are 0: ``x_zero`` is the one of
        the even channels, and the odd ones are -128.
    result : int
        The map that is complete with this layer, if it is not y: y is a part of it.
    addition : Addition or None
    window : Window
        Of the stored map.
    layout : str
        A value of `WeightLayout`.
    groups : int
        Groups of a DENSE layer.
    weights : int8 array
        DENSE: [taps, channels of a group, columns]; DIAGONAL, EQUAL: [taps, columns]. With ``b``,
        the words that are the same in each inference; 0 for all others.
    parts : int
        More than 1: y has one pixel, with this number of groups of channels. Each group is a pixel
        of the job, so the rows of the array compute different channels.
    columns : int
        Channels of a pixel of the job: of y, or of a group.
    x_zero : int
    bias, multiplier, shift : int64 [columns]
    zero, low, high : int
        With `PAIRS` the limits have 16 bits.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    macs: int
    left_out: int = 0
    x: int
    y: int
    b: int = -1
    b_order: tuple[int, ...] = ()
    added: int = -1
    cell: int = -1
    sums: bool = False
    digits: str = ""
    reads_pairs: bool = False
    result: int = -1
    addition: Addition | None = None
    window: Window
    layout: str
    groups: int = 1
    parts: int = 1
    weights: np.ndarray
    columns: int
    x_zero: int
    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    zero: int
    low: int
    high: int

    @property
    def title(self) -> str:
        """Its first operator, or none, and its name: for messages."""
        return " ".join((*self.operators[:1], self.name))

    @property
    def is_lookup(self) -> bool:
        """Whether a table of its results follows, instead of ADD."""
        return self.addition is not None and self.added < 0 and not self.is_of_unit

    @property
    def is_softmax(self) -> bool:
        """Whether it is the SOFTMAX of each pixel."""
        return self.layout == WeightLayout.NONE

    @property
    def is_lstm(self) -> bool:
        """Whether it is a step in time of an LSTM."""
        return self.layout == WeightLayout.LSTM

    @property
    def is_of_unit(self) -> bool:
        """Whether a unit computes it, without weights and parameter lines."""
        return self.is_softmax or self.is_lstm

    @property
    def is_copy(self) -> bool:
        """Whether its results are the values of its input."""
        scale = {*self.multiplier.tolist()}, {*self.shift.tolist()}
        return (
            self.layout == WeightLayout.EQUAL and self.taps == 1 and self.addition is None
            and self.window.output == self.window.input and (self.weights == 1).all()
            and not self.bias.any() and scale in _ONE
            and (self.zero, self.low, self.high) == (0, -128, 127)
        )

    @property
    def reads(self) -> tuple[int, ...]:
        """The maps of others that it reads."""
        numbers = self.x, self.b, self.added, self.cell
        return tuple(number for number in numbers if number >= 0)

    @property
    def read_as_added(self) -> int:
        """The map that its jobs read as the added one; -1 without one."""
        return self.y if self.is_lookup else self.added

    @property
    def taps(self) -> int:
        """Taps of the kernel."""
        return math.prod(self.window.kernel)

    @property
    def pixels(self) -> int:
        """Pixels of the output map."""
        return math.prod(self.window.output)


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSegment:
    """Layers that one list computes, and the operators of the host before it.

    Attributes
    ----------
    before : tuple of Step
        Operators of the host, which are computed after the list before.
    layers : range
        Places in `NetworkCoreGraph.layers`.
    results : mapping of int to int
        By tensor, the map that the host reads after the list.
    renamed : tuple of (Host, int, int or None)
        Operators without work, reshapes and concatenations: node, tensor of the output, map.
    """

    before: tuple[Step, ...]
    layers: range
    results: dict[int, int]
    renamed: tuple[tuple[Host, int, int | None], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkCoreGraph:
    """A network, divided into lists of the core and operators of the host.

    Attributes
    ----------
    name, source : str
    mode : str
        Rounding mode.
    tensors : tuple of Tensor
    inputs, outputs : tuple of int
        Tensors of the network.
    operators : tuple of str
    notes : tuple of str
    states : tuple of State
    maps : tuple of NetworkMap
    layers : tuple of NetworkLayer
        In the order of execution.
    segments : tuple of GraphSegment
    after : tuple of Step
        Operators of the host after the last list.
    variables : mapping of int to int
        By tensor, the maps that have the values of variables from inference to inference.
    has_tables : bool
        Operators have tables, several layers, or weights that exceed the buffer, and the program
        would need less memory without them.
    """

    name: str
    source: str
    mode: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[str, ...]
    notes: tuple[str, ...]
    states: tuple[State, ...]
    maps: tuple[NetworkMap, ...]
    layers: tuple[NetworkLayer, ...]
    segments: tuple[GraphSegment, ...]
    after: tuple[Step, ...]
    variables: Mapping[int, int]
    has_tables: bool

    def root(self, number: int) -> int:
        """Return the map in whose place a map lies, or its own number."""
        view = self.maps[number].view
        return number if view is None else self.root(view.whole)

    def tensors_in(self, number: int) -> tuple[int, ...]:
        """Return the tensors whose values a layer reads in a map: its own, or those around it."""
        network_map = self.maps[number]
        if network_map.tensor >= 0:
            return (network_map.tensor,)
        if network_map.view is not None:
            return self.tensors_in(network_map.view.whole)
        parts = (part for part in self.maps if part.view is not None and part.view.whole == number)
        return tuple(part.tensor for part in parts if part.tensor >= 0)

    def view(self, number: int) -> MapView:
        """Return where a map lies in its `root`."""
        view = self.maps[number].view
        return MapView(number) if view is None else view.within(self.view(view.whole))

    @property
    def host(self) -> tuple[Step, ...]:
        """All operators of the host."""
        before = (step for segment in self.segments for step in segment.before)
        return (*before, *self.after)
