"""What layers need of the buffers, and the jobs and the places that a schedule gives them."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.models.network_core.layers import NetworkCoreGraph, NetworkLayer
from weft.models.network_core.map_pitches import Panels
from weft.models.network_core.pieces import Piece, Shape
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import lstm_cycles, softmax_cycles

__all__ = ["BufferSchedule", "LayerDemand", "Part", "layer_demands", "stores_pairs"]


@dataclass(frozen=True)
class LayerDemand:
    """What the schedule must know of a layer.

    Attributes
    ----------
    name : str
        For messages.
    sizes : LayerWords
    shape : Shape
    panels : Panels
    adds : bool
        Whether the layer has ADD.
    loads_table : bool
        Whether its first job loads the ADD table: the layer before has another one.
    unit : int
        Cycles of a SOFTMAX or LSTM, which uses the ADD table; 0 of other layers.
    computed : bool
        The layers before compute its words of B.
    lines_of : int or None
        A layer before with the same parameter lines; both are without ADD.
    pairs : bool
        Its jobs store two pixels in each cycle.
    """

    name: str
    sizes: LayerWords
    shape: Shape
    panels: Panels
    adds: bool
    loads_table: bool = False
    unit: int = 0
    computed: bool = False
    lines_of: int | None = None
    pairs: bool = False

    def cycles(self, tiles: int, config: NetworkCoreConfig) -> int:
        """Return the cycles of a job of some tiles, without its latency."""
        if self.unit:
            return self.unit
        return self.panels.count * tiles * max(self.sizes.tile_words, self._output(config))

    def piece_cycles(self, piece: Piece, config: NetworkCoreConfig) -> int:
        """Return the cycles of a job of some taps of a panel, without its latency."""
        words = piece.taps.words
        return words if piece.partial else max(words, self._output(config))

    def _output(self, config):
        """Return the cycles of the results of a tile."""
        chunk = config.array.scale_cycles * (2 if self.adds else 1)
        rows = -(-self.panels.rows // 2) if self.pairs else self.panels.rows
        return rows * self.sizes.row_lines * chunk


@dataclass(frozen=True)
class Part:
    """A job: some tiles of a layer, or a piece of a tile, with their place in the buffers.

    Attributes
    ----------
    layer : int
    first, tiles : int
        Tiles of the layer.
    piece : Piece
    b_word, line : int
        First word of B, and first parameter line.
    words, lines : int
        To load; 0 if a part before has loaded them.
    b_jobs, line_jobs, table_jobs : int
        Jobs that must have ended before the load of words, of lines, of the ADD table; of resident
        weights or parameters 0. ``table_jobs`` is None if the part loads no table.
    cycles : int
        Of the job, about.
    """

    layer: int
    first: int
    tiles: int
    piece: Piece
    b_word: int
    line: int
    words: int
    lines: int
    b_jobs: int = 0
    line_jobs: int = 0
    table_jobs: int | None = None
    cycles: int = 0


@dataclass(frozen=True)
class BufferSchedule:
    """All jobs of a network in their order.

    Attributes
    ----------
    parts : tuple of Part
    b_resident : bool
        Weights stay in their buffer: one list loads them, before all inferences.
    resident_lines : frozenset of int
        Layers whose parameters stay in their buffer, likewise.
    cycles : int
        Approximate cycles of an inference.
    """

    parts: tuple[Part, ...]
    b_resident: bool
    resident_lines: frozenset[int]
    cycles: int


def stores_pairs(
    layer: NetworkLayer, width: int, panels: Panels, config: NetworkCoreConfig
) -> bool:
    """Return whether a job of a layer can store two pixels in each cycle, in different banks.

    ``width`` are the pixels of a row of its output map.
    """
    one_row = layer.addition is not None or layer.sums or layer.is_of_unit
    return config.two_rows and not one_row and width % 2 == 0 and panels.rows % 2 == 0


def layer_demands(
    graph: NetworkCoreGraph, sizes: Sequence[LayerWords], panels: Sequence[Panels],
    config: NetworkCoreConfig,
) -> list[LayerDemand]:
    """Return what the layers of a graph need of the buffers."""
    return [
        LayerDemand(
            layer.title, size, _shape_of_jobs(layer), layer_panels,
            layer.read_as_added >= 0 and not layer.is_lstm, loads, _unit_cycles(layer, config),
            layer.b >= 0, same,
            stores_pairs(layer, _shape_of_jobs(layer).output[1], layer_panels, config),
        )
        for layer, size, layer_panels, loads, same in zip(
            graph.layers, sizes, panels, _table_loads(graph), _same_lines(graph), strict=True
        )
    ]


def _unit_cycles(layer, config):
    """Return the cycles of a layer that a unit computes, if its reads never wait; 0 of others."""
    if layer.is_lstm:
        return lstm_cycles(config, layer.columns)
    return softmax_cycles(config, layer.columns, layer.pixels) if layer.is_softmax else 0


def _shape_of_jobs(layer: NetworkLayer) -> Shape:
    """Return the pixels and the taps of the jobs of a layer. A pixel may be a group of channels."""
    window = layer.window
    return Shape((1, layer.parts) if layer.parts > 1 else window.output, window.kernel)


def _same_lines(graph):
    """Return for each layer one before with the same parameters, as stripes have, or None."""
    found, first = [], {}
    for number, layer in enumerate(graph.layers):
        arrays = layer.weights, layer.bias, layer.multiplier, layer.shift
        key = layer.layout, *map(id, arrays)
        alone = layer.addition is None and not layer.is_of_unit
        found.append(first.setdefault(key, number) if alone else number)
    return [None if same == number else same for number, same in enumerate(found)]


def _table_loads(graph):
    """Return for each layer whether it loads the ADD table: each list loads what it needs."""
    loads = []
    for segment in graph.segments:
        held = None
        for number in segment.layers:
            addition = graph.layers[number].addition
            needed = None if addition is None else addition.table.tobytes()
            loads.append(needed is not None and needed != held)
            held = needed or held
    return loads
