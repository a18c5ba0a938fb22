"""The designs of the boards: a Config for each FPGA, and network cores (``weft build --for``).

`configs_by_size` gives the Configs that the search for the largest array tries.
"""

import contextlib
import dataclasses
from typing import Any

from weft.boards.board import Board, BoardError, NetworkDesign
from weft.boards.presets import PRESETS
from weft.config import Config, ConfigError
from weft.design import PerKind
from weft.designs import replace
from weft.language_core.config import LanguageCoreConfig
from weft.network_core.config import NetworkCoreConfig

__all__ = [
    "BATCH1_85F", "ECP5_25F", "ECP5_45F", "ECP5_85F", "GOWIN_9", "GOWIN_18", "ICE40_HX8K",
    "ICE40_UP5K", "LANGUAGE_85F", "LANGUAGE_SDRAM_85F", "LANGUAGE_UP5K", "NETWORKS_25F",
    "NETWORKS_85F", "NETWORKS_FAST_85F", "NETWORKS_GOWIN_18", "NETWORKS_HX8K", "NETWORKS_ONNX_85F",
    "NETWORKS_SDRAM_25F", "NETWORKS_SDRAM_45F", "NETWORKS_SDRAM_85F", "NETWORKS_SDRAM_GOWIN_18",
    "NETWORKS_UP5K", "configs_by_size", "min_luts",
]


# The arrays that were placed with the pins of the boards; the ones of the iCE40 presets are larger.
ICE40_UP5K = replace(PRESETS["ice40up5k"].config, depth=5)
ICE40_HX8K = replace(PRESETS["ice40hx8k"].config, rows=3, drain="folded")
ECP5_25F = PRESETS["ecp5-25f"].config
ECP5_45F = replace(ECP5_25F, rows=6, cols=10, hop=3, dsp_cols=2, ram_cols=2, lanes=2)
ECP5_85F = PRESETS["ecp5-85f"].config
# All products are in DSP blocks, so all else is in logic, the lane's multipliers too: with one
# result in four cycles it has a quarter of them. 6 of 8 places for a LUT have a flip-flop, and a
# flip-flop without a LUT before it, or an ALU, takes one of those for itself. With 4 x 5 PEs, a
# result in each cycle and an operand register for each 2 x 2 PEs, nextpnr ended with an error.
GOWIN_18 = Config(
    target="gowin", rows=4, cols=4, depth=8, hop=4, lanes=1, jobs=2, activation="none",
    scale_cycles=2, a_words=512, b_words=512, bytes_in=8, bytes_out=1,
)
# With so few PEs, plain products need less than the corrector of fast inner products.
GOWIN_9 = replace(GOWIN_18, rows=2, cols=2, depth=4, multiplier="plain", scale_cycles=8)


def _core(hop=2, target="ecp5", **fields):
    return Config(target=target, requantize="tflite", activation="none", hop=hop, **fields)


# Of the block RAMs of the device, the memory takes 144 of 208 (288 KiB), and 28 of 56 (56 KiB).
# Four multipliers a lane, and on the 85F one more for the product of two maps, which leaves 20 of
# its 156; the others are in the array. 8 x 4 PEs need more LUTs than a 25F has. An operand register
# for each 3 x 3 PEs of the 25F: with 2 x 2, it has 460 flip-flops more, and the legalization of
# nextpnr did not end in 4 minutes. One for each 2 x 2 PEs of the 85F: with 4 x 4, it has 3,500
# flip-flops less, and each layer takes 4 cycles less, but its clock is slower.
NETWORKS_85F = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(rows=8, cols=8, depth=8, lanes=8, dsp_cols=3, hop=2),
        words=4096, b_words=512, lines=512, read_vectors=4, softmax=True, multiply_maps=True,
    ),
    clock=75, baud=3_000_000, placer="static",
)
# The same with half of the memory, and jobs that start early. Its 72 block RAMs less shorten the
# wires between the memory and the array, so its clock is faster.
NETWORKS_FAST_85F = NetworkDesign(
    config=replace(NETWORKS_85F.config, words=2048, early=True), clock=104.1667, baud=3_000_000,
    placer="static",
)
# The first one with lists and weights in an SDRAM of 32 MiB: 18 MiB of it, which is 9 banks of 2^18
# words. The memory on the chip has the maps alone.
NETWORKS_SDRAM_85F = dataclasses.replace(
    NETWORKS_85F, config=replace(NETWORKS_85F.config, program_words=1 << 18), placed=False,
)
# The fast one for networks of ONNX: the lanes round as onnxruntime, and take a quarter more LUTs.
# Lanes with both roundings would have the normalizers of the one and the shifters of the other.
NETWORKS_ONNX_85F = NetworkDesign(
    # MUL and SOFTMAX of ONNX are of float32.
    config=replace(
        NETWORKS_FAST_85F.config, requantize="onnx", softmax=False, multiply_maps=False
    ),
    clock=75, baud=3_000_000, placer="static",
)
NETWORKS_25F = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(rows=6, cols=4, depth=4, lanes=4, dsp_cols=1, hop=3),
        words=2048, b_words=512, lines=512, read_vectors=2,
    ),
    clock=110, baud=3_000_000,
)

# Lists and weights are in an SDRAM: 5 MiB of it. With 6 x 4 PEs, the core and the way to the SDRAM
# have 22,028 of the 24,288 flip-flops, and were not placed after 52 minutes.
NETWORKS_SDRAM_25F = dataclasses.replace(
    NETWORKS_25F, config=replace(NETWORKS_25F.config, rows=4, hop=2, program_words=1 << 18),
    clock=87.5,
)
# A 45F has room for 6 x 4 PEs, and for twice the memory for maps. With a clock of 95.8333 MHz it
# reached 91.7 MHz.
NETWORKS_SDRAM_45F = dataclasses.replace(
    NETWORKS_25F, config=replace(NETWORKS_25F.config, words=4096, program_words=1 << 18),
    clock=87.5, baud=1_000_000,
)

# For networks of fully connected layers, whose weights stay in B, where the host writes them: 512
# words in 128 block RAMs of 36 bits, and 16 words in LUT RAM. The weights of ad01 alone are 516
# words, and with two ports a word would take 228 of the 208 blocks. The memory takes 16 blocks (16
# KiB). 7 of the 16 columns multiply in DSP blocks. All PEs have the same step, so no layer waits
# for operand registers between them.
BATCH1_85F = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(rows=1, cols=16, depth=32, lanes=8, dsp_cols=7, hop=16),
        words=512, b_words=528, lines=512, read_vectors=1, resident=True,
    ),
    clock=95.8333, baud=3_000_000, placer="static", seed=2, placed=False,
)

# The array of a core with a microprogram.
_ONE_ROW: dict[str, Any] = {
    "rows": 1, "cols": 4, "depth": 4, "lanes": 1, "multiplier": "plain",
}

# The memory is the SPRAM of the device: 128 KiB. A microprogram controls the array, which has all
# DSP blocks; all 30 block RAMs are in use. The wires of nextpnr's default placer are 1.3 times as
# long, and router1 does not end.
NETWORKS_UP5K = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(target="ice40up", scale_cycles=4, **_ONE_ROW),
        words=32768, b_words=512, lines=256, read_vectors=1,
    ),
    clock=33, baud=3_000_000, placer="static",
)

# The memory has 4 KiB, in 8 of the 32 block RAMs; with 8 KiB the core would need 38. So it holds
# small networks only, such as three fully connected layers with 2,000 weights.
NETWORKS_HX8K = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(target="ice40hx", scale_cycles=8, **_ONE_ROW),
        words=1024, b_words=256, lines=256, read_vectors=1,
    ),
    clock=60, baud=3_000_000,
)

# The memory has 48 KiB, in 24 of the 46 block RAMs: 3 banks for 2 rows, where 4 rows have 5. The
# lane takes a quarter of the LUTs, so it gives a result in two cycles.
NETWORKS_GOWIN_18 = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(
            target="gowin", rows=2, cols=4, depth=4, lanes=1, multiplier="plain", scale_cycles=2,
        ),
        words=4096, b_words=512, lines=1024, read_vectors=1,
    ),
    clock=102, baud=1_000_000,
)

# Lists and weights are in the SDRAM of the package. Its words have 4 bytes, and an access at least
# two of them, so the core reads two vectors a cycle. With 2 x 4 PEs and a result in two cycles, the
# core would take 96 % of the places for flip-flops.
NETWORKS_SDRAM_GOWIN_18 = NetworkDesign(
    config=NetworkCoreConfig(
        array=_core(
            target="gowin", rows=2, cols=2, depth=4, lanes=1, multiplier="plain", scale_cycles=4,
        ),
        words=4096, b_words=512, lines=1024, read_vectors=2, program_words=1 << 17,
    ),
    clock=102, baud=1_000_000,
)

# The memory takes 192 of the 208 block RAMs, and all are in use: 8 have the activations, 6 the side
# memory and the tables, one the text, one the frames of the link.
LANGUAGE_85F = NetworkDesign(
    config=LanguageCoreConfig(target="ecp5"), clock=95.8333, baud=3_000_000, placer="static",
)
# The same with the weights, and the keys and values of all layers, in an SDRAM of 32 MiB. Weights
# may be of int4.
LANGUAGE_SDRAM_85F = dataclasses.replace(
    LANGUAGE_85F,
    config=dataclasses.replace(LANGUAGE_85F.config, program_words=1 << 18, int4=True),
    clock=81.25, seed=2,
)

# The core with a microprogram: its main memory is the SPRAM, and it has all DSP blocks.
LANGUAGE_UP5K = NetworkDesign(
    config=LanguageCoreConfig(
        target="ice40up", words=1024, groups=128, side_groups=256, microprogram=True
    ),
    clock=36, baud=3_000_000, placer="static",
)

_MIN_MAC_LUTS = 50  # lower bound of the LUTs of a MAC in logic


def configs_by_size(board: Board) -> list[Config]:
    """The board's Config with arrays of other sizes, largest first.

    Arrays that cannot fit by their DSP blocks and their MACs in logic are left out. Raises
    BoardError for a board with a network core.
    """
    return _SIZES.of(board.config)(board)


def _sizes(board):
    device, configs = board.device, []
    for shape in device.flow.shapes:
        fields, in_logic = device.flow.fit(shape, device.capacity)
        if _MIN_MAC_LUTS * in_logic <= device.capacity["LUT"]:
            with contextlib.suppress(ConfigError):
                configs.append(replace(board.config, **fields))
    return sorted(configs, key=lambda config: -config.peak)


def _no_sizes(board):
    raise BoardError("--fit must be with a design for matrix products, not for networks")


def _no_language_sizes(board):
    raise BoardError("--fit must be with a design for matrix products, not for language models")


_SIZES = PerKind(product=_sizes, network=_no_sizes, language=_no_language_sizes)


def min_luts(cells: dict[str, int]) -> int:
    """Lower bound of the LUTs of a netlist, from its number of cells by type."""
    luts = {
        "LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1,
        "LUT1": 1, "LUT2": 1, "LUT3": 1, "ALU": 1,
    }
    return sum(luts.get(cell, 0) * count for cell, count in cells.items())
