"""The platform of designs that use the primitives of their target."""

__all__ = ["Primitives"]


class Primitives:
    """A ``platform`` that selects the primitives of the target.

    With this platform, or with the platform of a board, MAC cells and memories instantiate the
    blocks of the Config's target. With platform None they are behavioural models, for simulators,
    which are equal to the blocks in every cycle.
    """
