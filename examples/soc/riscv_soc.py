"""Compile firmware with the generated driver, and the simulation of the SoC that runs it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from weft.ip import Ip
from weft.network_core.ip import NetworkIp

__all__ = ["compile_firmware", "compile_soc"]

FOLDER = Path(__file__).resolve().parent
TARGET = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+zicsr"]
FLAGS = [
    "-O3", "-flto", "-std=c99", "-ffreestanding", "-fno-builtin", "-fno-sanitize=all", "-nostdlib",
]


def compile_firmware(folder: Path, sources: list[Path], includes: list[Path]) -> None:
    """Compile the C ``sources`` and `runtime.c` into ``firmware.hex`` in ``folder``."""
    compiler = [sys.executable, "-m", "ziglang"]
    subprocess.run([
        *compiler, "cc", *TARGET, *FLAGS, "-static", f"-Wl,-T,{FOLDER / 'link.ld'}",
        *(f"-I{include}" for include in [folder, FOLDER, *includes]), "-o", "firmware.elf",
        *map(str, [*sources, FOLDER / "runtime.c"]),
    ], cwd=folder, check=True)
    subprocess.run(
        [*compiler, "objcopy", "-O", "binary", "firmware.elf", "firmware.bin"], cwd=folder,
        check=True,
    )
    data = (folder / "firmware.bin").read_bytes()
    words = np.frombuffer(data + bytes(-len(data) % 4), "<u4")
    (folder / "firmware.hex").write_text("\n".join(f"{word:08x}" for word in words) + "\n")


def compile_soc(
    folder: Path, ip: Ip | NetworkIp, core: bytes, second: tuple[NetworkIp, bytes] | None = None,
) -> Path:
    """Compile the simulation of the SoC with Verilator; the path of its program.

    ``core`` is the Verilog of the core. The program reads ``firmware.hex`` in its working folder.
    A ``second`` core, with its Verilog, is no bus master.
    """
    import pythondata_cpu_picorv32

    (folder / "core.v").write_bytes(core + (second[1] if second else b""))
    if isinstance(ip, NetworkIp):
        is_master, beat = ip.config.program_words > 0, ip.config.beat_bytes
    else:
        is_master, beat = ip.has_dma, ip.array.bytes_in
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3",
        "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style",
        "-Wno-UNOPTFLAT", "-Wno-TIMESCALEMOD", "--top-module", "soc", "--Mdir", "obj",
        "-CFLAGS", "-O1", f"-DCORE={ip.name}", f"-DBYTES={beat}",
        *["-DDMA"] * is_master, *([f"-DCORE2={second[0].name}"] if second else []),
        str(FOLDER / "soc.v"), "core.v",
        str(Path(pythondata_cpu_picorv32.data_location) / "picorv32.v"), str(FOLDER / "main.cpp"),
    ]
    # Without this option Verilator's makefile fails to link its precompiled header.
    flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include".strip()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True,
        env={**os.environ, "MAKEFLAGS": flags},
    )
    if done.returncode:
        sys.exit(f"Verilator failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return folder / "obj" / "Vsoc"
