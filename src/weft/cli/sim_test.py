"""What ``weft sim --test`` does: a cocotb file of the user, on the Verilog of a design."""

import sys
from pathlib import Path

from weft.design import PerKind

__all__ = ["check_test", "run_test"]


def check_test(file) -> Path:
    """The path of a cocotb file. Raises OSError if cocotb cannot import it by its name."""
    path = Path(file).resolve()
    if not path.is_file():
        raise OSError(f"test must be a Python file: there is no {file}")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise OSError(f"test must be a Python file whose name is a word, not {path.name}")
    return path


def run_test(design, test, case, seed, waves, show) -> int:
    """Run a cocotb file on Verilator; return the exit code.

    Raises BenchError if a test fails or none runs, and ToolError if a tool is missing.
    """
    from weft.files import write_bytes
    from weft.sim.build import folder
    from weft.sim.runner import run

    top, verilog = _TOPS.of(design)
    with show.task("generating Verilog"):
        text = verilog(design)
    if str(test.parent) not in sys.path:
        sys.path.insert(0, str(test.parent))  # the simulator imports the file by its name
    with show.task(f"running {test.name}, seed {seed} (compiles once)"):
        outcome = run(
            design, "verilator", build_dir=folder() / "tests", seed=seed, verilog=text, top=top,
            modules=(test.stem,), testcase=case, waves=waves is not None,
        )
        if waves is not None:
            write_bytes(waves, (outcome.log.parent / "dump.vcd").read_bytes())
    number = f"{outcome.tests} test{'s' * (outcome.tests != 1)}"
    print(f"{test.name} on {design.name}: {number} passed in {outcome.cycles:,} cycles")
    if waves is not None:
        print(f"{waves}: all signals, {waves.stat().st_size:,} bytes")
    return 0


def _core(design):
    from weft.sim.build import verilog

    return verilog(design)


def _board(design):
    from weft.hw import export
    from weft.hw.serial.accelerator import SerialAccelerator
    from weft.sim.transport import DIVISOR

    board = SerialAccelerator(design, divisor=DIVISOR)
    text = export.to_verilog(board, name="board", model=True)
    # In a network core on a board BASE is 0, so comparisons with it are constant.
    return f"/* verilator lint_off UNSIGNED */\n{text}"


# The module under test, and what returns its Verilog: a product core is tested at its streams, a
# network core at the pins of its serial port.
_TOPS = PerKind(product=("weft", _core), network=("board", _board))
