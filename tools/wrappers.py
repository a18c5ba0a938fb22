"""Measure area, clock and rate of the bus wrappers on an ECP5.

    python -m tools.wrappers [--cluster ADDRESS] [--jobs INT]

Exit code 1 if a wrapper exceeds its area, misses its clock, or costs more than 2 % of the rate.
"""

import argparse
import functools
import re
import sys
import zlib
from collections.abc import Callable, Iterator

from tools import results
from verif.ip.ip_testbench import env
from weft.bench.measure import DesignRun, PlacementWork, placed
from weft.boards.devices import DEVICES
from weft.boards.toolchain import digests, to_rtlil
from weft.cli.options import add_workers, check_cluster, started
from weft.cli.progress import progress
from weft.config import Config
from weft.hw.bus.top import BareWrapper, IpTop
from weft.hw.core import Core
from weft.hw.dma.engine import Dma
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.runner import BenchError, run

DEVICE = DEVICES["LFE5U-25F"]
SEEDS = range(1, 4)
AXI, CLASSIC = {"bus": "axi"}, {"bus": "wishbone"}
PIPELINED = {"bus": "wishbone", "pipelined": True}
STREAM, DMA = {"bus": "stream"}, {"bus": "dma"}
# Name, options of the Ip, bytes of its streams; limits: LUTs at most, MHz at least.
WRAPPERS = [
    ("AXI4-Lite, FIFO ports", AXI, 4, 399, 175),
    ("AXI4-Lite, FIFO ports", AXI, 16, 510, 165),
    ("AXI4-Lite, FIFO ports, two clocks", AXI | {"clocks": 2}, 16, 1010, 140),
    ("Wishbone, classic, FIFO ports", CLASSIC, 4, 315, 180),
    ("Wishbone, classic, FIFO ports", CLASSIC, 16, 425, 180),
    ("Wishbone, pipelined, FIFO ports", PIPELINED, 4, 315, 180),
    ("AXI4-Stream and AXI4-Lite", STREAM, 4, 410, 175),
    ("AXI4-Stream and AXI4-Lite", STREAM, 16, 700, 150),
    ("AXI4 master and AXI4-Lite", DMA, 16, 2480, 115),
]
# DMA engines alone: depth, bytes of the streams, limits.
ENGINES = [(1, 8, 1680, 120), (1, 16, 1730, 120), (2, 16, 2030, 115)]
# A small core, which has the fastest clock; and the MHz at least behind each bus.
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
# Name of the bus, options of the Ip, fields of the Config.
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
ABOUT = """\
The parts of `weft.hw.bus` and `weft.hw.dma` around an 8x8x2 core, without the core; and the DMA
engine alone. The command fails if a value is worse than its limit."""
# Title of each table, its text, its heads.
AREA = "Area and clock", """\
Each design alone, synthesized, placed and routed on an LFE5U-25F, speed grade 6. nextpnr counts the
LUTs, with carry chains and memories in logic.""", """\
| wrapper | bytes a cycle | LUT | FF | block RAM | fmax, best of 3 seeds |
|---|---:|---:|---:|---:|---:|
"""
CLOCK = "Clock of a whole IP core", f"""\
A {SMALL.name} with raw results only, alone and behind each bus, on an LFE5U-25F.""", """\
| bus | LUT | fmax, best of 3 seeds | its critical path |
|---|---:|---:|---|
"""
RATE = "Rate", """\
Cycles from job to job of 128 x 128 by 128 x 128 products, back to back, loading included, in
Verilator; every result is checked. Memory and masters never pause. A driver that polls sees the end
of a job some cycles late, by a varying number. The FIFO ports of AXI4-Lite and Wishbone move 4
bytes an access, so their results are int8. The results of the AXI4 master are int32.""", """\
| bus | design | bytes a cycle | cycles a job |
|---|---|---:|---:|
"""


def parts():
    """The designs: name, bytes of the streams, its maker, LUTs at most, MHz at least."""
    for name, options, size, max_luts, min_mhz in WRAPPERS:
        config = Config(target="ecp5", depth=2, bytes_in=size, bytes_out=size)
        make = functools.partial(BareWrapper, Ip(config=config, **options))
        yield name, size, make, max_luts, min_mhz
    for depth, size, max_luts, min_mhz in ENGINES:
        config = Config(target="ecp5", depth=depth, bytes_in=size, bytes_out=size)
        make = functools.partial(Dma, config)
        yield f"AXI4 master alone, {config.name}", size, make, max_luts, min_mhz


def wholes():
    """The small core alone and behind each bus: name, its maker, MHz at least."""
    yield "none", functools.partial(Core, SMALL), 165
    for name, options, min_mhz in BUSES:
        yield name, functools.partial(IpTop, Ip(config=SMALL, **options)), min_mhz


def cores():
    """The name and the IP core of each rate."""
    for name, options, fields in RATES:
        yield name, Ip(config=Config(activation="none", **fields), **options)


def designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The name of each row of the record, and a function for the digests of its design."""
    for name, size, make, *_ in parts():
        yield f"{name}, {size} bytes a cycle", lambda make=make: (
            digests(to_rtlil(make()), DEVICE, [*SEEDS])
        )
    for name, make, _ in wholes():
        yield f"clock of a core with bus {name}", lambda make=make: (
            digests(to_rtlil(make()), DEVICE, [*SEEDS])
        )
    for name, ip in cores():  # a rate comes from a simulation: it has no conditions
        yield f"rate of {ip.array.name} with {ip.array.bytes_in} bytes a cycle, {name}", (
            lambda ip=ip: digests(to_rtlil(IpTop(ip)), DEVICE) | {"conditions": ""}
        )


def placements(name, make):
    """The design of a maker, with each seed."""
    text = zlib.compress(to_rtlil(make()).encode())
    return [DesignRun(name, text, DEVICE, seed, out_of_context=True) for seed in SEEDS]


def area(engine):
    """Rows of the table, each with its problem or an empty string."""
    designs = list(parts())
    found = placed(engine, [
        one for name, size, make, *_ in designs for one in placements(f"{name} {size}", make)
    ])
    for name, size, _, max_luts, min_mhz in designs:
        results = found[f"{name} {size}"]
        used, fmax = results[0].used, max(one.fmax for one in results)
        fails = used["LUT"] > max_luts or fmax < min_mhz
        row = name, size, f"{used['LUT']:,}", f"{used['FF']:,}", used["RAM"], f"{fmax:.0f} MHz"
        yield row, f"{name}: at most {max_luts} LUT and at least {min_mhz} MHz" if fails else ""


def clocks(engine):
    """Rows of the table, each with its problem or an empty string."""
    designs = [*wholes()]
    found = placed(engine, [one for name, make, _ in designs for one in placements(name, make)])
    for name, _, min_mhz in designs:
        best = max(found[name], key=lambda result: result.fmax)
        problem = f"{name}: at least {min_mhz} MHz" * (best.fmax < min_mhz)
        path = f"`{best.critical_path.names[0]}` to `{best.critical_path.names[-1]}`"
        yield (name, f"{best.used['LUT']:,}", f"{best.fmax:.0f} MHz", path), problem


def rates(engine):
    """Rows of the table, each with its problem or an empty string."""
    for name, ip in cores():
        module = "verif.ip.dma_rate" if ip.has_dma else "verif.ip.rates"
        problem = ""
        try:
            outcome = run(
                ip.array, "verilator", build_dir=folder() / "rates", top=ip.name, env=env(ip),
                verilog=to_verilog(IpTop(ip), name=ip.name), modules=[module],
            )
        except BenchError as error:
            problem, outcome = str(error), error.outcome
        log = outcome.log.read_text(encoding="utf-8") if outcome else ""
        found = re.findall(r"interval ([\d.]+)|(\d+) cycles a product", log)
        cycles = " / ".join(f"{float(one or other):,.0f}" for one, other in found)
        yield (name, ip.array.name, ip.array.bytes_in, cycles), problem


def main() -> int:
    parser = argparse.ArgumentParser(description="measure the bus wrappers")
    add_workers(parser)
    args = parser.parse_args()
    check_cluster(args)
    tables, problems = [], []
    with progress() as show, started(PlacementWork(), args, show) as engine:
        for (title, about, heads), rows in ((AREA, area), (CLOCK, clocks), (RATE, rates)):
            lines = [heads]
            for row, problem in rows(engine):
                lines.append("| " + " | ".join(map(str, row)) + " |\n")
                show.say(lines[-1].strip())
                problems += [problem] * bool(problem)
            tables.append(results.table("".join(lines), title=title, about=about))
    page = results.save(
        "wrappers", tables, title="Wrappers of IP cores", command="make wrappers", about=ABOUT,
        of=[
            "weft.hw.bus.top", "weft.hw.dma.engine", "weft.boards.toolchain", "verif.ip.rates",
            "verif.ip.dma_rate",
        ],
        designs={name: found() for name, found in designs()},
    )
    print(page, *problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
