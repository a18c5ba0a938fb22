"""The execution of a list: two heads, waits, errors, the result."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from weft.golden.network_core.digits import DIGITS
from weft.golden.network_core.job import run_job
from weft.golden.network_core.memory import ListFault, MemoryArea, NetworkCoreBuffers
from weft.network_core.config import ADD_TABLE_WORDS, MAX_SOFTMAX
from weft.network_core.descriptors import (
    BANK_BITS,
    DESCRIPTOR_BYTES,
    ON_CHIP,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    join,
    places,
    split,
    unpack,
)

__all__ = [
    "LOG_BYTES", "RESULT_BYTES", "ListHead", "ListOutcome", "begins_with_beat", "fits", "run_list",
]


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
            descriptor = unpack(data, self._network_core)
        except ValueError:
            raise ListFault(ListError.OPCODE) from None
        if self._network_core.resident and isinstance(descriptor, ListLoad):
            raise ListFault(ListError.OPCODE)
        return descriptor

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
_FORMS = "add", "sums", "softmax", "lstm", *DIGITS  # of a job: at most one

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
        case ListLoad(source=source, on_chip=0) if not begins_with_beat(config, source):
            return False
        case ListLoad(packed=1) if (
            descriptor.target != LoadTarget.B or descriptor.diagonal or descriptor.fill
        ):
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
            forms = sum(getattr(descriptor, name) for name in _FORMS)
            if forms > 1 or descriptor.lstm and descriptor.partial:
                return False
            if descriptor.softmax and descriptor.columns > MAX_SOFTMAX:
                return False
            unit = descriptor.softmax or descriptor.lstm
            if descriptor.early and (descriptor.partial or unit):
                return False
            if descriptor.two_rows and not _stores_pairs(descriptor, unit):
                return False
            alone = descriptor.multiply and not descriptor.add
            return descriptor.panel_rows <= config.array.rows and not alone
        case ListEnd():
            return descriptor.result_bytes <= RESULT_BYTES


def _stores_pairs(job, unit):
    """Whether two neighbouring pixels can be stored at once: in one row, and in two banks."""
    even = job.out_width % 2 == 0 and job.panel_rows % 2 == 0
    in_two_banks = job.output_pixel_step % (1 << BANK_BITS) != 0
    return even and in_two_banks and not (job.add or job.sums or unit)


# The execution.

LOG_BYTES = 8  # of an entry of the log: two times of 32 bits


@dataclass(frozen=True)
class ListOutcome:
    """How a list ended.

    Attributes
    ----------
    error : ListError
        NONE if the list is done.
    jobs : int
        Jobs that have ended before the end or the error.
    result : bytes
        The result that END names; empty after an error.
    address : int
        Of the result.
    """

    error: ListError
    jobs: int
    result: bytes = b""
    address: int = 0


def run_list(
    config, memory, list_address: int, log_address: int, *, base: int = 0, limit: int | None = None,
    buffers: NetworkCoreBuffers | None = None, eager: bool = False, program=None,
) -> ListOutcome:
    """Execute a list as the hardware does, and change ``memory`` accordingly.

    The log is not written: it has times, which this model does not know. Its place is checked.

    Parameters
    ----------
    config : NetworkCoreConfig
    memory : writable buffer of ``config.memory_bytes`` bytes
        Vector ``number`` has the bytes from ``number * depth`` on.
    list_address, log_address : int
        Addresses (`weft.network_core.descriptors`), relative to ``base``.
    base, limit : int
        First word, and first word beyond, of each bank that the list may use; ``limit`` is
        ``config.words`` if absent.
    buffers : NetworkCoreBuffers, optional
        Weights and parameters that are resident; empty buffers if absent.
    eager : bool
        Loads are executed, and their errors found, as early as they may. Otherwise as late as they
        may: jobs come first, as for the faults that a core reports. The results of a correct list
        are the same.

    program : buffer of ``config.program_bytes`` bytes
        The program memory, if the core has one. ``list_address`` and ``log_address`` are places in
        it, and not relative to ``base``, unless ``list_address`` has the bit ON_CHIP.

    Returns
    -------
    ListOutcome

    Raises
    ------
    ValueError
        If the list does something that is not an error of lists, but has an undefined effect.
    """
    area = MemoryArea(config, memory, base, config.words if limit is None else limit)
    sources = area
    if config.program_words:
        sources = MemoryArea(config, program, 0, config.program_words, words=config.program_words)
    on_chip = list_address & ON_CHIP
    lists = area if on_chip else sources
    list_address, log_address = _kept(config, list_address), _kept(config, log_address)
    buffers = buffers or NetworkCoreBuffers(config)
    run = _Run(config, area, lists, sources, log_address, buffers)
    try:
        for address in (list_address, log_address):
            if address % (1 << BANK_BITS) >= config.banks:
                raise ListFault(ListError.FIELD)
        if not (on_chip or begins_with_beat(config, list_address)):
            raise ListFault(ListError.FIELD)
        end = run.execute(join(list_address, config.banks), eager)
        numbers = join(end.result, config.banks)
        result = area.read_columns(numbers, end.result_bytes).tobytes()
    except ListFault as fault:
        return ListOutcome(fault.error, run.jobs)
    return ListOutcome(ListError.NONE, run.jobs, result, end.result)


def _kept(config, address):
    """The bits of an address in START that the hardware keeps."""
    banks = (1 << (config.banks - 1).bit_length()) - 1
    return address & ((2 * config.address_words - 1) << BANK_BITS | banks)


class _Run:
    """The counts of one execution."""

    def __init__(self, config, area, lists, sources, log_address, buffers):
        self._network_core, self._area, self._lists, self._buffers = config, area, lists, buffers
        self._sources = sources  # of loads that are not on the chip
        self._log = join(log_address, config.banks)
        self.loads = self.jobs = 0  # executed until now
        self._sums = None  # of the job before, if it is partial
        self._before: ListJob | None = None

    def execute(self, first, eager) -> ListEnd:
        """Execute the list from vector ``first`` on, until its end."""
        config = self._network_core
        loads = ListHead(config, self._lists, first, ListLoad)
        jobs = ListHead(config, self._lists, first, ListJob)
        heads = [(loads, self._load), (jobs, self._job)]
        if config.resident:
            del heads[0]
        ends: dict[ListHead, ListEnd] = {}
        while len(ends) < len(heads):
            for head, act in heads if eager else reversed(heads):
                descriptor, waits = head.peek()
                if isinstance(descriptor, ListEnd):
                    if head is jobs:
                        self._area.read_columns(
                            join(descriptor.result, config.banks), descriptor.result_bytes
                        )
                    ends[head] = descriptor
                elif waits <= (self.jobs if head is loads else self.loads):
                    act(descriptor)
                    head.advance()
                    break
            else:
                if len(ends) < len(heads):
                    raise ListFault(ListError.DEADLOCK)
        return ends[jobs]

    def _load(self, load):
        self._buffers.load(self._area if load.on_chip else self._sources, load)
        self.loads += 1

    def _job(self, job):
        vectors = -(-LOG_BYTES // self._network_core.array.depth)
        self._lists.places(self._log + self.jobs * vectors + np.arange(vectors))
        self._sums = run_job(
            self._network_core, self._area, self._buffers, job, self._sums, self._before
        )
        self._before = job
        self.jobs += 1
