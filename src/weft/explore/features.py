"""The features of a Config that its area and its clock are estimated from, by block of the design.

A feature is a count: of MACs in DSP blocks, of PEs with an overlapped drain, of bits of a register.
The area of a block is a sum over its features, each times a fitted number of cells.
`weft.explore.network_features` has the features of a ChipConfig.
"""

import math

from weft.boards.blocks import GROUPS
from weft.config import Config
from weft.explore.feature_set import FeatureSet
from weft.geometry import memories
from weft.timing import Latencies

__all__ = [
    "BLOCKS", "CLOCK_KINDS", "MATRIX", "array_features", "bank_blocks", "clock_features",
    "dsp_blocks", "features", "ram_blocks", "scaling_blocks",
    "square_blocks",
]

# By group of `weft.boards.blocks.GROUPS`, the features of its area. "1" is a constant.
BLOCKS = {
    "array": (
        "1", "MACs in DSP, plain", "MACs in DSP, fip", "MACs in logic, plain",
        "MACs in logic, fip", "MACs in block RAM", "PEs", "overlapped PEs",
        "operand register bits",
    ),
    "operands": (
        "1", "operand word bits", "skewed bits", "B columns", "A rows", "bytes in",
        "operand blocks",
    ),
    "control": ("1", "jobs", "address bits", "rows", "columns", "corrected jobs"),
    "results": (
        "1", "buffered columns", "shallow buffer bits", "lanes", "selected sums", "bytes out",
        "lane bytes", "overlapped columns", "reorder bits",
    ),
    "post-processing": (
        "1", "corrected", "corrected bytes in", "corrected lanes", "corrected pages",
        "requantized lanes", "parallel lanes", "halved lanes", "digit lanes",
        "single lanes", "requantizes",
        "table lanes", "parameter blocks",
    ),
    "registers": ("1",),
    "serial link": ("1", "bytes in", "bytes out"),
    "board": ("1", "carry chains", "lanes"),
}
CLOCK_KINDS = "1", "scales by digits", "iCE40HX"
# Of a block RAM, by its words: the bits of a word.
_RAM_WIDTHS = {"ecp5": {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}}
_ICE40_WIDTHS = {256: 16, 512: 8, 1024: 4, 2048: 2}
_MIXED_WORDS, _MIXED_BITS = 512, 32  # of a DP16KD that is written wide and read in parts
_SCALING = {1: 4, 2: 2, 4: 4, 8: 4}  # DSP blocks of a lane, by `Config.scale_cycles`
_SUM_BITS = 32
_SHALLOW = 4  # rows of a result buffer


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
    """Block RAMs of the squares, one for each product, and of the operand buffers."""
    return square_blocks(config) + _operand_blocks(config)


def square_blocks(config: Config) -> int:
    """Block RAMs of the PEs."""
    return config.rows * config.ram_cols * (config.depth // config.cell.pairs)


def _operand_blocks(config):
    """Block RAMs of the operand buffers, as `weft.hw.buffers.operands` arranges them.

    A word that is wider than the stream has a bank for each segment. Words that share a stream word
    share a bank, which is written whole and read in parts.
    """
    total = 0
    for operand in list(memories(config).values())[:2]:
        if operand.segments > 1:
            widths = [operand.stream] * (operand.segments - 1)
            widths.append(operand.word_bytes - sum(widths))
        else:
            widths = [operand.group * operand.word_bytes]
        words = operand.words // operand.group
        total += sum(
            bank_blocks(config.target, 8 * width, words, operand.group) for width in widths
        )
    return total


def bank_blocks(target: str, bits: int, words: int, parts: int = 1) -> int:
    """Block RAMs of a bank: ``words`` of ``bits``, read in ``parts``."""
    mixed = target == "ecp5" and parts > 1 and words <= _MIXED_WORDS
    if mixed and bits % _MIXED_BITS == 0:
        return bits // _MIXED_BITS
    shapes = _RAM_WIDTHS.get(target, _ICE40_WIDTHS)
    deep = min((known for known in shapes if known >= words), default=max(shapes))
    return -(-bits // shapes[deep]) * -(-words // deep)


def features(config: Config) -> dict[str, float]:
    """The value of each feature in `BLOCKS`."""
    c = config
    a, b = list(memories(c).values())[:2]
    fip, folded = c.cell.corrected, c.drain == "folded"
    latencies = Latencies.of(c)
    requantized = c.lanes * _requantizes(c)
    # Yosys maps a shallow result buffer of an iCE40 to flip-flops.
    shallow = c.target.startswith("ice40") and latencies.buffer_rows <= _SHALLOW
    return {
        "1": 1,
        **array_features(c, c.cols, 8 * a.size),
        "overlapped PEs": c.rows * c.cols * (not folded),
        "operand word bits": (c.rows + c.cols) * c.depth * 8 * a.size,
        "B columns": c.cols, "A rows": c.rows, "bytes in": c.bytes_in,
        "operand blocks": _operand_blocks(c), "jobs": c.jobs,
        "address bits": math.log2(a.pages) + math.log2(b.pages),
        "rows": c.rows, "columns": c.cols, "corrected jobs": c.jobs * fip,
        "buffered columns": c.cols * (not shallow), "lanes": c.lanes,
        "shallow buffer bits": c.cols * latencies.buffer_rows * _SUM_BITS * shallow,
        "selected sums": c.lanes * math.log2(latencies.row_chunks) * _SUM_BITS,
        "bytes out": c.bytes_out, "lane bytes": c.lanes * math.log2(1 + c.bytes_out),
        "overlapped columns": c.cols * (not folded and c.rows > 1),
        "reorder bits": c.lanes * _SUM_BITS * latencies.reorder_depth,
        "corrected": fip, "corrected bytes in": fip * c.bytes_in,
        "corrected lanes": fip * c.lanes, "corrected pages": fip * (a.pages + b.pages),
        "requantizes": _requantizes(c), "requantized lanes": requantized,
        "parallel lanes": requantized * (c.scale_cycles == 1),
        "halved lanes": requantized * (c.scale_cycles == 4),
        "digit lanes": requantized / c.scale_cycles,
        "single lanes": c.lanes * (c.requantize == "single"),
        "table lanes": c.lanes * (c.activation == "table"),
        "parameter blocks": requantized * -(-b.pages * latencies.row_chunks // 512),
        "carry chains": c.rows * c.cols,
    }


def array_features(config: Config, columns: int, value_bits: int) -> dict[str, float]:
    """The features of an array of ``columns`` columns, and of the registers that feed it."""
    c, fip = config, config.cell.corrected
    in_dsp, in_ram = c.rows * c.dsp_cols * c.depth, c.rows * c.ram_cols * c.depth
    in_logic = c.rows * columns * c.depth - in_dsp - in_ram
    hops = c.rows * -(-(columns - 1) // c.hop) + columns * -(-(c.rows - 1) // c.hop)
    skew = sum(n // c.hop for n in range(c.rows)) + sum(n // c.hop for n in range(columns))
    return {
        "MACs in DSP, plain": in_dsp * (not fip), "MACs in DSP, fip": in_dsp * fip,
        "MACs in logic, plain": in_logic * (not fip), "MACs in logic, fip": in_logic * fip,
        "MACs in block RAM": in_ram, "PEs": c.rows * columns,
        "operand register bits": hops * c.depth * value_bits,
        "skewed bits": skew * c.depth * value_bits,
    }


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


MATRIX = FeatureSet(
    suffix="", blocks=BLOCKS, members=GROUPS, fitted=("LUT", "FF", "RAM"),
    counted={"DSP": dsp_blocks}, features=features, clock_features=clock_features,
    clock_kinds=CLOCK_KINDS,
)
