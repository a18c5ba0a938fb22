"""Rough cycles, for a search that ranks many designs before the cycle model computes the best."""

from dataclasses import dataclass

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles.output import ResultKind
from weft.models.ir import Graph
from weft.models.network_core.division import divide
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import PARAMETER_BYTES, NetworkCoreConfig
from weft.timing import Latencies

__all__ = ["RoughList", "quick_cycles", "rough_lists"]

_LAYER = 60  # cycles of a layer beside its steps, its loads and its results


def quick_cycles(config: Config, m: int, k: int, n: int, count: int = 1) -> float:
    """About the cycles of equal products: the longest of computing, draining, sending and loading.

    ``tiles * max(2, ceil(k / depth), rows, rows * chunks)``, as in ``docs/architecture.md``, but
    not less than each operand once on the command stream. It ranks Configs before the cycle model
    computes the best of them.
    """
    c = config
    tiles = -(-m // c.rows) * -(-n // c.cols)
    latencies = Latencies.of(c)
    flags = next(iter(epilogue_flags(c)), JobFlag(0))
    kind = ResultKind.of(latencies, flags)
    chunk = max(kind.words, c.scale_cycles if kind.epilogue else 1)
    compute, send = -(-k // c.depth), c.rows * latencies.row_chunks * chunk
    steps = max(2, compute + c.rows, send) if c.drain == "folded" else max(
        2, compute, c.rows, send
    )
    size = c.data_type.a.bytes
    load = (m * k + k * n) * size / c.bytes_in
    return count * max(tiles * steps * c.cell.slots, load)


@dataclass(frozen=True)
class RoughList:
    """The layers of a network for a number of columns and a depth.

    Attributes
    ----------
    layers : tuple
        Of each layer: the layer, the channels of its input map, and its pixels.
    map_bytes : int
        Of the largest input and output map of a layer, together.
    """

    layers: tuple
    map_bytes: int

    def cycles(self, config: NetworkCoreConfig) -> float:
        """About the cycles of an inference: of each layer the longest of its steps, its results,
        and the loads of the next layer, which has its weights in B before it starts.
        """
        core, sizes = config.array, self._sizes(config)
        words = sum(size.words(size.tiles) for size in sizes)
        resident = words <= config.b_words
        cycles, waiting = 0.0, 0.0
        for (layer, _, pixels), size in zip(reversed(self.layers), reversed(sizes), strict=True):
            tiles = -(-pixels // core.rows) * size.tiles
            slots = 2 if layer.addition is not None else 1  # of a chunk in the lanes
            chunks = core.rows * config.row_chunks * slots
            steps = tiles * max(
                size.tile_words * config.step_cycles, core.rows, chunks * core.scale_cycles
            )
            cycles += max(steps, waiting) + _LAYER
            vectors = size.words(size.tiles) * (1 if size.diagonal else core.cols)
            waiting = 0.0 if resident else vectors / config.read_vectors
        return cycles + waiting

    def memory_bytes(self, config: NetworkCoreConfig) -> int:
        """Bytes that the memory must have at least: maps, weights and parameters."""
        core, sizes = config.array, self._sizes(config)
        words = sum(size.words(size.tiles) for size in sizes)
        streamed = sum(
            size.words(size.tiles) * core.depth * (1 if size.diagonal else core.cols)
            for size in sizes if not size.filled
        )
        columns = sum(layer.columns for layer, *_ in self.layers)
        lines = sum(size.tiles * size.row_lines for size in sizes)
        rest = 0 if lines <= config.lines else PARAMETER_BYTES * columns
        return self.map_bytes + rest + (0 if words <= config.b_words else streamed)

    def _sizes(self, config):
        return [LayerWords.of(layer, channels, config) for layer, channels, _ in self.layers]


def rough_lists(graph: Graph, core: Config) -> RoughList:
    """The layers of a network on a network core.

    Raises weft.models.errors.UnfitError if the network is not of TensorFlow Lite.
    """
    divided = divide(graph, core.requantize, core.cols, core.depth)
    maps, layers, largest = divided.maps, [], 0

    def size(number):
        return maps[number].height * maps[number].width * maps[number].vectors(core.depth)

    for layer in divided.layers:
        height, width = layer.window.output
        layers.append((layer, maps[layer.x].channels, height * width * layer.parts))
        largest = max(largest, size(layer.x) + size(layer.y))
    return RoughList(tuple(layers), largest * core.depth)
