"""The kit's page of data formats: bytes of the streams and of the DMA descriptors."""

import re

from weft.config import Config
from weft.ip import Ip
from weft.kit.texts import text

__all__ = ["SECTIONS", "formats", "sections"]

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
