"""What a search optimizes for: a matrix product or a network, and what it costs on a Config.

Cycles come from the exact cycle model. They do not depend on how PEs multiply, so Configs that
differ in ``dsp_cols`` alone share them; each is computed once. Neither do they depend on the words
of the memory of a network core, if it holds the program that a larger memory has. A smaller
one may hold the network in another form: with smaller maps, or weights that it loads in more parts.
If the memory has one port, the places of maps and list change a few cycles of the microprogram.
"""

import dataclasses
import functools
import re
from dataclasses import dataclass

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.design import NETWORK
from weft.explore.rough_cycles import quick_cycles, rough_lists
from weft.host.product_cycles import product_cycles
from weft.models.errors import ModelError, UnfitError
from weft.models.report.energy import energy
from weft.models.report.link import link_bytes
from weft.models.report.product_core import ceilings
from weft.models.report.streams import step_streams, streams
from weft.models.schedule import commands_of
from weft.network_core.config import NetworkCoreConfig, has_single_port

__all__ = ["MatrixWorkload", "NetworkWorkload", "WorkloadCost", "workload_of"]

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
        if isinstance(config, NetworkCoreConfig):
            raise ModelError(
                f"workload must be a network (.tflite) on a network core, not the product"
                f" {self.name}"
            )
        return _matrix_cost(_timed(config), self.shape)


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
                for step in self._network.compile(_timed(config)).steps for each in step.products
            ]
        return self._products[config.cols]

    def quick_cycles(self, config: Config | NetworkCoreConfig) -> float:
        """Rough cycles on a Config."""
        if isinstance(config, NetworkCoreConfig):
            return self._list(config.array).cycles(config)
        return sum(quick_cycles(config, *product) for product in self.products(config))

    def least_memory(self, config: NetworkCoreConfig) -> int:
        """Bytes that the memory of a network core must have at least; it may need more."""
        return self._list(config.array).memory_bytes(config)

    def _list(self, core):
        key = core.requantize, core.cols, core.depth
        if key not in self._lists:
            self._lists[key] = rough_lists(self._network.graph, core)
        return self._lists[key]

    def cost(self, config: Config | NetworkCoreConfig) -> WorkloadCost:
        """The cost on a Config, from the program that is compiled for it.

        Raises UnfitError if the network does not fit a network core.
        """
        config = _timed(config)
        if isinstance(config, Config):
            return self._compiled(config)
        if has_single_port(config.array):
            return self._compiled(config)
        roomy = dataclasses.replace(config, words=config.most_words)
        cost = self._compiled(roomy)
        return cost if cost.memory <= config.memory_bytes else self._compiled(config)

    def _compiled(self, config):
        if config not in self._costs:
            try:
                self._costs[config] = _network_cost(self._network.compile(config))
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
    from weft.models.loading import NeuralNetwork

    network = weft.load(text)
    if not isinstance(network, NeuralNetwork):
        raise ModelError(f"workload must be MxKxN, .tflite or .onnx, not the program {text}")
    return NetworkWorkload(network)


def _timed(config):
    """The Config that stands for all Configs of the same timing."""
    if isinstance(config, NetworkCoreConfig):
        return dataclasses.replace(config, array=_timed(config.array))
    return dataclasses.replace(config, dsp_cols=0)


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


def _network_cost(program):
    """The cost of a program."""
    if program.target.kind == NETWORK:
        sent, received = link_bytes(program)
        macs = sum(step.macs for step in (*program.layers, *program.products))
        return WorkloadCost(
            program.cycles, program.cycles, macs, sent, received, 0.0, program.memory_used
        )
    config, able = program.target.array, ceilings(program.target.array)
    sent = received = nanojoules = macs = 0
    for step in program.steps:
        if not step.placement.on_weft or step.estimate is None:
            continue
        moved = step_streams(program, step)
        results = sum(product.m * product.n * product.count for product in step.products)
        nanojoules += energy(config, able, moved, step.macs, step.estimate.active, results).total
        sent, received, macs = sent + moved.sent, received + moved.received, macs + step.macs
    cycles = program.estimate.cycles
    return WorkloadCost(cycles, cycles, macs, sent, received, nanojoules)
