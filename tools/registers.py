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
    "DMA with an address window": "`bus = \"dma\"`, `window = true`.",
    "Core for networks":
        "8 x 8 x 8, `bus = \"axi\"`. With `wishbone` or `apb` the map is the same.",
}
HEAD = """\
# Registers

The register space of an IP core. It follows from one description, `src/weft/register_map.py`
(`src/weft/network_core/register_map.py` for a network core), and so do the hardware, the C
header, the SystemRDL and the IP-XACT file. Each kit has this page for its own core. [IP
cores](ip.md) tells how to use the registers.
"""


def page() -> str:
    """The page: a map for each of `CORES`."""
    ips = (
        Ip(config=Config(), bus="axi"), Ip(config=Config(), bus="dma", window=True),
        NetworkIp(config=NETWORKS_85F.config, bus="axi"),
    )
    parts = [HEAD]
    names = "axi", "dma", "networks"
    for (title, text), ip, name in zip(CORES.items(), ips, names, strict=True):
        body = markdown(ip).partition("\n\n")[2]
        body = re.sub(r"^## (\w+) \(", rf"### \1 of {name} (", body, flags=re.M)
        parts.append(f"## {title}\n\n{text}\n\n{body}")
    return "\n".join(parts)


def main() -> int:
    """Write the page; 0."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
