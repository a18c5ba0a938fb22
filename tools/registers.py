"""Write ``docs/registers.md``: the register maps of three IP cores, from `weft.register_map`."""

import re
import sys
from pathlib import Path

from weft.boards.designs import NETWORKS_85F
from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import markdown
from weft.network_core.ip import NetworkIp

__all__ = ["PAGE", "main", "page"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "registers.md"
CORES = {
    "Commands and results through the register space":
        "`bus = \"axi\"`. With `wishbone` or `apb` the map is the same. With `bus = \"stream\"`\n"
        "it has no FIFO registers and no FIFO ports.",
    "DMA with an address window":
        "`bus = \"dma\"`, `window = true`. The registers up to `last_job` have the addresses\n"
        "above. There are no FIFO registers and no FIFO ports, but these:",
    "Core for networks":
        "8 x 8 x 8, `bus = \"axi\"`. With `wishbone` or `apb` the map is the same. From 0x010\n"
        "on, the fields of the array have the order of the fields of a Config above; their\n"
        "names start with `array_`.",
}
HEAD = """\
# Registers

The register space of an IP core. It follows from one description, `src/weft/register_map.py`
(`src/weft/network_core/register_map.py` for a network core), and so do the hardware, the C
header, the SystemRDL and the IP-XACT file. Each kit has the whole map of its own core. [IP
cores](ip.md) tells how to use the registers.

"""
ENABLE = """
The bits of `irq_enable` are those of `irq_status`: a 1 lets the event raise `irq`.
"""


def page() -> str:
    """The page: a map for each of `CORES`, the later ones without what the texts say."""
    ips = (
        Ip(config=Config(), bus="axi"), Ip(config=Config(), bus="dma", window=True),
        NetworkIp(config=NETWORKS_85F.config, bus="axi"),
    )
    names, parts, first = ("axi", "dma", "networks"), [], set()
    for (title, text), ip, name in zip(CORES.items(), ips, names, strict=True):
        rule, table, bits = markdown(ip).split("\n\n", 3)[1:]
        known = first if name == "dma" else ()
        rows = [row for row in table.splitlines() if row not in known and "`array_" not in row]
        first |= {row for row in rows if row.startswith("| 0x")}
        bits = re.sub(r"^## irq_enable .*?(?=^## |\Z)", "", bits, flags=re.M | re.S)
        bits = re.sub(r"^## (\w+) \(", rf"### \1 of {name} (", bits, flags=re.M)
        parts += [f"\n## {title}\n\n{text}\n", *rows, f"\n{bits.rstrip()}"]
    return HEAD + f"{rule}\n{ENABLE}" + "\n".join(parts) + "\n"


def main() -> int:
    """Write the page; 0."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
