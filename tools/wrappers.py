"""Write ``docs/wrappers.md``: what the wrappers of IP cores take of an ECP5, and of a core's rate.

    python tools/wrappers.py

Exit code 1 where a wrapper has become larger or slower, makes a core slower, or a bus takes more
than 2 % of the rate.
"""

import re
import sys
from pathlib import Path

from weft.boards.devices import DEVICES
from weft.boards.toolchain import Toolchain, to_rtlil
from weft.config import Config
from weft.hw.bus.top import BareWrapper, IpTop
from weft.hw.core import Core
from weft.hw.dma.engine import Dma
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.ip.ip_testbench import env
from weft.sim.runner import BenchError, run

PATH = Path(__file__).parent.parent / "docs" / "wrappers.md"
DEVICE = DEVICES["LFE5U-25F"]
SEEDS = range(1, 4)
AXI, CLASSIC = {"bus": "axi"}, {"bus": "wishbone"}
PIPELINED = {"bus": "wishbone", "pipelined": True}
STREAM, DMA = {"bus": "stream"}, {"bus": "dma"}
# What it is, its Ip, bytes of its streams; the most LUTs and the least MHz, by the last run.
WRAPPERS = [
    ("AXI4-Lite, windows", AXI, 4, 399, 175),
    ("AXI4-Lite, windows", AXI, 16, 510, 165),
    ("AXI4-Lite, windows, two clocks", AXI | {"clocks": 2}, 16, 1010, 140),
    ("Wishbone, classic, windows", CLASSIC, 4, 315, 180),
    ("Wishbone, classic, windows", CLASSIC, 16, 425, 180),
    ("Wishbone, pipelined, windows", PIPELINED, 4, 315, 180),
    ("AXI4-Stream and AXI4-Lite", STREAM, 4, 410, 175),
    ("AXI4-Stream and AXI4-Lite", STREAM, 16, 700, 150),
    ("AXI4 master and AXI4-Lite", DMA, 16, 2480, 115),
]
# Engines alone: their depth, and as above.
ENGINES = [(1, 8, 1680, 120), (1, 16, 1730, 120), (2, 16, 2030, 115)]
# A small core, whose clock is the hardest to keep up with; and the least MHz behind each bus.
SMALL = Config(
    rows=2, cols=2, depth=2, lanes=2, bytes_in=4, bytes_out=4, requantize="none", activation="none",
    target="ecp5",
)
BUSES = [
    ("AXI4-Lite", AXI, 150),
    ("Wishbone, classic", CLASSIC, 150),
    ("Wishbone, pipelined", PIPELINED, 155),
    ("AXI4-Stream", STREAM, 155),
    ("AXI4 master", DMA, 120),
]
NARROW = {"bytes_in": 4, "bytes_out": 4}
# What the bus is, its Ip, fields of the Config.
RATES = [
    ("AXI4-Stream", STREAM, {"depth": 2}),
    ("AXI4-Stream, two clocks", STREAM | {"clocks": 2}, {"depth": 2}),
    ("AXI4-Lite", AXI, NARROW),
    ("Wishbone, classic", CLASSIC, NARROW),
    ("Wishbone, pipelined", PIPELINED, NARROW | {"depth": 2}),
    ("AXI4 master", DMA, {}),
    ("AXI4 master", DMA, {"bytes_in": 8, "bytes_out": 8}),
    ("AXI4 master", DMA, {"rows": 4, "cols": 4, "depth": 4}),
]
AREA = """\
# Wrappers of IP cores

Whatever `weft.hw.bus` and `weft.hw.dma` put around an 8x8x2 core, without the core; and the engine
of the AXI4 master alone. `make wrappers` writes this page, and fails where a figure has become
worse.

## Area and clock

Each alone, synthesized, placed and routed on an LFE5U-25F, speed grade 6. LUT as nextpnr counts
them, with carry chains and memories in logic.

| wrapper | bytes a cycle | LUT | FF | block RAM | fmax, best of 3 seeds |
|---|---:|---:|---:|---:|---:|
"""
CLOCK = f"""
## The core's clock

A {SMALL.name} without a result path to speak of, alone and behind each bus: the whole core on an
LFE5U-25F.

| bus | LUT | fmax, best of 3 seeds | its critical path |
|---|---:|---:|---|
"""
RATE = """
## Rate

Products of 128 x 128 by 128 x 128, job behind job, loading included, every result checked, in
Verilator: cycles from job to job. Memory and masters never pause. A driver that looks in turns sees
the end of a job some cycles late, now more and now less. The windows of AXI4-Lite and Wishbone move
4 bytes an access, so their results are int8; the master's are int32.

| bus | design | bytes a cycle | cycles a job |
|---|---|---:|---:|
"""


def parts():
    """What is measured: its name, the bytes of its streams, itself, what it may be."""
    for name, options, size, most, least in WRAPPERS:
        config = Config(target="ecp5", depth=2, bytes_in=size, bytes_out=size)
        yield name, size, BareWrapper(Ip(config=config, **options)), most, least
    for depth, size, most, least in ENGINES:
        config = Config(target="ecp5", depth=depth, bytes_in=size, bytes_out=size)
        yield f"AXI4 master alone, {config.name}", size, Dma(config), most, least


def area():
    """Lines of the table, and what has become worse."""
    tools = Toolchain(folder())
    tools.set_up()
    for name, size, design, most, least in parts():
        place = folder() / "wrappers" / re.sub(r"\W+", "-", f"{name} {size}")
        netlist = tools.synthesize(to_rtlil(design), DEVICE, place)
        placed = [tools.place(netlist, DEVICE, seed, out_of_context=True) for seed in SEEDS]
        used, fmax = placed[0].used, max(one.fmax for one in placed)
        worse = used["LUT"] > most or fmax < least
        row = name, size, f"{used['LUT']:,}", f"{used['FF']:,}", used["RAM"], f"{fmax:.0f} MHz"
        yield row, f"{name}: at most {most} LUT and at least {least} MHz" if worse else ""


def clocks():
    """Lines of the table, and what holds the core up."""
    tools = Toolchain(folder())
    designs = [("none", Core(SMALL), 165)] + [
        (name, IpTop(Ip(config=SMALL, **options)), least) for name, options, least in BUSES
    ]
    for name, design, least in designs:
        place = folder() / "wrappers" / f"whole-{name}"
        netlist = tools.synthesize(to_rtlil(design), DEVICE, place)
        best = max(
            (tools.place(netlist, DEVICE, seed, out_of_context=True) for seed in SEEDS),
            key=lambda placed: placed.fmax,
        )
        worse = f"{name}: at least {least} MHz" * (best.fmax < least)
        path = f"`{best.critical_path.names[0]}` to `{best.critical_path.names[-1]}`"
        yield (name, f"{best.used['LUT']:,}", f"{best.fmax:.0f} MHz", path), worse


def rates():
    """Lines of the table, and what takes too much."""
    for name, options, fields in RATES:
        ip = Ip(config=Config(activation="none", **fields), **options)
        module = "weft.sim.ip.dma_rate" if ip.bus == "dma" else "weft.sim.ip.rates"
        worse = ""
        try:
            outcome = run(
                ip.config, "verilator", build_dir=folder() / "rates", top=ip.name, env=env(ip),
                verilog=to_verilog(IpTop(ip), name=ip.name), modules=[module],
            )
        except BenchError as error:
            worse, outcome = str(error), error.outcome
        said = outcome.log.read_text(encoding="utf-8") if outcome else ""
        found = re.findall(r"interval ([\d.]+)|(\d+) cycles a product", said)
        cycles = " / ".join(f"{float(one or other):,.0f}" for one, other in found)
        yield (name, ip.config.name, ip.config.bytes_in, cycles), worse


def main() -> int:
    lines, wrong = [], []
    for head, rows in ((AREA, area), (CLOCK, clocks), (RATE, rates)):
        lines.append(head)
        for row, worse in rows():
            lines.append("| " + " | ".join(map(str, row)) + " |\n")
            print(lines[-1], end="", flush=True)
            wrong += [worse] * bool(worse)
    PATH.write_text("".join(lines), encoding="utf-8")
    print(PATH, *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
