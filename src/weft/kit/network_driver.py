"""The files of the C driver of a core for networks, and the header that configures them."""

from weft.c_names import renamed
from weft.chip import registers
from weft.chip.ip import NetworkIp
from weft.kit.texts import text

__all__ = ["network_driver"]


def network_driver(ip: NetworkIp) -> dict[str, bytes]:
    """The files of the driver, by name."""
    files = {
        f"{ip.prefix}.{kind}": renamed(text(f"weft_network.{kind}"), ip.prefix)
        for kind in ("h", "c")
    }
    files[f"{ip.prefix}_config.h"] = _configuration(ip)
    return {name: data.encode() for name, data in files.items()}


def _configuration(ip):
    """The header ``<prefix>_config.h``: the constants of the core that the driver needs."""
    macro, chip = ip.prefix.upper(), ip.chip
    values = {
        "MAGIC": (f"0x{registers.MAGIC:08x}u", "register magic"),
        "VERSION": (f"{registers.VERSION}u", "register version"),
        "HASH": (f"0x{chip.hash:08x}u", "register hash"),
        "DEPTH": (f"{chip.core.depth}u", "bytes of a vector"),
        "BANKS": (f"{chip.banks}u", "banks of the memory"),
        "WORDS": (f"{chip.words}u", "words of a bank; a word is a vector"),
        "VECTORS": (f"{chip.vectors}u", "vectors of the memory"),
    }
    lines = [f"#define {macro}_{name} {value} /* {text} */"
             for name, (value, text) in values.items()]
    return "\n".join([
        f"/* Constants of the core {ip.name} for its driver. */",
        f"#ifndef {macro}_CONFIG_H", f"#define {macro}_CONFIG_H", "",
        f'#include "{ip.name}_regs.h"', "", *lines, "", "#endif", "",
    ])
