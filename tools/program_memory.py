"""Measure networks on a simulated core whose program lies behind AXI4.

    WEFT_NETWORKS=folder python -m tools.program_memory
"""

import sys
from pathlib import Path

import numpy as np

from tools.network_tables import predicted_cycles, save_table
from weft.config import Config
from weft.models.loading import load
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming
from weft.sim.network_core import AxiTiming, SimulatedRunner

ABOUT = """\
One inference on a simulated 8 x 8 x 8 core, for four memories: cycles from the address of a burst
to its first beat, and bytes a cycle. The bytes of the results equal the golden model's in each
row."""
NETWORKS = "kws_int8", "resnet8_int8", "vww_96_int8"
CHIP = NetworkCoreConfig(
    array=Config(
        rows=8, cols=8, depth=8, lanes=8, requantize="tflite", activation="none", target="ecp5",
        multiplier="fip", hop=4,
    ),
    words=1024, program_words=8192,
)
TIMINGS = ProgramTiming(1), ProgramTiming(32), ProgramTiming(60, 512), ProgramTiming(100, 1024)


def row(runner, network, timing) -> str:
    """A row: the measured and the predicted cycles of one inference; all bytes must be right."""
    program = network.compile(CHIP)
    shape = program.tensors[program.inputs[0]].shape
    x = np.random.default_rng(1).integers(-128, 128, shape, np.int8)
    with program.open("golden") as session:
        wanted = session(x)
    runner.set_timing(AxiTiming(timing.latency, timing.period))
    session = program.open(runner)
    if not np.array_equal(session(x), wanted):
        raise RuntimeError(f"{program.name}: the results of the core must be the golden model's")
    predicted = predicted_cycles(program, timing)
    return (
        f"| {program.name} | {timing.latency} | {CHIP.beat_bytes * 256 / timing.period:g}"
        f" | {session.cycles:,} | {predicted:,} |"
    )


def table(folder: Path) -> str:
    """The table, as Markdown."""
    lines = [
        "| network | latency, cycles | bytes a cycle | cycles, simulated | cycles, predicted |",
        "|---|---:|---:|---:|---:|",
    ]
    runner = SimulatedRunner(CHIP)
    for name in NETWORKS:
        network = load(folder / f"{name}.tflite")
        for timing in TIMINGS:
            lines.append(row(runner, network, timing))
            print(lines[-1], flush=True)
    runner.close()
    return "\n".join(lines)


def main() -> int:
    """Measure all networks; the exit code."""
    return save_table(
        "program-memory", table, title="Programs behind AXI4", command="make program-memory",
        about=ABOUT, of=["tools.program_memory"],
    )


if __name__ == "__main__":
    sys.exit(main())
