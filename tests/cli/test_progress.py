"""Progress of tasks, with and without a terminal."""

import io
import re
import time

import pytest
from rich.console import Console

from weft.cli import progress as progress_module
from weft.cli.options import open_by_name
from weft.cli.progress import progress, slow_task


def test_progress_is_plain_lines_without_a_terminal():
    console = Console(file=io.StringIO(), width=100)
    with progress(console) as show:
        with show.task("writing [Verilog]"):
            show.say("into [/here]")
        with show.task("running", total=8) as advance:
            for _ in range(8):
                advance()
    text = re.sub(r"\d+\.\d s|\b\d+ s", "T", console.file.getvalue())
    assert text.splitlines() == [
        "   ...  writing [Verilog]",
        "        into [/here]",
        "  done  writing [Verilog]  T",
        "   ...  running",
        "   ...  running: 2 of 8, about T to go",
        "   ...  running: 4 of 8, about T to go",
        "   ...  running: 6 of 8, about T to go",
        "  done  running  T",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_lets_errors_through(terminal):
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal)
    with pytest.raises(OSError, match="full"), progress(console) as show, show.task("writing"):
        raise OSError("disk full")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    assert "failed  writing" in text and "done" not in text


def test_progress_is_live_on_a_terminal():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with progress(console) as show, show.task("running", total=3) as advance:
        advance(2)
        show._live.refresh()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    assert "2 of 3, about 0 s to go" in text and "done  running" in text


def test_without_a_terminal_no_line_is_broken():
    console = Console(file=io.StringIO(), width=40)
    with progress(console) as show, show.task("a text of more than forty characters, in words"):
        show.say("another text of more than forty characters, in words")
    assert console.file.getvalue().count("\n") == 3


@pytest.mark.parametrize("words", [2, 8, 12])
def test_the_time_has_its_space_on_80_columns(words):
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress(console) as show, show.task(" ".join(["running"] * words)):
        show._live.refresh()
    live = console.file.getvalue().partition("done")[0]
    assert "0:00:00" in live and "…" not in live


def test_a_core_that_is_compiled_for_long_has_a_clock(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PATIENCE", 0.05)
    monkeypatch.setattr("weft.sim.transport.SimBoardTransport", lambda *_, **__: time.sleep(0.3))
    with progress() as show:
        open_by_name("board", None, None, show)
    line = r"   \.\.\.  preparing the simulated core: \d+ s\n"
    assert re.fullmatch(line, capsys.readouterr().err)


def test_a_short_task_says_nothing(capsys):
    with slow_task("quick"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_slow_task_says_what_it_does_and_how_long_it_will_take(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PATIENCE", 0.05)
    monkeypatch.setattr(progress_module, "INTERVAL", 0.05)
    with slow_task("counting", total=4) as advance:
        advance()
        time.sleep(0.3)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) > 1 and all(
        re.fullmatch(r"   \.\.\.  counting: 1 of 4, about \d+ s to go", line) for line in lines
    )
    with pytest.raises(ValueError, match="wrong"), slow_task("failing"):
        time.sleep(0.1)
        raise ValueError("wrong")
    assert capsys.readouterr().err.startswith("   ...  failing: 0 s\n")
