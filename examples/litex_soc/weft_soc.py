"""Adds the core to a LiteX SoC, and compiles the software of the SoC."""

import contextlib
import os
import shutil
import subprocess
import sys
from inspect import getfile
from pathlib import Path

from litedram.frontend.axi import LiteDRAMAXI2Native
from litex.soc.integration.builder import Builder, soc_directory
from litex.soc.integration.soc import SoCRegion

from weft.designs import design_from_toml
from weft.kit.build import build
from weft.kit.folder import write
from weft.network_core.ip import NetworkIp

__all__ = ["CHIP", "CLOCK", "CPU", "add_weft", "builder", "compile_firmware", "make_kit", "quiet"]

FOLDER = Path(__file__).resolve().parent
CHIP = design_from_toml(FOLDER / "network_core.toml")
CLOCK = 40_000_000  # Hz
# Arguments of LiteX's SoCCore. The BIOS lies in the ROM.
CPU = {"cpu_type": "vexriscv", "integrated_rom_size": 0x8000, "integrated_sram_size": 0x2000}
TRIPLE = "riscv64-unknown-elf"
FLAGS = ["-std=gnu99", "-O2", "-ffreestanding", "-fno-builtin", "-Wall", "-Wextra", "-nostdlib"]


def make_kit(folder: Path) -> None:
    """Write the IP kit of the core into a folder, and check that there is a compiler."""
    if not shutil.which(f"{TRIPLE}-gcc"):
        sys.exit(f"{TRIPLE}-gcc is missing; to install it:\n"
                 f"  apt-get install --no-install-recommends gcc-{TRIPLE}")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    write(folder, build(NetworkIp(config=CHIP, bus="axi")))


def add_weft(soc, kit: Path) -> None:
    """Connect the core of a kit to a SoC with SDRAM.

    Its registers get the addresses from 0x9000_0000 on, where the processor has no cache. Its
    master gets a port of LiteDRAM as wide as a beat.
    """
    sys.path.insert(0, str(kit / "litex"))
    from weft_litex import Weft

    soc.weft = Weft(soc.platform)
    region = SoCRegion(origin=0x9000_0000, size=0x1000, cached=False)
    soc.bus.add_slave("weft", soc.weft.bus, region)
    port = soc.sdram.crossbar.get_port(data_width=soc.weft.master.data_width)
    soc.weft_port = LiteDRAMAXI2Native(
        soc.weft.master, port, base_address=soc.bus.regions["main_ram"].origin
    )


def builder(soc, folder: Path) -> Builder:
    """LiteX's Builder: it compiles the BIOS, and writes the C headers and the Verilog."""
    return Builder(soc, output_dir=str(folder), bios_console="lite")


def compile_firmware(soc, folder: Path, kit: Path, network: Path) -> Path:
    """Compile the firmware of a network; the file with its bytes, for the start of the SDRAM.

    Parameters
    ----------
    soc : SoCCore
    folder : Path
        Of the `builder`, which has written the headers there.
    kit : Path
        The IP kit, for its driver.
    network : Path
        Folder with the C files of the network.
    """
    include = folder / "software" / "include"
    headers = [Path(soc_directory) / "software" / "include", Path(getfile(type(soc.cpu))).parent]
    options = [f"-I{path}" for path in (FOLDER, network, kit / "driver", include)]
    options += [f"-isystem{path}" for path in headers]
    options += ["-include", FOLDER / "port.h"]  # the driver's macros for the caches
    sources = [FOLDER / name for name in ("start.S", "firmware.c", "runtime.c")]
    sources += [network / "net.c", kit / "driver" / "weft.c"]
    elf, binary = network / "firmware.elf", network / "firmware.bin"
    subprocess.run([
        f"{TRIPLE}-gcc", *soc.cpu.gcc_flags.split(), *FLAGS, *options, "-Wl,--build-id=none",
        f"-Wl,-T,{FOLDER / 'link.ld'}", f"-L{include}", "-o", elf, *sources, "-lgcc",
    ], check=True)
    subprocess.run([f"{TRIPLE}-objcopy", "-O", "binary", elf, binary], check=True)
    return binary


@contextlib.contextmanager
def quiet(log: Path):
    """Write what LiteX and its programs print to a file; after an error, its end on screen."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    failed = True
    try:
        yield
        failed = False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        if failed:
            text = log.read_text(encoding="utf-8", errors="replace")
            print(f"failed; the end of {log}:", *text.splitlines()[-20:], sep="\n")
