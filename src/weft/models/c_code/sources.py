"""The C files of a network: templates with their values, and the fixed files that they include."""

from collections.abc import Iterable, Mapping
from importlib import resources

from weft.c_names import identifier, prefix_problems, renamed
from weft.models.c_code.templates import DATA, LICENCE
from weft.models.errors import ModelError

__all__ = ["check_prefix", "filled_sources", "public_name"]

_WITHOUT_ARITHMETIC = _WITH_BYTES = {"net_layer.h", "net_map.h"}  # they include net_bytes.h


def check_prefix(prefix: str) -> None:
    """Raise ModelError if the prefix of a kit's driver is not valid for C code of a network."""
    for problem in prefix_problems(prefix):
        raise ModelError(problem)
    if prefix.split("_")[0] == "net":
        raise ModelError(f"prefix must not start with net, as names of the C code do, not {prefix}")


def public_name(name: str, prefix: str) -> str:
    """Return the start of all public names of a network: ``digits_cnn``, or ``mm_digits_cnn``.

    With a prefix of its own, one network for two cores links in one program.
    """
    return identifier(name) if prefix == "weft" else f"{prefix}_{identifier(name)}"


def filled_sources(
    header: str, source: str, fixed: Iterable[str], values: Mapping[str, object], prefix: str
) -> dict[str, bytes]:
    """Return all files by name.

    Parameters
    ----------
    header, source : str
        Templates of ``net.h`` and ``net.c``.
    fixed : iterable of str
        Files of `weft.models.c_code.files` that ``net_data.h`` includes.
    values : mapping of str
        For ``@key@`` in templates. ``definitions``, ``load``, ``body`` and ``after`` have names of
        the driver, too.
    prefix : str
        Of the driver.
    """
    names = sorted({*fixed})
    includes = "\n".join(f'#include "{name}"' for name in names)
    values = {"includes": includes, **values}
    if {*names} - _WITHOUT_ARITHMETIC:
        names.append("net_arithmetic.h")
    if {*names} & _WITH_BYTES:
        names.append("net_bytes.h")
    folder = resources.files("weft.models.c_code.files")
    texts = {"net.h": header, "net_data.h": DATA, "net.c": source}
    texts |= {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
    return {
        name: (LICENCE + _filled(renamed(text, prefix), values, prefix)).encode()
        for name, text in sorted(texts.items())
    }


def _filled(text, values, prefix):
    for key in ("includes", "definitions", "load", "body", "after"):
        text = text.replace(f"@{key}@", renamed(values.get(key, ""), prefix))
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text
