"""Cycles of layers on a design: ``max(core, fetch, read port, write port) + fill + latency``."""

from dataclasses import dataclass
from functools import cache

from tools.chip_price.designs import ChipDesign
from tools.chip_price.fetch import fetch
from tools.chip_price.layers import ChipLayer
from weft.commands import Job, JobFlag
from weft.config import Config
from weft.cycles import predict
from weft.timing import Latencies

__all__ = ["LayerCost", "NetworkCost", "core_cycles", "network_cost", "steps_of", "weight_bytes"]

BANK_WORDS = 512  # words of a bank of A
HEADER_BYTES = 96  # of a descriptor
PARAMETER_BYTES = 9  # of a column: bias, multiplier, shift
# Cycles from a job's header to the first decision of the sequencer, in the command path that a
# list does not use: header words, job table, tile generator, tile gate, pass builder.
COMMAND_PATH = 8
# Cycles of a job beside the core, assumed: issue 3, first read 3, write of A 1, panel ready 1,
# selection of the bank 1, store 2, release of the next job 1.
ENGINE = 12


@dataclass(frozen=True)
class LayerCost:
    """The cycles of one layer.

    Attributes
    ----------
    layer : ChipLayer
    core : int
        The array and the lanes, from the cycle model.
    fetch : int
        Writes of the A buffer.
    read, write : int
        Use of the read port and of the write port; one port has the sum of both in ``read``.
    fill : int
        Fetch of the first panel.
    latency : int
        From the last step of the array to the next layer.
    """

    layer: ChipLayer
    core: int
    fetch: int
    read: int
    write: int
    fill: int
    latency: int

    @property
    def cycles(self) -> int:
        """Cycles of the layer."""
        return max(self.core, self.fetch, self.read, self.write) + self.fill + self.latency

    @property
    def bound(self) -> str:
        """What takes most cycles."""
        if self.fill + self.latency > max(self.core, self.fetch, self.read, self.write):
            return "latency"
        parts = "core", "fetch", "read", "write"
        return max(parts, key=lambda name: getattr(self, name))


@dataclass(frozen=True)
class NetworkCost:
    """The cycles of a network.

    Attributes
    ----------
    layers : list of LayerCost
    weights : str
        ``resident``: all weights stay in B. ``overlay``: all except a few words, which share the
        place of others. ``streamed``: loaded under the layer before, where B has space for both.
    """

    layers: list[LayerCost]
    weights: str

    @property
    def cycles(self) -> int:
        """Cycles of an inference, from START to done."""
        return sum(layer.cycles for layer in self.layers)


def network_cost(layers: list[ChipLayer], design: ChipDesign) -> NetworkCost:
    """Price all layers of a network."""
    words = [b_words(layer, design.config) for layer in layers]
    excess = sum(words) - design.b_words
    weights = "streamed"
    if excess <= 0:
        weights = "resident"
    elif excess <= design.b_words // 8:
        weights = "overlay"
    resident = sum(layer.columns for layer in layers) <= design.entries
    costs: list[LayerCost] = []
    before, slack = 0, 0  # words of B, and idle cycles of the read port, of the layer before
    for number, layer in enumerate(layers):
        load = load_cycles(layer, design, resident) if weights == "streamed" else 0
        hidden = min(load, slack) if before + words[number] <= design.b_words else 0
        cost = _layer_cost(layer, design, load - hidden)
        before, slack = words[number], max(0, cost.cycles - cost.read)
        costs.append(cost)
    return NetworkCost(costs, weights)


def steps_of(layer: ChipLayer, config: Config) -> int:
    """Array steps of a tile: words of K.

    A word has ``depth`` channels of one tap. A tile of a depthwise layer has ``cols`` channels.
    """
    channels = config.cols if layer.depthwise else layer.channels
    return layer.taps * -(-channels // config.depth)


def b_words(layer: ChipLayer, config: Config) -> int:
    """Words of B that the weights of a layer take."""
    panels = 1 if layer.constant else -(-layer.columns // config.cols)
    return panels * steps_of(layer, config)


def weight_bytes(layer: ChipLayer, config: Config) -> int:
    """Bytes of the stored weights. A depthwise layer has one for each tap and channel,
    a pool has none.
    """
    if layer.depthwise:
        return 0 if layer.constant else layer.taps * layer.columns
    return b_words(layer, config) * config.cols * config.depth


def load_cycles(layer: ChipLayer, design: ChipDesign, resident: bool) -> int:
    """Cycles in which a load of the weights reads the memory, or writes B."""
    parameters = 0 if resident else layer.columns * PARAMETER_BYTES
    beats = -(-(weight_bytes(layer, design.config) + parameters) // design.port)
    return max(beats, b_words(layer, design.config))


@cache
def core_cycles(config: Config, m: int, n: int, k: int) -> tuple[int, int]:
    """Return the cycles of C[m, n] with K = k, and the latency after the last step.

    The first is the interval of equal jobs back to back, the second the rest of a single job. All
    operands are in the buffers; all panels may be the same one, since only times are computed.
    """
    pages = -(-k // config.depth // 16)
    job = Job(m, n, k, 0, 0, pages, 0, 0, pages, flags=JobFlag.REQUANTIZE)
    one, two = (predict(config, [job] * count).cycles for count in (1, 2))
    return two - one, 2 * one - two


def _layer_cost(layer, design, load):
    c = design.config
    k = steps_of(layer, c) * c.depth
    core, tail = core_cycles(c, layer.m, layer.columns, k)
    tile_rows = layer.m * -(-layer.columns // c.cols)
    residual = layer.residual >= 0
    if residual:
        tiles = -(-layer.m // c.rows) * -(-layer.columns // c.cols)
        scaled = c.rows * -(-c.cols // c.lanes) * c.scale_cycles
        core = max(core, tiles * design.add_passes * scaled)
        # Two passes in sequence follow the last result, one with tables.
        tail += design.add_passes // 2 * Latencies.of(c).epilogue_latency
    a, reloads = _fetch(layer, design)
    read = a.reads + load * reloads + residual * tile_rows + -(-HEADER_BYTES // design.port)
    write = -(-layer.m * layer.columns // design.port) if design.collects else tile_rows
    if design.ports == 1:
        read, write = read + write, 0
    # With space for one panel only, the core waits for each panel.
    alternates = 2 * a.words > BANK_WORDS and a.panels > 1
    return LayerCost(
        layer, core + a.cycles * alternates, a.cycles, read, write, a.first,
        tail - COMMAND_PATH + ENGINE,
    )


def _fetch(layer, design):
    """The fetch of a layer, and how often the weights are loaded.

    A depthwise layer whose panel does not fit the A buffer is fetched in parts of its channels. If
    B holds less than the layer, either all panels of A are in their buffer, or the weights are
    loaded for each panel, or A is fetched for each part of B.
    """
    depth, used = design.config.depth, layer.channels
    a = fetch(layer.window, layer.channels, design.buffer)
    while layer.depthwise and a.words > BANK_WORDS and used // 2 % depth == 0:
        used //= 2
        a = fetch(layer.window, layer.channels, design.buffer, used)
    if a.words > BANK_WORDS:
        raise ValueError(
            f"a panel of {layer.name} must fit {BANK_WORDS} words of a bank, not {a.words}"
        )
    slices = -(-b_words(layer, design.config) // design.b_words)
    if slices == 1 or a.panels * a.words <= BANK_WORDS or layer.depthwise:
        return a.times(layer.channels // used), 1
    load = load_cycles(layer, design, True)
    if a.cycles + a.panels * load < slices * a.cycles + load:
        return a, a.panels
    return a.times(slices), 1
