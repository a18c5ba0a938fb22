"""Runs a compiled network on a core for networks."""

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.chip.addresses import split
from weft.chip.descriptors import ListError
from weft.chip.report import ListReport
from weft.host.recovery import AcceleratorError
from weft.network.chip.places import input_writes, map_values
from weft.network.chip.program import ChipProgram, ChipStep
from weft.network.chip.runner import ChipRunner
from weft.network.errors import ModelError
from weft.network.execution import KernelRun
from weft.network.inputs import dequantized, read_inputs
from weft.network.program import Step

__all__ = ["ChipRecord", "ChipSession"]

_LOG_ENTRY = struct.Struct("<2I")


@dataclass(frozen=True)
class ChipRecord:
    """The measured cost of a step.

    Attributes
    ----------
    step : ChipStep or Step
        A layer on the core, or an operator of the host.
    cycles : int or None
        Cycles of the layer in one inference: from the end of the job before its first one to its
        last store. None on the host, and if the runner does not count cycles.
    seconds : float
        Time of the host; 0 for a layer.
    """

    step: ChipStep | Step
    cycles: int | None
    seconds: float


class ChipSession:
    """A program on a core for networks: ``y = session(x)``. `ChipProgram.open` makes it.

    It writes lists, weights and parameters to the memory of the core, and uses the core exclusively
    until it is closed. It is also a context manager that closes the runner at its end. Threads may
    share it: calls wait for each other.

    Parameters
    ----------
    program : ChipProgram
    runner : ChipRunner
    timeout : float
        Maximum seconds of a list.

    Raises
    ------
    AcceleratorError
        If the core does not have the ChipConfig of the program, or a list fails.
    weft.host.transport.TransportError
        If the connection fails.

    Attributes
    ----------
    cycles : int or None
        Cycles of the latest list.
    """

    def __init__(self, program: ChipProgram, runner: ChipRunner, *, timeout: float = 60.0):
        if runner.chip != program.chip:
            raise AcceleratorError(
                f"the core must have the ChipConfig of the program ({program.chip.hash:08x}),"
                f" not {runner.chip.hash:08x}"
            )
        self.program = program
        self.cycles: int | None = None
        self._runner = runner
        self._timeout = timeout
        self._lock = threading.Lock()
        self._before = [(step, KernelRun(step.work)) for step in program.before]
        self._after = [(step, KernelRun(step.work)) for step in program.after]
        self._ready = False  # whether the resident weights are in the buffers
        runner.write(self._address(program.run_first), program.run)

    def __enter__(self) -> "ChipSession":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Close the runner."""
        self._runner.close()

    def __call__(
        self, x, *, stats: bool = False, activations: bool = False,
        watch: Callable[[ChipRecord], None] | None = None,
    ):
        """Run the network; arguments and results are as for `weft.network.session.Session`.

        ``stats`` returns a list of `ChipRecord`. ``activations`` needs a program that was compiled
        with ``activations=True``, else it raises ModelError.
        """
        program = self.program
        if activations and not program.keeps_maps:
            raise ModelError(
                f"{program.name}: activations need a program that is compiled with activations=True"
            )
        values, inferences, is_float = read_inputs(program, x)
        records: list[ChipRecord] = []
        outputs: dict[str, np.ndarray] = {}

        def note(record, found):
            records.append(record)
            if watch is not None:
                watch(record)
            if activations:
                outputs.update(found)

        with self._lock:
            self._host(self._before, values, inferences, note)
            self._layers(values, inferences, note, activations)
            self._host(self._after, values, inferences, note)
        results = []
        for number in program.outputs:
            value = _joined(self._value(values, number, inferences))
            tensor = program.tensors[number]
            results.append(dequantized(value, tensor) if is_float else value)
        y = results[0] if len(results) == 1 else results
        added = [*([records] if stats else []), *([outputs] if activations else [])]
        return (y, *added) if added else y

    def _host(self, steps, values, inferences, note):
        """Run operators of the host."""
        for step, run in steps:
            start = time.perf_counter()
            inputs = [None if n < 0 else self._value(values, n, inferences) for n in step.inputs]
            try:
                found = run(inputs, inferences, False).outputs
            except (ModelError, OSError, RuntimeError):
                raise
            except Exception as error:
                raise ModelError(
                    f"{self.program.name}: operator {step.position[0]} ({step.operators[0]}"
                    f" {step.name}) failed: {error!r}"
                ) from error
            for number, value in zip(step.outputs, found, strict=True):
                values[number] = value.reshape(inferences, *self.program.tensors[number].shape)
            named = {
                f"out{max(step.position)}" + (f"_{index}" if index else ""): _joined(values[n])
                for index, n in enumerate(step.outputs)
            }
            note(ChipRecord(step, None, time.perf_counter() - start), named)

    def _layers(self, values, inferences, note, activations):
        """Run the list for all inferences, ``batch`` at a time; add its results to ``values``."""
        program = self.program
        wanted = {result.tensor: result.place for result in program.results}
        if activations:
            wanted |= {step.tensor: step.place for step in program.steps}
            wanted |= {other.tensor: other.place for other in program.renamed}
        found: dict[int, list] = {tensor: [] for tensor in wanted}
        measured = None
        for first in range(0, inferences, program.batch):
            count = min(program.batch, inferences - first)
            self._setup()
            for entry in program.written:
                given = self._value(values, entry.form.tensor, inferences)
                for n in range(count):
                    self._write(entry, given[first + n, ...], n)
            report = self._run()
            measured = measured or self._cycles_of_layers(report)
            for tensor, place in wanted.items():
                for n in range(count):
                    found[tensor].append(self._read(tensor, place, n, report))
        values.update({tensor: np.stack(parts) for tensor, parts in found.items()})
        cycles = measured or [None] * len(program.steps)
        for step, count in zip(program.steps, cycles, strict=True):
            named = {}
            if activations:
                named[f"out{max(step.position)}"] = _joined(values[step.tensor])
            note(ChipRecord(step, count, 0.0), named)
        if activations:
            for other in program.renamed:
                note_value = _joined(values[other.tensor])
                note(ChipRecord(other, None, 0.0), {f"out{max(other.position)}": note_value})

    def _write(self, entry, values, inference):
        """Write the map of one input."""
        first = inference * self.program.arena
        kind = self.program.tensors[entry.form.tensor].dtype
        for write in input_writes(entry, values, kind, self.program.chip, first):
            self._runner.write(**write)

    def _read(self, tensor, place, inference, report: ListReport):
        """Return the values of a map."""
        program, depth = self.program, self.program.chip.core.depth
        first = program.results[0]
        if program.result_bytes and first.tensor == tensor and first.place == place:
            data = report.result
        else:
            number = place.first + inference * program.arena
            data = self._runner.read(self._address(number), place.pitches.vectors * depth)
        return map_values(data, place, program.tensors[tensor], depth)

    def _setup(self):
        """Load resident weights and parameters, if the core does not have them."""
        if self._ready:
            return
        for part in self.program.setup:
            self._runner.write(self._address(0), part)
            self._execute(0)

    def _run(self) -> ListReport:
        """Run the list of an inference."""
        program = self.program
        self._ready = False  # an error or an interrupt empties the buffers
        report = self._execute(program.run_first)
        self._ready = True
        self.cycles = report.cycles
        return report

    def _execute(self, first) -> ListReport:
        report = self._runner.run(
            self._address(first), self._address(self.program.log), timeout=self._timeout
        )
        if report.error != ListError.NONE:
            raise AcceleratorError(
                f"{self.program.name}: the list ended with error {report.error.name}"
                f" in job {report.jobs}"
            )
        return report

    def _cycles_of_layers(self, report):
        """Return the cycles of each layer from the log, or None without cycles."""
        if report.cycles is None:
            return None
        program, depth = self.program, self.program.chip.core.depth
        size = -(-_LOG_ENTRY.size // depth) * depth
        jobs = sum(step.jobs for step in program.steps)
        data = self._runner.read(self._address(program.log), jobs * size)
        ends = [_LOG_ENTRY.unpack_from(data, n * size)[1] for n in range(jobs)]
        marks = [0] + [ends[step.first_job + step.jobs - 1] for step in program.steps]
        return [after - before for before, after in zip(marks, marks[1:], strict=False)]

    def _value(self, values, number, inferences):
        """Return a tensor as [inferences, ...]."""
        if number in values:
            return values[number]
        tensor = self.program.tensors[number]
        if tensor.data is None:
            raise ModelError(f"{self.program.name}: tensor {number} ({tensor.name}) has no value")
        return np.broadcast_to(tensor.data, (inferences, *tensor.data.shape))

    def _address(self, number):
        return split(number, self.program.chip.banks)


def _joined(value):
    """Return [inferences, ...] as one array: inferences are joined along the first axis."""
    if len(value) == 1:
        return value[0, ...].copy()
    return value.reshape(-1, *value.shape[2:]) if value.ndim > 1 else value
