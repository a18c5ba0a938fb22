"""A head of the list: it reads descriptors in order, and repeats the bodies of loops."""

import dataclasses

import numpy as np

from weft.golden.network_core.checks import fits
from weft.golden.network_core.memory import ListFault
from weft.network_core.addresses import join, split
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    unpack,
)

__all__ = ["ListHead"]

# For each field that a turn of a loop changes: the field of the loop with its step.
_STEPS = {
    ListLoad: {"source": "source_step"},
    ListJob: {"input": "input_step", "output": "output_step", "add_input": "add_step"},
}
_WAITS = {ListLoad: ("jobs", "body_jobs"), ListJob: ("loads", "body_loads")}


class ListHead:
    """Reads the descriptors of one kind, and the end, when they are asked for.

    Parameters
    ----------
    config : NetworkCoreConfig
    memory : MemoryArea
    first : int
        Number of the first vector of the list.
    kind : type
        `ListLoad` or `ListJob`.
    """

    def __init__(self, config, memory, first: int, kind: type):
        self._network_core, self._memory, self._first, self._kind = config, memory, first, kind
        self._index = 0
        self._body = 0  # index of the first descriptor that the next loop may repeat
        self._loop, self._turn = None, 0  # the loop that repeats, and its turn
        self._current = None

    def advance(self) -> None:
        """Go to the next descriptor."""
        self._current = None

    def peek(self) -> tuple:
        """The descriptor of this kind that is next, or the end; and the count that it waits for.

        The steps of its turn are added to both. The end waits for nothing: 0.

        Raises
        ------
        ListFault
            If a descriptor has an error.
        """
        while not self._current:
            descriptor = self._fetch()
            if isinstance(descriptor, ListLoop):
                self._repeat(descriptor)
                continue
            if not isinstance(descriptor, self._kind | ListEnd):
                self._index += 1
                continue
            if not fits(self._network_core, descriptor):
                raise ListFault(ListError.FIELD)
            self._index += 1
            self._current = self._take(descriptor)
        return self._current

    def _fetch(self):
        """The descriptor at the index."""
        vectors = -(-DESCRIPTOR_BYTES // self._network_core.array.depth)
        numbers = self._first + self._index * vectors + np.arange(vectors)
        data = self._memory.read(numbers).tobytes()[:DESCRIPTOR_BYTES]
        try:
            return unpack(data)
        except ValueError:
            raise ListFault(ListError.OPCODE) from None

    def _repeat(self, loop):
        """Go to the first descriptor of the body, or behind the loop."""
        if not fits(self._network_core, loop) or loop.body > self._index - self._body:
            raise ListFault(ListError.FIELD)
        self._loop = loop
        self._turn += 1
        if self._turn < loop.times:
            self._index -= loop.body
        else:
            self._index += 1
            self._turn, self._body = 0, self._index

    def _take(self, descriptor):
        """The descriptor and its count, with the steps of the turn."""
        if isinstance(descriptor, ListEnd):
            return descriptor, 0
        field, step = _WAITS[self._kind]
        waits = getattr(descriptor, field)
        if self._turn:
            waits += self._turn * getattr(self._loop, step)
            descriptor = dataclasses.replace(descriptor, **{
                name: self._moved(getattr(descriptor, name), getattr(self._loop, by))
                for name, by in _STEPS[self._kind].items()
            })
        return descriptor, waits

    def _moved(self, address, step):
        """``address`` after the steps of all turns until now."""
        banks = self._network_core.banks
        return split(join(address, banks) + self._turn * join(step, banks), banks)
