"""Exit codes: each row of the table in docs/command.md has a test, and no command has another."""

import ast
import re
from pathlib import Path

import pytest

from weft.cli import SUBCOMMANDS, main

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "command.md").read_text(encoding="utf-8")
NAMES = [module.__name__.rpartition(".")[2] for module in SUBCOMMANDS]
WRONG = {  # arguments of a command that are wrong, beside an option that it does not have
    "report": ["missing.tflite"], "run": ["missing.tflite"], "quantize": ["missing.onnx"],
    "compile": ["missing.tflite"], "build": ["icebraker"], "program": ["icebraker"],
    "gatesim": ["icebraker"], "selftest": ["/dev/missing"], "monitor": ["/dev/missing"],
    "serve": ["/dev/missing"], "sim": ["--rows", "0"], "generate": ["--rows", "0"],
    "info": ["--rows", "0"], "bench": ["nothing"], "estimate": ["--board", "icebraker"],
    "explore": ["--board", "icebraker"], "regress": ["--configs", "0"], "sdram": ["--mhz", "9"],
    "story": ["--tokens", "0"],
}


def marked():
    """The (command, code) of all marks in the tests of commands."""
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", ()):
                if ast.unparse(mark).startswith("pytest.mark.exit_code"):
                    yield tuple(ast.literal_eval(argument) for argument in mark.args)


def test_each_row_has_a_test():
    section = PAGE[PAGE.index("| command | exit code 1 |"):]
    rows = re.findall(r"^\| (`weft \w+`|any) \| ", section, re.MULTILINE)
    commands = [row.removeprefix("`weft ").removesuffix("`") for row in rows]
    assert sorted(marked()) == sorted((command, 1) for command in commands)
    assert {*commands} - {"any"} <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_wrong_input_is_2(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments in filter(None, (["--no-such-option"], WRONG.get(name))):
        try:
            code = main([name, *arguments])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert code == 2, (arguments, said)
        assert said.err.startswith(("weft: error: ", f"weft {name}: error: ")), said
        assert said.err.count("\n") == 1, said
    assert list(tmp_path.iterdir()) == []
