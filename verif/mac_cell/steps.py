"""Steps for a BF16 MAC cell, in independent runs."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Steps"]

BATCH = 1 << 20  # steps in memory at a time


@dataclass(frozen=True)
class Steps:
    """Steps as arrays [runs, steps, slots]; the first step of a run starts or clears its sum.

    The number of slots is the MAC cell's SLOTS; or 1, for runs of one step, which then rotate
    through the sums of the cell.

    Attributes
    ----------
    a, b : uint16
        The bits of bfloat16 values.
    c : uint32
        The bits of binary32 values: the start of the sum, with ``start``.
    en : bool
        A step.
    clear : bool
        Start from +0.
    start : bool
        Start from ``c``.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    en: np.ndarray
    clear: np.ndarray
    start: np.ndarray

    @classmethod
    def single(cls, a, b, c):
        """One run of one step for each vector: ``a * b + c``."""
        ones = np.broadcast_to(True, len(a))
        return cls(*(x[:, None, None] for x in (a, b, c, ones, ~ones, ones)))

    def batches(self):
        """Runs in batches that fit in memory, each with the number of its first run."""
        runs, *run = self.a.shape
        count = max(1, BATCH // int(np.prod(run)))
        fields = vars(self).values()
        for first in range(0, runs, count):
            yield first, Steps(*(field[first : first + count] for field in fields))
