"""Steps for a BF16 leaf, in runs that know nothing of each other."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Steps"]

LARGE = 1 << 20  # steps at a time


@dataclass(frozen=True)
class Steps:
    """Steps as arrays [runs, steps, slots]; the first one of a run starts or clears its sum.

    There are as many slots as the leaf has, or runs of one step in one slot: then the sums of the
    leaf take turns.

    Attributes
    ----------
    a, b : uint16
        bfloat16, as bits.
    c : uint32
        binary32, as bits: what a sum starts from with ``start``.
    en, clear, start : bool
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    en: np.ndarray
    clear: np.ndarray
    start: np.ndarray

    @classmethod
    def alone(cls, a, b, c):
        """A run of one step for each of the vectors: ``a * b + c``."""
        yes = np.broadcast_to(True, len(a))
        return cls(*(x[:, None, None] for x in (a, b, c, yes, ~yes, yes)))

    def parts(self):
        """Runs as far as they should be in memory at a time, and the number of the first."""
        runs, *run = self.a.shape
        count = max(1, LARGE // int(np.prod(run)))
        fields = vars(self).values()
        for first in range(0, runs, count):
            yield first, Steps(*(field[first : first + count] for field in fields))
