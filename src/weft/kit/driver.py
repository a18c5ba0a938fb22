"""The files of the C driver, and the header that configures them for one core."""

from collections.abc import Callable
from typing import Any, NamedTuple

from weft import commands
from weft.buses import BUSES
from weft.descriptors import write_unit
from weft.design import PerKind
from weft.geometry import memories, operands
from weft.hw.bus.fifo_ports import CAPACITY
from weft.ip import Ip, renamed
from weft.kit.folder import text
from weft.network_core.ip import NetworkIp
from weft.registers import IDENTITY, identity

__all__ = ["driver"]

RESULT_WORDS = CAPACITY // 16 * 16  # 32-bit words of results that fit the FIFO, for any bytes_out
_ANY_K = 0x7FFF_FFFF  # the largest k of a data type without a limit
_ABSENT = "{1, 1, 1, 1, 1, 1, 0}"  # the geometry of a region that a core does not have


def driver(ip: Ip | NetworkIp) -> dict[str, bytes]:
    """The files of the driver, by name."""
    files = {
        renamed(name, ip.prefix): renamed(text(file), ip.prefix)
        for name, file in _PARTS.of(ip).sources(ip).items()
    }
    files[f"{ip.prefix}_config.h"] = _configuration(ip)
    return {name: data.encode() for name, data in files.items()}


def _configuration(ip):
    """The header ``<prefix>_config.h``: the constants of the core that the driver needs."""
    macro = ip.prefix.upper()
    parts = _PARTS.of(ip)
    lines = [
        f"#define {macro}_{name} {value} /* {renamed(_MEANINGS[name], ip.prefix)} */"
        for name, value in (_identity(ip) | parts.constants(ip)).items()
    ]
    lines += parts.more(ip, macro)
    return "\n".join([
        f"/* Constants of the core {ip.name} for its driver. */",
        f"#ifndef {macro}_CONFIG_H", f"#define {macro}_CONFIG_H", "",
        f'#include "{ip.name}_regs.h"', "", *lines, "", "#endif", "",
    ])


def _identity(ip):
    words = zip(IDENTITY, identity(ip.config), strict=True)
    return {name.upper(): f"0x{word:08x}u" for name, word in words}


def _product_sources(ip):
    """The files of the driver, and the files of `weft.kit.files` that they are made from."""
    names = ["weft.h", "weft_internal.h", "weft_stream_io.h"]
    names += ["weft.c", "weft_jobs.c", "weft_pack.c"]
    names += [*["weft_panel.c"] * (not ip.has_dma), f"weft_{ip.protocol.data_path.value}.c"]
    return {name: name for name in names}


def _network_sources(_ip):
    return {f"weft.{kind}": f"weft_network.{kind}" for kind in "hc"}


def _regions(ip, macro):
    """The lines that describe where the words of each operand lie."""
    regions = [_geometry(memories(ip.array).get(region)) for region in commands.Region]
    return [
        "", f"/* Regions A, B, parameters, table, C: struct {ip.prefix}_geometry of each. */",
        f"#define {macro}_REGIONS {{" + ", ".join(regions) + "}",
    ]


def _network_constants(ip):
    config = ip.config
    return {
        "DEPTH": f"{config.array.depth}u",
        "BANKS": f"{config.banks}u", "WORDS": f"{config.words}u", "VECTORS": f"{config.vectors}u",
        "PROGRAM_WORDS": f"{config.program_words}u", "BEAT_BYTES": f"{config.beat_bytes}u",
        **({
            "REGION": f"{config.region}u",
            "REGIONS": f"{{{', '.join(f'{vectors}u' for vectors in config.regions)}}}",
        } if config.resident else {}),
    }


def _product_constants(ip):
    c = ip.array
    _, b = operands(c)
    words = min(o.words for o in operands(c))
    flags = commands.supported_flags(c)
    epilogue = commands.epilogue_flags(c)
    values = {
        "BUS_" + ip.bus.upper(): 1,
        "FIFO": int(ip.has_fifo_ports), "STREAM": int(ip.has_streams), "DMA": int(ip.has_dma),
        "COMMANDS_VERSION": f"{commands.VERSION}u",
        "ROWS": f"{c.rows}u", "COLS": f"{c.cols}u", "DEPTH": c.depth, "LANES": c.lanes,
        "BYTES_IN": c.bytes_in, "BYTES_OUT": c.bytes_out,
        "K_MAX": f"{c.data_type.max_k or _ANY_K}u", "K_PANEL": f"{words * c.depth}u",
        "BF16": int(c.data_type.is_float), "VALUE_BYTES": b.size,
        "NARROW_BYTES": c.data_type.narrow.bytes,
        "EPILOGUE_FLAGS": sum(flag for flag in epilogue),
        "HAS_TABLE": int(commands.JobFlag.TABLE in flags),
        "HAS_BIAS": int(commands.JobFlag.PRELOAD in flags),
        "HAS_WINDOW": int(ip.window),
    }
    if ip.has_fifo_ports:
        values["RESULT_WORDS"] = f"{RESULT_WORDS}u"
    if ip.has_dma:
        narrow = epilogue[0] if epilogue else commands.JobFlag(0)
        values["RESULT_ALIGN"] = f"{write_unit(c, commands.JobFlag(0))}u"
        values["NARROW_RESULT_ALIGN"] = f"{write_unit(c, narrow)}u"
    return values


_MEANINGS = {
    **{f"BUS_{name.upper()}": "bus of the core" for name in BUSES},
    "FIFO": "1: commands and results pass through FIFO ports",
    "STREAM": "1: commands and results pass through AXI4-Stream",
    "DMA": "1: the core reads operands from memory and writes results to it",
    **{name.upper(): f"register {name}" for name in IDENTITY},
    "COMMANDS_VERSION": "version in command headers",
    "ROWS": "rows of the array", "COLS": "columns of the array",
    "DEPTH": "values along K in a word",
    "BANKS": "banks of the memory", "WORDS": "words of a bank; a word is a vector of DEPTH bytes",
    "PROGRAM_WORDS": "words of a bank of the program memory; 0: no such memory",
    "BEAT_BYTES": "bytes that the core reads in a cycle",
    "REGION": "vectors from one memory to the next that software writes",
    "REGIONS": "vectors of these memories: of maps and lists, of B, of parameters, of ADD",
    "VECTORS": "vectors of the memory", "LANES": "results of a chunk",
    "BYTES_IN": "bytes of a word of commands", "BYTES_OUT": "bytes of a word of results",
    "K_MAX": "largest K of a product", "K_PANEL": "largest K that is not split",
    "BF16": "1: bfloat16 operands, 0: int8", "VALUE_BYTES": "bytes of a value of A or B",
    "NARROW_BYTES": "bytes of a result after WEFT_REQUANTIZE or WEFT_ROUND",
    "EPILOGUE_FLAGS": "supported bits of weft_product.epilogue",
    "HAS_TABLE": "1: weft_load_table() exists", "HAS_BIAS": "1: weft_product.bias is supported",
    "HAS_WINDOW": "1: weft_dma_window() exists",
    "RESULT_WORDS": "32-bit words that the result FIFO holds",
    "RESULT_ALIGN": "C and its stride are multiples of this, results of 4 bytes",
    "NARROW_RESULT_ALIGN": "the same for results of NARROW_BYTES",
}


def _geometry(operand):
    if operand is None:
        return _ABSENT
    o = operand
    numbers = o.edge, o.depth, o.size, o.group, o.segments, o.page, o.pages
    return "{" + ", ".join(map(str, numbers)) + "}"


class _Parts(NamedTuple):
    """The functions of an IP core that make the parts of its driver which differ by kind."""

    sources: Callable[[Any], dict[str, str]]
    constants: Callable[[Any], dict[str, Any]]
    more: Callable[[Any, str], list[str]]  # lines of the header, with the prefix of its macros


_PARTS = PerKind(
    product=_Parts(_product_sources, _product_constants, _regions),
    network=_Parts(_network_sources, _network_constants, lambda _ip, _macro: []),
)
