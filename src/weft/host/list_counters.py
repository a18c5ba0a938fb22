"""The cycles of executed lists: as the core counts them, or predicted."""

from collections import Counter
from collections.abc import Sequence

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import ListJob

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

    def add(self, descriptors: Sequence, first: int, log: int, cycles: int | None) -> None:
        """Count a list, with the addresses of its START; ``cycles`` is None if not counted."""
        self.lists += 1
        self.steps += sum(self._steps(job) for job in descriptors if isinstance(job, ListJob))
        if cycles is not None:
            self._cycles += cycles
            return
        self._predicted = True
        self._uncounted[tuple(descriptors), first, log] += 1
        if len(self._uncounted) > _MAX_UNCOUNTED:
            self.cycles()

    @property
    def counted(self) -> int | None:
        """The cycles of all lists as the core has counted them; None if it has not."""
        return None if self._predicted else self._cycles

    def cycles(self) -> int:
        """Return the cycles of all lists. Predicts those that the core has not counted."""
        for arguments, times in self._uncounted.items():
            self._cycles += times * predict_list(self._network_core, *arguments).cycles
        self._uncounted.clear()
        return self._cycles

    def _steps(self, job):
        panels = -(-job.out_height * job.out_width // job.panel_rows)
        return panels * -(-job.columns // self._network_core.array.cols) * job.tile_words
