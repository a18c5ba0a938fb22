"""What the command says to arguments that are wrong: the error first, in one line."""

import re

import pytest

from weft.cli import main


@pytest.mark.parametrize("arguments, said", [
    (["infoo"], r"weft: error: argument COMMAND: invalid choice: 'infoo' .*; did you mean info\?"),
    (["info", "--rwos", "3"],
     r"weft info: error: unrecognized arguments: --rwos 3; did you mean --rows\?"),
    (["info", "--rwos=3"],
     r"weft info: error: unrecognized arguments: --rwos=3; did you mean --rows\?"),
    (["info", "more"], "weft info: error: unrecognized arguments: more"),
    (["gatesim", "icebreaker", "--stage", "route"],
     r"weft gatesim: error: argument --stage: invalid choice: 'route' .*; did you mean routed\?"),
    (["info", "--rows", "x"], "weft info: error: argument --rows: invalid int value: 'x'"),
    (["quite-else"], r"weft: error: argument COMMAND: invalid choice: 'quite-else' \(.*\)"),
])
def test_says_what_is_wrong_and_what_may_be_meant(arguments, said, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(arguments)
    prog = said.split(":")[0]
    then = " See" if said.endswith("?") else "; see"
    assert re.fullmatch(rf"{said}{then} {prog} --help\n", capsys.readouterr().err)
