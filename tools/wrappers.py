"""What the wrappers of IP cores take and how fast they are, each alone, on an ECP5.

    python tools/wrappers.py

Prints a table. Exit code 1 where a wrapper is larger than it should be at most.
"""

import sys
from pathlib import Path

from weft.boards.devices import DEVICES
from weft.boards.toolchain import Toolchain, describe
from weft.config import Config
from weft.hw.ip.top import Wrapper
from weft.ip import Ip

BUILD = Path(__file__).parent.parent / "build"
DEVICE = DEVICES["LFE5U-25F"]
SEEDS = range(1, 4)
# What it is, its Ip, bytes of its streams, the most LUTs that it should have; None: any.
WRAPPERS = [
    ("AXI4-Lite", {"bus": "axi"}, 4, None),
    ("AXI4-Lite", {"bus": "axi"}, 16, None),
    ("AXI4-Lite, two clocks", {"bus": "axi", "clocks": 2}, 16, None),
    ("Wishbone, classic", {"bus": "wishbone"}, 4, None),
    ("Wishbone, classic", {"bus": "wishbone"}, 16, None),
    ("Wishbone, pipelined", {"bus": "wishbone", "pipelined": True}, 4, None),
    ("AXI4-Stream", {"bus": "stream"}, 4, None),
    ("AXI4-Stream", {"bus": "stream"}, 16, None),
    ("AXI4 master", {"bus": "dma"}, 16, None),
]


def main():
    tools, good = Toolchain(BUILD), True
    tools.set_up()
    print("| wrapper | bytes a cycle | LUT | FF | RAM | fmax, best of 3 seeds |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, options, size, most in WRAPPERS:
        ip = Ip(config=Config(target="ecp5", depth=2, bytes_in=size, bytes_out=size), **options)
        design = describe(Wrapper(ip))
        netlist = tools.synthesize(design, DEVICE, BUILD / "wrappers" / f"{ip.name}-{size}")
        placed = [tools.place(netlist, DEVICE, seed, alone=True) for seed in SEEDS]
        used, fmax = placed[0].used, max(one.fmax for one in placed)
        good &= most is None or used["LUT"] <= most
        row = (name, size, used["LUT"], used["FF"], used["RAM"], f"{fmax:.0f} MHz")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        print(f"  {placed[0].slowest}", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
