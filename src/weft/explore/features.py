"""The features of a Config that its area and its clock are estimated from, by block of the design.

A feature is a count: of MACs in DSP blocks, of PEs with an overlapped drain, of bits of a register.
The area of a block is a sum over its features, each times a fitted number of cells.
`FeatureSet` collects them for one kind of core. Here are the ones of a product core;
`weft.explore.network_features` has the ones of network cores.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.boards.blocks import GROUPS
from weft.commands import TABLE_ENTRIES, Region, epilogue_flags
from weft.config import Config
from weft.geometry import memories, operands
from weft.timing import Latencies

__all__ = [
    "BLOCKS", "CLOCK_KINDS", "PRODUCTS", "FeatureSet", "array_features", "bank_blocks",
    "clock_features", "dsp_blocks", "features", "ram_blocks", "scaling_blocks", "square_blocks",
]

# By group of `weft.boards.blocks.GROUPS`, the features of its area. "1" is a constant.
BLOCKS = {
    "array": (
        "1", "MACs in DSP, plain", "MACs in DSP, fip", "MACs in logic, plain",
        "MACs in logic, fip", "MACs in block RAM", "sums in logic", "overlapped PEs",
        "lower overlapped PEs", "operand register bits",
    ),
    "operands": (
        "1", "operand word bits", "skewed bits", "B columns", "A rows", "bytes in",
        "operand blocks",
    ),
    "control": (
        "1", "jobs", "address bits", "address bits of jobs", "stored jobs", "rows", "columns",
        "corrected jobs",
    ),
    "results": (
        "1", "buffered columns", "shallow buffer bits", "lanes", "selection bits",
        "selected sums", "bytes out", "lane bytes", "overlapped columns", "reorder bits",
        "pending cells", "pending bits", "requantized lanes",
    ),
    "post-processing": (
        "1", "corrected", "corrected bytes in", "corrected lanes", "corrected pages",
        "corrected sums", "requantized lanes", "parallel lanes", "halved lanes", "digit lanes",
        "single lanes", "requantizes", "tables in LUT RAM", "tables in block RAM",
        "parameter blocks",
    ),
    "registers": ("1",),
    "serial link": ("1", "bytes in", "bytes out"),
    "board": ("1", "carry chains", "requantized lanes", "jobs", "address bits of jobs"),
}
CLOCK_KINDS = "1", "scales by digits", "iCE40HX"
# Of a block RAM, by its words: the bits of a word.
_RAM_WIDTHS = {"ecp5": {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}}
_ICE40_WIDTHS = {256: 16, 512: 8, 1024: 4, 2048: 2}
_MIXED_WORDS, _MIXED_BITS = 512, 32  # of a DP16KD that is written wide and read in parts
_SCALING = {1: 4, 2: 2, 4: 4, 8: 4}  # DSP blocks of a lane, by `Config.scale_cycles`
_SUM_BITS = 32
_OPERANDS = Region.A, Region.B, Region.C
_REGISTER_BLOCKS = 2  # of the registers of an iCE40
_LINK_BLOCKS = 2
_ECP5_BITS = 36  # of the widest word of a block
_MOST_CELLS = 25  # of LUT RAM; Yosys maps more to one block RAM
# Of the parameters of a column: bias, multiplier, shift, zero point, limits.
_USED_BITS = {*range(72), *range(80, 89), *range(96, 105), *range(112, 121)}
_PENDING_BITS = 9  # of a pending tile: flags and status
_LUT_RAM_WORDS = 32  # of a bank in LUT RAM, as in `weft.hw.buffers.bank`


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureSet:
    """What a kind of core is estimated from: its features.

    Attributes
    ----------
    suffix : str
        Of the names of its families of points.
    blocks : dict of tuple of str
        The features of the area of each part of the design. "1" is a constant.
    members : dict of tuple of str
        The blocks (`weft.boards.blocks.GROUPS`) that each part consists of.
    fitted : tuple of str
        The resources that a part takes by its features.
    counted : dict of callable
        For each other resource, a function of the Config that counts it for the whole design.
    features : callable
        The value of each feature of a Config, by its name.
    clock_features : callable
        What the period depends on: of a Config, and of the share of the LUTs that it takes.
    clock_kinds : tuple of str
        The features of the clock that tell kinds of designs apart.
    """

    suffix: str
    blocks: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]
    fitted: tuple[str, ...]
    counted: Mapping[str, Callable[[Any], int]]
    features: Callable[[Any], dict[str, float]]
    clock_features: Callable[[Any, float], dict[str, float]]
    clock_kinds: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features of the area, each once."""
        return tuple(dict.fromkeys(name for names in self.blocks.values() for name in names))


def dsp_blocks(config: Config) -> int:
    """DSP blocks of a design: products of the PEs, corrections, scaling of results.

    A block takes one product: of one pair, or (fast inner product) of two. An SB_MAC16 takes two
    products of a PE; it is used in PEs only, as far as the device has blocks for all of them.
    """
    c = config
    if not c.family.has_dsp:
        return 0
    elements, products = c.rows * c.dsp_cols, c.depth // c.cell.pairs
    if c.pe_blocks is not None:
        return elements * min(c.pe_blocks, -(-products // 2))
    if c.family.dsp_blocks is not None:  # no column uses DSP blocks
        return 0
    corrected = c.bytes_in // 2 if c.cell.corrected else 0
    return elements * products + corrected + scaling_blocks(c)


def scaling_blocks(config: Config) -> int:
    """DSP blocks of the lanes that scale results."""
    return config.lanes * _SCALING.get(config.scale_cycles, 0) if _requantizes(config) else 0


def ram_blocks(config: Config) -> int:
    """Block RAMs of a design."""
    return sum(ram_blocks_by_part(config).values())


def ram_blocks_by_part(config: Config) -> dict[str, int]:
    """The block RAMs of each part of `BLOCKS` that has some."""
    c, ice40 = config, config.target.startswith("ice40")
    return {
        "array": square_blocks(c),
        "operands": _operand_blocks(c),
        "results": _result_blocks(c),
        "post-processing": _correction_blocks(c) + _parameter_blocks(c) + c.lanes * (
            _table_features(c)["tables in block RAM"] > 0
        ) * bank_blocks(c.target, 8 * c.bytes_in, TABLE_ENTRIES // c.bytes_in),
        "registers": _REGISTER_BLOCKS * ice40,
        "serial link": _LINK_BLOCKS,
    }


def square_blocks(config: Config) -> int:
    """Block RAMs of the PEs: one for each product in a column that uses them."""
    return config.rows * config.ram_cols * (config.depth // config.cell.pairs)


def _operand_blocks(config):
    """Block RAMs of the operand buffers."""
    geometries = memories(config)
    return sum(
        _buffer_blocks(config, geometries[region]) for region in _OPERANDS if region in geometries
    )


def _buffer_blocks(config, operand):
    """Block RAMs of a buffer, as `weft.hw.buffers.operands` arranges them.

    A word that is wider than the stream has a bank for each segment. Words that share a stream word
    share a bank, which is written whole and read in parts.
    """
    if operand.segments > 1:
        widths = [operand.stream] * (operand.segments - 1)
        widths.append(operand.word_bytes - sum(widths))
    else:
        widths = [operand.group * operand.word_bytes]
    words = operand.words // operand.group
    return sum(bank_blocks(config.target, 8 * width, words, operand.group) for width in widths)


def _result_blocks(config):
    """Block RAMs of the result buffer, the pending tiles and the reorder buffer."""
    c, rows = config, Latencies.of(config).buffer_rows
    width, depth = pending_tiles(c)
    sums = 0 if _in_flip_flops(c, _SUM_BITS, rows) else c.cols * bank_blocks(
        c.target, _SUM_BITS, rows
    )
    if c.target == "ecp5":
        return sums + (not _pending_cells(c))
    if not c.target.startswith("ice40"):
        return sums
    pending = 0 if _in_flip_flops(c, width, depth) else bank_blocks(c.target, width, depth)
    return sums + pending + 1 + c.lanes * bank_blocks(c.target, _SUM_BITS, 1)


def _correction_blocks(config):
    """Block RAMs of the sums that a fast inner product is corrected with.

    A stream word with several rows of a panel of several words has a sum for each of them.
    """
    c, total = config, 0
    for operand, count in zip(operands(c), (1, c.lanes), strict=True):
        rows, rest = divmod(operand.stream, operand.depth)
        folded = operand.segments > 1 and not rest and rows % count == 0
        sums, folds = (rows, operand.segments) if folded else (operand.edge, 1)
        bits, words = _SUM_BITS * sums, operand.pages << (folds - 1).bit_length()
        in_lut_ram = c.target == "ecp5" and words <= _LUT_RAM_WORDS
        if not in_lut_ram and not _in_flip_flops(c, bits, words):
            total += bank_blocks(c.target, bits, words)
    return total * c.cell.corrected


def _parameter_blocks(config):
    """Block RAMs of the parameters of the columns.

    A serial epilogue has two banks for each lane (`weft.hw.output.serial_requantizer`). Otherwise a
    block of an ECP5 of which no bit is used is left out.
    """
    c, geometry = config, memories(config).get(Region.PARAMETERS)
    if geometry is None:
        return 0
    if c.data_type.serial_epilogue(c):
        width = min(4, geometry.stream)
        banks = 2 * 4 // width * geometry.edge
        return banks * bank_blocks(c.target, 8 * width, 2 * geometry.words)
    if c.target != "ecp5" or not _requantizes(c) or geometry.group > 1:
        return _buffer_blocks(c, geometry)
    bits, end = 8 * geometry.depth, 8 * geometry.word_bytes
    segment = min(end, 8 * geometry.stream)
    deep, step = _shape(c.target, geometry.words)
    used = sum(
        any(n % bits in _USED_BITS for n in range(block, min(block + step, first + segment)))
        for first in range(0, end, segment)
        for block in range(first, first + segment, step)
    )
    return used * -(-geometry.words // deep)


def bank_blocks(target: str, bits: int, words: int, parts: int = 1) -> int:
    """Block RAMs of a bank: ``words`` of ``bits``, read in ``parts``."""
    mixed = target == "ecp5" and parts > 1 and words <= _MIXED_WORDS
    if mixed and bits % _MIXED_BITS == 0:
        return bits // _MIXED_BITS
    deep, width = _shape(target, words)
    return -(-bits // width) * -(-words // deep)


def _shape(target, words):
    """Words of a block RAM, and their bits, for a memory of so many words."""
    shapes = _RAM_WIDTHS.get(target, _ICE40_WIDTHS)
    deep = min((known for known in shapes if known >= words), default=max(shapes))
    return deep, shapes[deep]


def features(config: Config) -> dict[str, float]:
    """The value of each feature in `BLOCKS`."""
    c = config
    a, b = list(memories(c).values())[:2]
    fip, folded = c.cell.corrected, c.drain == "folded"
    address_bits = math.log2(a.pages) + math.log2(b.pages)
    requantized = c.lanes * _requantizes(c)
    return {
        "1": 1,
        **array_features(c, c.cols, 8 * a.size),
        "overlapped PEs": c.rows * c.cols * (not folded),
        "lower overlapped PEs": (c.rows - 1) * c.cols * (not folded),
        "operand word bits": (c.rows + c.cols) * c.depth * 8 * a.size,
        "B columns": c.cols, "A rows": c.rows, "bytes in": c.bytes_in,
        "operand blocks": _operand_blocks(c),
        "jobs": c.jobs, "address bits": address_bits,
        "address bits of jobs": c.jobs * address_bits, "stored jobs": c.jobs > 2,
        "rows": c.rows, "columns": c.cols, "corrected jobs": c.jobs * fip,
        **_result_features(c, address_bits),
        "corrected": fip, "corrected bytes in": fip * c.bytes_in,
        "corrected lanes": fip * c.lanes, "corrected pages": fip * (a.pages + b.pages),
        "corrected sums": fip * (a.edge + b.edge),
        "requantizes": _requantizes(c), "requantized lanes": requantized,
        "parallel lanes": requantized * (c.scale_cycles == 1),
        "halved lanes": requantized * (c.scale_cycles == 4),
        "digit lanes": requantized / c.scale_cycles,
        "single lanes": c.lanes * (c.requantize == "single"),
        **_table_features(c),
        "parameter blocks": requantized * -(-b.pages * Latencies.of(c).row_chunks // 512),
        "carry chains": c.rows * c.cols,
    }


def _result_features(config, address_bits):
    """The features of the way from the array to the result stream."""
    c, folded, latencies = config, config.drain == "folded", Latencies.of(config)
    with_sums, chunks = min(c.lanes, c.cols), latencies.row_chunks
    lanes = c.lanes if _requantizes(c) else with_sums  # Yosys removes a lane of constants
    shallow = _in_flip_flops(c, _SUM_BITS, latencies.buffer_rows)
    width, depth = pending_tiles(c)
    pending = _in_flip_flops(c, width, depth)
    return {
        "buffered columns": c.cols * (not shallow),
        "shallow buffer bits": c.cols * latencies.buffer_rows * _SUM_BITS * shallow,
        "lanes": lanes, "selected sums": with_sums * math.log2(chunks) * _SUM_BITS,
        "selection bits": with_sums * -(-chunks // 2) * _SUM_BITS * (chunks > 1),
        "bytes out": c.bytes_out, "lane bytes": lanes * math.log2(1 + c.bytes_out),
        "overlapped columns": c.cols * (not folded and c.rows > 1),
        "reorder bits": lanes * _SUM_BITS * 16 * -(-latencies.reorder_depth // 16),
        "pending cells": _pending_cells(c),
        "pending bits": width * depth * pending,
    }


@functools.lru_cache(maxsize=1)
def pending_tiles(config: Config) -> tuple[int, int]:
    """Bits and words of the memory of `weft.hw.output.reorder_buffer.PendingTiles`."""
    c, latencies = config, Latencies.of(config)
    a, b = list(memories(c).values())[:2]
    sizes = c.rows.bit_length() + c.cols.bit_length() + (c.jobs - 1).bit_length()
    pages = (a.pages - 1).bit_length() + (b.pages - 1).bit_length()
    flags = len(epilogue_flags(c))
    width = sizes + 2 * pages + flags + _PENDING_BITS
    return width, latencies.buffer_passes * c.cell.slots + c.jobs - 1


def _in_flip_flops(config, bits, words):
    """Whether Yosys maps a memory of an iCE40 to flip-flops: they cost less than block RAM."""
    return config.target.startswith("ice40") and bits * words <= 64 * -(-bits // 16)


def _pending_cells(config):
    """Cells of LUT RAM, 4 bits x 16 words each, of the pending tiles; 0 if they are elsewhere."""
    width, depth = pending_tiles(config)
    cells = -(-width // 4) * -(-depth // 16)
    in_block = cells > _MOST_CELLS and width <= _ECP5_BITS
    return cells * (config.target == "ecp5" and not in_block)


def _table_features(config):
    """The activation tables; on an ECP5, Yosys maps one of few words to LUT RAM."""
    tables = config.lanes * (config.activation == "table" and _requantizes(config))
    shallow = config.target == "ecp5" and TABLE_ENTRIES // config.bytes_in <= _LUT_RAM_WORDS
    return {"tables in LUT RAM": tables * shallow, "tables in block RAM": tables * (not shallow)}


def array_features(config: Config, columns: int, value_bits: int) -> dict[str, float]:
    """The features of an array of ``columns`` columns, and of the registers that feed it."""
    c, fip = config, config.cell.corrected
    in_dsp, in_ram = c.rows * c.dsp_cols * _dsp_macs(c), c.rows * c.ram_cols * c.depth
    in_logic = c.rows * columns * c.depth - in_dsp - in_ram
    # A single product of an iCE40 has its sum in the DSP block, too.
    in_block = c.rows * c.dsp_cols * bool(c.pe_blocks and c.depth == c.cell.pairs)
    hops = c.rows * -(-(columns - 1) // c.hop) + columns * -(-(c.rows - 1) // c.hop)
    skew = sum(n // c.hop for n in range(c.rows)) + sum(n // c.hop for n in range(columns))
    return {
        "MACs in DSP, plain": in_dsp * (not fip), "MACs in DSP, fip": in_dsp * fip,
        "MACs in logic, plain": in_logic * (not fip), "MACs in logic, fip": in_logic * fip,
        "MACs in block RAM": in_ram, "PEs": c.rows * columns,
        "sums in logic": c.rows * columns - in_block,
        "operand register bits": hops * c.depth * value_bits,
        "skewed bits": skew * c.depth * value_bits,
    }


def _dsp_macs(config):
    """MACs in the DSP blocks of a PE in a column with DSP blocks."""
    c = config
    if c.pe_blocks is None:
        return c.depth
    products = c.depth // c.cell.pairs
    return c.cell.pairs * min(products, products if products == 1 else 2 * c.pe_blocks) * (
        c.pe_blocks > 0
    )


def clock_features(config: Config, share: float) -> dict[str, float]:
    """What the period of the clock depends on; ``share`` of the LUTs of the device are used.

    A lane that scales by digits has the longest path of the design in its multiplier, whatever the
    rest of the design is. So the other features count without such a lane only. `CLOCK_KINDS` are
    the features that tell kinds of designs apart.
    """
    c = config
    digits = _requantizes(c) and c.scale_cycles > 1 and not c.data_type.serial_epilogue(c)
    rest = {
        "logarithm of MACs": math.log2(c.peak), "share of the device": share,
        "fip": c.cell.corrected, "folded": c.drain == "folded", "jobs": math.log2(c.jobs),
        "lanes": math.log2(c.lanes), "bytes in": math.log2(c.bytes_in),
        "bytes out": math.log2(c.bytes_out), "table": c.activation == "table",
        "requantizes": _requantizes(c), "MACs in DSP": c.dsp_cols / c.cols,
        "rows and columns": c.rows + c.cols,
    }
    return {
        "1": 1, "scales by digits": digits, "scales by 16 bits": digits and c.scale_cycles == 2,
        "iCE40HX": c.target == "ice40hx",
        **{name: value * (not digits) for name, value in rest.items()},
    }


def _requantizes(config):
    return config.requantize != "none"


PRODUCTS = FeatureSet(
    suffix="", blocks=BLOCKS, members=GROUPS, fitted=("LUT", "FF"),
    counted={"DSP": dsp_blocks, "RAM": ram_blocks}, features=features,
    clock_features=clock_features, clock_kinds=CLOCK_KINDS,
)
