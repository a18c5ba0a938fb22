"""Matrix products on a network core: each block of a product is a list of loads and a job."""

import hashlib
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from weft.design import NETWORK
from weft.host.list_plan import ListPart, ListPlan
from weft.host.recovery import AcceleratorError
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListError,
    LoadTarget,
    split,
    unpack_list,
)

__all__ = [
    "LOG_BYTES", "BlockSizes", "BufferCache", "ListCounters", "ListProducts", "ProductSpace",
    "block_sizes", "map_pitch", "whole_space",
]


LOG_BYTES = 8  # of an entry of the log
DESCRIPTORS = 4  # of a list: two loads, a job, the end
_MAX_ROWS = (1 << 16) - 1  # pixels of a row of a map


@dataclass(frozen=True)
class ProductSpace:
    """The parts of the memories of a network core that products use, in vectors.

    Attributes
    ----------
    first, vectors : int
        First vector in the memory on the chip, and vectors. A and the results lie there; without a
        program memory all the rest, too.
    program_first, program_vectors : int
        Of the program memory: for lists, their log, and what they load. 0 without one.
    """

    first: int
    vectors: int
    program_first: int = 0
    program_vectors: int = 0

    @classmethod
    def whole(cls, config: NetworkCoreConfig, program_bytes: int | None = None) -> "ProductSpace":
        """Return all of both memories; a program memory may have fewer bytes than the core allows.
        """
        size = config.program_bytes if program_bytes is None else program_bytes
        return cls(0, config.vectors, 0, size // config.array.depth)

    def list_first(self, config: NetworkCoreConfig) -> int:
        """Return the first vector of the part with the lists."""
        return self.program_first if config.program_words else self.first


@dataclass(frozen=True)
class BlockSizes:
    """The largest block of a product, and its places in the `ProductSpace`, in vectors.

    Attributes
    ----------
    rows : int
        Rows of A.
    words : int
        Vectors of K.
    tiles : int
        Tiles of N.
    log, a, source, output : int
        First vectors of the log, of the rows of A, of what the loads read, and of the results. The
        list is at vector 0. List, log and source lie in the program memory, if there is one.
    """

    rows: int
    words: int
    tiles: int
    log: int
    a: int
    source: int
    output: int


def map_pitch(config: NetworkCoreConfig, vectors: int) -> int:
    """Return the vectors from row to row of A: neighbours lie in different banks."""
    pitch = vectors
    while config.array.rows > 1 and math.gcd(pitch, config.banks) > 1:
        pitch += 1
    return pitch


def whole_space(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int
) -> tuple[int, int]:
    """Return the vectors with which the memories do not limit the blocks of a product.

    They are ``vectors`` and ``program_vectors`` of a `ProductSpace`. Arguments are as for
    `block_sizes`.
    """
    core, depth = config.array, config.array.depth
    all_words = -(-k // depth)
    words = _even(all_words, min(all_words, config.b_words))
    most = max(1, min(config.b_words // words, config.lines // config.row_chunks))
    tiles = _even(-(-n // core.cols), min(-(-n // core.cols), most))
    row = map_pitch(config, words) + -(-min(n, tiles * core.cols) * size // depth)
    source = tiles * (words * core.cols + config.row_chunks * config.line_vectors)
    maps = min(m, _MAX_ROWS) * row
    if config.program_words:
        return maps, _fixed(config) + source
    return _fixed(config) + max(2 * source, source + maps), 0


def block_sizes(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int, space: ProductSpace | None = None
) -> BlockSizes:
    """Return the blocks of ``C[m, n] = A[m, k] x B[k, n]`` with results of ``size`` bytes.

    K is divided only if a tile does not fit. Beside A, a block of B takes at most half of the
    memory, if that is enough for a tile. Without a ``space`` the product may use all.

    Raises ValueError if a memory or a buffer is too small for any product.
    """
    core, depth = config.array, config.array.depth
    space = space or ProductSpace.whole(config)
    log, fixed = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth), _fixed(config)
    in_program = config.program_words > 0
    for_maps = space.vectors if in_program else space.vectors - fixed
    most_source = space.program_vectors - fixed if in_program else for_maps // 2
    all_words, all_tiles = -(-k // depth), -(-n // core.cols)
    lines = config.row_chunks * config.line_vectors  # vectors of the parameter lines of a tile

    def output(tiles):  # vectors of a row of results
        return -(-min(n, tiles * core.cols) * size // depth)

    def source(words, tiles):
        return tiles * (words * core.cols + lines)

    def most_rows(words, tiles):
        row, taken = map_pitch(config, words) + output(tiles), source(words, tiles)
        if not in_program:
            return min((for_maps - taken) // row, m, _MAX_ROWS)
        return min(for_maps // row, m, _MAX_ROWS) if taken <= most_source else 0

    wanted = min(core.rows, m)
    words = next((
        words for rows in (wanted, 1) for words in range(min(all_words, config.b_words), 0, -1)
        if most_rows(words, 1) >= rows
    ), 0)
    if not words or config.row_chunks > config.lines:
        program = f", {space.program_vectors * depth} bytes of program memory" * in_program
        raise ValueError(
            f"a network core must have a memory and buffers for a product of one tile, not"
            f" {space.vectors * depth} bytes{program} and {config.lines} lines"
        )
    words = _even(all_words, words)
    fits = [
        tiles for tiles in range(1, min(all_tiles, config.b_words // words) + 1)
        if tiles * config.row_chunks <= config.lines and source(words, tiles) <= most_source
        and most_rows(words, tiles) >= wanted
    ]
    tiles = _even(all_tiles, max(fits, default=1))
    rows = _even(m, most_rows(words, tiles))
    maps = rows * map_pitch(config, words)
    if in_program:
        return BlockSizes(
            rows=rows, words=words, tiles=tiles, log=log, a=0, source=fixed, output=maps
        )
    first_source = fixed + maps
    return BlockSizes(
        rows=rows, words=words, tiles=tiles, log=log, a=fixed, source=first_source,
        output=first_source + source(words, tiles),
    )


def _fixed(config):
    """Return the vectors of a list and its log; what follows in a program memory begins a beat."""
    depth = config.array.depth
    vectors = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth) + -(-LOG_BYTES // depth)
    return vectors + (-vectors % config.read_vectors if config.program_words else 0)


def _even(total, most):
    """Return the size of blocks of at most ``most``, as even as possible."""
    return -(-total // -(-total // most))


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
        `weft.models.network_core.session.NetworkCoreRunner`.
    timeout : float
        Maximum seconds of a list.
    space : ProductSpace, optional
        The parts of the memories that products use; by default all of them.

    Attributes
    ----------
    runner : NetworkDriver
        Or the model. Others must not use the core meanwhile.
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
            if place[1]:
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
