"""Run a cocotb file on top.v: python3 simulate.py [test_top.py] [icarus, verilator]."""

import importlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP, SOURCES = "top", [HERE / "top.v"]  # your own Verilog; the Makefile has the same list


def main(test="test_top.py", simulator="icarus"):
    """Build the simulation, and run the tests of the file; the exit code."""
    sys.path.insert(0, str(HERE / "core" / "bench"))
    bench = importlib.import_module("run")  # the bench of the core's kit
    if simulator not in bench.ARGUMENTS:
        print(f"simulator must be {' or '.join(bench.ARGUMENTS)}, not {simulator}", file=sys.stderr)
        return 2
    if simulator == "verilator" and " " in str(HERE):  # Verilator builds with GNU make
        print(f"the folder must have no space for Verilator, not {HERE}; or use SIM=icarus",
              file=sys.stderr)
        return 2
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    folder = HERE / "out"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)  # the simulation is built here
    return bench.simulate(
        simulator, top=TOP, tests=[Path(test).stem], sources=SOURCES,
        defines={"CORE": bench.DESIGN["name"]},
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
