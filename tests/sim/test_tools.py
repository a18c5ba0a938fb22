"""The search for tools: found, missing, too old, broken."""

import os
import re
import subprocess
import sys

import pytest
from rejects import rejects

from weft.sim import tools

pytestmark = pytest.mark.usefixtures("in_checkout")


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """A PATH of one folder, and a Python outside of any environment with tools."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(tools, "_package", lambda name: None)
    return tmp_path


def program(folder, name, output, status=0):
    path = folder / name
    script = f"#!/bin/sh\n/bin/cat <<'END'\n{output}\nEND\nexit {status}\n"
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


OUTPUTS = {
    "iverilog":  (tools.icarus, "Icarus Verilog version 11.0 (stable) ()\n\nCopyright", "11.0"),
    "verilator": (tools.verilator, "Verilator 5.048 2026-05-16 rev v5.048", "5.048"),
    "c++":       (tools.compiler, "c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", "12.2"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_finds(bin_folder, name):
    search, output, version = OUTPUTS[name]
    path = program(bin_folder, name, output)
    program(bin_folder, "vvp", "")
    tool = search()
    assert (tool.path, tool.version) == (path, version)
    assert str(tool) == f"{tool.name} {version} ({path})"


@pytest.mark.parametrize("output", [
    "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu",
    "clang version 14.0.0 (https://example.org)",
    "g++ (Ubuntu 14.0.1-1ubuntu1~20.04) 14.0.1",
])
def test_finds_any_compiler(bin_folder, output):
    program(bin_folder, "c++", output)
    assert tools.compiler().version == "14.0"


def test_finds_the_environment_before_the_system(tmp_path, monkeypatch):
    """Also for cocotb's runner, which searches PATH again."""
    system, venv = tmp_path / "system", tmp_path / "venv"
    for folder, version in ((system, "5.040"), (venv, "5.048")):
        folder.mkdir()
        program(folder, "verilator", f"Verilator {version}")
    monkeypatch.setenv("PATH", str(system))
    monkeypatch.setattr(sys, "executable", str(venv / "python"))
    assert tools.verilator().path == venv / "verilator"
    assert os.environ["PATH"] == f"{venv}{os.pathsep}{system}"
    tools.verilator()
    assert os.environ["PATH"] == f"{venv}{os.pathsep}{system}"


def test_rejects_missing(bin_folder):
    cases = {
        tools.icarus: "Icarus Verilog (11.0 or newer) was not found: no iverilog on PATH;"
        " type: make setup, or: sudo apt-get install iverilog",
        tools.verilator: "Verilator (5.036 or newer) was not found: no verilator on PATH;"
        " type: make setup",
        tools.compiler: "C++ compiler (10.0 or newer) was not found: no c++ on PATH;"
        " type: make setup, or: sudo apt-get install g++",
    }
    for search, text in cases.items():
        with rejects(tools.ToolError, text):
            search()


def test_rejects_icarus_without_vvp(bin_folder):
    program(bin_folder, "iverilog", OUTPUTS["iverilog"][1])
    text = "Icarus Verilog (11.0 or newer) was not found: no vvp on PATH;"
    with pytest.raises(tools.ToolError, match=re.escape(text)):
        tools.icarus()


@pytest.mark.parametrize("name, search, output, rule, package", [
    ("iverilog", tools.icarus, "Icarus Verilog version 10.3 (stable)",
     "Icarus Verilog must be 11.0 or newer, not 10.3", " or: sudo apt-get install iverilog"),
    ("verilator", tools.verilator, "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)",
     "Verilator must be 5.036 or newer, not 5.006", ""),
    ("c++", tools.compiler, "g++ (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)",
     "C++ compiler must be 10.0 or newer, not 4.8", " or: sudo apt-get install g++"),
])
def test_rejects_too_old(bin_folder, name, search, output, rule, package):
    path = program(bin_folder, name, output)
    text = f"{rule} ({path}); type: make setup" + (f",{package}" if package else "")
    with rejects(tools.ToolError, text):
        search()


@pytest.mark.parametrize("output, status, quoted", [
    ("rev vUNKNOWN-built", 0, "'rev vUNKNOWN-built'"),
    ("", 0, "''"),
    ("Verilator five", 0, "'Verilator five'"),
    ("Verilator 5.048", 3, "'Verilator 5.048'"),
])
def test_rejects_garbage(bin_folder, output, status, quoted):
    path = program(bin_folder, "verilator", output, status)
    text = (
        f"Verilator did not print its version: {path} --version ended with status {status}"
        f" and printed {quoted}; type: make setup"
    )
    with rejects(tools.ToolError, text):
        tools.verilator()


def test_rejects_a_program_that_does_not_run(bin_folder):
    path = bin_folder / "verilator"
    path.write_bytes(b"\x7fELF of another machine")
    path.chmod(0o755)
    text = f"Verilator does not run: {path}: "
    with pytest.raises(tools.ToolError, match=f"^{re.escape(text)}"):
        tools.verilator()


def test_waits_for_a_slow_program(bin_folder, monkeypatch):
    """The first run of a tool may compile it, which takes minutes on a busy machine."""
    real, limits = subprocess.run, []

    def run(command, **options):
        limits.append(options["timeout"])
        return real(command, **options)

    monkeypatch.setattr(tools.subprocess, "run", run)
    program(bin_folder, "c++", OUTPUTS["c++"][1])
    tools.compiler()
    assert limits == [1800]


def test_rejects_a_program_that_hangs(bin_folder, monkeypatch):
    monkeypatch.setattr(tools, "_VERSION_TIMEOUT", 0.05)
    path = bin_folder / "c++"
    path.write_text("#!/bin/sh\nexec /bin/sleep 600\n", encoding="utf-8")
    path.chmod(0o755)
    with pytest.raises(tools.ToolError) as error:
        tools.compiler()
    assert str(error.value).startswith(f"C++ compiler does not run: {path}: ")


def test_outside_a_checkout_says_where_verilator_is(bin_folder, monkeypatch, tmp_path):
    monkeypatch.setattr("weft.hints._ROOT", tmp_path)
    text = (
        "Verilator (5.036 or newer) was not found: no verilator on PATH;"
        " see https://verilator.org/guide/latest/install.html"
    )
    with rejects(tools.ToolError, text):
        tools.verilator()


def test_libpython(monkeypatch):
    assert tools.libpython().name.startswith("libpython3.")
    monkeypatch.setattr("find_libpython.find_libpython", lambda: None)
    name = "libpython{}.{}".format(*sys.version_info)
    text = (
        f"{name}.so, which cocotb needs, was not found;"
        f" type: make setup, or: sudo apt-get install {name}"
    )
    with rejects(tools.ToolError, text):
        tools.libpython()


def test_libpython_without_cocotb(monkeypatch):
    monkeypatch.setitem(sys.modules, "find_libpython", None)
    with pytest.raises(tools.ToolError, match="cocotb is not installed; type: .* '.\\[sim\\]'$"):
        tools.libpython()


@pytest.mark.parametrize("elsewhere", [None, "Verilator 5.006 2023-01-22 rev v5.006"])
def test_runs_the_binary_of_the_package(bin_folder, monkeypatch, elsewhere):
    """Before an older one of the system; the package itself has no program of this name."""
    package = bin_folder / "my package"
    (package / "bin").mkdir(parents=True)
    binary = package / "bin" / "verilator_bin"
    binary.write_text('#!/bin/sh\necho "$VERILATOR_ROOT: $@"\n')
    binary.chmod(0o755)
    (bin_folder / "env").mkdir()
    monkeypatch.setattr(sys, "executable", str(bin_folder / "env" / "python"))
    monkeypatch.setattr(tools, "_package", lambda name: package)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "5.48.0")
    if elsewhere:
        program(bin_folder, "verilator", elsewhere)
    tool = tools.verilator()
    assert tool.version == "5.048"
    said = subprocess.run([tool.path, "--cc", "a b"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{package}: --cc a b\n"
