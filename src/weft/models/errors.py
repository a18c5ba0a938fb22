"""The errors of networks: a file that cannot be read, a network that cannot run; and `require`."""

import re

from weft.hints import short, visible

__all__ = ["KindError", "ModelError", "UnfitError", "require"]


_LONG_WORD = re.compile(r"\S{101,}")  # `weft.hints.short` keeps 100 characters


class ModelError(ValueError):
    """A network that cannot be imported, compiled or run.

    The message names the file, the node and the rule. It is one line: names of a file are in the
    form of `weft.hints.visible`, and long ones are shortened.
    """

    def __init__(self, text: str):
        super().__init__(_LONG_WORD.sub(lambda word: short(word[0]), visible(text)))


class UnfitError(ModelError):
    """A valid network that cannot run from the memory of a network core.

    The core can compute its products one by one: `weft.host.emulated.ListTransport`.
    """


class KindError(UnfitError):
    """A network of a kind that needs a network core with another rounding, or a product core."""


def require(holds: bool, text: str) -> None:
    """Raise ModelError with ``text`` unless ``holds``."""
    if not holds:
        raise ModelError(text)
