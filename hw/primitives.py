"""What stands for the device that a design is built for, where it is more than simulated."""

__all__ = ["Primitives"]


class Primitives:
    """The ``platform`` of a design that is to be built of its target's own primitives.

    Elaborated with it, or with any platform of a board, leaves and memories instantiate the blocks
    of the Config's target. Elaborated with None they are behavioural twins, equal in every cycle:
    that is what simulators get.
    """
