"""Documents of a kit: its register map by PeakRDL and as Markdown, and its data formats."""

import inspect
import re
import tempfile
from pathlib import Path

from weft.buses import WORD_BYTES
from weft.config import Config
from weft.files import write_text
from weft.ip import Ip
from weft.kit.folder import text
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import KINDS, places
from weft.network_core.ip import NetworkIp
from weft.register_map import constants, fifo_ports, registers
from weft.registers import Field, FifoPort, Register

__all__ = [
    "SECTIONS", "descriptors", "documents", "formats", "header", "markdown", "sections",
    "systemrdl",
]


# SystemRDL properties of a field by its access, and whether the field has a reset value.
_RDL_ACCESS = {
    "ro": ("sw = r; hw = w;", False),
    "rw": ("sw = rw; hw = r;", True),
    "wo": ("sw = w; hw = r;", True),
    "pulse": ("sw = w; hw = r; singlepulse;", True),
    "w1c": ("sw = rw; hw = r; woclr; hwset;", True),
}


def systemrdl(ip: Ip | NetworkIp) -> str:
    """The SystemRDL text: one address map with all registers.

    The address map is named after the prefix, which becomes the name of the C struct and of the C
    macros. Constant registers, which describe the core, have their values.
    """
    values = constants(ip)
    parts = [_register(r, values.get(r.name)) for r in registers(ip)]
    parts += [_window(w) for w in fifo_ports(ip)]
    body = "\n".join(parts)
    return (
        f"// Register space of {ip.name}.\n"
        f"addrmap {ip.prefix} {{\n"
        f"    name = \"{ip.name}\";\n"
        f"    desc = \"{_quoted(_DESCRIPTION)}\";\n"
        "    default regwidth = 32;\n"
        "    default accesswidth = 32;\n\n"
        f"{body}"
        "};\n"
    )


_DESCRIPTION = (
    "4 KiB of 32-bit words. An access ends in a bus error if its address is not listed, if it"
    " writes less than a word or a read-only register, or if it reads a write-only register. Such"
    " an access has no effect and sets a bit of irq_status."
)


def _register(register: Register, constant: int | None) -> str:
    fields = "\n".join(_field(f, constant) for f in register.fields)
    return (
        "    reg {\n"
        f"        name = \"{register.name}\";\n"
        f"        desc = \"{_quoted(register.text)}\";\n"
        f"{fields}\n"
        f"    }} {register.name} @ 0x{register.address:03x};\n"
    )


def _field(field: Field, constant: int | None) -> str:
    properties, has_reset = _RDL_ACCESS[field.access]
    value = ""
    if constant is not None:
        properties, value = "sw = r; hw = na;", f" = 0x{constant:x}"
    elif has_reset:
        value = f" = 0x{field.reset:x}" if field.reset else " = 0"
    span = f"[{field.low + field.width - 1}:{field.low}]"
    text = f'desc = "{_quoted(field.text)}"; {properties}'
    return f"        field {{ {text} }} {field.name}{span}{value};"


def _window(window: FifoPort) -> str:
    """An array of identical registers."""
    properties = "sw = w; hw = r;" if window.access == "wo" else "sw = r; hw = w;"
    return (
        "    reg {\n"
        f"        name = \"{window.name}\";\n"
        f"        desc = \"{_quoted(window.text)}; every word of the range is the same port\";\n"
        f"        field {{ desc = \"{_quoted(window.text)}\"; {properties} }} word[31:0];\n"
        f"    }} {window.name}[{window.size // WORD_BYTES}] @ 0x{window.address:03x} += 4;\n"
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# Sections of pages in docs/ that go into a kit, and the file of `weft.kit.files` that holds them.
# ``tools/formats.py`` writes these files.
SECTIONS = {
    "interfaces.md": ("formats.md", (
        "Streams", "Operands", "Parameters and table", "Sums to start from", "Results", "Headers",
        "Order", "Abort",
    )),
    "network-core.md": (
        "formats_network_core.md", ("Descriptors", "Order and hazards", "Errors, abort, reset"),
    ),
    "dma.md": (
        "formats_dma.md", ("Descriptors", "Rejected descriptors", "Addresses", "Window", "Errors")
    ),
}
_NUMBERS = (
    "dtype", "rows", "cols", "depth", "lanes", "bytes_in", "bytes_out", "a_words", "b_words",
    "c_words",
)


def descriptors(config: NetworkCoreConfig) -> str:
    """The section of ``lists.md`` with the fields of all descriptors that a core knows."""
    return "## Fields\n\n" + "\n".join(_descriptor(kind, config) for kind in KINDS.values())


def _descriptor(kind, config):
    """The text of a class of descriptors, and a table of its fields."""
    text, _, attributes = inspect.getdoc(kind).partition("\nAttributes\n----------\n")
    meanings = _attributes(attributes)
    rows = ["| word | bits | field | type | meaning |\n", "|---:|---:|---|---|---|\n"]
    for place in places(kind, config):
        bits = f"{place.low + place.bits - 1}..{place.low}" if place.bits > 1 else place.low
        form, meaning = meanings[place.name]
        rows.append(f"| {place.word} | {bits} | `{place.name}` | {form} | {meaning} |\n")
    text = text.strip().replace("::\n", ":\n").replace("``", "`")
    return f"### {kind.__name__}, opcode {kind.OPCODE.value}\n\n{text}\n\n{''.join(rows)}"


def _attributes(text):
    """Type and meaning of each attribute of a docstring, by name."""
    return {
        name: (form, " ".join(meaning.replace("``", "`").split()))
        for names, form, meaning in re.findall(r"^(\S.*) : (.*)\n((?: +.*\n?)+)", text, re.M)
        for name in names.split(", ")
    }


def formats(ip: Ip) -> str:
    """The page for a core: the fields of its Config, and the sections for its bus."""
    pages = [text("formats.md"), *[text("formats_dma.md")] * (ip.has_dma)]
    return f"# Formats of {ip.name}\n\n{_numbers(ip.array)}\n" + "\n".join(pages)


def sections(page: str, names: tuple[str, ...]) -> str:
    """The sections of a Markdown page with the titles ``names``, in the order of ``names``.

    Raises ValueError if the page lacks one.
    """
    found = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"page must have the sections {', '.join(names)}, and lacks {missing[0]}")
    return "\n".join(f"## {name}\n{found[name].rstrip()}\n" for name in names)


def _numbers(config: Config) -> str:
    values = {name: getattr(config, name) for name in _NUMBERS}
    names, numbers = (" | ".join(map(str, items)) for items in (values, values.values()))
    return (
        "Fields of the Config that this page refers to:\n\n"
        f"| {names} |\n|{'---|' * len(values)}\n| {numbers} |\n"
    )


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
