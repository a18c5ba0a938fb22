"""Matrix products on a network core: each block of a product is a list of loads and a job.

The blocks, the counts of cycles and the contents of the buffers have classes of their own.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.design import NETWORK
from weft.host.packing import COLUMN, dense_words, parameter_lines
from weft.host.recovery import AcceleratorError
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    LoadTarget,
    split,
)
from weft.network_core.report import ListReport

__all__ = [
    "LOG_BYTES", "BlockSizes", "BufferCache", "ListCounters", "ListProducts", "block_sizes",
    "map_pitch", "whole_vectors",
]


LOG_BYTES = 8  # of an entry of the log
DESCRIPTORS = 4  # of a list: two loads, a job, the end
_MAX_ROWS = (1 << 16) - 1  # pixels of a row of a map


@dataclass(frozen=True)
class BlockSizes:
    """The largest block of a product, and its places in its part of the memory, in vectors.

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
        list is at vector 0.
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


def whole_vectors(config: NetworkCoreConfig, m: int, k: int, n: int, size: int) -> int:
    """Return the vectors with which the memory does not limit the blocks of a product.

    Arguments are as for `block_sizes`.
    """
    core, depth = config.array, config.array.depth
    all_words = -(-k // depth)
    words = _even(all_words, min(all_words, config.b_words))
    most = max(1, min(config.b_words // words, config.lines // config.row_chunks))
    tiles = _even(-(-n // core.cols), min(-(-n // core.cols), most))
    row = map_pitch(config, words) + -(-min(n, tiles * core.cols) * size // depth)
    source = tiles * (words * core.cols + config.row_chunks * config.line_vectors)
    fixed = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth) + -(-LOG_BYTES // depth)
    return fixed + max(2 * source, source + min(m, _MAX_ROWS) * row)


def block_sizes(
    config: NetworkCoreConfig, m: int, k: int, n: int, size: int, vectors: int | None = None
) -> BlockSizes:
    """Return the blocks of ``C[m, n] = A[m, k] x B[k, n]`` with results of ``size`` bytes.

    K is divided only if a tile does not fit. A block of B takes at most half of the memory, if that
    is enough for a tile. The product may use ``vectors`` of the memory; None: all.

    Raises ValueError if the memory or a buffer is too small for any product.
    """
    core, depth = config.array, config.array.depth
    log = DESCRIPTORS * -(-DESCRIPTOR_BYTES // depth)
    vectors = config.vectors if vectors is None else vectors
    space = vectors - log - -(-LOG_BYTES // depth)
    all_words, all_tiles = -(-k // depth), -(-n // core.cols)
    lines = config.row_chunks * config.line_vectors  # vectors of the parameter lines of a tile

    def output(tiles):  # vectors of a row of results
        return -(-min(n, tiles * core.cols) * size // depth)

    def source(words, tiles):
        return tiles * (words * core.cols + lines)

    def most_rows(words, tiles):
        row = map_pitch(config, words) + output(tiles)
        return min((space - source(words, tiles)) // row, m, _MAX_ROWS)

    wanted = min(core.rows, m)
    words = next((
        words for rows in (wanted, 1) for words in range(min(all_words, config.b_words), 0, -1)
        if most_rows(words, 1) >= rows
    ), 0)
    if not words or config.row_chunks > config.lines:
        raise ValueError(
            f"a network core must have a memory and buffers for a product of one tile, not"
            f" {vectors * depth} bytes and {config.lines} lines"
        )
    words = _even(all_words, words)
    fits = [
        tiles for tiles in range(1, min(all_tiles, config.b_words // words) + 1)
        if tiles * config.row_chunks <= config.lines and source(words, tiles) <= space // 2
        and most_rows(words, tiles) >= wanted
    ]
    tiles = _even(all_tiles, max(fits, default=1))
    rows = _even(m, most_rows(words, tiles))
    a = log + -(-LOG_BYTES // depth)
    first_source = a + rows * map_pitch(config, words)
    return BlockSizes(
        rows=rows, words=words, tiles=tiles, log=log, a=a, source=first_source,
        output=first_source + source(words, tiles),
    )


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
        self._places: dict[bytes, range] = {}  # by the hash of the data

    def clear(self) -> None:
        """Forget all data: they must be loaded again."""
        self._places.clear()

    def place(self, data: bytes, words: int) -> tuple[int, bool]:
        """Return the first word of ``data``, and whether they must be loaded.

        Data that are placed take ``words``, at most the size of the buffer.
        """
        key = hashlib.sha256(data).digest()
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


_RESULT_BYTES = 1024  # that DONE carries, at most
_MAX_RUN = 255  # bytes of a pixel, and its pitch, in a WRITE frame
_OFFSET = 128  # of uint8 results: the core stores them less 128


class ListProducts:
    """Computes ``A[M, K] x B[N, K].T`` of int8 matrices on a network core.

    A product that does not fit is divided into blocks; partial sums of K are added here. Words of B
    and parameter lines stay in their buffers until others need the space: they are sent again only
    then. An A that is one block is sent once for all blocks of B.

    Parameters
    ----------
    runner : NetworkDriver
        Or a model with its methods `write`, `read`, `run` and `close`.
    timeout : float
        Maximum seconds of a list.
    first, vectors : int
        The part of the memory that products use; by default all of it.

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
        If the memory or a buffer of the core is too small for any product, or the core has a
        program memory.
    """

    def __init__(
        self, runner, *, timeout: float = 60.0, first: int = 0, vectors: int | None = None
    ):
        if getattr(getattr(runner, "config", None), "kind", None) != NETWORK:
            raise TypeError(
                "runner must have a network core, as"
                f" weft.host.network_driver.NetworkDriver has, not {runner!r}"
            )
        self.config = runner.config
        if self.config.program_words:
            raise ValueError(
                "a product core must have no program memory; this one runs programs of"
                " networks only"
            )
        self._first = first
        self._vectors = self.config.vectors - first if vectors is None else vectors
        block_sizes(self.config, 1, 1, self.config.array.cols, 4, self._vectors)
        self.counters = ListCounters(self.config)
        self.runner = runner
        self._timeout = timeout
        # What the buffers and the memory contain.
        self._b, self._lines = BufferCache(self.config.b_words), BufferCache(self.config.lines)
        self._a: tuple | None = None
        self._list = b""

    def close(self) -> None:
        """Close the connection to the core."""
        self.runner.close()

    def is_whole(self, m: int, k: int, n: int) -> bool:
        """Return whether a product with int8 results needs no partial sums of K."""
        words = block_sizes(self.config, m, k, n, 1, self._vectors).words
        return words * self.config.array.depth >= k

    def sums(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sums of int8 ``a`` [M, K] and ``b`` [N, K], int32 [M, N]; they wrap.

        Raises AcceleratorError if a list fails, TransportError if the connection fails.
        """
        columns = np.zeros(len(b), COLUMN)
        total = np.zeros((len(a), len(b)), np.uint32)
        for rows, cols, raw in self._blocks(a, b, columns, dict(sums=1)):
            total[rows, cols] += raw.view("<u4")
        return total.view(np.int32)

    def results(self, a: np.ndarray, b: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """Return the scaled results of int8 ``a`` [M, K] and ``b`` [N, K], uint8 [M, N].

        ``entries`` are `weft.host.packing.ENTRY` [N]. Columns with one zero point and the same
        limits are one product. Only if the product `is_whole`. Raises as `sums`.
        """
        y = np.empty((len(a), len(b)), np.uint8)
        limits = np.stack([entries[name] for name in ("zero", "low", "high")], 1).astype(int)
        limits -= _OFFSET * (limits.max(1, keepdims=True) >= _OFFSET)
        for zero, low, high in np.unique(limits, axis=0).tolist():
            place = np.flatnonzero((limits == (zero, low, high)).all(1))
            columns = np.zeros(len(place), COLUMN)
            for name in COLUMN.names or ():
                columns[name] = entries[name][place]
            part = np.empty((len(a), len(place)), np.uint8)
            job = dict(zero=zero, low=low, high=high)
            for rows, cols, raw in self._blocks(a, b[place], columns, job):
                part[rows, cols] = raw
            y[:, place] = part
        offset = (entries["high"] >= _OFFSET) | (entries["zero"] >= _OFFSET)
        return y + (_OFFSET * offset).astype(np.uint8)

    def _blocks(self, a, b, given, fields) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Compute all blocks; yield the rows and columns of each, and its bytes [rows, bytes].

        ``given`` are the parameters of the columns, `COLUMN` [N].
        """
        (m, k), n = a.shape, len(b)
        size = 4 if "sums" in fields else 1
        blocks = block_sizes(self.config, m, k, n, size, self._vectors)
        depth, cols, words = self.config.array.depth, self.config.array.cols, blocks.words
        of_m, of_k, of_n = (
            [slice(first, min(first + step, total)) for first in range(0, total, step)]
            for total, step in ((m, blocks.rows), (k, words * depth), (n, blocks.tiles * cols))
        )
        # What is sent more than once: A for each block of N, or B for each block of M.
        fits = len(of_n) * blocks.tiles * words <= self.config.b_words
        again_a = 0 if len(of_m) == 1 else m * (len(of_n) - 1)
        again_b = 0 if fits else n * (len(of_m) - 1)
        for ks in of_k:
            packed = [self._words(b[columns, ks], given[columns]) for columns in of_n]
            pairs = [(i, j) for i in range(len(of_m)) for j in range(len(of_n))]
            if again_a < again_b:
                pairs.sort(key=lambda pair: pair[1])
            for i, j in pairs:
                try:
                    raw = self._block(a[of_m[i], ks], packed[j], blocks, fields, size)
                except BaseException:
                    self.forget()
                    raise
                yield of_m[i], of_n[j], raw

    def _words(self, b, columns):
        """Return the words of B and the parameter lines of a block, as vectors, and its columns."""
        config = self.config
        tiles = -(-len(b) // config.array.cols)
        words, pairs = dense_words(b.T[None], -(-b.shape[1] // config.array.depth), tiles, config)
        whole = np.zeros(tiles * config.array.cols, COLUMN)
        whole[: len(b)] = columns
        if config.array.cell.corrected:
            whole["bias"][: len(b)] = (columns["bias"] - pairs).astype(np.int32)
        lines = parameter_lines(whole, config)
        return words.reshape(-1, config.array.depth), lines.reshape(-1, config.array.depth), len(b)

    def _block(self, a, data, blocks: BlockSizes, fields, size):
        """Compute one block; returns its bytes [rows, bytes of a row]."""
        config, core = self.config, self.config.array
        words, lines, n = data
        (m, k), depth = a.shape, core.depth
        vectors, width = -(-k // depth), -(-n * size // depth)
        pitch = map_pitch(config, vectors)
        self._write_a(a, blocks.a, vectors, pitch)
        loads, source, places = [], blocks.source, []
        for target, cache, part, each in (
            (LoadTarget.B, self._b, words, core.cols),
            (LoadTarget.PARAMETERS, self._lines, lines, config.line_vectors),
        ):
            place, is_new = cache.place(part.tobytes(), len(part) // each)
            places.append(place)
            if is_new:
                self._write(source, part.tobytes())
                loads.append(ListLoad(
                    target=target, source=self._address(source), first_word=place,
                    words=len(part) // each,
                ))
                source += len(part)
        job = ListJob(
            cross=1, loads=len(loads), panel_rows=min(m, core.rows), out_height=1, out_width=m,
            columns=n, tile_words=vectors, kernel_height=1, kernel_width=1, tap_vectors=vectors,
            group_tiles=-(-n // core.cols), in_height=1, in_width=m, stride_y=1, stride_x=1,
            dilation_y=1, dilation_x=1, input=self._address(blocks.a),
            input_pixel_step=split(pitch, config.banks), b_word=places[0], b_step=vectors,
            parameter_line=places[1], output=self._address(blocks.output),
            output_pixel_step=split(width, config.banks), **fields,
        )
        count = m * width * depth
        end = ListEnd(
            result=job.output, result_bytes=count if count <= _RESULT_BYTES else 0
        )
        report = self._run([*loads, job, end], blocks.log)
        found = report.result or self.runner.read(job.output, count)
        self.counters.received += count
        return np.frombuffer(found, np.uint8).reshape(m, -1)[:, : n * size]

    def _write_a(self, a, first, vectors, pitch):
        """Write the rows of A to the memory, if they are not there."""
        written = first, a.shape, a.tobytes()
        if written == self._a:
            return
        self._a = None
        depth = self.config.array.depth
        if max(a.shape[1], pitch) <= _MAX_RUN:
            self._write(first, written[2], run=a.shape[1], pitch=pitch, pixels=len(a))
        else:
            whole = np.zeros((len(a), pitch * depth), np.int8)
            whole[:, : a.shape[1]] = a
            size = ((len(a) - 1) * pitch + vectors) * depth
            self._write(first, whole.tobytes()[:size])
        self._a = written

    def _run(self, descriptors, log) -> ListReport:
        """Execute a list."""
        data = b"".join(descriptor.pack() for descriptor in descriptors)
        first, log_address = self._address(0), self._address(log)
        if data != self._list:
            self._write(0, data)
            self._list = data
        report = self.runner.run(first, log_address, timeout=self._timeout)
        if report.error != ListError.NONE:
            raise AcceleratorError(f"a product: {report.problem()}")
        self.counters.add(descriptors, first, log_address, report.cycles)
        return report

    def _write(self, number, data, **form):
        """Write from vector ``number`` of the products' part on; ``form`` as for the runner."""
        self.runner.write(self._address(number), data, **form)
        self.counters.sent += len(data)

    def forget(self) -> None:
        """Send everything again: others have used the memory or the buffers."""
        self._b.clear()
        self._lines.clear()
        self._a, self._list = None, b""

    def _address(self, number):
        return split(self._first + number, self.config.banks)
