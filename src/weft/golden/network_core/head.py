"""A head of the list: it reads descriptors in order, and repeats the bodies of loops."""

import dataclasses

import numpy as np

from weft.golden.network_core.memory import ListFault
from weft.network_core.addresses import BANK_BITS, join, split
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    places,
    unpack,
)

__all__ = ["ListHead", "RESULT_BYTES", "begins_with_beat", "fits"]

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


RESULT_BYTES = 1024  # at most, of a result

_SIZES = {
    ListLoad: ("words",),
    ListJob: (
        "panel_rows", "out_height", "out_width", "columns", "tile_words", "kernel_height",
        "kernel_width", "tap_vectors", "group_tiles", "in_height", "in_width",
    ),
    ListLoop: ("times", "body"),
    ListEnd: (),
}


def begins_with_beat(config, address) -> bool:
    """Whether the vector at ``address`` is the first one of a beat of the program memory.

    True without a program memory. A step is right if all its vectors are multiples of a beat.
    """
    return not config.program_words or join(address, config.banks) % config.read_vectors == 0


def fits(config, descriptor) -> bool:
    """Whether the fields of a descriptor fit the core; otherwise the error is FIELD.

    Parameters
    ----------
    config : NetworkCoreConfig
    descriptor : ListLoad, ListJob, ListLoop or ListEnd
    """
    banks = (
        getattr(descriptor, place.name) % (1 << BANK_BITS)
        for place in places(type(descriptor)) if place.address
    )
    sizes = (getattr(descriptor, name) for name in _SIZES[type(descriptor)])
    return all(bank < config.banks for bank in banks) and all(sizes) and _limits(config, descriptor)


def _limits(config, descriptor):
    match descriptor:
        case ListLoad(source=source) if not begins_with_beat(config, source):
            return False
        case ListLoop():
            return begins_with_beat(config, descriptor.source_step)
        case ListLoad(target=LoadTarget.B, first_word=first, words=words):
            return first + words <= config.b_words
        case ListLoad(target=LoadTarget.PARAMETERS, first_word=first, words=words):
            return first + words <= config.lines
        case ListLoad(target=LoadTarget.ADD_TABLE, first_word=first, words=words):
            return first + words <= ADD_TABLE_WORDS
        case ListLoad():
            return False
        case ListJob():
            both = descriptor.add and descriptor.sums
            return descriptor.panel_rows <= config.array.rows and not both
        case ListEnd():
            return descriptor.result_bytes <= RESULT_BYTES
