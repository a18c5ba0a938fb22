"""The boards by name, and a board in a file of its own."""

from pathlib import Path

import pytest

from weft.boards.board import BoardError
from weft.boards.catalog import BOARDS, find, load
from weft.host.serial_port import RATES

MINE = Path(__file__).parents[2] / "examples" / "my_board.py"


def test_boards_are_those_promised():
    assert set(BOARDS) == {
        "icebreaker", "icesugar", "ice40-hx8k-evn", "ulx3s-12f", "ulx3s-25f", "ulx3s-45f",
        "ulx3s-85f", "colorlight-i5", "colorlight-i9", "ecpix5-45f", "ecpix5-85f", "icepi-zero",
        "icesugar-pro",
    }
    assert all(find(name).name == name for name in BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_blinks_and_can_be_programmed(name):
    assert "alive" in BOARDS[name].leds
    assert BOARDS[name].programmers and BOARDS[name].bridge


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_answers_at_a_rate_that_is_tried(name):
    assert BOARDS[name].baud in RATES


@pytest.mark.parametrize(("name", "near"), [
    ("icebraker", "icebreaker"), ("ULX3S_85F", "ulx3s-85f"), ("colorlight-5", "colorlight-i5"),
])
def test_an_unknown_board_is_told_the_nearest(name, near):
    with pytest.raises(BoardError) as error:
        find(name)
    assert str(error.value) == (
        f"board must be one of {', '.join(BOARDS)}, not {name!r}; did you mean {near}?"
    )


def test_what_is_like_no_board_is_told_all():
    with pytest.raises(BoardError, match=r"icesugar-pro, not 'zzz'$"):
        find("zzz")


def test_a_file_of_ones_own():
    assert load(MINE).name == "myboard"
    assert len(MINE.read_text(encoding="utf-8").splitlines()) <= 40


def test_the_page_has_every_board():
    lines = (MINE.parent / "boards.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("|---|---|---|---:|---:|---:|---|---|") + 1
    page = lines[start : start + len(BOARDS)]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page]
    said = []
    for board in BOARDS.values():
        c = board.config
        tools = ", ".join(dict.fromkeys(command[0] for command in board.programmers))
        said.append([
            board.name, board.device.name, f"{c.rows} x {c.cols} PEs of {c.depth}", str(c.peak),
            f"{board.clock:g} MHz", f"{board.baud:,} baud", board.bridge, tools,
        ])
    assert rows == said


@pytest.mark.parametrize("text, end", [
    ("1 / 0\n", "ZeroDivisionError('division by zero')"),
    ("raise SystemExit(3)\n", "SystemExit(3)"),
])
def test_rejects_a_file_that_fails(tmp_path, text, end):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(BoardError) as error:
        load(tmp_path / "mine.py")
    assert str(error.value) == (
        f"{tmp_path}/mine.py must run, and ends with {end}"
    )


def test_rejects_a_file_that_holds_no_board(tmp_path):
    (tmp_path / "mine.py").write_text("BOARD = 3\n")
    with pytest.raises(BoardError) as error:
        load(tmp_path / "mine.py")
    assert str(error.value) == (
        f"{tmp_path}/mine.py must set BOARD to a weft.boards.board.Board, not 3"
    )
    with pytest.raises(BoardError, match="^file of a board must be there, and .*/none.py is not$"):
        load(tmp_path / "none.py")
