"""Documents of the register map: HTML, C header and IP-XACT from PeakRDL, and Markdown."""

import re
import tempfile
from pathlib import Path

from weft.files import write_text
from weft.ip import Ip
from weft.kit.rdl import systemrdl
from weft.network_core.ip import NetworkIp
from weft.register_map import constants, fifo_ports, registers
from weft.register_types import Register

__all__ = ["documents", "header", "markdown"]

VENDOR = LIBRARY = "weft"
_UNWANTED = ("fonts/", "launcher-", ".launcher")  # large fonts; programs that start a browser
_ACCESS = {"pulse": "write 1", "w1c": "write 1 to clear"}


def documents(ip: Ip | NetworkIp, version: str) -> dict[str, bytes]:
    """All documents of the register map, by path in the kit.

    Raises ModuleNotFoundError if PeakRDL is not installed.
    """
    from peakrdl_html import HTMLExporter
    from peakrdl_ipxact import IPXACTExporter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        top = _register_map(ip, path)
        xml, html = (path / f"{ip.name}_regs.{kind}" for kind in ("xml", "html"))
        exporter = IPXACTExporter(
            vendor=VENDOR, library=LIBRARY, version=version, xml_indent="  ", xml_newline="\n"
        )
        exporter.export(top, str(xml), component_name=ip.name)
        HTMLExporter().export(top, str(html), title=f"{ip.name}: registers")
        pages = {
            f"html/{name}": _without_date(page.read_bytes(), ip)
            for page in sorted(html.rglob("*"))
            for name in [page.relative_to(html).as_posix()]
            if page.is_file() and not name.startswith(_UNWANTED)
        }
        return {
            f"{ip.name}.rdl": systemrdl(ip).encode(),
            f"{ip.name}_regs.md": markdown(ip).encode(),
            f"{ip.name}_regs.h": _header(ip, top, path),
            xml.name: xml.read_bytes(),
            **pages,
        }


def header(ip: Ip | NetworkIp) -> bytes:
    """The C header of the register map."""
    with tempfile.TemporaryDirectory() as folder:
        return _header(ip, _register_map(ip, Path(folder)), Path(folder))


def _register_map(ip, folder):
    """The register map, elaborated by the SystemRDL compiler; it writes to ``folder``."""
    from systemrdl import RDLCompiler

    write_text(folder / "weft.rdl", systemrdl(ip))
    compiler = RDLCompiler()
    compiler.compile_file(str(folder / "weft.rdl"))
    return compiler.elaborate(ip.prefix).top


def _header(ip, top, folder):
    from peakrdl_cheader.c_standards import CStandard
    from peakrdl_cheader.exporter import CHeaderExporter

    path = folder / f"{ip.name}_regs.h"
    CHeaderExporter().export(
        top, str(path), std=CStandard.gnu99, generate_bitfields=False,
        bitfield_order_ltoh=True, reuse_typedefs=True, wide_reg_subword_size=32,
        explode_top=False, instantiate=False, inst_offset=0, testcase=False,
    )
    return path.read_bytes()


def _without_date(page: bytes, ip: Ip | NetworkIp) -> bytes:
    """The page with its build time, a key for browser caches, replaced by a hash."""
    stamp = re.search(rb"var BUILD_TS = (\d+);", page)
    return page.replace(stamp[1], str(ip.config.hash).encode()) if stamp else page


def markdown(ip: Ip | NetworkIp) -> str:
    """The register map as a Markdown page."""
    lines = [
        f"# Registers of {ip.name}", "",
        "4 KiB of 32-bit words, little-endian, with byte addresses. An access to an address that",
        "the table does not list or that is no multiple of 4, or of a kind that the table does not",
        "list, has no effect: it ends in a bus error, and sets `irq_status.access_error`.", "",
        "| address | register | access | reset value | meaning |", "|---|---|---|---|---|",
    ]
    for r in registers(ip):
        value = constants(ip).get(r.name)
        reset = "" if value is None else f"0x{value:08x}"
        lines.append(f"| 0x{r.address:03x} | `{r.name}` | {r.access} | {reset} | {r.text} |")
    for w in fifo_ports(ip):
        span = f"0x{w.address:03x}..0x{w.address + w.size - 1:03x}"
        text = f"{w.text}; every word of the range is the same port"
        lines.append(f"| {span} | `{w.name}` | {w.access} | | {text} |")
    for r in registers(ip):
        if not _is_number(r):
            text = r.text[:1].upper() + r.text[1:]
            lines += ["", f"## {r.name} (0x{r.address:03x})", "", f"{text}.", ""]
            lines += ["| bits | field | access | meaning |", "|---|---|---|---|"]
            lines += [
                f"| {_bits(f)} | `{f.name}` | {_ACCESS.get(f.access, f.access)} | {f.text} |"
                for f in r.fields
            ]
    return "\n".join(lines) + "\n"


def _is_number(register: Register) -> bool:
    """Whether the register is a single 32-bit field."""
    return register.fields[0].width == 32


def _bits(field) -> str:
    high = field.low + field.width - 1
    return f"{high}:{field.low}" if field.width > 1 else str(field.low)
