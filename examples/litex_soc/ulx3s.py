"""The LiteX SoC for the ULX3S-85F: python examples/litex_soc/ulx3s.py [NETWORK ...]

It writes a bitstream with the open tools, and the firmware of each NETWORK, a TFLite file; the
default is examples/digits_cnn.tflite. The files are in build/litex_soc/ulx3s. It prints the cells
that the SoC takes, and its clock. docs/litex.md explains each step.
"""

import os
import sys
from pathlib import Path

from litex_boards.targets.radiona_ulx3s import BaseSoC
from network_files import compiled_network, write_network
from weft_soc import CHIP, CLOCK, CPU, add_weft, builder, compile_firmware, make_kit, quiet

from results import timing_is_met
from weft.boards.toolchain import Toolchain

__all__ = ["BoardSoc", "main"]

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = "yosys", "nextpnr-ecp5", "ecppack"


class BoardSoc(BaseSoC):
    """LiteX's SoC for the board, with the core."""

    def __init__(self, kit):
        super().__init__(
            device="LFE5U-85F", sys_clk_freq=CLOCK, with_led_chaser=False, l2_size=8192, **CPU
        )
        add_weft(self, kit)


def install_tools(build: Path) -> Path:
    """Install Yosys and nextpnr from PyPI; a folder with programs of the names that LiteX calls."""
    Toolchain(build).set_up()
    folder = build / "litex_soc" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        program = folder / name
        tool = build / "tools" / "bin" / f"yowasp-{name}"
        program.write_text(f'#!/bin/sh\nexec "{tool}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return folder


def main(arguments) -> int:
    """Build the bitstream and the firmware; 0 if the clock is met."""
    build = ROOT / "build"
    folder, kit = build / "litex_soc" / "ulx3s", build / "litex_soc" / "kit"
    networks = [Path(name).resolve() for name in arguments]
    networks = networks or [ROOT / "examples" / "digits_cnn.tflite"]
    codes = [compiled_network(network, CHIP) for network in networks]  # before any long work
    make_kit(kit)
    tools = install_tools(build)
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    log = folder / "build.log"
    print("synthesis, place and route", flush=True)
    with quiet(log):
        soc = BoardSoc(kit)
        builder(soc, folder).build()
    for network, code in zip(networks, codes, strict=True):
        files = folder / network.stem
        write_network(network, code, files)
        with quiet(folder / "firmware.log"):
            firmware = compile_firmware(soc, folder, kit, files)
        print(f"{network.name}: {firmware}")
    text = log.read_text(encoding="utf-8", errors="replace")
    return 0 if timing_is_met(text) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
