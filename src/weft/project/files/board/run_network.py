"""Run the network on the core: python3 run.py [board, sim, golden, /dev/ttyUSB1, tcp://host:port]."""

import sys
from pathlib import Path

import numpy as np

import weft
from weft.cli import run_program
from weft.design import NETWORK

HERE = Path(__file__).resolve().parent
FILE = next(path for path in HERE.glob("network.*") if path.suffix in (".tflite", ".onnx"))


def open_core(program, on):
    """A session on the core that a name means; "sim" is a simulated one without a serial port."""
    if on == "golden":
        return program.open("golden")
    design = program.target.config
    if on == "sim" and program.kind == NETWORK:
        from weft.sim.network_core import SimulatedRunner

        return program.open(SimulatedRunner(design))
    if on in ("board", "sim"):
        from weft.sim.transport import SimBoardTransport, SimTransport

        on = (SimBoardTransport if on == "board" else SimTransport)(design, say=print)
    if program.kind == NETWORK:
        from weft.host.network_driver import NetworkDriver

        on = NetworkDriver(on, design)
    return program.open(on)


def main(on="board"):
    """Compute the network for an input of random values, and compare it with the golden model."""
    program = weft.load(FILE).compile(HERE / "board.py")
    tensor = program.tensors[program.inputs[0]]
    x = np.random.default_rng(1).integers(-100, 100, tensor.shape).astype(tensor.dtype)
    with open_core(program, "golden") as golden, open_core(program, on) as core:
        wanted, y = golden(x), core(x)
    equal = np.array_equal(y, wanted)
    cycles = core.cycles if program.kind == NETWORK else None
    counted = "" if cycles is None else f" {cycles:,} cycles,"
    print(f"{FILE.name} on {on} ({program.target.name}): {np.ravel(y)[:10]},{counted}"
          f" {'equal to' if equal else 'DIFFERENT from'} the golden model")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(run_program(main))
