"""The features of a network core, by part of the design; its block RAMs are counted, too."""

import math

from weft.explore.feature_set import FeatureSet
from weft.explore.features import array_features, bank_blocks, scaling_blocks, square_blocks
from weft.network_core.config import ADD_TABLE_WORDS, PARAMETER_BYTES, NetworkCoreConfig
from weft.network_core.latencies import result_rows

__all__ = ["NETWORKS", "dsp_blocks", "ram_blocks"]

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
_FEW_WORDS = 32  # of a buffer in LUT RAM, as in `weft.hw.network_core.loads.loaded_buffer`
_LINK_BLOCKS = 1  # of the frames that come in
_MEMORY_BITS = {1024: 16, 2048: 8, 4096: 4, 8192: 2, 16384: 1}  # of a block, by its words


def dsp_blocks(config: NetworkCoreConfig) -> int:
    """DSP blocks of a design: of the PEs, and of the lanes that scale results."""
    c = config.array
    return c.rows * c.dsp_cols * (c.depth // c.cell.pairs) + scaling_blocks(c)


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

    It is a `weft.hw.network_core.loads.loaded_buffer.LoadedBuffer`.
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
