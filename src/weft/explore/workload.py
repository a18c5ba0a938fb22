"""What a search optimizes for: a matrix product or a network, and what it costs on a Config.

Cycles come from the exact cycle model. They do not depend on how PEs multiply, so Configs that
differ in ``dsp_cols`` alone share them; each is computed once.
"""

import dataclasses
import functools
import re
from dataclasses import dataclass

from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles import predict
from weft.host.product_cycles import product_cycles
from weft.network.errors import ModelError
from weft.network.report.energy import energy
from weft.network.report.streams import ceilings, step_streams, streams
from weft.network.schedule import commands_of

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
        nJ of `weft.network.report.energy`, which compares Configs and predicts no board.
    """

    cycles: int
    interval: float
    macs: int
    sent: int
    received: int
    energy: float


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

    def cost(self, config: Config) -> WorkloadCost:
        """The cost on a Config, from the cycle model."""
        return _matrix_cost(_timed(config), self.shape)


class NetworkWorkload:
    """One inference of a network on a core for matrix products.

    Parameters
    ----------
    network : weft.network.loading.NeuralNetwork
    """

    def __init__(self, network):
        self._network = network
        self.name = network.name
        self._costs = {}
        self._products = {}

    def products(self, config: Config) -> list[tuple[int, int, int, int]]:
        """(m, k, n, count) of each product on the core, for a Config with as many columns."""
        if config.cols not in self._products:
            self._products[config.cols] = [
                (each.m, each.k, each.n, each.count)
                for step in self._network.compile(_timed(config)).steps for each in step.products
            ]
        return self._products[config.cols]

    def cost(self, config: Config) -> WorkloadCost:
        """The cost on a Config, from the program that is compiled for it."""
        config = _timed(config)
        if config not in self._costs:
            self._costs[config] = _network_cost(self._network.compile(config))
        return self._costs[config]


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
    from weft.network.loading import NeuralNetwork

    network = weft.load(text)
    if not isinstance(network, NeuralNetwork):
        raise ModelError(f"workload must be MxKxN, .tflite or .onnx, not the program {text}")
    return NetworkWorkload(network)


def _timed(config):
    """The Config that stands for all Configs of the same timing."""
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
    config, able = program.target.config, ceilings(program.target.config)
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
