"""What a search optimizes for: a matrix product or a network, and what it costs on a Config.

Cycles come from the exact cycle model. They do not depend on how PEs multiply, so Configs that
differ in ``dsp_cols`` alone share them; each is computed once. Neither do they depend on the words
of the memory of a network core, if it holds the program that a larger memory has. A smaller
one may hold the network in another form: with smaller maps, or weights that it loads in more parts.
If the memory has one port, the places of maps and list change a few cycles of the microprogram.

Rough cycles rank many designs, before the cycle model computes the best.
"""

import dataclasses
import functools
import re
from dataclasses import dataclass

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.cycles.output import ResultKind
from weft.design import PerKind
from weft.host.product_cycles import product_cycles
from weft.models.errors import ModelError, UnfitError
from weft.models.ir import Graph
from weft.models.network_core.division import divide
from weft.models.network_core.weights import LayerWords
from weft.models.placement import commands_of
from weft.models.report.energy import energy
from weft.models.report.placement import link_bytes
from weft.models.report.product_core import ceilings
from weft.models.report.streams import step_streams, streams
from weft.network_core.config import PARAMETER_BYTES, NetworkCoreConfig, has_single_port
from weft.timing import Latencies

__all__ = [
    "MatrixWorkload", "NetworkWorkload", "RoughList", "WorkloadCost", "quick_cycles",
    "rough_lists", "wire_bytes", "workload_of",
]

_LAYER = 60  # cycles of a layer beside its steps, its loads and its results
REPEATS = 4  # products between the two that give the interval in steady state
_SHAPE = re.compile(r"([1-9]\d{0,9})x([1-9]\d{0,9})x([1-9]\d{0,9})")


@dataclass(frozen=True)
class WorkloadCost:
    """What one product or one inference costs on the core.

    Attributes
    ----------
    cycles : int
        Until the last result, if nothing but the weights that stay was loaded before.
    interval : float
        Cycles from one to the next, if many follow each other.
    macs : int
    sent, received : int
        Bytes on a serial port, with frames.
    energy : float
        nJ of `weft.models.report.energy`, which compares Configs and predicts no board; 0 on a
        network core.
    memory : int
        Bytes of the memory of a network core; 0 on others.
    """

    cycles: int
    interval: float
    macs: int
    sent: int
    received: int
    energy: float
    memory: int = 0


def wire_bytes(config: Config | NetworkCoreConfig, cost: WorkloadCost) -> int:
    """Bytes that need time on the serial port, which sends and receives at the same time.

    A network core sends the result after the input has come.
    """
    return _CORES.of(config).wire_bytes((cost.sent, cost.received))


class MatrixWorkload:
    """One product of M x K x N; its results have 8 bits if the core can requantize.

    Parameters
    ----------
    m, k, n : int
    """

    def __init__(self, m: int, k: int, n: int):
        self.shape = m, k, n
        self.name = f"{m}x{k}x{n}"

    def products(self, config: Config) -> list[tuple[int, int, int, int]]:
        """(m, k, n, count) of each product on the core."""
        return [(*self.shape, 1)]

    def quick_cycles(self, config: Config) -> float:
        """Rough cycles on a Config."""
        return quick_cycles(config, *self.shape)

    def cost(self, config: Config | NetworkCoreConfig) -> WorkloadCost:
        """The cost on a Config, from the cycle model.

        Raises ModelError for a network core.
        """
        return _CORES.of(config).product_cost(config, self.shape)


class NetworkWorkload:
    """One inference of a network.

    Parameters
    ----------
    network : weft.models.loading.NeuralNetwork
    """

    def __init__(self, network):
        self._network = network
        self.name = network.name
        self._costs = {}
        self._products = {}
        self._lists = {}

    def products(self, config: Config) -> list[tuple[int, int, int, int]]:
        """(m, k, n, count) of each product on the core, for a Config with as many columns."""
        if config.cols not in self._products:
            self._products[config.cols] = [
                (each.m, each.k, each.n, each.count)
                for step in self._network.compile(_ProductCore.timed(config)).steps
                for each in step.products
            ]
        return self._products[config.cols]

    def quick_cycles(self, config: Config | NetworkCoreConfig) -> float:
        """Rough cycles on a Config."""
        return _CORES.of(config).quick_cycles(self, config)

    def least_memory(self, config: NetworkCoreConfig) -> int:
        """Bytes that the memory of a network core must have at least; it may need more."""
        return self.rough_list(config.array).memory_bytes(config)

    def rough_list(self, core: Config) -> "RoughList":
        """The layers on a network core with this array."""
        key = core.requantize, core.cols, core.depth
        if key not in self._lists:
            self._lists[key] = rough_lists(self._network.graph, core)
        return self._lists[key]

    def cost(self, config: Config | NetworkCoreConfig) -> WorkloadCost:
        """The cost on a Config, from the program that is compiled for it.

        Raises UnfitError if the network does not fit a network core.
        """
        core = _CORES.of(config)
        config = core.timed(config)
        roomy = core.roomy(config)
        cost = self._compiled(roomy)
        if roomy == config or cost.memory <= config.memory_bytes:
            return cost
        return self._compiled(config)

    def _compiled(self, config):
        if config not in self._costs:
            try:
                self._costs[config] = _CORES.of(config).network_cost(self._network.compile(config))
            except UnfitError as error:
                self._costs[config] = error
        found = self._costs[config]
        if isinstance(found, UnfitError):
            raise found
        return found


def workload_of(text: str) -> MatrixWorkload | NetworkWorkload:
    """The workload that a word names: ``MxKxN``, or the file of a network.

    Raises
    ------
    ModelError
        If the file is not a network.
    OSError
        If the file cannot be read.
    """
    if match := _SHAPE.fullmatch(text):
        return MatrixWorkload(*map(int, match.groups()))
    import weft
    from weft.models.loading import NeuralNetwork, refuse_language

    network = weft.load(text)
    refuse_language(network, text)
    if not isinstance(network, NeuralNetwork):
        raise ModelError(f"workload must be MxKxN, .tflite or .onnx, not the program {text}")
    return NetworkWorkload(network)


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
            steps = tiles * max(size.tile_words, core.rows, chunks * core.scale_cycles)
            cycles += max(steps, waiting) + _LAYER
            vectors = size.vectors(size.words(size.tiles), config)
            waiting = 0.0 if resident else vectors / config.read_vectors
        return cycles + waiting

    def memory_bytes(self, config: NetworkCoreConfig) -> int:
        """Bytes that the memory must have at least: maps, weights and parameters."""
        core, sizes = config.array, self._sizes(config)
        words = sum(size.words(size.tiles) for size in sizes)
        streamed = sum(
            size.vectors(size.words(size.tiles), config) * core.depth
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

    Raises weft.models.errors.KindError if the core has the rounding of another runtime.
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


@functools.lru_cache(maxsize=1 << 16)
def _matrix_cost(config, shape):
    m, k, n = shape
    flags = next(iter(epilogue_flags(config)), JobFlag(0))
    counts = [1, REPEATS, 2 * REPEATS]
    (cycles, _), (early, _), (late, _) = product_cycles(config, m, k, n, flags, counts)
    commands = commands_of(config, (1, m, k, n), flags)
    moved = streams(config, commands)
    active = predict(config, commands).active
    used = energy(config, ceilings(config), moved, m * k * n, active, m * n)
    return WorkloadCost(
        cycles, (late - early) / REPEATS, m * k * n, moved.sent, moved.received, used.total
    )


class _ProductCore:
    """What workloads cost on a product core."""

    wire_bytes = max

    @staticmethod
    def timed(config):
        """The Config that stands for all Configs of the same timing."""
        return dataclasses.replace(config, dsp_cols=0)

    @staticmethod
    def roomy(config):
        return config

    @staticmethod
    def product_cost(config, shape):
        return _matrix_cost(_ProductCore.timed(config), shape)

    @staticmethod
    def quick_cycles(network, config):
        return sum(quick_cycles(config, *product) for product in network.products(config))

    @staticmethod
    def network_cost(program):
        config, able = program.target.array, ceilings(program.target.array)
        sent = received = nanojoules = macs = 0
        for step in program.steps:
            if not step.placement.on_weft or step.estimate is None:
                continue
            moved = step_streams(program, step)
            results = sum(product.m * product.n * product.count for product in step.products)
            used = energy(config, able, moved, step.macs, step.estimate.active, results)
            nanojoules += used.total
            sent, received, macs = sent + moved.sent, received + moved.received, macs + step.macs
        cycles = program.estimate.cycles
        return WorkloadCost(cycles, cycles, macs, sent, received, nanojoules)


class _NetworkCore:
    """What workloads cost on a network core."""

    wire_bytes = sum

    @staticmethod
    def timed(config):
        """The NetworkCoreConfig that stands for all of the same timing."""
        return dataclasses.replace(config, array=_ProductCore.timed(config.array))

    @staticmethod
    def roomy(config):
        """With the largest memory, if its size changes no cycles."""
        if has_single_port(config.array):
            return config
        return dataclasses.replace(config, words=config.most_words)

    @staticmethod
    def product_cost(config, shape):
        raise ModelError(
            "workload must be a network (.tflite) on a network core, not the product"
            f" {'x'.join(map(str, shape))}"
        )

    @staticmethod
    def quick_cycles(network, config):
        return network.rough_list(config.array).cycles(config)

    @staticmethod
    def network_cost(program):
        sent, received = link_bytes(program)
        macs = sum(step.macs for step in (*program.layers, *program.products))
        return WorkloadCost(
            program.cycles, program.cycles, macs, sent, received, 0.0, program.memory_used
        )


_CORES = PerKind(product=_ProductCore, network=_NetworkCore)
