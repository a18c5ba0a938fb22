"""The execution of a list: two heads, waits, errors, the result."""

from dataclasses import dataclass

import numpy as np

from weft.golden.network_core.head import ListHead, begins_with_beat
from weft.golden.network_core.job import run_job
from weft.golden.network_core.memory import ListFault, MemoryArea, NetworkCoreBuffers
from weft.network_core.addresses import BANK_BITS, join
from weft.network_core.descriptors import ListEnd, ListError, ListJob, ListLoad

__all__ = ["LOG_BYTES", "ListOutcome", "run_list"]

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
        Addresses (`weft.network_core.addresses`), relative to ``base``.
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
        it, and not relative to ``base``.

    Returns
    -------
    ListOutcome

    Raises
    ------
    ValueError
        If the list does something that is not an error of lists, but has an undefined effect.
    """
    area = MemoryArea(config, memory, base, config.words if limit is None else limit)
    lists = area
    if config.program_words:
        lists = MemoryArea(config, program, 0, config.program_words, words=config.program_words)
    list_address, log_address = _kept(config, list_address), _kept(config, log_address)
    run = _Run(config, area, lists, log_address, buffers or NetworkCoreBuffers(config))
    try:
        for address in (list_address, log_address):
            if address % (1 << BANK_BITS) >= config.banks:
                raise ListFault(ListError.FIELD)
        if not begins_with_beat(config, list_address):
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

    def __init__(self, config, area, lists, log_address, buffers):
        self._network_core, self._area, self._lists, self._buffers = config, area, lists, buffers
        self._log = join(log_address, config.banks)
        self.loads = self.jobs = 0  # executed until now

    def execute(self, first, eager) -> ListEnd:
        """Execute the list from vector ``first`` on, until its end."""
        config = self._network_core
        loads = ListHead(config, self._lists, first, ListLoad)
        jobs = ListHead(config, self._lists, first, ListJob)
        heads = [(loads, self._load), (jobs, self._job)]
        ends: dict[ListHead, ListEnd] = {}
        while len(ends) < 2:
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
                if len(ends) < 2:
                    raise ListFault(ListError.DEADLOCK)
        return ends[jobs]

    def _load(self, load):
        self._buffers.load(self._lists, load)
        self.loads += 1

    def _job(self, job):
        vectors = -(-LOG_BYTES // self._network_core.array.depth)
        self._lists.places(self._log + self.jobs * vectors + np.arange(vectors))
        run_job(self._network_core, self._area, self._buffers, job)
        self.jobs += 1
