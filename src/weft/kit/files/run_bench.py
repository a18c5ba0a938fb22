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


def main(simulator="icarus"):
    """Build the simulation and run all tests; the exit code."""
    if simulator not in ARGUMENTS:
        print(f"simulator must be {' or '.join(ARGUMENTS)}, not {simulator}", file=sys.stderr)
        return 2
    # Without this option Verilator's makefile fails to link its precompiled header.
    os.environ["MAKEFLAGS"] = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include"
    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    runner, build = get_runner(simulator), Path.cwd() / f"build_{simulator}"
    runner.build(
        sources=[HERE.parent / name for name in DESIGN["sources"]],
        hdl_toplevel=DESIGN["name"], build_args=ARGUMENTS[simulator], build_dir=build,
        defines={"NOISE": 1},  # memories start with random contents instead of X
        timescale=("1ns", "1ps"), always=True,
    )
    results = runner.test(
        test_module=["test_weft", "test_driver"],
        hdl_toplevel=DESIGN["name"], hdl_toplevel_lang="verilog",
        build_dir=build, test_dir=build, timescale=("1ns", "1ps"), seed=1,
        results_xml=str(build / "results.xml"),
    )
    tests, failed = get_results(results)
    print(f"{DESIGN['name']} on {simulator}: {tests - failed} of {tests} tests passed")
    return 0 if tests and not failed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
