"""The SoC: python3 soc.py [simulation, board, report]; the Makefile calls it.

LiteX gives it a VexRiscv, memories, a timer and a serial port. The Weft core is a peripheral on its
bus. `simulation` writes Verilog for Verilator, `board` the bitstream of a ULX3S-85F, and `report`
prints the clocks of the bitstream.
"""

import os
import re
import sys
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore

HERE = Path(__file__).resolve().parent
CORE, OUT = HERE / "core", HERE / "out"
CLOCK = 40_000_000  # Hz
# A VexRiscv has no cache from 0x8000_0000 on.
WEFT = SoCRegion(origin=0x9000_0000, size=0x1000, cached=False)
# LiteX's BIOS is in the ROM; it starts the firmware in the main RAM.
PARTS = {
    "cpu_type": "vexriscv", "integrated_rom_size": 0x8000, "integrated_sram_size": 0x2000,
    "integrated_main_ram_size": 0x10000,
}
SERIAL = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(
        Subsignal(f"{stream}_{name}", Pins(width))
        for stream in ("source", "sink")
        for name, width in (("valid", 1), ("ready", 1), ("data", 8))
    )),
]


def add_weft(soc):
    """Add the core, and peripherals of your own; both SoCs have them."""
    sys.path.insert(0, str(CORE / "litex"))
    from weft_litex import Weft  # the module of the core's kit

    soc.weft = Weft(soc.platform)
    soc.bus.add_slave("weft", soc.weft.bus, WEFT)


class SimulatedSoc(SoCCore):
    """The SoC in a simulation: a program lies in its main RAM from the start."""

    def __init__(self):
        platform = SimPlatform("SIM", [*SERIAL])
        super().__init__(
            platform, CLOCK, uart_name="sim", integrated_main_ram_init=[0], **PARTS
        )
        self.crg = CRG(platform.request("sys_clk"))
        for option in ("NO_BUILD_TIME", "NO_DELAYS", "NO_PROMPT", "NO_CRC"):
            self.add_config(f"BIOS_{option}")
        self.add_constant("ROM_BOOT_ADDRESS", self.mem_map["main_ram"])
        add_weft(self)


def board_soc():
    """The SoC on the board. For another board, import its module from litex_boards.targets."""
    from litex_boards.targets.radiona_ulx3s import BaseSoC

    soc = BaseSoC(device="LFE5U-85F", sys_clk_freq=CLOCK, with_led_chaser=False, **PARTS)
    add_weft(soc)
    return soc


def simulation():
    """Write the SoC's Verilog, and compile its BIOS; main.cpp simulates it."""
    soc, folder = SimulatedSoc(), OUT / "simulation"
    Builder(soc, output_dir=str(folder), bios_console="lite").build(run=False)
    # The core may have DSPs of the FPGA: their models are needed, too.
    sources = [folder / "gateware" / "sim.v", *CORE.glob("*_primitives.v")]
    sources += [path for path, *_ in soc.platform.sources if path.endswith(".v")]
    names = dict.fromkeys(str(path) for path in sources)
    (folder / "sources.f").write_text("\n".join([*names, ""]), encoding="utf-8")
    return 0


def board():
    """Make the bitstream, with Yosys and nextpnr from PyPI."""
    from weft.boards.toolchain import Toolchain
    from weft.sim.cache import folder

    Toolchain(folder()).set_up()
    links = OUT / "bin"
    links.mkdir(parents=True, exist_ok=True)
    for name in ("yosys", "nextpnr-ecp5", "ecppack"):
        program = links / name
        tool = folder() / "tools" / "bin" / f"yowasp-{name}"
        program.write_text(f'#!/bin/sh\nexec "{tool}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    os.environ["PATH"] = f"{links}{os.pathsep}{os.environ['PATH']}"
    Builder(board_soc(), output_dir=str(OUT / "board"), bios_console="lite").build()
    return 0


def report():
    """Print the clocks of the bitstream, as nextpnr printed them; 0 if each is fast enough."""
    text = (OUT / "board.log").read_text(encoding="utf-8", errors="replace")
    pattern = r"Max frequency for clock +'(.*)': ([\d.]+) MHz \(\w+ at ([\d.]+) MHz\)"
    # nextpnr prints each clock after placement, and again after routing.
    clocks = {name: (float(fmax), float(goal)) for name, fmax, goal in re.findall(pattern, text)}
    for name, (fmax, goal) in clocks.items():
        print(f"{name}: {fmax} MHz, required {goal} MHz")
    return 0 if clocks and all(fmax >= goal for fmax, goal in clocks.values()) else 1


if __name__ == "__main__":
    sys.exit({"simulation": simulation, "board": board, "report": report}[sys.argv[1]]())
