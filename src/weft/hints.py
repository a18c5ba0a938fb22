"""Text for people: hints at the end of errors, and text of files that a terminal only shows."""

import difflib
import os
import re
from pathlib import Path

__all__ = ["did_you_mean", "short", "to_install", "visible"]


_ROOT = Path(__file__).resolve().parents[2]  # top folder, if this file is in a checkout


def did_you_mean(name: str, known) -> str:
    """``"; did you mean rows?"``, with the nearest of ``known``; "" if no name is similar."""
    matches = difflib.get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean {matches[0]}?" if matches else ""


def to_install(
    *, extra: str | None = None, debian: str | None = None, site: str | None = None,
    make: str = "make setup",
) -> str:
    """The commands that install something that Weft uses, as text: ``type: make setup, or: ...``.

    In a checkout, these are ``make`` and pip on the checkout. Otherwise there is no Makefile, and
    the command names the packages of the extra, because the package "weft" of an index may be
    another one.

    Parameters
    ----------
    extra : str, optional
        The extra of ``pyproject.toml`` that contains it; ``""`` for a package that Weft always
        needs.
    debian : str, optional
        The Debian package that contains it.
    site : str, optional
        A web page with instructions, used if neither pip nor Debian can install it.
    make : str
        The command that installs it in a checkout; empty if only pip does.
    """
    commands = []
    if checkout := _in_checkout():
        if make:
            commands.append(make)
        if extra is not None:
            commands.append(f"pip install -e '.[{extra}]'" if extra else "pip install -e .")
    elif extra is not None:
        commands.append(f"pip install {' '.join(map(repr, _requirements(extra)))}")
    if debian:
        commands.append(f"sudo apt-get install {debian}")
    if not commands:
        return f"see {site}"
    folder = f", in {_ROOT}" if checkout and not _is_current(_ROOT) else ""
    return f"type{folder}: {', or: '.join(commands)}"


def _in_checkout():
    return all((_ROOT / name).is_file() for name in ("Makefile", "tools/bootstrap.py"))


def _is_current(folder):
    try:
        return Path(os.getcwd()) == folder
    except OSError:  # the current folder was deleted
        return False


def _requirements(extra):
    """The packages of an extra with their versions, from the metadata of the installed Weft."""
    from importlib import metadata  # its import takes a tenth of the time of a report

    for line in metadata.requires("weft") or []:
        package, _, marker = line.partition(";")
        match = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if (match[1] if match else "") == extra:
            yield package.strip()


def visible(text: str | bytes, keep: str = "") -> str:
    r"""``text`` with control characters as escapes: ``\x1b``, ``\n``, ``\u202e``.

    So are marks that change the direction of text, separators of lines, spaces other than the
    ordinary one, and all else that is not printed. ``keep`` has characters that stay. Bytes are
    text that is no UTF-8, as the parser of a damaged ONNX file gives them.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def short(name: str) -> str:
    """``name`` in at most 100 characters, for messages: the middle of a longer one is left out.

    Converters give a fused operator the names of all its parts; the first and the last one tell it
    apart.
    """
    return name if len(name) <= 100 else f"{name[:60]}...{name[-37:]}"
