"""The clock of an SDRAM on a board of the tests, which its host moves."""

from dataclasses import replace

import numpy as np

from weft.sdram import SdramPhase

__all__ = ["MovedClock"]


class MovedClock:
    """The phase of a clock; words are wrong with phases other than ``right``.

    Attributes
    ----------
    now : SdramPhase
    moves : int
        Steps that were made.
    """

    def __init__(self, first: SdramPhase, right):
        self.now, self.right, self.moves = first, right, 0

    def step(self):
        """Make the clock a step later."""
        self.moves += 1
        self.now = replace(self.now, phase=(self.now.phase + 1) % self.now.steps)

    def register(self, count):
        """Bytes behind the memory."""
        return (self.now.word.to_bytes(4, "little") * -(-count // 4))[:count]

    def arrive(self, data):
        """What arrives of an array of bytes."""
        return data if self.now.phase in self.right else data ^ np.uint8(0x5A)
