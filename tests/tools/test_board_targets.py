"""The file of the boards' cores is that of today's boards, and a report needs no Amaranth."""

import subprocess
import sys
from pathlib import Path

import pytest
from tooling import load

from weft.boards.board import BoardError
from weft.boards.catalog import BOARDS
from weft.models.target import board_cores, target_of

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits_cnn.tflite"


def test_the_file_has_all_boards_of_today():
    tool = load("board_targets")
    stored = tool.FILE.read_text(encoding="utf-8")
    assert stored == tool.text(), "run: python -m tools.board_targets"


@pytest.mark.parametrize("name", BOARDS)
def test_each_core_equals_that_of_its_board(name):
    board, found = BOARDS[name], target_of(name)
    assert (found.name, found.config, found.clock, found.baud) == (
        name, board.config, board.clock, board.baud
    )
    for purpose in board.networks:
        built, found = board.built_for(purpose), target_of(name, purpose)
        assert found == target_of(f"{name}-{purpose}")
        assert (found.array, found.config) == (built.config.array, built.config)
        assert (found.clock, found.baud) == (built.clock, built.baud)


def test_the_cores_for_networks_are_those_of_the_boards():
    hashes = [target.config.hash for target in board_cores()]
    wanted = {b.built_for(p).config.hash for b in BOARDS.values() for p in b.networks}
    assert len(hashes) == len({*hashes}) and {*hashes} == wanted


@pytest.mark.parametrize("options", [[], ["--board", "ulx3s-85f", "--for", "networks"]])
def test_a_report_imports_no_hardware(options):
    code = (
        "import sys; from weft.cli import main; status = main(sys.argv[1:]);"
        " slow = {'amaranth', 'amaranth_boards', 'distributed', 'matplotlib', 'onnx', 'PIL'};"
        " print(sorted(slow & {*sys.modules}), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "report", DIGITS, *options], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_wrong_purpose_is_named():
    with pytest.raises((BoardError, ValueError), match="--for of ulx3s-85f must be networks or"):
        target_of("ulx3s-85f", "nothing")
