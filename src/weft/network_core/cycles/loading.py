"""The loader in the cycle model of lists: the reads of a load, and its end."""

from weft.network_core.addresses import join

__all__ = ["LoaderTimes"]


class LoaderTimes:
    """`weft.hw.network_core.loads.loader.ListLoader`, cycle by cycle.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    busy : bool
    read : int or None
        The first vector of the read that it requests.
    done : bool
        The last write of a load is in this cycle.
    """

    def __init__(self, config):
        self._network_core = config
        self.busy = self.done = False
        self.read: int | None = None
        self._checked: int | None = None  # the vector of the read that is checked
        self._fill = False
        self._number = self._stride = 0
        self._requests = self._takes = 0  # left

    def accept(self, load) -> None:
        """Accept a load in this cycle, after `step`; only while not ``busy``."""
        config = self._network_core
        vectors = load.word_vectors(config)
        self._fill = bool(load.fill)
        self._takes = load.words * (1 if load.fill else -(-vectors // config.read_vectors))
        self._requests = 0 if load.fill else self._takes
        self._number = join(load.source, config.banks)
        self._stride = min(vectors, config.read_vectors)
        self.busy = True

    def step(self, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        if self.read is None or accepted:
            self.read, self._checked = self._checked, None
            if self._requests:
                self._requests -= 1
                self._checked = self._number
                self._number += self._stride
        take = self.busy and (self._fill or arrived)
        self._takes -= take
        self.done = take and not self._takes
        if self.done:
            self.busy = False
