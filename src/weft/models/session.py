"""Runs a program on a core behind any transport."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.host.accelerator import Accelerator
from weft.host.product_stream import Setup, table_load
from weft.host.stats import Stats, sum_stats
from weft.host.transport import Transport
from weft.models.execution import CoreRun, HostProductRun, RecurrentRun, host_run
from weft.models.program_session import ProgramSession, Records, read_inputs
from weft.models.work import CoreWork, HostProduct, RecurrentWork, core_works

if TYPE_CHECKING:
    from weft.models.program import Program, Step

__all__ = ["Session", "StepRecord"]


@dataclass(frozen=True)
class StepRecord:
    """The measured cost of a step.

    Attributes
    ----------
    step : Step
    stats : Stats or None
        Counters of the core. None if the call has no ``stats=True``, or if the host computes the
        step.
    seconds : float
        Time of the step.
    core_seconds : float
        Time from the end of packing the operands to the last result from the core, with the
        connection; 0 if the host computes the step.
    """

    step: "Step"
    stats: Stats | None
    seconds: float
    core_seconds: float

    @property
    def cycles(self) -> int | None:
        """Cycles of the core; None without counters."""
        return None if self.stats is None else self.stats.cycles

    def __add__(self, other: "StepRecord") -> "StepRecord":
        """Return the cost of this and of further inferences."""
        both = [stats for stats in (self.stats, other.stats) if stats is not None]
        return StepRecord(
            self.step, sum_stats(both) if both else None, self.seconds + other.seconds,
            self.core_seconds + other.core_seconds,
        )


class Session(ProgramSession):
    """A program on a core: ``y = session(x)``. `Program.open` makes it.

    It uses the core exclusively until it is closed. It is also a context manager that closes the
    transport at its end. Threads may share it: calls wait for each other.

    Variables and operators with a state start anew with each session and with `reset`, and keep
    their values from call to call. The inferences of a network with variables run one after the
    other.

    Parameters
    ----------
    program : Program
    transport : Transport or str
        As for `weft.Accelerator`.
    timeout : float
        Maximum seconds without progress in each wait for the core.

    Raises
    ------
    AcceleratorError
        If the core does not have the Config of the program.
    TransportError
        If the connection fails.
    """

    def __init__(self, program: "Program", transport: Transport | str, *, timeout: float = 60.0):
        super().__init__(program)
        config = program.target.array
        self._accelerator = Accelerator(transport, config, timeout=timeout)
        self._setup = Setup(self._setup_loads())
        self._runs = [self._run_of(step) for step in program.steps]
        self._last_use = {
            number: place
            for place, step in enumerate(program.steps) for number in step.inputs
        }

    def close(self) -> None:
        """Close the transport."""
        super().close()
        self._accelerator.close()

    def __call__(
        self, x, *, stats: bool = False, activations: bool = False,
        watch: Callable[[StepRecord], None] | None = None,
    ):
        """Run the network.

        Parameters
        ----------
        x : array; a list of them; or a dict of them by the names of the inputs
            Of the type of the input, or float32 or float64 for a quantized one: it is quantized
            with the scale of the input, and then quantized outputs are dequantized to float32. If
            the first axis of all inputs is 1 in the network, it may be any number of inferences.
        stats : bool
            Return a list of `StepRecord`, too: one for each step.
        activations : bool
            Return the output of each operator, too: a dict of arrays ``out0``, ``out1`` ... in the
            order of the operators in the file; ``out3_1`` is the second output of operator 3. The
            output of an operator that is fused with a later one, or lacks channels, is missing:
            compile with ``activations=True`` to get it.
        watch : callable, optional
            Called with the `StepRecord` of each step when it has ended.

        Returns
        -------
        array, or a list of them if the network has several outputs
            With ``stats`` or ``activations``: a tuple of it and of these, in this order.

        Raises
        ------
        TypeError, ValueError
            If the inputs do not fit the network.
        AcceleratorError, TransportError
            If the core or the connection failed. The next call works again unless the connection is
            closed.
        ModelError
            If an operator of the host fails.
        """
        program = self.program
        values, inferences, is_float = read_inputs(program, x)
        run = Records(inferences if program.states else 1, watch, keep=activations)
        with self._call():
            found = self._in_turn(
                values, inferences, inferences,
                lambda part, count: self._run_part(part, count, run, stats, activations),
            )
        added = [*([run.records] if stats else []), *([run.outputs()] if activations else [])]
        return self._results(found, inferences, is_float, *added)

    def _run_part(self, values, count, run, stats, activations):
        """Run all steps for ``count`` inferences."""
        narrow = set(self.program.left_out.tensors if self.program.left_out else ())
        for place, (step, step_run) in enumerate(zip(self.program.steps, self._runs, strict=True)):
            start = time.perf_counter()
            outcome = self._run_step(step, step_run, values, count, stats)
            seconds = time.perf_counter() - start
            run.note(
                StepRecord(step, outcome.stats, seconds, outcome.core_seconds),
                [values[n] for n in step.outputs]
                if activations and not narrow & set(step.outputs) else [],
            )
            for number in step.inputs:
                if self._last_use[number] == place and number not in self.program.results:
                    values.pop(number, None)
        run.end_part()

    def _all_runs(self):
        return self._runs

    def _setup_loads(self):
        """Return the loads before the first inference: resident weights, and one table.

        It is the table of the last step that has one: an inference leaves it in the core, and so
        each inference expects it.
        """
        program = self.program
        loads, tables = [], []
        for step in program.steps:
            for work in core_works(step.work):
                if work.b_pages is not None and step.weights != "early":
                    loads += work.weight_loads()
                if work.table is not None:
                    tables.append(work.table)
        if tables:
            loads.insert(0, table_load(tables[-1], program.target.array))
        return loads

    def _run_of(self, step):
        work = step.work
        if isinstance(work, CoreWork):
            after = []
            if work.early >= 0:
                after = self.program.steps[work.early].work.weight_loads()
            return CoreRun(work, self._accelerator, self._setup, step.macs, after)
        if isinstance(work, RecurrentWork):
            return RecurrentRun(work, [self._recurrent_product(part) for part in work.products])
        return host_run(work)

    def _recurrent_product(self, work):
        if isinstance(work, HostProduct):
            return HostProductRun(work)
        return CoreRun(work, self._accelerator, self._setup, math.prod(work.shape()), [])
