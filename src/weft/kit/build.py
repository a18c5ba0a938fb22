"""All files of a kit, with their contents."""

import importlib
import re
from importlib import metadata

from weft.design import PerKind
from weft.designs import to_toml
from weft.hw.bus.top import IpTop
from weft.ip import Ip
from weft.kit.bench import bench, sources_of
from weft.kit.documents import descriptors, documents, formats
from weft.kit.driver import driver
from weft.kit.folder import MANIFEST, head, manifest, text
from weft.kit.sheet import sheet
from weft.kit.verilog import Port, commented, core, package, ports, primitives
from weft.network_core.ip import NetworkIp

__all__ = [
    "IDENTIFIER", "build", "check_packages", "constraint_files", "constraints", "description",
    "guide", "licensed", "template",
]


IDENTIFIER = "BSD-2-Clause"
_TAG = "SPDX-License-Identifier"
# Comment syntax by the end of a file's name.
_COMMENTS = {
    (".c", ".h"): "/* {} */",
    (".py", ".core", ".toml", ".txt", ".sdc", ".xdc", ".lpf", "Makefile"): "# {}",
    (".v", ".veo", ".vlt", ".rdl"): "// {}",
    (".vhd",): "-- {}",
    (".md", ".xml"): "<!-- {} -->",
}
_FIRST = re.compile(rb"CAPI=2:|`verilator_config|<\?xml .*\?>")  # must stay the first line


def licensed(name: str, data: bytes) -> bytes:
    """``data`` with its SPDX identifier: in a comment, or in JSON as the first value.

    The identifier is the first line, the second line if the first must stay, or the last line of a
    Markdown page. Pages in ``html/`` are not changed: they include scripts and styles of PeakRDL.
    """
    if _TAG.encode() in data or name.startswith("html/") or name == "LICENSE":
        return data
    if name.endswith(".json"):
        indent = re.match(rb"\{\n( +)", data)[1]
        value = f'"{_TAG}": "{IDENTIFIER}",\n'.encode()
        return data.replace(b"{\n", b"{\n" + indent + value, 1)
    comment = next(comment for ends, comment in _COMMENTS.items() if name.endswith(ends))
    line = comment.format(f"{_TAG}: {IDENTIFIER}").encode() + b"\n"
    if _FIRST.match(data):
        first, rest = data.split(b"\n", 1)
        return first + b"\n" + line + rest
    return data + b"\n" + line if name.endswith(".md") else line + data


def template(name: str, ports: list[Port], *, head: list[str]) -> str:
    """A wire for each port, and an instance of the core connected to them."""
    kinds = ["wire" if p.width == 1 else f"wire [{p.width - 1}:0]" for p in ports]
    kind_width, name_width = max(map(len, kinds)), max(len(p.name) for p in ports)
    wires = [f"{kind:{kind_width}} {p.name};" for kind, p in zip(kinds, ports, strict=True)]
    pins = []
    for p in ports:
        pin = f".{p.name}({p.name})" + ("" if p is ports[-1] else ",")
        pins.append(f"    {pin:{2 * name_width + 4}} // {'out' if p.out else 'in'}: {p.text}")
    return commented(head, "//") + "\n".join([*wires, "", f"{name} core (", *pins, ");", ""])


_KINDS = PerKind(product="matrix-multiply accelerator", network="core for neural networks")


def description(ip: Ip | NetworkIp, version: str, sources: list[str], drivers: list[str]) -> str:
    """The text of the ``.core`` file.

    ``sources`` are the Verilog files, the core first, then its primitive models. ``drivers`` are
    the files of the driver.
    """
    arch = ip.array.family.fusesoc_arch
    models = "".join(f"      - {name}\n" for name in sources[1:])
    simulation = (
        f"  models:\n    files:\n{models}    file_type: verilogSource-2005\n" if models else ""
    )
    copied = [
        *sources, "bench/design.json", "bench/requirements.txt",
        *(f"bench/{name}" for name in sources_of(ip)),
        *(f"driver/{name}" for name in drivers),
    ]
    bench = "".join(f"      - {name}: {{copyto: {name}}}\n" for name in copied)
    fileset = ", models" if models else ""
    return f"""\
CAPI=2:
name: weft:ip:{ip.name}:{version}
description: Weft {_KINDS.of(ip)}, {ip.peak} MAC/cycle, bus {ip.bus}

filesets:
  rtl:
    files:
      - {sources[0]}
    file_type: verilogSource-2005
{simulation}  waivers:
    files:
      - {ip.name}.vlt
    file_type: vlt
  bench:
    files:
{bench}    file_type: user

scripts:
  bench:
    cmd: [python3, bench/run.py, icarus]
    filesets: [bench]

targets:
  default:
    filesets: [rtl]
    toplevel: {ip.name}
  lint:
    description: Verilator with -Wall and the waivers of this core
    filesets: [waivers, rtl{fileset}]
    toplevel: {ip.name}
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
  sim:
    description: the cocotb bench on Icarus Verilog
    filesets: [rtl{fileset}, bench]
    toplevel: {ip.name}
    flow: generic
    flow_options:
      tool: icarus
    hooks:
      post_build: [bench]
  synth:
    description: Yosys, for {arch}
    filesets: [rtl]
    toplevel: {ip.name}
    flow: generic
    flow_options:
      tool: yosys
      arch: {arch}
      output_format: json
"""


# Constraints for a design with the core: clocks, reset, clock domain crossings. They come as a page
# of text and as files for the tools: SDC, XDC for Vivado, LPF for Lattice.

PERIOD = 10.0  # default clock period in the files, in ns


def constraints(ip: Ip | NetworkIp) -> str:
    """The page."""
    bus = ip.protocol
    text = _PAGE + (_CROSSING if ip.clocks == 2 else "")
    if ip.array.family.models:
        text += _PRIMITIVES
    return text.format(
        name=ip.name, target=ip.array.target,
        clock=bus.clock, reset=bus.reset, active="high" if bus.reset_active else "low",
        clocks=_CLOCKS[ip.clocks],
        reset_time=_RESET_TIME[ip.clocks],
    )


def constraint_files(ip: Ip | NetworkIp) -> dict[str, str]:
    """The constraint files by name, for a design whose top is the core."""
    bus = ip.protocol.clock
    clocks = [bus, "core_clk"][: ip.clocks]
    crossings = [(bus, "core_clk"), ("core_clk", bus)] * (ip.clocks == 2)
    sdc = [f"create_clock -name {c} -period {PERIOD:.3f} [get_ports {{{c}}}]" for c in clocks]
    paths = [f"-from [get_clocks {{{a}}}] -to [get_clocks {{{b}}}]" for a, b in crossings]
    xdc = [*sdc, *(f"set_max_delay -datapath_only {path} {PERIOD:.3f}" for path in paths)]
    if crossings:
        stages = " || ".join(f"NAME =~ *stage{n}_reg*" for n in (0, 1))
        xdc.append(f"set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {{{stages}}}]")
    for path in paths:
        sdc += [f"set_max_delay {path} {PERIOD:.3f}", f"set_false_path -hold {path}"]
    lpf = [f'FREQUENCY PORT "{c}" {1000 / PERIOD:.1f} MHZ;' for c in clocks]
    lpf += ["BLOCK INTERCLOCKDOMAIN PATHS;"] * (ip.clocks == 2)
    notes = [
        f"Constraints for {ip.name} as the top of a design; clocks of {1000 / PERIOD:.0f} MHz.",
        "In your own design use its clocks instead; see constraints.md.",
    ]
    if crossings:
        notes.append("Paths between the clocks must not exceed a period of the faster clock.")
    head = "".join(f"# {line}\n" for line in notes)
    kinds = {"sdc": sdc, "xdc": xdc, "lpf": lpf}
    return {f"{ip.name}.{kind}": head + "\n".join(lines) + "\n" for kind, lines in kinds.items()}


_CLOCKS = {1: "It is the only clock.", 2: "The core's own clock, `core_clk`, needs one too."}
_RESET_TIME = {1: "one cycle of it is enough", 2: "hold it for 4 cycles of `core_clk`"}
_PAGE = """\
# Constraints of {name}

The files `{name}.sdc` (Quartus, Radiant, OpenSTA), `{name}.xdc` (Vivado) and `{name}.lpf` (Diamond,
nextpnr-ecp5) contain the constraints below, for a design whose top is the core. Set the clock
periods in them.

* **`{clock}`** needs a clock constraint with its real period. {clocks}

  ```
  create_clock -name {clock} -period <ns> [get_ports {clock}]    # SDC, XDC
  FREQUENCY PORT "{clock}" <MHz> MHZ;                             # LPF
  ```

* **`{reset}`** is synchronous to `{clock}` and active {active}; {reset_time}. Drive it from a
  register of this clock: the core does not synchronize it. The registers of the core also have
  initial values, so an FPGA that starts without a reset starts in the correct state.
* All inputs are synchronous to `{clock}`. Outputs, `irq` included, come from registers of this
  clock, or from a few gates after them. No combinational path leads from an input to an output.
"""
_CROSSING = """\
* **Crossings between `{clock}` and `core_clk`** are asynchronous FIFOs (Gray-coded counters), a
  handshake for the register port, and two-register synchronizers for pulses and resets. The two
  clocks may have any phase and frequency. Limit the delay of the paths between them to a period of
  the faster clock, so that the bits of a Gray code arrive together:

  ```
  set_max_delay -datapath_only -from [get_clocks {{{clock}}}] -to [get_clocks {{core_clk}}] <ns>
  set_max_delay -datapath_only -from [get_clocks {{core_clk}}] -to [get_clocks {{{clock}}}] <ns>
  ```

  If the tool has no such constraint, declare the clocks asynchronous:

  ```
  set_clock_groups -asynchronous -group {clock} -group core_clk
  ```

  nextpnr does not time paths between clocks, so it needs no constraint for them. In Vivado, set
  `ASYNC_REG` on the synchronizer registers `stage0` and `stage1`, as the XDC file does.
"""
_PRIMITIVES = """\
* **Primitives:** the core instantiates primitives of target `{target}`. Synthesis tools know them.
  To simulate the core, add `{name}_primitives.v` and define `NOISE`: memories then start with
  random contents. Without `NOISE` they start as X, which becomes visible in the unused bytes after
  the last result of a job.
"""


# The kit.

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
    page = f"# Lists of {ip.name}\n\n{text('formats_network_core.md')}\n{descriptors(ip.config)}"
    return {"lists.md": page.encode()} | _with_bench(ip, sources) | _litex(ip, ["weft_litex.py"])


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
