"""Runs one step of a program: on the core, or on the host."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.commands import JobFlag
from weft.golden import matmul
from weft.host.accelerator import Accelerator
from weft.host.product_stream import Setup
from weft.host.stats import Stats, sum_stats
from weft.models import kernels
from weft.models.arithmetic import FloatFinish, core_parts, host_operand
from weft.models.work import CoreWork, HostProduct, HostWork, ListProduct, RecurrentWork

__all__ = [
    "CoreRun", "HostProductRun", "InferenceOutcome", "KernelRun", "RecurrentRun", "host_run",
]


@dataclass(frozen=True)
class InferenceOutcome:
    """What a step computed, and its cost.

    Attributes
    ----------
    outputs : list of array
        Each [inferences, *shape of the tensor], or of a shape with as many values.
    stats : Stats or None
        Counters of the core, if they were asked for.
    core_seconds : float
        Seconds from the end of packing the operands to the last result from the core, with the
        connection; 0 if the host computes the step.
    """

    outputs: list[np.ndarray]
    stats: Stats | None = None
    core_seconds: float = 0.0


_MAX_BYTES = 1 << 26  # of commands and results in one stream


class CoreRun:
    """Runs a step on the core.

    Parameters
    ----------
    work : CoreWork
    accelerator : Accelerator
    setup : Setup
        Resident weights of the program.
    macs : int
        Of one inference.
    after : list of (Load, bytes)
        Loads that follow the step's own jobs: weights of a later step (`CoreWork.early`).
    """

    def __init__(self, work: CoreWork, accelerator: Accelerator, setup: Setup, macs: int, after):
        self._work = work
        self._accelerator = accelerator
        self._setup = setup
        self._macs = macs
        self._after = after
        self._streams = {1: work.stream(1, after)}  # by the number of inferences

    def __call__(self, values: list, inferences: int, record: bool) -> InferenceOutcome:
        """Run the step; ``values`` are x and, if it is a tensor, b, each [inferences, ...].

        With ``record``, the outcome has the counters of the core.

        All inferences are one stream of commands, unless it would be too large.
        """
        first = self._streams[1]
        limit = max(1, _MAX_BYTES // (first.bytes_in + first.bytes_out))
        if inferences <= limit:
            return self._run(values, inferences, record)
        parts = []
        for start in range(0, inferences, limit):
            part = [value[start : start + limit] for value in values]
            parts.append(self._run(part, len(part[0]), record))
        return InferenceOutcome(
            [np.concatenate(outputs) for outputs in zip(*(p.outputs for p in parts), strict=True)],
            sum_stats([p.stats for p in parts]) if record else None,
            sum(p.core_seconds for p in parts),
        )

    def _run(self, values, inferences, record):
        if inferences not in self._streams:
            # A stream takes memory: only that of one inference and that of the latest batch stay.
            stream = self._work.stream(inferences, self._after)
            self._streams = {1: self._streams[1], inferences: stream}
        stream = self._streams[inferences]
        begin = 0.0

        def write():
            nonlocal begin
            self._write(stream, *values)
            begin = time.perf_counter()

        results, stats = self._accelerator.execute(
            stream, write, macs=self._macs * inferences, setup=self._setup, record=record
        )
        seconds = time.perf_counter() - begin
        y = self._finish(stream, stream.read(results))
        return InferenceOutcome([y], stats, seconds)

    def _write(self, stream, x, b=None):
        """Write the operands of the core to the stream, which has the bits of both as integers."""
        work = self._work
        parts = core_parts(x)
        zeros = core_parts(np.array([work.x_zero], x.dtype))
        m = stream.rows.shape[1] // work.copies
        for index, (part, zero) in enumerate(zip(parts, zeros, strict=True)):
            rows = stream.rows[:, index * m : (index + 1) * m]
            work.rows.write(part.view(rows.dtype), zero.view(rows.dtype)[0], rows)
        if b is None:
            return
        columns = stream.columns
        work.rows.write_columns(core_parts(b)[0].view(columns.dtype), columns)
        if JobFlag.REQUANTIZE in work.flags:
            finish = work.finish
            constant = finish.constant(columns.view(np.int8))
            stream.write_parameters(finish.rescale.entries(work.rows, constant, finish.w_zero))

    def _finish(self, stream, raw):
        """Return y from the results [count, m, n] of the core."""
        work = self._work
        rows, finish = work.rows, work.finish
        if JobFlag.REQUANTIZE in work.flags:
            return rows.arrange(rows.outputs(raw))
        if isinstance(finish, FloatFinish):
            return rows.arrange(finish.apply(rows.outputs(raw)))
        a = stream.rows.view(np.int8)
        raw = raw.astype(np.int64)
        if work.copies == 2:  # int16: m rows of high bytes of x, then m rows of its low bytes
            m = raw.shape[1] // 2
            raw = 256 * raw[:, :m] + raw[:, m:]
            if finish.w_zero.any():
                a = 256 * a[:, :m].astype(np.int64) + a[:, m:]
        columns = None if stream.columns is None else stream.columns.view(np.int8)
        return rows.arrange(finish.apply(rows.outputs(finish.sums(raw, a, columns))))


def _multiply(a, b):
    return matmul(a, b, bits=64)


class HostProductRun:
    """Computes a product on the host: exact integer sums, or float32.

    Parameters
    ----------
    work : HostProduct
    multiply : callable
        ``multiply(a, b)`` gives the integer products of a [count, m, k] and b [count, k, n], int64.
    """

    def __init__(self, work: HostProduct, multiply: Callable = _multiply):
        self._work = work
        self._multiply = multiply

    def __call__(self, values: list, inferences: int, record: bool) -> InferenceOutcome:
        """Compute the step; ``values`` are as in `CoreRun`."""
        work = self._work
        rows, finish = work.rows, work.finish
        x = host_operand(values[0])
        zero = host_operand(np.array([work.x_zero], values[0].dtype))[0]
        computed = len(values) > 1
        m = rows.m(values[0].shape)
        a = np.empty((rows.count * (inferences if computed else 1), m, rows.k), x.dtype)
        rows.write(x, zero, a)
        columns = None
        b = work.weights
        if computed:
            other = host_operand(values[1])
            columns = np.empty((len(a), rows.n, rows.k), other.dtype)
            rows.write_columns(other, columns)
            b = columns.swapaxes(1, 2)
        if isinstance(finish, FloatFinish):
            with np.errstate(all="ignore"):  # infinity and NaN are results, as on every host
                y = finish.apply(rows.outputs(np.matmul(a, b)))
        else:
            y = finish.apply(rows.outputs(finish.sums(self._multiply(a, b), a, columns)))
        return InferenceOutcome([rows.arrange(y)])


class KernelRun:
    """Runs a kernel, one inference after another.

    Attributes
    ----------
    state : dict
        What a stateful kernel keeps from inference to inference; empty at first.
    """

    def __init__(self, work: HostWork):
        self._work = work
        self.state: dict = {}

    def __call__(self, values: list, inferences: int, record: bool) -> InferenceOutcome:
        """Run the kernel; ``values`` are its inputs, each [inferences, ...] or None."""
        results = [
            kernels.run(
                self._work.kernel, [None if v is None else v[index, ...] for v in values],
                self._work.attributes, self.state,
            )
            for index in range(inferences)
        ]
        return InferenceOutcome([np.stack(outputs) for outputs in zip(*results, strict=True)])


class RecurrentRun:
    """Runs a recurrent layer: its kernel, and the products that the kernel asks for.

    The inferences of a kernel with a state follow each other. Others run together: a product has
    the rows of all inferences.

    Parameters
    ----------
    work : RecurrentWork
    runs : sequence of CoreRun or HostProductRun
        For each product of the work.

    Attributes
    ----------
    state : dict
        As of `KernelRun`.
    """

    def __init__(self, work: RecurrentWork, runs: Sequence[CoreRun | HostProductRun]):
        self._work = work
        self._runs = runs
        self.state: dict = {}

    def __call__(self, values: list, inferences: int, record: bool) -> InferenceOutcome:
        """Run the layer; ``values`` are its inputs, each [inferences, ...] or None."""
        together = 1 if self._work.kernel in kernels.STATEFUL else inferences
        products: list[InferenceOutcome] = []
        results = []
        for first in range(0, inferences, together):
            kernel = [
                kernels.recurrence(
                    self._work.kernel, [None if v is None else v[index, ...] for v in values],
                    self._work.attributes, self.state, self._work.mode,
                )
                for index in range(first, first + together)
            ]
            results += self._advance(kernel, products, record)
        stats = [product.stats for product in products if product.stats is not None]
        return InferenceOutcome(
            [np.stack(outputs) for outputs in zip(*results, strict=True)],
            sum_stats(stats) if stats else None,
            sum(product.core_seconds for product in products),
        )

    def _advance(self, kernel, products, record):
        """Run ``kernel``, a generator for each inference, to the end; return their outputs.

        A generator yields which product it needs next, and the operand; it gets the result. All of
        them need the same product. The outcome of each product is appended to ``products``.
        """
        requests = [next(inference) for inference in kernel]
        while True:
            number = requests[0][0]
            operand = np.stack([x for _, x in requests])
            products.append(self._runs[number]([operand], len(kernel), record))
            sums = products[-1].outputs[0].reshape(*operand.shape[:-1], -1)
            requests, ended = [], []
            for inference, part in zip(kernel, sums, strict=True):
                try:
                    requests.append(inference.send(part))
                except StopIteration as end:
                    ended.append(end.value)
            if ended:  # all of them: each needs as many products
                return ended


def host_run(
    work: HostProduct | HostWork | RecurrentWork, multiply: Callable = _multiply,
) -> HostProductRun | KernelRun | RecurrentRun:
    """Return the runner of a step that the host computes.

    ``multiply``, as of `HostProductRun`, is for each `ListProduct`.
    """
    def product(part):
        return HostProductRun(part, multiply if isinstance(part, ListProduct) else _multiply)

    if isinstance(work, RecurrentWork):
        return RecurrentRun(work, [product(part) for part in work.products])
    return product(work) if isinstance(work, HostProduct) else KernelRun(work)
