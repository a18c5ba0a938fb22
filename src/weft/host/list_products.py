"""Matrix products on a network core: each block of a product is a list of loads and a job."""

from collections.abc import Iterator

import numpy as np

from weft.design import NETWORK
from weft.host.buffer_cache import BufferCache
from weft.host.list_blocks import BlockSizes, block_sizes, map_pitch
from weft.host.list_counters import ListCounters
from weft.host.memory_words import COLUMN, dense_words, parameter_lines
from weft.host.recovery import AcceleratorError
from weft.network_core.addresses import split
from weft.network_core.descriptors import ListEnd, ListError, ListJob, ListLoad, LoadTarget
from weft.network_core.report import ListReport

__all__ = ["ListProducts"]

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
