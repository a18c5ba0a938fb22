"""The error of networks: a file that cannot be read, or a network that cannot run."""

import re

from weft.visible import visible

__all__ = ["ModelError", "UnfitError", "require"]


# Exporters write names of hundreds of characters; the first and the last ones tell them apart.
_LONG = re.compile(r"(\S{60})\S{20,}(\S{37})")


class ModelError(ValueError):
    """A network that cannot be imported, compiled or run.

    The message names the file, the node and the rule. It is one line: names of a file are in the
    form of `weft.visible.visible`, and long ones are shortened.
    """

    def __init__(self, text: str):
        super().__init__(_LONG.sub(r"\1...\2", visible(text)))


class UnfitError(ModelError):
    """A valid network that cannot run from the memory of a core for networks.

    The core can compute its products one by one: `weft.host.list_transport.ListTransport`.
    """


def require(holds: bool, text: str) -> None:
    """Raise ModelError with ``text`` unless ``holds``."""
    if not holds:
        raise ModelError(text)
