"""Runs a program on a core behind any transport."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from weft.host.accelerator import Accelerator
from weft.host.product_stream import Setup, table_load
from weft.host.stats import Stats
from weft.host.transport import Transport
from weft.models.execution import CoreRun, HostProductRun, RecurrentRun, host_run
from weft.models.inputs import read_inputs
from weft.models.program import Program, Step
from weft.models.program_session import ProgramSession, joined, output_names
from weft.models.work import CoreWork, HostProduct, RecurrentWork, core_works

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

    step: Step
    stats: Stats | None
    seconds: float
    core_seconds: float


class Session(ProgramSession):
    """A program on a core: ``y = session(x)``. `Program.open` makes it.

    It uses the core exclusively until it is closed. It is also a context manager that closes the
    transport at its end. Threads may share it: calls wait for each other.

    Operators with a state start anew with each session, and keep the state from call to call.

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

    def __init__(self, program: Program, transport: Transport | str, *, timeout: float = 60.0):
        super().__init__(program)
        config = program.target.config
        self._accelerator = Accelerator(transport, config, timeout=timeout)
        self._setup = Setup(config, self._setup_loads())
        self._runs = [self._run_of(step) for step in program.steps]
        self._last_use = {
            number: place
            for place, step in enumerate(program.steps) for number in step.inputs
        }

    def close(self) -> None:
        """Close the transport."""
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
        values, inferences, is_float = read_inputs(self.program, x)
        records, outputs = [], {}
        narrow = set(self.program.left_out.tensors if self.program.left_out else ())
        with self._lock:
            for place, (step, run) in enumerate(zip(self.program.steps, self._runs, strict=True)):
                start = time.perf_counter()
                outcome = self._run_step(step, run, values, inferences, stats)
                seconds = time.perf_counter() - start
                records.append(StepRecord(step, outcome.stats, seconds, outcome.core_seconds))
                if watch is not None:
                    watch(records[-1])
                if activations and not narrow & set(step.outputs):
                    outputs |= output_names(step, [joined(values[n]) for n in step.outputs])
                for number in step.inputs:
                    if self._last_use[number] == place and number not in self.program.outputs:
                        values.pop(number, None)
        added = [*([records] if stats else []), *([outputs] if activations else [])]
        return self._results(values, inferences, is_float, *added)

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
            loads.insert(0, table_load(tables[-1], program.target.config))
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
