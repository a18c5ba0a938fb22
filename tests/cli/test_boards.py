"""``weft boards``: what runs on each board, and which of them hold a network whole."""

import shutil
from pathlib import Path

import pytest

from weft.boards.catalog import BOARDS
from weft.cli import main

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits_cnn.tflite"


def lines(capsys):
    """The rows of the table, as lists of words."""
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.split()]


def test_lists_all_designs(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/fujprog" if name == "fujprog" else None)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["boards"]) == 0
    head, _, *rows, goal, missing = lines(capsys)
    assert head == "board FPGA price for array MHz GMAC/s link load with".split()
    designs = [(board.name, "") for board in BOARDS.values()]
    designs += [(board.name, name) for board in BOARDS.values() for name in board.others]
    assert len(rows) == len(designs) and {row[0] for row in rows} == set(BOARDS)
    assert "ulx3s-85f LFE5U-85F $$ 8x12x8 125 96 3 Mbaud fujprog".split() in rows
    assert "icebreaker iCE40UP5K $ networks 1x4x4 33 0.528 3 Mbaud".split() in rows
    assert "ulx3s-85f LFE5U-85F $$ language 1x8x16 95.83 12.27 3 Mbaud fujprog".split() in rows
    assert "icebreaker iCE40UP5K $ language 1x4x1 36 0.144 3 Mbaud".split() in rows
    assert "orangecrab-25f LFE5U-25F $$ 4x7x8 120* 26.88 USB".split() in rows
    assert " ".join(goal) == "* nextpnr has not reached this clock yet"
    named = {name for board in BOARDS.values() for name in board.others}
    goals = {
        (row[0], *(cell for cell in row if cell in named)) for row in rows
        if any(cell[-1] == "*" for cell in row)
    }
    assert goals == {(board.name,) for board in BOARDS.values() if not board.placed} | {
        (board.name, name) for board in BOARDS.values()
        for name, design in board.others.items() if not design.placed
    }
    text = " ".join(missing)
    assert text.startswith("missing here, to load bitstreams: ") and "iceprog" in text
    assert "fujprog" not in text


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_a_narrow_terminal_has_all_names(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert main(["boards"]) == 0
    text = capsys.readouterr().out
    head, _, *rows, _ = [line.split() for line in text.splitlines() if line.split()]
    assert {row[0] for row in rows} == set(BOARDS) and "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    assert all(row[1] == BOARDS[row[0]].device.name for row in rows)
    assert ("GMAC/s" in head, "array" in head) == (width == 120, width >= 80)


def test_ranks_the_designs_for_a_network(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # a row is one line
    assert main(["boards", str(DIGITS)]) == 0
    said, head, _, *rows, goal, left_out = lines(capsys)
    assert goal[0] == "*"
    assert " ".join(left_out).startswith(
        "Some network cores are left out. digits_cnn: a network core with requantize = 'onnx' has"
    )
    text = " ".join(said)
    whole = [row for row in rows if row[-1] == "whole"]
    assert text == f"digits_cnn: {len(whole)} of {len(rows)} designs hold it whole"
    assert " ".join(head) == "board for core ms link ms how digits_cnn runs"
    assert rows[: len(whole)] == whole and len(whole) >= 5
    times = [float(row[2].rstrip("*")) + float(row[3]) for row in whole]
    assert times == sorted(times)
    by_name = {tuple(row[:2]): row for row in rows}
    small = " ".join(by_name["ice40-hx8k-evn", "networks"])
    assert small.endswith("the memory must have 4,520 bytes, and has 4,096")
    assert sum("product by product" in " ".join(row) for row in rows) == len(BOARDS)
    # No time is predicted for USB: these are below the other boards that run it so.
    by_products = [row for row in rows if "product" in row]
    assert [row[0] for row in by_products if BOARDS[row[0]].link == "usb"] == [
        row[0] for row in by_products[-3:]
    ] == ["butterstick", "orangecrab-85f", "orangecrab-25f"]


def test_the_time_is_that_of_the_report(capsys):
    assert main(["boards", str(DIGITS)]) == 0
    row = next(row for row in lines(capsys) if row[:2] == ["ulx3s-85f", "networks"])
    assert main(["report", str(DIGITS), "--board", "ulx3s-85f", "--for", "networks"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert f": {1e3 * float(row[2]):.3g} us core" in first or f": {row[2]} ms core" in first


def test_refuses_a_program(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compile", str(DIGITS), "--board", "icebreaker", "-o", "d.weft"]) == 0
    capsys.readouterr()
    assert main(["boards", "d.weft"]) == 2
    text = "network must be a .tflite or .onnx file: d.weft is compiled for icebreaker already"
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.tflite", "LICENSE"])
def test_refuses_what_is_no_network(name, capsys):
    assert main(["boards", name]) == 2
    assert capsys.readouterr().err.startswith("weft: error: ")
