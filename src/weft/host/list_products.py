"""Matrix products on a network core: each block of a product is a list of loads and a job.

The blocks, the counts of cycles and the contents of the buffers have classes of their own.
"""

import hashlib
from collections import Counter

import numpy as np

from weft.design import NETWORK
from weft.host.list_plan import (
    ListPart,
    ListPlan,
    ProductSpace,
    block_sizes,
)
from weft.host.recovery import AcceleratorError
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    ListError,
    LoadTarget,
    split,
    unpack_list,
)

__all__ = ["BufferCache", "ListCounters", "ListProducts"]


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


class BufferCache:
    """Places data in a buffer, one after the other; new data replace the oldest in their way.

    Parameters
    ----------
    size : int
        Words of the buffer.
    """

    def __init__(self, size: int):
        self._size = size
        self._next = 0
        self._places: dict[bytes, range] = {}  # by the key of the data

    def clear(self) -> None:
        """Forget all data: they must be loaded again."""
        self._places.clear()

    def place(self, key: bytes, words: int) -> tuple[int, bool]:
        """Return the first word of the data with a key, and whether they must be loaded.

        Data that are placed take ``words``, at most the size of the buffer.
        """
        if key in self._places:
            return self._places[key].start, False
        if self._next + words > self._size:
            self._next = 0
        taken = range(self._next, self._next + words)
        self._places = {
            other: place for other, place in self._places.items()
            if place.stop <= taken.start or taken.stop <= place.start
        }
        self._places[key] = taken
        self._next = taken.stop
        return taken.start, True


_MAX_RUN = 255  # bytes of a pixel, and its pitch, in a WRITE frame
_MAX_PLANNED = 1 << 27  # bytes of all plans that are kept


class ListProducts:
    """Computes ``A[M, K] x B[N, K].T`` of int8 matrices on a network core.

    A product that does not fit is divided into blocks; partial sums of K are added here. Words of B
    and parameter lines stay in their buffers until others need the space: they are sent again only
    then. An A that is one block is sent once for all blocks of B. A product is planned once: B is
    packed, and lists are made. The plan is used again for each A with as many rows.

    With a program memory, lists and what they load lie there; A and the results on the chip.

    Parameters
    ----------
    runner : NetworkDriver
        Or a model with its attributes and methods: those of
        `weft.models.network_core.runners.NetworkCoreRunner`.
    timeout : float
        Maximum seconds of a list.
    space : ProductSpace, optional
        The parts of the memories that products use; by default all of them.

    Attributes
    ----------
    runner : NetworkDriver
        Or the model. After others have used the core, everything is sent again.
    config : NetworkCoreConfig
    counters : ListCounters

    Raises
    ------
    TypeError
        If ``runner`` has no network core.
    ValueError
        If a memory or a buffer of the core is too small for any product.
    """

    def __init__(self, runner, *, timeout: float = 60.0, space: ProductSpace | None = None):
        if getattr(getattr(runner, "config", None), "kind", None) != NETWORK:
            raise TypeError(
                "runner must have a network core, as"
                f" weft.host.network_driver.NetworkDriver has, not {runner!r}"
            )
        self.config = config = runner.config
        if space is None:
            size = runner.program_bytes if config.program_words else 0
            space = ProductSpace.whole(config, size)
        self._space = space
        block_sizes(config, 1, 1, config.array.cols, 4, space)
        self.counters = ListCounters(config)
        self.runner = runner
        self._timeout = timeout
        self._plans: dict[tuple, ListPlan] = {}  # the one that was used last is the last one
        self._planned = 0  # bytes of all plans
        # Lists and what they load lie in the program memory, if there is one.
        self._write_listed = runner.write_program if config.program_words else runner.write
        # What the buffers and the memories contain.
        self._buffers = {
            LoadTarget.B: BufferCache(config.b_words),
            LoadTarget.PARAMETERS: BufferCache(config.lines),
        }
        self._a: tuple | None = None
        self._list = b""
        self._uses = runner.uses  # after the last product

    def close(self) -> None:
        """Close the connection to the core."""
        self.runner.close()

    def is_whole(self, m: int, k: int, n: int) -> bool:
        """Return whether a product with int8 results needs no partial sums of K."""
        words = block_sizes(self.config, m, k, n, 1, self._space).words
        return words * self.config.array.depth >= k

    def prepare(self, m: int, b: np.ndarray, entries: np.ndarray | None = None) -> ListPlan:
        """Return the plan of a product of ``m`` rows; `compute` takes it.

        Arguments are as for `results`; without ``entries`` the results are sums.
        """
        content = hashlib.sha256(b.tobytes())
        if entries is not None:
            content.update(entries.tobytes())
        key = m, b.shape, entries is None, content.digest()
        plan = self._plans.pop(key, None)
        if plan is None:
            plan = ListPlan(self.config, self._space, m, b, entries)
            self._planned += plan.bytes
        self._plans[key] = plan
        while self._planned > _MAX_PLANNED and len(self._plans) > 1:
            self._planned -= self._plans.pop(next(iter(self._plans))).bytes
        return plan

    def compute(self, plan: ListPlan, a: np.ndarray) -> np.ndarray:
        """Return the results of a prepared product: int32 sums, which wrap, or uint8 [M, N].

        Raises AcceleratorError if a list fails, TransportError if the connection fails.
        """
        if self.runner.uses != self._uses:
            self.forget()
        shape = plan.m, plan.shape[0]
        y = np.zeros(shape, np.uint32) if plan.sums else np.empty(shape, np.uint8)
        for part in plan.parts:
            try:
                raw = self._compute(part, a[part.rows, part.ks])
            except BaseException:
                self.forget()
                raise
            if plan.sums:
                y[part.rows, part.columns] += raw.view("<u4")
            else:
                y[part.rows, part.columns] = raw
        self._uses = self.runner.uses
        return y.view(np.int32) if plan.sums else y + plan.offset

    def sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sums of int8 ``a`` [M, K] and ``b`` [N, K], int32 [M, N]; they wrap.

        Raises as `compute`.
        """
        return self.compute(self.prepare(len(a), b), a)

    def results(self, a: np.ndarray, b: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """Return the scaled results of int8 ``a`` [M, K] and ``b`` [N, K], uint8 [M, N].

        ``entries`` are `weft.host.packing.ENTRY` [N]. Columns with one zero point and the same
        limits are one product. Only if the product `is_whole`. Raises as `compute`.
        """
        return self.compute(self.prepare(len(a), b, entries), a)

    def forget(self) -> None:
        """Send everything again: others have used the memories or the buffers."""
        for buffer in self._buffers.values():
            buffer.clear()
        self._a, self._list = None, b""

    def _compute(self, part: ListPart, a):
        """Compute one block; returns its bytes [rows, bytes of a row]."""
        self._write_a(part, a)
        source, places = part.blocks.source, []
        for loaded in part.loaded:
            place = self._buffers[loaded.target].place(loaded.key, loaded.words)
            places.append(place)
            if place[1] and self.config.resident:  # no load, so the host writes where it would
                places[-1] = place[0], False
                number = self.config.loaded_vector(loaded.target, place[0])
                self.runner.write(split(number, self.config.banks), loaded.data)
                self.counters.sent += len(loaded.data)
            elif place[1]:
                self._write_lists(source, loaded.data)
                source += len(loaded.data) // self.config.array.depth
        data = part.list_for(tuple(places))
        if data != self._list:
            self._write_lists(0, data)
            self._list = data
        first, log = (self._list_address(number) for number in (0, part.blocks.log))
        report = self.runner.run(first, log, timeout=self._timeout)
        if report.error != ListError.NONE:
            raise AcceleratorError(f"a product: {report.problem()}")
        self.counters.add(data, part.steps, first, log, report.cycles)
        found = report.result or self.runner.read(part.output, part.result_bytes)
        self.counters.received += part.result_bytes
        return np.frombuffer(found, np.uint8).reshape(len(a), -1)[:, : part.row_bytes]

    def _write_a(self, part: ListPart, a):
        """Write the rows of A to the memory, if they are not there."""
        data, number = a.tobytes(), part.blocks.a
        written = number, a.shape, data
        if written == self._a:
            return
        self._a = None
        address, form = split(self._space.first + number, self.config.banks), {}
        if max(a.shape[1], part.pitch) <= _MAX_RUN:
            form = dict(run=a.shape[1], pitch=part.pitch, pixels=len(a))
        else:
            depth = self.config.array.depth
            whole = np.zeros((len(a), part.pitch * depth), np.int8)
            whole[:, : a.shape[1]] = a
            data = whole.tobytes()[: ((len(a) - 1) * part.pitch + part.vectors) * depth]
        self.runner.write(address, data, **form)
        self.counters.sent += len(data)
        self._a = written

    def _write_lists(self, number, data):
        """Write a list or what it loads."""
        self._write_listed(self._list_address(number), data)
        self.counters.sent += len(data)

    def _list_address(self, number):
        """Return the address of a vector where lists lie."""
        return split(self._space.list_first(self.config) + number, self.config.banks)
