"""Run the bench on Icarus Verilog or Verilator: ``python run.py [icarus|verilator]``.

It needs the packages of requirements.txt, the simulator on PATH, and for the tests of the driver a
C compiler: $CC, cc or gcc. Exit code 0: all tests passed; 1: a test failed; 2: wrong arguments.
"""

import json
import os
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent
DESIGN = json.loads((HERE / "design.json").read_text(encoding="utf-8"))
ARGUMENTS = {
    "icarus": [],
    "verilator": ["-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD"],
}


def simulate(simulator, *, top, tests, sources=(), defines=None):
    """Build the simulation of the module ``top``, and run the modules ``tests``; the exit code.

    ``sources`` are Verilog files beside those of the core.
    """
    # Without this option Verilator's makefile fails to link its precompiled header.
    os.environ["MAKEFLAGS"] = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    runner, build = get_runner(simulator), Path.cwd() / f"build_{simulator}"
    runner.build(
        sources=[*sources, *(HERE.parent / name for name in DESIGN["sources"])],
        hdl_toplevel=top, build_args=ARGUMENTS[simulator], build_dir=build,
        defines={"NOISE": 1, **(defines or {})},  # memories start with random contents, not with X
        timescale=("1ns", "1ps"), always=True,
    )
    results = runner.test(
        test_module=[*tests], hdl_toplevel=top, hdl_toplevel_lang="verilog",
        build_dir=build, test_dir=build, timescale=("1ns", "1ps"), seed=1,
        results_xml=str(build / "results.xml"),
    )
    count, failed = get_results(results)
    print(f"{top} on {simulator}: {count - failed} of {count} tests passed")
    return 0 if count and not failed else 1


def main(simulator="icarus"):
    """Run all tests of the core; the exit code."""
    if simulator not in ARGUMENTS:
        print(f"simulator must be {' or '.join(ARGUMENTS)}, not {simulator}", file=sys.stderr)
        return 2
    return simulate(simulator, top=DESIGN["name"], tests=["test_weft", "test_driver"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
