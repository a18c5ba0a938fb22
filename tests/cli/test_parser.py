"""Errors about wrong arguments: one line, with the nearest valid name."""

import re

import pytest

from weft.cli import main


@pytest.mark.parametrize("arguments, said", [
    (["infoo"], r"weft: error: argument COMMAND: invalid choice: 'infoo' .*; did you mean info\?"),
    (["info", "--rwos", "3"],
     r"weft info: error: unrecognized arguments: --rwos 3; did you mean --rows\?"),
    (["info", "--rwos=3"],
     r"weft info: error: unrecognized arguments: --rwos=3; did you mean --rows\?"),
    (["report", "net.tflite", "icebreaker"],
     r"weft report: error: unrecognized arguments: icebreaker; did you mean --board icebreaker\?"),
    (["info", "more"], "weft info: error: unrecognized arguments: more"),
    (["gatesim", "icebreaker", "--stage", "route"],
     r"weft gatesim: error: argument --stage: invalid choice: 'route' .*; did you mean routed\?"),
    (["info", "--rows", "x"],
     "weft info: error: argument --rows: rows must be an integer, not 'x'"),
    (["sim", "--b-words", "1.5"],
     "weft sim: error: argument --b-words: b_words must be an integer, not '1.5'"),
    (["build", "ulx3s-85f", "--words", ""],
     "weft build: error: argument --words: words must be an integer, not ''"),
    (["build", "ulx3s-85f", "--baud", "fast"],
     "weft build: error: argument --baud: baud must be an integer, not 'fast'"),
    *((["build", "icebreaker", "--clock", text],
       f"weft build: error: argument --clock: clock must be a number in 0..10000, not '{text}'")
      for text in ("x", "nan", "inf", "-5")),
    (["generate", "--clocks", "two"],
     "weft generate: error: argument --clocks: clocks must be an integer, not 'two'"),
    (["quite-else"], r"weft: error: argument COMMAND: invalid choice: 'quite-else' \(.*\)"),
])
def test_reports_the_error_and_a_suggestion(arguments, said, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(arguments)
    prog = said.split(":")[0]
    see = " See" if said.endswith("?") else "; see"
    assert re.fullmatch(rf"{said}{see} {prog} --help\n", capsys.readouterr().err)
