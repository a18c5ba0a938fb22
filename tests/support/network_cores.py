"""Cores for networks: one of any sizes, small ones for tests of blocks, and some for networks."""

from dataclasses import replace

from weft.config import Config
from weft.network_core.config import OPTIONS, SIZES, NetworkCoreConfig

__all__ = [
    "BATCH1", "EARLY", "EARLY_ROW", "LARGE", "MICRO", "MICRO_LOGIC", "ODD", "ONNX", "PROGRAM",
    "PROGRAM_ROW", "RESIDENT", "ROW", "SIMULATED", "SIMULATED_LONG", "SIMULATED_SLOWLY", "SMALL",
    "SPRAM", "TINY", "TWO_ROWS", "network_core_config", "small_network_core",
]


def network_core_config(rows, cols, depth, lanes=1, **fields):
    """A network core; ``fields`` are of the NetworkCoreConfig or of its Config."""
    sizes = {"words": 4096} | {
        name: fields.pop(name)
        for name in (*SIZES, *OPTIONS)
        if name in fields
    }
    core = {"activation": "none", "requantize": "tflite"} | fields
    return NetworkCoreConfig(
        array=Config(rows=rows, cols=cols, depth=depth, lanes=lanes, **core), **sizes
    )


def small_network_core(rows, cols, depth, lanes=1, **fields):
    """A core with a small memory, which returns one vector for a read."""
    defaults = {"words": 16, "read_vectors": 1, "requantize": "single"}
    return network_core_config(rows, cols, depth, lanes, **defaults | fields)


LARGE = network_core_config(8, 8, 8, 8, multiplier="fip")
SMALL = network_core_config(8, 4, 4, 4, multiplier="fip")
BATCH1 = network_core_config(1, 32, 16, 8, words=8192, b_words=1024, lines=1024, multiplier="fip")
ODD = network_core_config(3, 2, 8, 1, words=16384, b_words=1024, lines=64, read_vectors=1)
TINY = network_core_config(
    5, 8, 2, 2, words=16384, b_words=600, read_vectors=2, multiplier="plain"
)
# The memory is the SPRAM of an iCE40UP5K: 128 KB.
SPRAM = network_core_config(
    1, 4, 4, 1, target="ice40up", multiplier="plain", scale_cycles=4, words=32768, b_words=512,
    lines=256, read_vectors=1,
)
# The cores that quick tests simulate, sharing their models, and cores of slow and of long tests.
_SIZES = {"words": 2048, "b_words": 256, "lines": 64}
SIMULATED = network_core_config(
    3, 4, 4, 2, read_vectors=2, multiplier="fip", softmax=True, **_SIZES
)
# Its jobs start early, and can multiply maps; it has all units, and values of 16 bits.
ROW = network_core_config(
    1, 8, 4, 4, hop=2, softmax=True, multiply_maps=True, lstm=True, int16=True, **_SIZES
)
# Its lists have no loads.
RESIDENT = network_core_config(
    1, 8, 4, 2, hop=2, multiplier="fip", read_vectors=1, resident=True, **_SIZES
)
# The array starts with a job before the results of the job before are stored; weights of int4.
EARLY = replace(SIMULATED, early=True, int4=True)
EARLY_ROW = replace(ROW, early=True)
# Two rows of results leave the array in each cycle.
TWO_ROWS = network_core_config(
    4, 4, 4, 4, hop=2, multiplier="fip", softmax=True, multiply_maps=True, early=True,
    two_rows=True, **_SIZES
)
# Its lanes have the rounding of onnxruntime.
ONNX = network_core_config(2, 4, 4, 2, requantize="onnx", read_vectors=2, **_SIZES)
# With a program memory.
PROGRAM = network_core_config(
    2, 2, 4, 2, words=512, b_words=128, lines=64, read_vectors=2, program_words=2048,
    multiplier="fip",
)
# One row, whose jobs start early, and weights of int4.
PROGRAM_ROW = replace(PROGRAM, array=replace(PROGRAM.array, rows=1, cols=4), int4=True)
# A microprogram controls it. Its only bank has space for several ADD tables.
MICRO = network_core_config(
    1, 4, 4, 1, target="ice40up", multiplier="plain", scale_cycles=4, read_vectors=1,
    **_SIZES | {"words": 4096},
)
# The same with longer slots, and products in logic.
MICRO_LOGIC = network_core_config(
    1, 4, 4, 1, target="ice40hx", multiplier="plain", scale_cycles=8, read_vectors=1,
    **_SIZES | {"words": 4096},
)
SIMULATED_SLOWLY = [ONNX]
SIMULATED_LONG = [
    # It `is_spread`: registers for long wires, and a panel buffer that holds a pixel.
    network_core_config(8, 2, 4, 2, early=True, multiplier="fip", read_vectors=2, **_SIZES),
    network_core_config(
        4, 4, 4, 4, target="ecp5", requantize="single", multiply_maps=True, **_SIZES
    ),
    network_core_config(2, 2, 2, 2, read_vectors=2, **_SIZES),
    # A chunk is half a vector; its control is spread; its scalers take a value in two cycles.
    network_core_config(
        8, 4, 8, 4, hop=4, early=True, two_rows=True, scale_cycles=2, **_SIZES
    ),
    network_core_config(
        2, 2, 4, 2, target="ecp5", hop=2, multiplier="fip", two_rows=True, requantize="single",
        read_vectors=2, **_SIZES
    ),
    # As many banks as rows; values of 16 bits.
    network_core_config(5, 4, 4, 4, target="ecp5", dsp_cols=2, int16=True, **_SIZES),
    network_core_config(2, 4, 4, 1, target="gowin", scale_cycles=2, read_vectors=1, **_SIZES),
    network_core_config(
        3, 2, 4, 1, read_vectors=1, scale_cycles=4, multiply_maps=True, **_SIZES
    ),
]
