"""Names in generated C code: the prefix of a kit's driver, and the name of a network."""

import re
from collections.abc import Iterator

__all__ = ["identifier", "prefix_problems", "renamed"]

_PREFIX_MAX = 24  # characters
_PREFIX = re.compile(rf"(?=.{{1,{_PREFIX_MAX}}}$)[a-z][a-z0-9]*(_[a-z0-9]+)*")


def prefix_problems(prefix) -> Iterator[str]:
    """The rule that the prefix of a kit's names breaks, if it breaks it."""
    if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
        yield (
            f"prefix must be 1 to {_PREFIX_MAX} lower-case letters, digits and _, a letter"
            f" first, no _ last and no two side by side, not {prefix!r}"
        )


def renamed(source: str, prefix: str) -> str:
    """C source whose names start with ``prefix``, and whose macros start with it in capitals.

    >>> renamed("#if WEFT_DMA /* of Weft */ weft_init(weft_core)", "mm")
    '#if MM_DMA /* of Weft */ mm_init(mm_core)'
    """
    for name in ("weft", "WEFT"):
        new = prefix if name.islower() else prefix.upper()
        source = re.sub(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9])", new, source)
    return source


def identifier(name: str) -> str:
    """A C identifier of ASCII letters, digits and _ that starts with a letter.

    >>> identifier("kws (2).int8"), identifier("8bit"), identifier("...")
    ('kws_2_int8', 'net_8bit', 'net')
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return words if words[:1].isalpha() else f"net_{words}".rstrip("_")
