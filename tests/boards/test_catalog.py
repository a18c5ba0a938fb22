"""The boards by name, and a board described in a file."""

from pathlib import Path

import pytest
from rejects import rejects

from weft.boards.board import BoardError
from weft.boards.catalog import BOARDS, find, load
from weft.host.serial_port import RATES

ROOT = Path(__file__).parents[2]
MINE = ROOT / "examples" / "my_board.py"


def test_finds_every_board():
    assert all(find(name).name == name for name in BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_blinks_and_can_be_programmed(name):
    assert "alive" in BOARDS[name].leds
    assert BOARDS[name].programmers


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_a_baud_rate_that_the_host_tries_or_usb(name):
    board = BOARDS[name]
    if board.link == "serial":
        assert board.baud in RATES and board.bridge
    else:
        assert (board.link, board.baud, board.bridge) == ("usb", None, "")


@pytest.mark.parametrize(("name", "suggestion"), [
    ("icebraker", "icebreaker"), ("ULX3S_85F", "ulx3s-85f"), ("colorlight-5", "colorlight-i5"),
])
def test_an_unknown_name_gets_a_suggestion(name, suggestion):
    with rejects(BoardError, (
        f"board must be one of {', '.join(BOARDS)}, not {name!r}; did you mean {suggestion}?"
    )):
        find(name)


def test_a_name_without_a_similar_board_gets_the_list():
    with rejects(BoardError, f"board must be one of {', '.join(BOARDS)}, not 'zzz'"):
        find("zzz")


def test_loads_a_board_from_a_file():
    assert load(MINE).name == "myboard"
    assert len(MINE.read_text(encoding="utf-8").splitlines()) <= 40


def test_the_page_has_every_board():
    lines = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("|---|---|---|---:|---:|---:|---|---|") + 1
    page = lines[start : start + len(BOARDS)]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page]
    said = []
    for board in BOARDS.values():
        c = board.config
        tools = ", ".join(dict.fromkeys(command[0] for command in board.programmers))
        said.append([
            board.name, board.device.name, f"{c.rows} x {c.cols} PEs of {c.depth}", str(c.peak),
            f"{board.clock:g} MHz{'*' * (not board.placed)}",
            f"{board.baud:,} baud" if board.baud else "-",
            board.bridge or "-", tools,
        ])
    assert rows == said


def test_the_readme_has_the_numbers_of_boards():
    words = " ".join((ROOT / "README.md").read_text("utf-8").split())
    usb = [board for board in BOARDS.values() if board.usb]
    alone = sum(board.baud is None for board in usb)
    assert f"{len(BOARDS)} boards come from open tools alone" in words
    assert f"{len(usb)} of them have [USB](docs/usb.md) at pins of the FPGA" in words
    assert f"of {alone} it is the only link" in words


@pytest.mark.parametrize("text, end", [
    ("1 / 0\n", "ZeroDivisionError('division by zero')"),
    ("raise SystemExit(3)\n", "SystemExit(3)"),
])
def test_rejects_a_file_that_fails(tmp_path, text, end):
    (tmp_path / "mine.py").write_text(text)
    with rejects(BoardError, f"running the board file {tmp_path}/mine.py failed: {end}"):
        load(tmp_path / "mine.py")


def test_rejects_a_file_without_a_board(tmp_path):
    (tmp_path / "mine.py").write_text("BOARD = 3\n")
    with rejects(BoardError, (
        f"{tmp_path}/mine.py must set BOARD to a weft.boards.board.Board, not 3"
    )):
        load(tmp_path / "mine.py")
    with pytest.raises(BoardError, match="^board file not found: .*/none.py$"):
        load(tmp_path / "none.py")
