"""The features of network cores, by part of the design; their block RAMs are counted, too.

A core whose memory has one port has a set of its own (`SINGLE_PORT`): a microprogram controls it
(`weft.hw.network_core.micro.core.MicroCore`), and its array is given. Its buffers and its memory
differ: by their blocks, and by the multiplexers that select one of several.
"""

import math

from weft.explore.features import (
    FeatureSet,
    array_features,
    bank_blocks,
    scaling_blocks,
    square_blocks,
)
from weft.network_core.config import ADD_TABLE_WORDS, PARAMETER_BYTES, NetworkCoreConfig
from weft.network_core.latencies import result_rows

__all__ = [
    "NETWORKS", "SINGLE_PORT", "dsp_blocks", "output_blocks", "ram_blocks",
    "single_port_dsp_blocks", "single_port_features", "single_port_memories",
    "single_port_ram_blocks",
]

# By part of the design, its blocks (`weft.boards.blocks.GROUPS`).
MEMBERS = {
    "array": ("array",),
    "memory": ("memory",),
    "arbiters": ("read_arbiter", "write_arbiter"),
    "map reader": ("map_reader", "sequencer"),
    "loads": ("loader", "buffer_b", "buffer_lines", "buffer_table"),
    "list reader": ("list_reader", "core"),
    "output": ("output",),
    "host": ("host_port", "link", "receiver", "transmitter", "accelerator"),
    "packing": ("board", "nextpnr"),
}
BLOCKS = {
    "array": (
        "MACs in DSP, plain", "MACs in DSP, fip", "MACs in logic, plain", "MACs in logic, fip",
        "PEs", "operand register bits", "columns in LUT RAM",
    ),
    "memory": ("1", "row bits of the banks", "read bits of the banks"),
    "arbiters": ("1", "read bits", "banks that reads begin in"),
    "map reader": ("1", "rows"),
    "loads": ("1", "read bits", "line bits", "B bits in LUT RAM"),
    "list reader": ("1", "vector bits"),
    "output": ("1", "lanes"),
    "host": ("1",),
    "packing": ("1", "PEs"),
}
CLOCK_KINDS = "1",
_VALUE_BITS, _SUM_BITS = 8, 32
_LUT_RAM_ROWS = 32  # of a result buffer in LUT RAM, as in `weft.hw.buffers.bank`
_FEW_WORDS = 32  # of a buffer in LUT RAM, as in `weft.hw.network_core.loads.loader`
_LINK_BLOCKS = 1  # of the frames that come in
_MEMORY_BITS = {1024: 16, 2048: 8, 4096: 4, 8192: 2, 16384: 1}  # of a block, by its words


def dsp_blocks(config: NetworkCoreConfig) -> int:
    """DSP blocks of a design: of the PEs, and of the output section."""
    c = config.array
    return c.rows * c.dsp_cols * (c.depth // c.cell.pairs) + output_blocks(config)


def output_blocks(config: NetworkCoreConfig) -> int:
    """DSP blocks of the lanes, which scale results, and may multiply maps; and of LSTM."""
    array = config.array
    return scaling_blocks(array) + array.lanes * config.multiply_maps + config.lstm


def ram_blocks(config: NetworkCoreConfig) -> int:
    """Block RAMs of a design: PEs, memory, buffers, result buffer, and the link."""
    c = config.array
    vector, target = _VALUE_BITS * c.depth, c.target
    words = min((known for known in _MEMORY_BITS if known >= config.words), default=16384)
    memory = config.banks * -(-vector // _MEMORY_BITS[words]) * -(-config.words // words)
    group = config.read_vectors * vector
    b = c.cols // config.read_vectors * bank_blocks(target, group, _in_blocks(config.b_words))
    bits = 8 * PARAMETER_BYTES * c.lanes
    lines = sum(
        bank_blocks(target, min(group, bits - first), _in_blocks(config.lines))
        for first in range(0, bits, group)
    )
    parts = -(-config.add_table_vectors // config.read_vectors)
    table = c.lanes * parts * bank_blocks(target, _SUM_BITS // parts, ADD_TABLE_WORDS)
    rows = result_rows(config)
    results = 0
    if rows > _LUT_RAM_ROWS:
        results = _columns(c) * bank_blocks(target, _SUM_BITS, rows)
    return square_blocks(c) + memory + b + lines + table + results + _LINK_BLOCKS


def _in_blocks(words):
    """The words that a buffer has in block RAM.

    It is a `weft.hw.network_core.loads.loader.LoadedBuffer`.
    """
    most = 1 << (words - 1).bit_length() - 1
    return most if 0 < words - most <= _FEW_WORDS < most else words


def _columns(core):
    """Columns of the array: a fast inner product needs one more, for the pairs of A."""
    return core.cols + core.cell.corrected


def features(config: NetworkCoreConfig) -> dict[str, float]:
    """The value of each feature in `BLOCKS`."""
    c, vector = config.array, _VALUE_BITS * config.array.depth
    in_lut_ram = _in_blocks(config.b_words) < config.b_words
    return {
        "1": 1,
        **array_features(c, _columns(c), _VALUE_BITS),
        "columns in LUT RAM": _columns(c) * (result_rows(config) <= _LUT_RAM_ROWS),
        "row bits of the banks": c.rows * (config.banks + 1) * vector,
        "read bits of the banks": config.read_vectors * config.banks * vector,
        "read bits": config.read_vectors * vector,
        "banks that reads begin in": config.read_vectors * config.banks,
        "vector bits": vector, "rows": c.rows, "lanes": c.lanes,
        "line bits": 8 * PARAMETER_BYTES * c.lanes,
        "B bits in LUT RAM": c.cols * vector * in_lut_ram,
    }


def clock_features(config: NetworkCoreConfig, share: float) -> dict[str, float]:
    """What the period of the clock depends on; ``share`` of the LUTs of the device are used."""
    return {
        "1": 1, "logarithm of MACs": math.log2(config.array.peak), "share of the device": share,
        "hop": config.array.hop,
    }


NETWORKS = FeatureSet(
    suffix="-networks", blocks=BLOCKS, members=MEMBERS, fitted=("LUT", "FF"),
    counted={"DSP": dsp_blocks, "RAM": ram_blocks}, features=features,
    clock_features=clock_features, clock_kinds=CLOCK_KINDS,
)

# By part of the design, its blocks (`weft.boards.blocks.GROUPS`). Synthesis merges the multiplexers
# behind buffers and memory with the array or the output, so these are one part.
SINGLE_PORT_MEMBERS = {
    "data path": (
        "port", "loads", "weights", "bias", "multiplier", "shift", "table", "columns", "output",
    ),
    "control": ("engine", "steps", "core"),
    "host": ("host_port", "link", "receiver", "transmitter", "accelerator"),
    "packing": ("board", "nextpnr"),
}
SINGLE_PORT_BLOCKS = {
    "data path": ("1", "MACs in logic", "rows of single-port RAMs", "selected bits"),
    "control": ("1",), "host": ("1",), "packing": ("1",),
}
_SHAPES = {16: 256, 8: 512, 4: 1024, 2: 2048}  # of a block RAM: words, by their bits
_VECTOR_BITS, _HALF_BITS = 32, 16
_LINE_BITS = 32, 32, 8  # bias, multiplier, shift
_ENGINE_BLOCKS = 3  # 512 instructions of 16 bits, 256 registers of 16 bits
_FRAME_BLOCKS = 2  # of the frames that come in
_SINGLE_PORT_WORDS = 1 << 14  # of a single-port RAM; each has 16 bits


def single_port_dsp_blocks(config: NetworkCoreConfig) -> int:
    """DSP blocks of a design: each multiplies two pairs a cycle."""
    return config.peak // 2 if config.array.family.has_dsp else 0


def single_port_ram_blocks(config: NetworkCoreConfig) -> int:
    """Block RAMs of a design: buffers, microprogram, registers, link; the memory in some FPGAs."""
    banks = *_banks(config), (_VECTOR_BITS, ADD_TABLE_WORDS)
    return sum(_blocks(*bank)[0] for bank in banks) + _ENGINE_BLOCKS + _FRAME_BLOCKS


def single_port_memories(config: NetworkCoreConfig) -> int:
    """Single-port RAMs of the memory, if the FPGA has them."""
    return _rows(config) * (_VECTOR_BITS // _HALF_BITS)


def _rows(config):
    """Single-port RAMs that the words of the memory lie in."""
    return -(-config.words // _SINGLE_PORT_WORDS) if config.target == "ice40up" else 0


def _banks(config):
    """Bits and words of the banks in block RAM that depend on the NetworkCoreConfig."""
    columns = [(_VECTOR_BITS, config.b_words)] * config.array.cols
    memory = [] if _rows(config) else [(_VECTOR_BITS, config.words)]
    return [*columns, *((bits, config.lines) for bits in _LINE_BITS), *memory]


def _blocks(bits, words):
    """Block RAMs of a bank in the shape that takes the fewest, and how many its words lie in."""
    return min(
        (-(-bits // width) * -(-words // deep), -(-words // deep))
        for width, deep in _SHAPES.items()
    )


def single_port_features(config: NetworkCoreConfig) -> dict[str, float]:
    """The value of each feature in `SINGLE_PORT_BLOCKS`."""
    return {
        "1": 1, "MACs in logic": config.peak - 2 * single_port_dsp_blocks(config),
        "rows of single-port RAMs": _rows(config),
        "selected bits": sum(bits * (_blocks(bits, words)[1] - 1) for bits, words in
        _banks(config)),
    }


def single_port_clock(config: NetworkCoreConfig, share: float) -> dict[str, float]:
    """What the period of the clock depends on: the same paths are critical in all such cores."""
    return {"1": 1}


SINGLE_PORT = FeatureSet(
    suffix="-networks", blocks=SINGLE_PORT_BLOCKS, members=SINGLE_PORT_MEMBERS,
    fitted=("LUT", "FF"),
    counted={
        "DSP": single_port_dsp_blocks, "RAM": single_port_ram_blocks,
        "SPRAM": single_port_memories,
    },
    features=single_port_features, clock_features=single_port_clock, clock_kinds=("1",),
)
