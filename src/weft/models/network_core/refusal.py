"""Why a network core cannot compute an operator."""

__all__ = ["Refusal", "WrongMap"]


class Refusal(Exception):
    """An operator that the core cannot compute; the text is the reason."""


class WrongMap(Refusal):
    """A layer whose input is on the core, but not as a map that the layer can read."""
