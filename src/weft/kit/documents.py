"""What PeakRDL and we make of the register space: HTML, C header, IP-XACT, Markdown."""

import re
import tempfile
from pathlib import Path

from weft.ip import Ip
from weft.kit.rdl import systemrdl
from weft.register_map import Register, fifo_ports, registers
from weft.registers import REGISTERS, describe

__all__ = ["documents", "markdown"]

VENDOR = LIBRARY = "weft"
_UNWANTED = ("fonts/", "launcher-", ".launcher")  # megabytes; programs that start a browser
_ACCESS = {"pulse": "write 1", "w1c": "write 1 to clear"}


def documents(ip: Ip, version: str) -> dict[str, bytes]:
    """All documents of the register space, by their places in the kit.

    Raises ModuleNotFoundError where PeakRDL is not installed.
    """
    from peakrdl_cheader.c_standards import CStandard
    from peakrdl_cheader.exporter import CHeaderExporter
    from peakrdl_html import HTMLExporter
    from peakrdl_ipxact import IPXACTExporter
    from systemrdl import RDLCompiler

    source = systemrdl(ip)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "weft.rdl").write_text(source, encoding="utf-8")
        compiler = RDLCompiler()
        compiler.compile_file(str(place / "weft.rdl"))
        top = compiler.elaborate(ip.prefix).top
        header, xml, html = (place / f"{ip.name}_regs.{kind}" for kind in ("h", "xml", "html"))
        CHeaderExporter().export(
            top, str(header), std=CStandard.gnu99, generate_bitfields=False,
            bitfield_order_ltoh=True, reuse_typedefs=True, wide_reg_subword_size=32,
            explode_top=False, instantiate=False, inst_offset=0, testcase=False,
        )
        exporter = IPXACTExporter(
            vendor=VENDOR, library=LIBRARY, version=version, xml_indent="  ", xml_newline="\n"
        )
        exporter.export(top, str(xml), component_name=ip.name)
        HTMLExporter().export(top, str(html), title=f"{ip.name}: registers")
        pages = {
            f"html/{name}": _timeless(path.read_bytes(), ip)
            for path in sorted(html.rglob("*"))
            for name in [path.relative_to(html).as_posix()]
            if path.is_file() and not name.startswith(_UNWANTED)
        }
        return {
            f"{ip.name}.rdl": source.encode(),
            f"{ip.name}_regs.md": markdown(ip).encode(),
            header.name: header.read_bytes(),
            xml.name: xml.read_bytes(),
            **pages,
        }


def _timeless(page: bytes, ip: Ip) -> bytes:
    """A page whose address in a browser's cache follows from the Config, and not from the clock."""
    stamp = re.search(rb"var BUILD_TS = (\d+);", page)
    return page.replace(stamp[1], str(ip.config.hash).encode()) if stamp else page


def markdown(ip: Ip) -> str:
    """The register space as a page."""
    constants = dict(zip(REGISTERS, describe(ip.config), strict=False))
    lines = [
        f"# Registers of {ip.name}", "",
        "4 KiB of 32-bit words, little-endian; addresses are of bytes. Whatever is not here, or is",
        "not accessed as it says, is refused: the bus answers an error, nothing happens, and",
        "`irq_status.access_error` is set.", "",
        "| address | register | access | reset value | meaning |", "|---|---|---|---|---|",
    ]
    for r in registers(ip):
        value = constants.get(r.name)
        known = "" if value is None else f"0x{value:08x}"
        lines.append(f"| 0x{r.address:03x} | `{r.name}` | {r.access} | {known} | {r.text} |")
    for w in fifo_ports(ip):
        place = f"0x{w.address:03x}..0x{w.address + w.size - 1:03x}"
        lines.append(f"| {place} | `{w.name}` | {w.access} | | {w.text}; all words are one |")
    for r in registers(ip):
        if not _plain(r):
            story = r.text[:1].upper() + r.text[1:]
            lines += ["", f"## {r.name} (0x{r.address:03x})", "", f"{story}.", ""]
            lines += ["| bits | field | access | meaning |", "|---|---|---|---|"]
            lines += [
                f"| {_bits(f)} | `{f.name}` | {_ACCESS.get(f.access, f.access)} | {f.text} |"
                for f in r.fields
            ]
    return "\n".join(lines) + "\n"


def _plain(register: Register) -> bool:
    """Whether it is one number."""
    return register.fields[0].width == 32


def _bits(field) -> str:
    high = field.low + field.width - 1
    return f"{high}:{field.low}" if field.width > 1 else str(field.low)
