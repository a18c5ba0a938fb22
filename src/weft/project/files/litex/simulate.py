"""Run a program on the simulated SoC: python3 simulate.py out/simulation/main.bin."""

import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent / "out" / "simulation"
RIGHT, WRONG = b"\x04", b"\x15"  # a program sends one of them at its end: see firmware/soc.h


def main(program, limit="5000000"):
    """Run it for at most ``limit`` cycles, and print what it sends; 0 if it ends and is right."""
    data = Path(program).read_bytes()
    words = np.frombuffer(data + bytes(-len(data) % 4), "<u4")
    text = "".join(f"{word:08x}\n" for word in words)
    (FOLDER / "gateware" / "sim_main_ram.init").write_text(text, encoding="utf-8")
    with subprocess.Popen(
        [FOLDER / "obj" / "Vsim", limit], cwd=FOLDER / "gateware", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as soc:
        while byte := soc.stdout.read(1):
            if byte in (RIGHT, WRONG):
                soc.kill()
                return 0 if byte == RIGHT else 1
            sys.stdout.buffer.write(byte.replace(b"\r", b""))
            if byte == b"\n":
                sys.stdout.flush()
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
