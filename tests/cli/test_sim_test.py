"""``weft sim --test``: a cocotb file of the user, on a product core; rejected arguments."""

import pytest

from weft.cli import main

DESIGN = ["--rows", "1", "--cols", "2", "--depth", "2", "--a-words", "32", "--b-words", "32"]
TESTS = '''
from weft.sim.bench.core_testbench import core_test


@core_test()
async def good(tb):
    tb.multiply(*tb.operands(2, 3, 4))


@core_test()
async def bad(tb):
    assert tb.config.rows == 7, "seven rows"
'''


@pytest.mark.long
def test_runs_a_file_and_a_case_of_it(here, capsys):
    (here / "my_tests.py").write_text(TESTS)
    assert main(["sim", "--test", "my_tests.py", *DESIGN]) == 1
    assert "1 of 2 failed" in (said := capsys.readouterr().err) and "bad: seven rows" in said
    assert main(["sim", "--test", "my_tests.py", "--case", "good", "--waves", *DESIGN]) == 0
    *_, first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("my_tests.py on 1x2x2: 1 test passed in ")
    assert last.startswith("out/weft.vcd: all signals, ")
    assert (here / "out" / "weft.vcd").read_bytes().startswith(b"$version")
    assert main(["sim", "--test", "my_tests.py", "--case", "none", *DESIGN]) == 1
    assert "no test matches 'none'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, text", [
    (["--test", "missing.py"], "test must be a Python file: there is no missing.py"),
    (["--test", "my-tests.py"],
     "test must be a Python file whose name is a word, not my-tests.py"),
    (["--test", "tests.txt"], "test must be a Python file whose name is a word, not tests.txt"),
    (["--case", "good"], "--case must be with --test"),
    (["--network-only", "--test", "tests.py"], "--network-only must be without --test"),
])
def test_rejects_before_any_work(here, capsys, arguments, text):
    for name in ("my-tests.py", "tests.txt", "tests.py"):
        (here / name).touch()
    assert main(["sim", *arguments]) == 2
    assert capsys.readouterr().err == f"weft: error: {text}\n"


def test_a_missing_compiler_is_said_before_any_work(here, capsys, monkeypatch):
    from weft.sim import tools

    def missing():
        raise tools.ToolError("C++ compiler was not found")

    (here / "my_tests.py").write_text("")
    monkeypatch.setattr(tools, "compiler", missing)
    assert main(["sim", "--test", "my_tests.py", *DESIGN]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "weft: error: C++ compiler was not found\n")
