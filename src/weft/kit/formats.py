"""The page of formats: what goes over the streams, and the descriptors of a DMA, to the byte."""

import re

from weft.config import Config
from weft.ip import Ip
from weft.kit.texts import text

__all__ = ["SECTIONS", "formats", "sections"]

# Of each page in docs/: the sections that a kit takes over, and the file of `weft.kit.files` that
# has them. ``tools/formats.py`` writes those files.
SECTIONS = {
    "interfaces.md": ("formats.md", (
        "Streams", "Operands", "Parameters and table", "Sums to start from", "Results", "Headers",
        "Order", "Abort",
    )),
    "dma.md": ("formats_dma.md", ("Descriptors", "What is refused", "Errors")),
}
_NUMBERS = (
    "dtype", "rows", "cols", "depth", "lanes", "bytes_in", "bytes_out", "a_words", "b_words",
    "c_words",
)


def formats(ip: Ip) -> str:
    """The page for a core: its numbers, and the sections that are of its bus."""
    pages = [text("formats.md"), *[text("formats_dma.md")] * (ip.bus == "dma")]
    return f"# Formats of {ip.name}\n\n{_numbers(ip.config)}\n" + "\n".join(pages)


def sections(page: str, names: tuple[str, ...]) -> str:
    """The sections of a page of Markdown with these titles, in the page's order.

    Raises ValueError where the page lacks one.
    """
    found = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"page must have the sections {', '.join(names)}, and lacks {missing[0]}")
    return "\n".join(f"## {name}\n{found[name].rstrip()}\n" for name in names)


def _numbers(config: Config) -> str:
    values = {name: getattr(config, name) for name in _NUMBERS}
    names, numbers = (" | ".join(map(str, items)) for items in (values, values.values()))
    return (
        "The fields of its Config that this page names:\n\n"
        f"| {names} |\n|{'---|' * len(values)}\n| {numbers} |\n"
    )
