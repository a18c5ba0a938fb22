"""Run the network on the core: python3 run.py [board, golden, /dev/ttyUSB1, tcp://host:port]."""

import sys
from pathlib import Path

import numpy as np

import weft
from weft.cli import run_program
from weft.design import NETWORK

HERE = Path(__file__).resolve().parent
FILE = next(path for path in HERE.glob("network.*") if path.suffix in (".tflite", ".onnx"))


def open_core(program, on):
    """A session on the core that a name means; "board" is a simulated one."""
    if on == "golden":
        return program.open("golden")
    if on == "board":
        from weft.sim.transport import SimBoardTransport

        on = SimBoardTransport(program.target.config, say=print)
    if program.kind == NETWORK:
        from weft.host.network_driver import NetworkDriver

        on = NetworkDriver(on, program.target.config)
    return program.open(on)


def main(on="board"):
    """Compute the network for an input of random values, and compare it with the golden model."""
    program = weft.load(FILE).compile(HERE / "board.py")
    tensor = program.tensors[program.inputs[0]]
    x = np.random.default_rng(1).integers(-100, 100, tensor.shape).astype(tensor.dtype)
    with open_core(program, "golden") as golden, open_core(program, on) as core:
        wanted, y = golden(x), core(x)
    equal = np.array_equal(y, wanted)
    print(f"{FILE.name} on {on}: {np.ravel(y)[:10]},"
          f" {'equal to' if equal else 'DIFFERENT from'} the golden model")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(run_program(main))
