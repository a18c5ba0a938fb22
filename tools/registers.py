"""Write ``docs/registers.md``: the register maps of two IP cores, from `weft.register_map`."""

import re
import sys
from pathlib import Path

from weft.config import Config
from weft.ip import Ip
from weft.kit.documents import markdown

__all__ = ["PAGE", "main", "page"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "registers.md"
CORES = {
    "Commands and results through the register space":
        "`bus = \"axi\"`. With `wishbone` or `apb` the map is the same. With `bus = \"stream\"`\n"
        "it has no FIFO registers and no FIFO ports.",
    "DMA with an address window": "`bus = \"dma\"`, `window = true`.",
}
HEAD = """\
# Registers

The register space of an IP core. It follows from one description, `src/weft/register_map.py`, and
so do the hardware, the C header, the SystemRDL and the IP-XACT file. Each kit has this page for its
own core. [IP cores](ip.md) tells how to use the registers.
"""


def page() -> str:
    """The page: a map for each of `CORES`."""
    ips = Ip(config=Config(), bus="axi"), Ip(config=Config(), bus="dma", window=True)
    parts = [HEAD]
    for (title, text), ip in zip(CORES.items(), ips, strict=True):
        body = markdown(ip).partition("\n\n")[2]
        body = re.sub(r"^## (\w+) \(", rf"### \1 of {ip.bus} (", body, flags=re.M)
        parts.append(f"## {title}\n\n{text}\n\n{body}")
    return "\n".join(parts)


def main() -> int:
    """Write the page; 0."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
