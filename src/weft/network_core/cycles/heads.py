"""The heads of the list and the loader in the cycle model of lists."""

from collections.abc import Sequence
from dataclasses import replace

from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListJob,
    ListLoad,
    ListLoop,
    join,
    split,
)

__all__ = ["DescriptorTimes", "HeadTimes", "LoaderTimes"]


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
    on_chip : bool
        The reads are of the memory on the chip.
    """

    def __init__(self, config):
        self._network_core = config
        self.busy = self.done = False
        self.on_chip = not config.program_words
        self.read: int | None = None
        self._checked: int | None = None  # the vector of the read that is checked
        self._fill = False
        self._number = self._stride = 0
        self._requests = self._takes = 0  # left

    def accept(self, load) -> None:
        """Accept a load in this cycle, after `step`; only while not ``busy``."""
        config = self._network_core
        self._fill = bool(load.fill)
        self._requests = load.reads(config)
        self._takes = self._requests or load.words
        self._number = join(load.source, config.banks)
        self._stride = load.read_vectors(config)
        self.on_chip = bool(load.on_chip or not config.program_words)
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


class DescriptorTimes:
    """`weft.hw.network_core.lists.descriptor_reader.DescriptorReader`, cycle by cycle.

    Parameters
    ----------
    config : NetworkCoreConfig
    first : int
        Number of the first vector of the list.

    Attributes
    ----------
    busy : bool
    read : int or None
        The first vector of the read that it requests.
    done : bool
        The descriptor has been read and checked.
    """

    def __init__(self, config, first: int):
        self._first = first
        self._vectors = -(-DESCRIPTOR_BYTES // config.array.depth)
        self._part = min(config.read_vectors, self._vectors)
        self._parts = self._vectors // self._part
        self.busy = self.done = False
        self.read: int | None = None
        self._number = 0
        self._left = self._arriving = 0
        self._checked = 0  # cycles until ``done``

    def start(self, index: int) -> None:
        """Read a descriptor from the next cycle on; after `step`, while not ``busy``."""
        self._number = self._first + index * self._vectors
        self._left = self._arriving = self._parts
        self.busy = True

    def step(self, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        if self.done:
            self.busy = self.done = False
        if self._checked:
            self._checked -= 1
            self.done = not self._checked
        if self.read is None or accepted:
            self.read = None
            if self._left:
                self._left -= 1
                self.read = self._number
                self._number += self._part
        if arrived:
            self._arriving -= 1
            if not self._arriving:
                self._checked = 2  # the part is kept; its unused bits are checked


_STEPS = {
    ListLoad: {"source": "source_step"},
    ListJob: {"input": "input_step", "output": "output_step", "add_input": "add_step"},
}
_WAITS = {ListLoad: ("jobs", "body_jobs"), ListJob: ("loads", "body_loads")}


class HeadTimes:
    """`weft.hw.network_core.lists.reader_head.ReaderHead`, cycle by cycle; the list has no error.

    Parameters
    ----------
    config : NetworkCoreConfig
    descriptors : sequence
    kind : type
        `ListLoad` or `ListJob`.

    Attributes
    ----------
    state : str
        "fetch", "faults", "check", "ready", "back", "result" or "end".
    index : int
        Of the descriptor that it reads or holds.
    satisfied : bool
        The count that the next descriptor waits for was reached in the cycle before.
    """

    def __init__(self, config, descriptors: Sequence, kind: type):
        self._network_core, self._descriptors, self._kind = config, descriptors, kind
        self.state, self.index, self.satisfied = "fetch", 0, False
        self._turn, self._loop = 0, ListLoop()
        self._count = 0

    @property
    def next(self):
        """The descriptor that it holds, with the steps of its turn."""
        banks = self._network_core.banks
        descriptor = self._descriptors[self.index]
        return descriptor if not self._turn else replace(descriptor, **{
            name: split(
                join(getattr(descriptor, name), banks)
                + self._turn * join(getattr(self._loop, by), banks), banks
            ) for name, by in _STEPS[self._kind].items()
        })

    def _waits(self):
        field, by = _WAITS[self._kind]
        count = getattr(self._descriptors[self.index], field)
        return count + self._turn * getattr(self._loop, by)

    def step(self, fetched: bool, take: bool, counted: int) -> None:
        """A cycle: whether the descriptor has been read, or is taken; the count of the others."""
        match self.state:
            case "fetch" if fetched:
                self.state = "faults"
            case "faults":
                self.state = "check"
            case "check":
                self._check()
            case "ready" if take:
                self.state, self.index = "fetch", self.index + 1
            case "back":
                self._count -= 1
                if not self._count:
                    self.state = "fetch"
            case "result":
                if not self._count:
                    self.state = "end"
                self._count = max(0, self._count - self._network_core.array.depth)
        self.satisfied = self.state == "ready" and counted >= self._waits()

    def _check(self):
        descriptor = self._descriptors[self.index]
        if isinstance(descriptor, self._kind):
            self.state = "ready"
        elif isinstance(descriptor, ListLoop):
            self._turn += 1
            if self._turn < descriptor.times:
                self.state, self._count, self._loop = "back", descriptor.body + 1, descriptor
                self.index -= descriptor.body
            else:
                self.state, self._turn = "fetch", 0
                self.index += 1
        elif isinstance(descriptor, ListEnd):
            self.state = "end"
            if self._kind is ListJob:
                self.state, self._count = "result", descriptor.result_bytes
        else:
            self.state = "fetch"
            self.index += 1
