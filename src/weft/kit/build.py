"""All files of a kit, with their contents."""

import importlib
from importlib import metadata

from weft.design import PerKind
from weft.designs import to_toml
from weft.hw.bus.top import IpTop
from weft.ip import Ip
from weft.kit.bench import bench
from weft.kit.constraints import constraint_files, constraints
from weft.kit.documents import documents
from weft.kit.driver import driver
from weft.kit.folder import MANIFEST, manifest
from weft.kit.formats import formats
from weft.kit.fusesoc import description
from weft.kit.head import head
from weft.kit.licence import licensed
from weft.kit.ports import ports
from weft.kit.sheet import sheet
from weft.kit.template import template
from weft.kit.texts import text
from weft.kit.verilog import core, primitives
from weft.kit.vhdl import package
from weft.network_core.ip import NetworkIp

__all__ = ["build", "check_packages", "guide"]


def build(ip: Ip | NetworkIp, *, measured: str | None = None) -> dict[str, bytes]:
    """The files of the kit of ``ip``, by path in its folder. The same ``ip`` gives the same bytes.

    Parameters
    ----------
    measured : str, optional
        Section "Area and clock" of the data sheet, in Markdown.

    Raises
    ------
    ModuleNotFoundError
        If PeakRDL is not installed. It is raised before any step that takes long.
    """
    name, version = ip.name, metadata.version("weft")
    files = documents(ip, version)
    files[f"driver/{name}_regs.h"] = files.pop(f"{name}_regs.h")
    top = IpTop(ip)
    pins = ports(top, ip)
    sources = {f"{name}.v": core(top, head=head(ip, "the core"))}
    if models := primitives(ip, head=head(ip, "simulation models of its device primitives")):
        sources[f"{name}_primitives.v"] = models
    texts = {
        **sources,
        f"{name}.vhd": package(name, pins, head=head(ip, "VHDL component declaration")),
        f"{name}.veo": template(name, pins, head=head(ip, "instantiation template")),
        f"{name}.vlt": text("lint.vlt"),
        "config.toml": to_toml(ip.config), "LICENSE": text("LICENSE"),
        "constraints.md": constraints(ip), **constraint_files(ip),
    }
    files |= {path: value.encode() for path, value in texts.items()}
    files |= {f"driver/{file}": data for file, data in driver(ip).items()}
    files |= _FILES.of(ip)(ip, [*sources])
    files["README.md"] = sheet(ip, pins, guide(ip, files), measured=measured).encode()
    files = {path: licensed(path, data) for path, data in files.items()}
    index = manifest(
        files, weft=version, name=name, bus=ip.bus, clocks=ip.clocks, pipelined=ip.pipelined,
        prefix=ip.prefix, hash=f"{ip.config.hash:08x}",
        data_path=ip.protocol.data_path.value,
        clock=ip.protocol.clock, reset=ip.protocol.reset, reset_active=ip.protocol.reset_active,
    )
    files[MANIFEST] = licensed(MANIFEST, index)
    return dict(sorted(files.items()))


def _network_files(ip, sources):
    """The files of network cores beside the common ones."""
    lists = f"# Lists of {ip.name}\n\n{text('formats_network_core.md')}"
    return {"lists.md": lists.encode()} | _with_bench(ip, sources) | _litex(ip, ["weft_litex.py"])


def _with_bench(ip, sources):
    """The bench, and the core file that runs it."""
    drivers = [*driver(ip), f"{ip.name}_regs.h"]
    core = description(ip, metadata.version("weft"), sources, drivers).encode()
    files = {f"bench/{file}": data for file, data in bench(ip, sources).items()}
    return {f"{ip.name}.core": core, **files}


def _product_files(ip, sources):
    """The files of product cores beside the common ones.

    ``sources`` are of Verilog. If a host can drive the core through its registers, there is also a
    SoC for LiteX.
    """
    files = {
        "formats.md": formats(ip).encode(),
        "examples/amaranth_soc.py": text("amaranth_soc.py").encode(), **_with_bench(ip, sources),
    }
    return files | _litex(ip, ["weft_litex.py", *["example_soc.py"] * ip.has_fifo_ports])


_FILES = PerKind(product=_product_files, network=_network_files)


def check_packages() -> None:
    """Raise ModuleNotFoundError if a package that makes the documents is not installed."""
    for name in ("peakrdl_cheader", "peakrdl_html", "peakrdl_ipxact", "systemrdl"):
        importlib.import_module(name)


def _litex(ip, names):
    """The files ``names`` for LiteX, and the pins of the register slave."""
    files = {f"litex/{name}": text(name).encode() for name in names}
    pins = text(f"weft_pins_{ip.protocol.register_slave}.py")
    return files | {"litex/weft_pins.py": pins.encode()}


def guide(ip: Ip | NetworkIp, files) -> dict[str, str]:
    """A one-line description of each file in ``files`` that a user opens, by path."""
    name = ip.name
    descriptions = {
        f"{name}.v": "the core in Verilog-2005, one file",
        f"{name}_primitives.v": "simulation models of the device primitives in the core",
        f"{name}.vhd": "VHDL component declaration",
        f"{name}.veo": "Verilog instantiation template",
        f"{name}.vlt": "Verilator lint waivers, each with its reason",
        f"{name}.core": "FuseSoC core description: targets lint, sim, synth",
        f"{name}_regs.md": "register map",
        "html/index.html": "register map as HTML; needs a web server",
        f"{name}.rdl": "register map in SystemRDL",
        f"{name}_regs.xml": "register map in IP-XACT (IEEE 1685-2014)",
        f"driver/{ip.prefix}.h": "driver in freestanding C99",
        "bench/requirements.txt": "Python packages that the bench needs",
        "bench/run.py": "self-contained cocotb bench",
        "litex/weft_litex.py": "LiteX module",
        "litex/example_soc.py": "simulated LiteX SoC with the core",
        "examples/amaranth_soc.py": "the core as a component of an Amaranth design",
        "constraints.md": "clocks, resets, clock domain crossings",
        f"{name}.sdc": "timing constraints for Quartus, Radiant, OpenSTA",
        f"{name}.xdc": "timing constraints for Vivado",
        f"{name}.lpf": "timing constraints for Diamond and nextpnr-ecp5",
        "formats.md": "byte layout of commands, operands, results and descriptors",
        "lists.md": "memory, lists and their descriptors",
        "config.toml": f"the parameters of the {ip.kind} from which the kit is made",
    }
    return {path: text for path, text in descriptions.items() if path in files}
