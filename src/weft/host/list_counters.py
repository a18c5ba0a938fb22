"""The cycles of executed lists: as the core counts them, or predicted."""

from collections import Counter

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import unpack_list

__all__ = ["ListCounters"]

_MAX_UNCOUNTED = 1000  # different lists whose cycles are not predicted yet


class ListCounters:
    """Counts the lists that a network core has executed.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    lists : int
    steps : int
        Array steps of all jobs.
    sent, received : int
        Bytes that were written to the memory, and bytes of results.
    """

    def __init__(self, config: NetworkCoreConfig):
        self.lists = self.steps = self.sent = self.received = 0
        self._network_core = config
        self._cycles = 0
        self._uncounted: Counter = Counter()
        self._predicted = False

    def add(self, data: bytes, steps: int, first: int, log: int, cycles: int | None) -> None:
        """Count a list.

        Parameters
        ----------
        data : bytes
            The list.
        steps : int
            Array steps of its jobs.
        first, log : int
            The addresses of its START.
        cycles : int or None
            As the core has counted them; None if it has not.
        """
        self.lists += 1
        self.steps += steps
        if cycles is not None:
            self._cycles += cycles
            return
        self._predicted = True
        self._uncounted[data, first, log] += 1
        if len(self._uncounted) > _MAX_UNCOUNTED:
            self.cycles()

    @property
    def counted(self) -> int | None:
        """The cycles of all lists as the core has counted them; None if it has not."""
        return None if self._predicted else self._cycles

    def cycles(self) -> int:
        """Return the cycles of all lists. Predicts those that the core has not counted."""
        for (data, first, log), times in self._uncounted.items():
            found = predict_list(self._network_core, unpack_list(data), first, log)
            self._cycles += times * found.cycles
        self._uncounted.clear()
        return self._cycles
