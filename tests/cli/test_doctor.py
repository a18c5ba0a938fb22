"""``weft doctor`` on a complete machine, and on machines where something is missing."""

import re
import sys
from importlib import metadata

import pytest

from weft.cli import doctor, main
from weft.sim import tools

pytestmark = pytest.mark.usefixtures("in_checkout")


@pytest.fixture
def version(monkeypatch):
    """Sets the version of a package; None for a missing one."""
    real, fake = metadata.version, {}

    def version_of(name):
        if fake.get(name, "") is None:
            raise metadata.PackageNotFoundError(name)
        return fake.get(name) or real(name)

    monkeypatch.setattr(metadata, "version", version_of)
    return fake


def test_reports_a_complete_machine(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for name in ("Python", "numpy", "matplotlib", "Icarus Verilog", "Verilator", "libpython"):
        assert f"ok  {name} " in said
    assert said.endswith("\nReady for 'weft sim'.\n")


def test_is_aligned(capsys):
    main(["doctor"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ok")]
    assert len(lines) == 18
    starts = {re.search(r"[0-9.]+ or newer", line).start() for line in lines if "or newer" in line}
    assert len(starts) == 1


@pytest.mark.exit_code("doctor", 1)
def test_names_what_is_missing(capsys, version):
    version["amaranth"] = None
    version["numpy"] = "1.26.4"
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    command = "type: make setup, or: pip install -e "
    assert f"amaranth 0.5.8 or newer is not installed; {command}'.[hw]'\n" in said
    assert f"numpy must be 2.0 or newer, not 1.26.4; {command}.\n" in said
    assert said.endswith("\nNot ready for 'weft sim'. Missing or too old: numpy, amaranth.\n")


def test_is_ready_without_an_optional_package(capsys, version):
    version["matplotlib"] = None
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "optional  matplotlib" in said
    assert said.endswith("\nReady for 'weft sim'.\n")


def test_says_what_a_missing_compiler_stops(capsys, monkeypatch):
    def missing():
        raise tools.ToolError("C++ compiler was not found")

    monkeypatch.setattr(tools, "compiler", missing)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith(
        "Missing or too old: C++ compiler.\n"
        "'weft demo' and simulated boards need Verilator and the C++ compiler, too.\n"
    )


def test_names_a_missing_simulator(capsys, monkeypatch):
    def missing():
        raise tools.ToolError("Icarus Verilog must be 11.0 or newer, and is not")

    monkeypatch.setattr(tools, "icarus", missing)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "      Icarus Verilog must be 11.0 or newer, and is not\n" in said
    assert said.endswith("\nNot ready for 'weft sim'. Missing or too old: Icarus Verilog.\n")


def test_runs_without_amaranth(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "amaranth._toolchain.yosys", None)
    assert main(["doctor"]) == 1
    text = "Yosys 0.40 or newer: not checked, because Amaranth is not installed; type: make"
    assert text in capsys.readouterr().out


def test_compares_versions_as_numbers(version):
    version["amaranth"] = "0.5.10"
    found = {finding.name: finding.found for finding in doctor.examine()}
    assert found["amaranth"] == "0.5.10"
