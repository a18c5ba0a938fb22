"""All of a kit: which files it has, and what is in them."""

import importlib
from importlib import metadata

from weft.hw.bus.top import IpTop
from weft.ip import Ip
from weft.kit.bench import bench
from weft.kit.constraints import constraints, files
from weft.kit.documents import documents
from weft.kit.driver import driver
from weft.kit.folder import MANIFEST, manifest
from weft.kit.formats import formats
from weft.kit.fusesoc import description
from weft.kit.head import head, toml
from weft.kit.licence import licensed
from weft.kit.ports import ports
from weft.kit.sheet import sheet
from weft.kit.template import template
from weft.kit.texts import text
from weft.kit.verilog import core, primitives
from weft.kit.vhdl import package

__all__ = ["build", "guide", "wants"]


def build(ip: Ip, *, measured: str | None = None, say=lambda text: None) -> dict[str, bytes]:
    """The files of the kit of ``ip``, by their places in its folder; the same bytes every time.

    Parameters
    ----------
    measured : str, optional
        What the data sheet says of area and clock.
    say : callable
        Told what is made next.

    Raises
    ------
    ModuleNotFoundError
        Where PeakRDL is not installed; before anything that takes long.
    """
    name, version = ip.name, metadata.version("weft")
    say("documents of the registers")
    found = documents(ip, version)
    found[f"driver/{name}_regs.h"] = found.pop(f"{name}_regs.h")
    say("Verilog")
    top = IpTop(ip)
    pins = ports(top)
    sources = {f"{name}.v": core(top, head=head(ip, "the core"))}
    if models := primitives(ip, head=head(ip, "models of the primitives, to simulate it")):
        sources[f"{name}_primitives.v"] = models
    say("driver, bench, surroundings")
    made = {
        **sources,
        f"{name}.vhd": package(name, pins, head=head(ip, "the component, for VHDL")),
        f"{name}.vlt": text("lint.vlt"),
        f"{name}.core": description(ip, version, list(sources), [*driver(ip), f"{name}_regs.h"]),
        "config.toml": toml(ip.config), "LICENSE": text("LICENSE"),
        "constraints.md": constraints(ip), **files(ip), "formats.md": formats(ip),
        f"{name}.veo": template(name, pins, head=head(ip, "an instance, to copy")),
    }
    found |= {place: value.encode() for place, value in made.items()}
    for folder, held in (
        ("driver", driver(ip)), ("bench", bench(ip, list(sources))), ("litex", _litex(ip)),
        ("examples", {"amaranth_soc.py": text("amaranth_soc.py").encode()}),
    ):
        found |= {f"{folder}/{file}": data for file, data in held.items()}
    found["README.md"] = sheet(ip, pins, guide(ip, found), measured=measured).encode()
    found = {place: licensed(place, data) for place, data in found.items()}
    told = manifest(
        found, weft=version, name=name, bus=ip.bus, clocks=ip.clocks, pipelined=ip.pipelined,
        prefix=ip.prefix, hash=f"{ip.config.hash:08x}",
    )
    found[MANIFEST] = licensed(MANIFEST, told)
    return dict(sorted(found.items()))


def wants() -> None:
    """ModuleNotFoundError where what makes the documents is not installed."""
    for name in ("peakrdl_cheader", "peakrdl_html", "peakrdl_ipxact", "systemrdl"):
        importlib.import_module(name)


def _litex(ip):
    """The module for LiteX, and where a host can work the core over its registers, a SoC."""
    names = ["weft_litex.py", *["example_soc.py"] * ip.has_fifo_ports]
    return {name: text(name).encode() for name in names}


def guide(ip: Ip, files) -> dict[str, str]:
    """What is worth to be told of ``files``, by their places."""
    name = ip.name
    told = {
        f"{name}.v": "the core: Verilog-2005, one file",
        f"{name}_primitives.v": "models of the primitives in it, for simulators",
        f"{name}.vhd": "its component, for VHDL",
        f"{name}.veo": "an instance in Verilog, to copy",
        f"{name}.vlt": "what Verilator's -Wall is told not to say of it",
        f"{name}.core": "for FuseSoC: targets lint, sim, synth",
        f"{name}_regs.md": "its registers",
        "html/index.html": "the same to click through, from a web server",
        f"{name}.rdl": "the same in SystemRDL",
        f"{name}_regs.xml": "the same in IP-XACT (IEEE 1685-2014)",
        f"driver/{ip.prefix}.h": "driver in freestanding C99",
        "bench/requirements.txt": "what the bench wants of PyPI",
        "bench/run.py": "a cocotb bench that stands alone",
        "litex/weft_litex.py": "module for LiteX",
        "litex/example_soc.py": "a SoC with it, simulated",
        "examples/amaranth_soc.py": "it as a component of an Amaranth design",
        "constraints.md": "clocks, resets, crossings",
        f"{name}.sdc": "the same for Quartus, Radiant, OpenSTA",
        f"{name}.xdc": "the same for Vivado",
        f"{name}.lpf": "the same for Diamond and nextpnr-ecp5",
        "formats.md": "commands, operands, results and descriptors, to the byte",
        "config.toml": "what it was made from",
    }
    return {place: text for place, text in told.items() if place in files}
