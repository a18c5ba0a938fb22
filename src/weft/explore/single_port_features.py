"""The features of a network core whose memory has one port; all its blocks are counted.

A microprogram controls this core (`weft.hw.network_core.micro.core.MicroCore`). Its array is given.
Its buffers and its memory differ: by their blocks, and by the multiplexers that select one of
several.
"""

from weft.explore.feature_set import FeatureSet
from weft.network_core.config import ADD_TABLE_WORDS, NetworkCoreConfig

__all__ = ["SINGLE_PORT", "dsp_blocks", "ram_blocks", "single_port_blocks"]

# By part of the design, its blocks (`weft.boards.blocks.GROUPS`). Synthesis merges the multiplexers
# behind buffers and memory with the array or the output, so these are one part.
MEMBERS = {
    "data path": (
        "port", "loads", "weights", "bias", "multiplier", "shift", "table", "columns", "output",
    ),
    "control": ("engine", "steps", "core"),
    "host": ("host_port", "link", "receiver", "transmitter", "accelerator"),
    "packing": ("board", "nextpnr"),
}
BLOCKS = {
    "data path": ("1", "MACs in logic", "rows of single-port RAMs", "selected bits"),
    "control": ("1",), "host": ("1",), "packing": ("1",),
}
_SHAPES = {16: 256, 8: 512, 4: 1024, 2: 2048}  # of a block RAM: words, by their bits
_VECTOR_BITS, _HALF_BITS = 32, 16
_LINE_BITS = 32, 32, 8  # bias, multiplier, shift
_ENGINE_BLOCKS = 3  # 512 instructions of 16 bits, 256 registers of 16 bits
_LINK_BLOCKS = 2  # of the frames that come in
_SINGLE_PORT_WORDS = 1 << 14  # of a single-port RAM; each has 16 bits


def dsp_blocks(config: NetworkCoreConfig) -> int:
    """DSP blocks of a design: each multiplies a pair a cycle, and accumulates the products."""
    return config.peak if config.array.family.has_dsp else 0


def ram_blocks(config: NetworkCoreConfig) -> int:
    """Block RAMs of a design: buffers, microprogram, registers, link; the memory in some FPGAs."""
    banks = *_banks(config), (_VECTOR_BITS, ADD_TABLE_WORDS)
    return sum(_blocks(*bank)[0] for bank in banks) + _ENGINE_BLOCKS + _LINK_BLOCKS


def single_port_blocks(config: NetworkCoreConfig) -> int:
    """Single-port RAMs of the memory, if the FPGA has them."""
    return _rows(config) * (_VECTOR_BITS // _HALF_BITS)


def _rows(config):
    """Single-port RAMs that the words of the memory lie in."""
    return -(-config.words // _SINGLE_PORT_WORDS) if config.target == "ice40up" else 0


def _banks(config):
    """Bits and words of the banks in block RAM that depend on the NetworkCoreConfig."""
    columns = [(_HALF_BITS, 2 * config.b_words)] * config.array.cols
    memory = [] if _rows(config) else [(_VECTOR_BITS, config.words)]
    return [*columns, *((bits, config.lines) for bits in _LINE_BITS), *memory]


def _blocks(bits, words):
    """Block RAMs of a bank in the shape that takes the fewest, and how many its words lie in."""
    return min(
        (-(-bits // width) * -(-words // deep), -(-words // deep))
        for width, deep in _SHAPES.items()
    )


def features(config: NetworkCoreConfig) -> dict[str, float]:
    """The value of each feature in `BLOCKS`."""
    return {
        "1": 1, "MACs in logic": config.peak - dsp_blocks(config),
        "rows of single-port RAMs": _rows(config),
        "selected bits": sum(bits * (_blocks(bits, words)[1] - 1) for bits, words in
        _banks(config)),
    }


def clock_features(config: NetworkCoreConfig, share: float) -> dict[str, float]:
    """What the period of the clock depends on: the same paths are critical in all such cores."""
    return {"1": 1}


SINGLE_PORT = FeatureSet(
    suffix="-networks", blocks=BLOCKS, members=MEMBERS, fitted=("LUT", "FF"),
    counted={"DSP": dsp_blocks, "RAM": ram_blocks, "SPRAM": single_port_blocks},
    features=features, clock_features=clock_features, clock_kinds=("1",),
)
