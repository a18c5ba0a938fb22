"""Several cores at once: shared products, data-parallel maps with a ring sum, pipelines."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from weft.host.accelerator import Accelerator
from weft.host.product import Resident
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError

__all__ = ["Parallel", "ParallelError", "SharedMatrix", "even_parts"]

# Fields of a Config that change a result; the others change its time.
_RESULT_FIELDS = "dtype", "flush_subnormals", "requantize", "activation", "b_zero_point"
# Arguments of `Accelerator.matmul` with a number for each column of b on their last axis.
_OF_COLUMNS = frozenset({
    "b_zero_point", "bias", "scale", "multiplier", "shift", "zero_point", "low", "high", "c",
})
_CORE_FAILED = AcceleratorError, TransportError
_WAITING = 2  # values of a pipeline that wait for a core: one more than it needs to be busy


class ParallelError(AcceleratorError):
    """One of several cores failed, or what it computed; the message names the core."""


def even_parts(size: int, count: int) -> list[range]:
    """Return ``count`` consecutive ranges of 0..size-1; the first ``size % count`` have one more.

    Some are empty if ``size < count``.
    """
    least, more = divmod(size, count)
    ends = [n * least + min(n, more) for n in range(count + 1)]
    return [range(*pair) for pair in zip(ends, ends[1:], strict=False)]


class SharedMatrix:
    """A matrix whose columns are loaded into several cores, from `Parallel.load`.

    It is also a context manager that frees the matrix at its end.

    Attributes
    ----------
    shape : tuple of int
        (K, N).
    parts : list of Resident
        The columns in each core that has some, from core 0 on.
    owner : Parallel
    """

    def __init__(self, shape: tuple[int, int], parts: list[Resident], owner: "Parallel"):
        self.shape, self.parts, self.owner = shape, parts, owner

    def free(self) -> None:
        """Free the pages in all cores. Freeing twice has no effect."""
        for part in self.parts:
            part.free()

    def __enter__(self) -> "SharedMatrix":
        return self

    def __exit__(self, *exception) -> None:
        self.free()


class Parallel:
    """Uses several cores at once: ``Parallel([acc, acc2]).matmul(a, b)``.

    A thread drives each core. The cores may have any transports. Threads may share a `Parallel`
    and its accelerators: each product on a core is complete before the next one starts there.

    It is also a context manager that closes all cores at its end.

    Parameters
    ----------
    cores : sequence of Accelerator

    Attributes
    ----------
    cores : list of Accelerator

    Raises
    ------
    ValueError
        If there is no core, or one core is there twice.
    TypeError
        If one is no Accelerator.
    """

    def __init__(self, cores: Sequence[Accelerator]):
        self.cores = list(cores)
        if not self.cores:
            raise ValueError("cores must be 1 or more, not 0")
        for n, core in enumerate(self.cores):
            if not isinstance(core, Accelerator):
                raise TypeError(f"core {n} must be a weft.Accelerator, not {core!r}")
            if core in self.cores[:n]:
                raise ValueError(f"core {n} must be another one than core {self.cores.index(core)}")

    def __len__(self) -> int:
        return len(self.cores)

    def __enter__(self) -> "Parallel":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Close all cores after their current products have ended."""
        with ExitStack() as closing:
            for core in self.cores:
                closing.callback(core.close)

    def counters(self) -> list[dict[str, int]]:
        """Return `Accelerator.counters` of each core. ``busy`` has its cycles."""
        return self._on_cores([core.counters for core in self.cores])

    def load(self, matrix, *, cast: bool = False) -> SharedMatrix:
        """Load the columns of a matrix into the buffers of the cores, for `matmul`.

        Each core gets the same number of columns, or one less. ``cast`` is as in
        `Accelerator.load`.

        Raises
        ------
        TypeError, ValueError
            As `Accelerator.load` does; and if the cores would give different results.
        ParallelError
            If a core or its connection failed.
        """
        self._check_equal_results()
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or not matrix.size:
            raise ValueError(
                f"b must be a matrix of 1 x 1 or more to be loaded, not of shape {matrix.shape}"
            )
        loaded: dict[int, Resident] = {}

        def load(n, columns):
            try:
                loaded[n] = self.cores[n].load(
                    matrix[:, columns.start : columns.stop], cast=cast
                )
            except ValueError as error:
                raise ValueError(
                    f"columns {columns.start}..{columns.stop - 1} on {self._name(n)}: {error}"
                ) from error

        try:
            self._on_cores([partial(load, *part) for part in self._columns(matrix.shape[1])])
        except BaseException:
            for part in loaded.values():
                part.free()
            raise
        return SharedMatrix(matrix.shape, [loaded[n] for n in sorted(loaded)], self)

    def matmul(self, a, b, *, record: bool = False, **arguments):
        """Return `Accelerator.matmul` of one product, whose columns the cores share.

        Core n computes ``a @ b[..., columns of n]``; the columns are divided as `even_parts` does.
        So each result is equal to that of one core, to the bit. With fewer columns than cores, the
        last cores have nothing to do.

        Parameters
        ----------
        a : array
            [batch..., M, K] or [K]. Each core gets all of it.
        b : array or SharedMatrix
            [batch..., K, N], or loaded by `load`.
        record : bool
            Return ``(array, list of Stats)``, with one `weft.host.stats.Stats` for each core that
            has columns.
        **arguments
            All others of `Accelerator.matmul`. Those of columns have one number for all columns, or
            N on their last axis.

        Returns
        -------
        array, or (array, list of Stats)

        Raises
        ------
        TypeError, ValueError
            As `Accelerator.matmul` does; and before anything is sent, if the cores would give
            different results, or an operand or argument cannot be shared.
        ParallelError
            If a core or its connection failed. The others end their product first.
        """
        self._check_equal_results()
        if isinstance(a, Resident | SharedMatrix):
            raise TypeError("a must be an array, not loaded: all cores need it")
        parts = self._parts(b)
        size = parts[-1][1].stop
        results = self._on_cores([
            partial(core.matmul, a, part, record=record, **_of_columns(arguments, columns, size))
            for core, (part, columns) in zip(self.cores, parts, strict=False)
        ])
        if not record:
            return np.concatenate(results, axis=-1)
        return np.concatenate([y for y, _ in results], axis=-1), [stats for _, stats in results]

    def map(self, fn: Callable[[Accelerator, Any], Any], shards: Iterable) -> list:
        """Return ``[fn(core, shard) for each shard]``; the cores work at the same time.

        Shard n runs on core ``n % len(parallel)``, and the shards of a core in their order. So the
        results do not depend on the number of cores. ``fn`` is called by threads of its own.

        Raises
        ------
        TypeError
            If ``fn`` is not callable.
        ValueError
            If the cores would give different results.
        ParallelError
            If a call failed, from the error of the first such shard. The calls that run end first;
            no other one starts.
        """
        if not callable(fn):
            raise TypeError(f"fn must be callable, not {fn!r}")
        self._check_equal_results()
        work = list(shards)
        results: list = [None] * len(work)
        failed = threading.Event()

        def run(first):
            for n in range(first, len(work), len(self)):
                if failed.is_set():
                    return
                try:
                    results[n] = fn(self.cores[first], work[n])
                except Exception as error:
                    failed.set()
                    where = f"shard {n} failed on {self._name(first)}"
                    raise ParallelError(f"{where}: {error}") from error

        _together([partial(run, n) for n in range(min(len(self), len(work)))], failed.set)
        return results

    def pipeline(self, stages: Sequence[Callable[[Accelerator, Any], Any]], inputs: Iterable):
        """Return, for each input in order, ``stages[-1](core, ... stages[0](core, input))``.

        Each core has consecutive stages, divided as `even_parts` does, and computes them for one
        input while the core before it computes the next one. At most two values wait for a core.
        The thread of the first core iterates over ``inputs``. The cores may have different Configs.

        Raises
        ------
        TypeError
            If a stage is not callable.
        ValueError
            If there is no stage.
        ParallelError
            If a stage failed, from its error. The message names the stage, its core and the input,
            numbered from 0. The stages that run end first; no other one starts.
        """
        calls = list(stages)
        if not calls:
            raise ValueError("stages must be 1 or more, not 0")
        for n, stage in enumerate(calls):
            if not callable(stage):
                raise TypeError(f"stage {n} must be callable, not {stage!r}")
        blocks = even_parts(len(calls), min(len(calls), len(self)))
        line = _Line(len(blocks))
        results: list = []

        def compute(n, index, value):
            for stage in blocks[n]:
                try:
                    value = calls[stage](self.cores[n], value)
                except Exception as error:
                    where = f"stage {stage} failed on {self._name(n)} at input {index}"
                    raise ParallelError(f"{where}: {error}") from error
            return value

        def run(n):
            try:
                for index, value in line.take(n) if n else enumerate(inputs):
                    y = compute(n, index, value)
                    if n + 1 == len(blocks):
                        results.append(y)
                    elif not line.put(n + 1, (index, y)):
                        return
                line.end(n + 1)
            except BaseException:
                line.stop()
                raise

        _together([partial(run, n) for n in range(len(blocks))], line.stop)
        return results

    @staticmethod
    def reduce_scatter(shards: Sequence) -> list[np.ndarray]:
        """Return the chunks of the sum of equal arrays, as a ring adds them in FP32.

        All arrays are flattened in C order and divided into as many chunks as there are arrays, as
        `even_parts` does. Chunk n is added on its way around a ring of R arrays, which begins
        behind array n and ends with it::

            chunk n = ((shards[n + 1] + shards[n + 2]) + ...) + shards[n]     (indices modulo R)

        Each addition is one of IEEE 754 binary32, rounded to nearest even. So the sum depends on
        the order of the arrays, and on nothing else. The host adds: no core does.

        Parameters
        ----------
        shards : sequence of array
            Type float32, of one shape; array n belongs to rank n of the ring.

        Returns
        -------
        list of array
            Chunk n for each rank n; one axis, type float32.

        Raises
        ------
        TypeError, ValueError
            If there is no array, or one is not float32 or of another shape.

        Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
        workstations, J. Parallel and Distributed Computing 69 (2009).
        """
        ranks = _checked_shards(shards)
        chunks = even_parts(ranks[0].size, len(ranks))
        # What each rank holds of each chunk; a step sends a chunk from each rank to the next one.
        held = [
            [rank.reshape(-1)[c.start : c.stop] for c in chunks] for rank in ranks
        ]
        count = len(ranks)
        with np.errstate(over="ignore", invalid="ignore"):  # as IEEE 754: Inf and NaN are results
            for step in range(1, count):
                for rank in range(count):
                    chunk = (rank - step) % count
                    after = (rank + 1) % count
                    held[after][chunk] = held[rank][chunk] + held[after][chunk]
        return [held[n][n].copy() for n in range(count)]

    @staticmethod
    def all_reduce(shards: Sequence) -> np.ndarray:
        """Return the sum of equal float32 arrays, as all ranks of a ring have it at the end.

        It is `reduce_scatter`, which defines the order of the additions, and an all-gather: the
        chunks one after another, in the shape of the arrays.
        """
        chunks = Parallel.reduce_scatter(shards)
        return np.concatenate(chunks).reshape(np.shape(shards[0]))

    def _name(self, n):
        return f"core {n} of {len(self)}"

    def _columns(self, size):
        """Return ``(n, columns)`` of each core that has columns; of core 0 if there are none."""
        parts = list(enumerate(even_parts(size, len(self))))
        return [part for part in parts if part[1]] or parts[:1]

    def _parts(self, b):
        """Return ``(operand, columns)`` for each core that has columns of ``b``."""
        if isinstance(b, Resident):
            raise TypeError("b must be an array or from Parallel.load, not loaded into one core")
        if isinstance(b, SharedMatrix):
            if b.owner is not self:
                raise ValueError("b must be loaded by this Parallel, not by another")
            columns = [columns for _, columns in self._columns(b.shape[1])]
            return list(zip(b.parts, columns, strict=True))
        b = np.asarray(b)
        if b.ndim < 2:
            raise ValueError(f"b must have 2 dimensions or more to be shared, not {b.ndim}")
        return [
            (b[..., columns.start : columns.stop], columns)
            for _, columns in self._columns(b.shape[-1])
        ]

    def _check_equal_results(self):
        """Raise ValueError if two cores could give different results, or one refuses a C."""
        def traits(core):
            found = {name: getattr(core.config, name) for name in _RESULT_FIELDS}
            return {**found, "c_words > 0": core.config.c_words > 0}

        first = traits(self.cores[0])
        for n, core in enumerate(self.cores):
            for name, value in traits(core).items():
                if value != first[name]:
                    raise ValueError(
                        f"cores must have the same {name}, not {first[name]!r} on core 0 and"
                        f" {value!r} on core {n}"
                    )

    def _on_cores(self, calls):
        """Return the results of calls, at the same time; call n is of core n."""
        def call(n):
            try:
                return calls[n]()
            except _CORE_FAILED as error:
                raise ParallelError(f"{self._name(n)} failed: {error}") from error

        return _together([partial(call, n) for n in range(len(calls))])


def _together(calls, stop=lambda: None):
    """Return the results of calls, each in a thread, when all have ended.

    Raises the error of the first call that failed. ``stop`` is called if the wait is interrupted.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="weft-core") as pool:
        futures = [pool.submit(call) for call in calls]
        try:
            wait(futures)
        except BaseException:
            stop()
            raise
    return [future.result() for future in futures]


def _of_columns(arguments, columns, size):
    """Return the arguments of a product with some of ``size`` columns."""
    found = dict(arguments)
    for name in _OF_COLUMNS & arguments.keys():
        shape = np.shape(arguments[name])
        if not shape or shape[-1] == 1:
            continue
        if shape[-1] != size:
            raise ValueError(
                f"{name} must have 1 or {size} numbers on its last axis, as b has {size}"
                f" columns, not {shape[-1]}"
            )
        found[name] = np.asarray(arguments[name])[..., columns.start : columns.stop]
    return found


class _Line:
    """The values that wait between the workers of a pipeline. Worker n takes from queue n."""

    _END = object()

    def __init__(self, count):
        self._queues = [deque() for _ in range(count)]
        self._stopped = False
        self._changed = threading.Condition()

    def put(self, n: int, value) -> bool:
        """Wait for space in queue ``n`` and put a value; return False if the line has stopped."""
        with self._changed:
            queue = self._queues[n]
            self._changed.wait_for(lambda: self._stopped or len(queue) < _WAITING)
            queue.append(value)
            self._changed.notify_all()
            return not self._stopped

    def take(self, n: int) -> Iterator:
        """Yield the values of queue ``n`` until its end, or until the line has stopped."""
        queue = self._queues[n]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or queue)
                if self._stopped:
                    return
                value = queue.popleft()
                self._changed.notify_all()
            if value is self._END:
                return
            yield value

    def end(self, n: int) -> None:
        """Put the end into queue ``n``, if there is such a worker."""
        if n < len(self._queues):
            self.put(n, self._END)

    def stop(self) -> None:
        """End all waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _checked_shards(shards):
    """Return the arrays; TypeError or ValueError if they have no sum in FP32."""
    arrays = [np.asarray(shard) for shard in shards]
    if not arrays:
        raise ValueError("shards must be 1 or more, not 0")
    for n, array in enumerate(arrays):
        if array.dtype != np.float32:
            raise TypeError(f"shard {n} must be float32, not {array.dtype}")
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"shard {n} must have the shape of shard 0, {arrays[0].shape}, not {array.shape}"
            )
    return arrays
