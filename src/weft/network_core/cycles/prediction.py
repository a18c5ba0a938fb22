"""The predicted cycles of a list."""

from dataclasses import dataclass

__all__ = ["ListPrediction"]


@dataclass(frozen=True)
class ListPrediction:
    """The cycles of a list, counted from its START.

    Attributes
    ----------
    jobs : tuple of (int, int)
        For each job, the cycle of its start and the cycle of its last store, as in the log.
    computed : tuple of int
        For each job, the cycle of its last array step.
    loads : tuple of (int, int)
        For each load, the cycle in which it is taken, and the cycle of its last write.
    cycles : int
        Cycles of the list.
    """

    jobs: tuple[tuple[int, int], ...]
    computed: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]
    cycles: int
