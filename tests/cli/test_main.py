"""Exit codes, and errors in one line, which all subcommands share."""

import builtins
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from weft import ConfigError, __main__, cli
from weft.host.transport import TransportError
from weft.sim.runner import BenchError
from weft.sim.tools import ToolError

ROOT = Path(__file__).resolve().parent.parent.parent


class Subcommand:
    """A subcommand that returns a status or raises an exception."""

    __name__ = "weft.cli.end"
    HELP = DESCRIPTION = "Ends."

    def __init__(self, end):
        self.end = end

    def add(self, parser):
        pass

    def run(self, args):
        if isinstance(self.end, int):
            return self.end
        raise self.end


@pytest.fixture
def ending(monkeypatch):
    """``ending(end)``: runs a subcommand that ends with this status or exception."""

    def run(end):
        monkeypatch.setattr(cli, "SUBCOMMANDS", [Subcommand(end)])
        return cli.main(["end"])

    return run


@pytest.mark.parametrize("status", [0, 1])
def test_returns_the_subcommand_status(ending, status):
    assert ending(status) == status


@pytest.mark.parametrize("error, text", [
    (ConfigError("rows must be in 1..64, not 0"), "rows must be in 1..64, not 0"),
    (ToolError("Verilator must be 5.036 or newer, not 5.006"),
     "Verilator must be 5.036 or newer, not 5.006"),
    (TransportError("the model died"), "the model died"),
    (FileNotFoundError(2, "No such file or directory", "x.toml"),
     "x.toml: No such file or directory"),
    (OSError("cannot write to the output folder: x"), "cannot write to the output folder: x"),
])
def test_reports_user_errors_in_one_line(ending, capsys, error, text):
    assert ending(error) == 2
    assert capsys.readouterr() == ("", f"weft: error: {text}\n")


def test_a_bench_that_fails_is_a_failed_check(ending, capsys):
    assert ending(BenchError("1 of 30 failed")) == 1
    assert capsys.readouterr() == ("", "weft: error: 1 of 30 failed\n")


@pytest.mark.parametrize("module, package, command", [
    ("amaranth.hdl", "amaranth 0.5.8 or newer", "make setup, or: pip install -e '.[hw]'"),
    ("cocotb", "cocotb 2.1 or newer", "make setup, or: pip install -e '.[sim]'"),
    ("numpy", "numpy 2.0 or newer", "make setup, or: pip install -e ."),
    ("systemrdl", "peakrdl 1.5 or newer", "make kit BUS=axi, or: pip install -e '.[kit]'"),
])
def test_says_how_to_install_a_package(ending, capsys, monkeypatch, module, package, command):
    monkeypatch.chdir(ROOT)
    assert ending(ModuleNotFoundError(f"No module named {module!r}", name=module)) == 2
    text = f"weft: error: {package} is not installed; type: {command}\n"
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize("bug", [
    ZeroDivisionError(), ValueError(), ModuleNotFoundError(name="weft.nowhere"),
    ModuleNotFoundError(),
])
def test_shows_a_bug_with_its_traceback(ending, bug):
    with pytest.raises(type(bug)):
        ending(bug)


def test_stops_on_ctrl_c(ending, capsys):
    assert ending(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "weft: stopped\n"


def test_stops_on_ctrl_c_before_a_command_runs(monkeypatch, capsys):
    def stop(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.Parser, "parse_known_args", stop)
    try:
        code = cli.main(["info"])
    except KeyboardInterrupt:  # would end pytest
        pytest.fail("Ctrl-C has a traceback")
    assert code == 130
    assert capsys.readouterr().err == "weft: stopped\n"


def test_stops_on_ctrl_c_while_the_commands_are_imported(monkeypatch, capsys):
    real = builtins.__import__

    def interrupted(name, scope, values, found, level):
        if found == ("cli",):
            raise KeyboardInterrupt
        return real(name, scope, values, found, level)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert __main__.main() == 130
    assert capsys.readouterr().err == "weft: stopped\n"


@pytest.mark.parametrize("end, said", [
    ("KeyboardInterrupt", "weft: stopped\n"), ("OSError('no room')", "weft: error: no room\n"),
])
def test_a_design_that_is_not_finished_causes_no_warning(end, said):
    code = f"""
from amaranth.hdl import Fragment, Module
from weft import cli

def run(args):
    Fragment.get(Module(), None)  # from the first design on, Amaranth warns
    unfinished = Module()
    raise {end}

cli.info.run = run
cli.main(["info"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == said


def test_rejects_no_command(capsys):
    assert cli.main([]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("usage: weft ")
    assert "make a project of your own" in said.err


def test_help_lists_commands_and_exit_codes(capsys):
    with pytest.raises(SystemExit, match="^0$"):
        cli.main(["--help"])
    said = capsys.readouterr().out
    assert "INT8 and BF16 matrix-multiply accelerators" in said
    assert "exit codes: 0 success" in said
    assert "doctor" in said


def test_help_imports_nothing_heavy():
    code = (
        "import contextlib, sys, weft.cli\n"
        "with contextlib.suppress(SystemExit):\n    weft.cli.main(['--help'])\n"
        "heavy = {'numpy', 'amaranth', 'cocotb', 'rich', 'matplotlib'}\n"
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "\n"


def run(*arguments, **options):
    command = [sys.executable, "-m", "weft", *arguments]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, **options)


def test_says_its_version_and_runs_as_a_module():
    done = run("--version", stdout=subprocess.PIPE)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (done.returncode, done.stdout, done.stderr) == (0, f"weft {version}\n", "")


def test_runs_without_an_output():
    """As in ``weft boards >&-``."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m weft boards >&-', sys.executable],
        text=True, stderr=subprocess.PIPE,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.exit_code("any", 1)
def test_ends_quietly_when_its_reader_leaves():
    code = "import sys; from weft.cli import main; sys.exit(main(['doctor']))"
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1
