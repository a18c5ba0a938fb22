"""``weft sdram``: writes the controller of an SDRAM as a Verilog file, or lists the chips."""

from dataclasses import replace

from weft.cli.options import integer, number, path
from weft.config import ConfigError
from weft.files import output_file

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "write an SDRAM controller as Verilog, or list its chips"
DESCRIPTION = """\
Write a controller of an SDR SDRAM behind AXI4 as one Verilog-2005 file: module weft_sdram, clock
aclk, reset aresetn, ports s_axi_* and sdram_* (docs/sdram.md). The timing of the chip is computed
for the clock. Without a chip, list the chips that Weft knows.

  weft sdram                                      the chips, and their rates
  weft sdram IS42S16160G-7 --mhz 110              a controller, into out/weft_sdram.v
  weft sdram EM638325-7 --mhz 100 --data-bytes 32 -o sdram.v
"""
_MHZ = 100  # of the rates in the list


def add(parser):
    """Add the arguments of ``weft sdram``."""
    parser.add_argument("chip", metavar="CHIP", nargs="?", help="name of the chip")
    parser.add_argument("--mhz", metavar="MHZ", type=number("mhz", 1, 200), help="the clock")
    parser.add_argument(
        "--data-bytes", metavar="N", type=integer("data-bytes", 1, 1024),
        help="bytes of a beat of AXI4: a power of two, from two words on; default 16",
    )
    parser.add_argument(
        "--no-dqm", action="store_true", default=None,
        help="DQM of the chip is tied to low: each word of a write has a WRITE of its own",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", type=path("output"),
        help="the Verilog file, default out/weft_sdram.v",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.sdram import SDRAM_CHIPS

    if args.chip is None:
        for option in ("mhz", "data_bytes", "no_dqm", "output"):
            if getattr(args, option) is not None:
                raise ConfigError(f"--{option.replace('_', '-')} needs a CHIP")
        return _list(SDRAM_CHIPS.values())
    if args.chip not in SDRAM_CHIPS:
        raise ConfigError(f"CHIP must be one of {', '.join(SDRAM_CHIPS)}, not {args.chip}")
    if args.mhz is None:
        raise ConfigError("--mhz must be given: the timing of the chip depends on the clock")
    return _write(replace(SDRAM_CHIPS[args.chip], masks=not args.no_dqm), args)


def _write(chip, args):
    """Write the Verilog file."""
    from weft.cli.progress import progress
    from weft.files import write_text
    from weft.hw.export import to_verilog
    from weft.hw.sdram.ip import SdramIp
    from weft.hw.sdram.scheduler import Access

    data_bytes = 16 if args.data_bytes is None else args.data_bytes
    try:
        timing, _ = chip.timing(args.mhz), Access(chip, data_bytes=data_bytes)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    file = output_file(args.output or "out/weft_sdram.v")
    with progress() as show, show.task(f"generating a controller of {chip.name}"):
        ip = SdramIp(chip, timing, data_bytes=data_bytes)
        text = to_verilog(ip, name="weft_sdram")
    write_text(file, text)
    print(
        f"{file}: module weft_sdram, {len(text.splitlines()):,} lines; {chip.name}"
        f"{' without DQM' if args.no_dqm else ''},"
        f" {chip.size >> 20} MiB, beats of {data_bytes} bytes; linear reads at {args.mhz:g} MHz:"
        f" {chip.rate(args.mhz):.0f} MB/s"
    )
    return 0


def _list(chips):
    """Print a table of the chips."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("chip", "size", "bits", "most MHz", f"linear reads at {_MHZ} MHz"):
        table.add_column(name, justify="left" if name == "chip" else "right")
    for chip in chips:
        table.add_row(
            chip.name, f"{chip.size >> 20} MiB", str(chip.width), f"{1000 / chip.period_3:.0f}",
            f"{chip.rate(_MHZ):.0f} MB/s",
        )
    Console().print(table)
    return 0
