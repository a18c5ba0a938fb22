"""``weft generate``: writes the core of a Config as one Verilog file, or as an IP kit."""

import dataclasses
from pathlib import Path

from weft.buses import BUSES
from weft.cli.doctor import install_hint
from weft.cli.options import add_config, config_of, integer, path
from weft.config import Config, ConfigError
from weft.design import PerKind
from weft.designs import design_from_toml
from weft.files import output_file, output_folder, write_text
from weft.ip import OPTIONS, Ip
from weft.network_core.ip import NetworkIp

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "write the core as Verilog, or an IP kit"
DESCRIPTION = """\
Write the core as Verilog-2005 that all common tools can read: module weft, clock clk, synchronous
reset rst, streams cmd_* and res_*, registers reg_* (see docs/interfaces.md). The same Config gives
the same bytes on any machine.

With --bus, write a kit instead: a folder with the core behind that bus, with conventional port
names, and with everything that is needed to use it: data sheet, register map, C driver, testbench,
VHDL component, FuseSoC and LiteX files (docs/kit.md).

  weft generate                                   the default design, into out/
  weft generate --rows 4 --cols 4 --depth 4 -o core.v
  weft generate --config my.toml
  weft generate --bus axi                         a kit, into out/weft_axi_8x8x1/
  weft generate --bus axi --config network_core.toml      a kit of a network core: the file has a
                                                  table [network_core] (docs/network-core.md)
"""


def add(parser):
    """Add the arguments of ``weft generate``."""
    parser.add_argument(
        "-o", "--output", metavar="PATH", type=path("output"),
        help="the Verilog file, default out/weft_<design>.v; with --bus, the folder of the kit",
    )
    group = parser.add_argument_group("the kit")
    buses = "; ".join(f"{name}: {bus.text}" for name, bus in BUSES.items())
    group.add_argument("--bus", metavar="BUS", help=buses)
    group.add_argument(
        "--clocks", type=integer("clocks"), metavar="N",
        help="number of clocks; with 2, the core runs on a clock of its own; default 1",
    )
    for option, text in OPTIONS.items():
        allowed = " and ".join(name for name, bus in BUSES.items() if option in bus.options)
        group.add_argument(f"--{option}", action="store_true", help=f"{allowed} only: {text}")
    group.add_argument(
        "--prefix", metavar="NAME",
        help="prefix of the names of modules, files and C functions; default weft",
    )
    group.add_argument(
        "--measure", metavar="DEVICE",
        help="place and route the core (minutes) to add area and clock to the data sheet",
    )
    add_config(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.bus is not None:
        return _kit(args)
    for name in ("clocks", *OPTIONS, "prefix", "measure"):
        if getattr(args, name) not in (None, False):
            raise OSError(f"--{name} needs --bus; without it, only the core's Verilog is written")
    config = config_of(args)
    file = output_file(args.output or f"out/weft_{config.name}.v")
    from weft.cli.progress import progress
    from weft.hw.export import verilog

    with progress() as show, show.task(f"generating {config.name}"):
        text = verilog(config)
    write_text(file, text)
    print(f"{file}: module weft, {len(text.splitlines()):,} lines, {config.peak} MAC/cycle")
    return 0


def _kit(args):
    ip = _ip(args)
    kit_folder = Path(args.output or f"out/{ip.name}")
    from weft.cli.progress import progress
    from weft.kit.build import build, check_packages
    from weft.kit.folder import check, write

    check(kit_folder)
    try:
        check_packages()
    except ModuleNotFoundError as error:
        raise OSError(install_hint(error.name, make=f"make kit BUS={ip.bus}")) from error
    output_folder(kit_folder.parent)
    with progress() as show:
        measured = _measured(args, ip, show) if args.measure else None
        with show.task(f"generating {ip.name}"):
            files = build(ip, measured=measured)
    write(kit_folder, files)
    _show(ip, kit_folder, files)
    return 0


def _ip(args):
    """The IP core of the arguments. Raises ConfigError if they describe none."""
    prefix = "weft" if args.prefix is None else args.prefix
    design = config_of(args) if args.config is None else design_from_toml(args.config)
    return _IPS.of(design)(args, design, prefix)


def _product_ip(args, design, prefix):
    clocks = 1 if args.clocks is None else args.clocks
    return Ip(
        config=config_of(args), bus=args.bus, clocks=clocks, prefix=prefix,
        **{option: getattr(args, option) for option in OPTIONS},
    )


def _network_ip(args, design, prefix):
    given = [f.name for f in dataclasses.fields(Config) if getattr(args, f.name) is not None]
    given += [option for option in OPTIONS if option != "pipelined" and getattr(args, option)]
    given += ["clocks"] * (args.clocks not in (None, 1))
    if given:
        option = given[0].replace("_", "-")
        raise ConfigError(f"--{option} must not be given for a network core: {args.config}"
                          " has a table [network_core]")
    return NetworkIp(config=design, bus=args.bus, pipelined=args.pipelined, prefix=prefix)


_IPS = PerKind(product=_product_ip, network=_network_ip)


def _measured(args, ip, show):
    """Area and clock from place and route, as lines of the data sheet."""
    from weft.boards.toolchain import Toolchain
    from weft.kit.sheet import device, measure
    from weft.sim.build import folder

    part = device(args.measure, ip)
    tools = Toolchain(folder(), say=show.say)
    with show.task("preparing the tools"):
        tools.set_up(part.target)
    with show.task(f"placing and routing {ip.name} on {part.name}"):
        build_folder = output_folder(folder() / "kit" / f"{ip.name}-{ip.array.hash:08x}")
        return measure(ip, part, tools, folder=build_folder, seed=1)


def _show(ip, kit_folder, files):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from weft.kit.build import guide

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, align in (("file", "left"), ("bytes", "right"), ("contents", "left")):
        table.add_column(name, justify=align)
    for name, text in {"README.md": "data sheet: start here", **guide(ip, files)}.items():
        table.add_row(name, f"{len(files[name]):,}", text)
    console = Console()
    console.print(table)
    size = sum(map(len, files.values()))
    console.print(
        f"{kit_folder}: {len(files)} files, {size:,} bytes; module {ip.name},"
        f" {ip.peak} MAC/cycle behind {ip.bus}",
        highlight=False, markup=False, soft_wrap=True,
    )
