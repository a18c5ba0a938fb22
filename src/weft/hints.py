"""What an error tells its reader to do: the nearest name, and how to install what is missing."""

import difflib
import os
import re
from importlib import metadata
from pathlib import Path

__all__ = ["did_you_mean", "to_install"]

_ROOT = Path(__file__).resolve().parents[2]  # of the checkout, where this file lies in one


def did_you_mean(name: str, known) -> str:
    """``"; did you mean rows?"``, with the nearest of ``known``; nothing where none is near."""
    near = difflib.get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def to_install(
    *, extra: str | None = None, debian: str | None = None, site: str | None = None,
    make: str = "make setup",
) -> str:
    """What to type to install something that Weft uses.

    In a checkout that is ``make``, or pip on the checkout. Elsewhere there is no Makefile, and pip
    gets the packages of the extra by their own names: an index may have another "weft".

    Parameters
    ----------
    extra : str, optional
        The extra of ``pyproject.toml`` that brings it; ``""`` for what Weft always needs.
    debian : str, optional
        The Debian package that brings it.
    site : str, optional
        A page that tells how to install it, where neither pip nor Debian does.
    make : str
        The command that brings it in a checkout.
    """
    ways = []
    if checkout := _in_checkout():
        ways.append(make)
        if extra is not None:
            ways.append(f"pip install -e '.[{extra}]'" if extra else "pip install -e .")
    elif extra is not None:
        ways.append(f"pip install {' '.join(map(repr, _requirements(extra)))}")
    if debian:
        ways.append(f"sudo apt-get install {debian}")
    if not ways:
        return f"see {site}"
    place = f", in {_ROOT}" if checkout and not _is_here(_ROOT) else ""
    return f"type{place}: {', or: '.join(ways)}"


def _in_checkout():
    return all((_ROOT / name).is_file() for name in ("Makefile", "tools/bootstrap.py"))


def _is_here(folder):
    try:
        return Path(os.getcwd()) == folder
    except OSError:  # the folder that this runs in was deleted
        return False


def _requirements(extra):
    """The packages of an extra with their versions, as the installed Weft lists them."""
    for line in metadata.requires("weft") or []:
        package, _, marker = line.partition(";")
        of = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if (of[1] if of else "") == extra:
            yield package.strip()
