"""Runs a compiled network on a network core: `NetworkCoreSession`."""

import struct
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from weft.design import NETWORK
from weft.host.list_products import ListProducts
from weft.host.recovery import AcceleratorError
from weft.models.errors import ModelError
from weft.models.execution import host_run
from weft.models.network_core.list_steps import NetworkCoreRecord, core_sums
from weft.models.network_core.resident import resident_writes
from weft.models.network_core.runners import NetworkCoreRunner
from weft.models.network_core.second_place import ListPlace, second_place
from weft.models.network_core.tensor_maps import input_writes, map_values
from weft.models.program_session import ProgramSession, Records, read_inputs
from weft.network_core.descriptors import ON_CHIP, ListError, ListReport, split

if TYPE_CHECKING:
    from weft.models.network_core.program import (
        NetworkCoreProgram,
        NetworkCoreSegment,
    )

__all__ = ["NetworkCoreSession"]


_FIRST, _KEPT = "first", "kept"  # values of variables: to be written, or of the last inference
_LOG_ENTRY = struct.Struct("<2I")  # the cycles in which a job started and ended


class _Notes(list):
    """The arguments of `Records.note`, kept for later."""

    def note(self, *arguments):
        self.append(arguments)


class NetworkCoreSession(ProgramSession):
    """A program on a network core: ``y = session(x)``. `NetworkCoreProgram.open` makes it.

    It writes lists, weights and parameters to the memory of the core, and uses the core exclusively
    until it is closed. It is also a context manager that closes the runner at its end. Threads may
    share it: calls wait for each other.

    Parameters
    ----------
    program : NetworkCoreProgram
    runner : NetworkCoreRunner
    timeout : float
        Maximum seconds of a list.

    Raises
    ------
    ModelError
        If ``runner`` is no runner of lists.
    AcceleratorError
        If the core does not have the NetworkCoreConfig of the program, or a list fails.
    weft.host.transport.TransportError
        If the connection fails.

    Attributes
    ----------
    cycles : int or None
        Cycles of the lists of the latest inference, or of its batch; None if they are not counted.
    """

    def __init__(
        self, program: "NetworkCoreProgram", runner: NetworkCoreRunner, *, timeout: float = 60.0
    ):
        if getattr(getattr(runner, "config", None), "kind", None) != NETWORK:
            raise ModelError(
                "runner must be 'golden' or have a network core, as"
                f" weft.host.network_driver.NetworkDriver has, not {runner!r}"
            )
        if runner.config != program.config:
            raise AcceleratorError(
                f"the core must be the network core of the program ({program.config.hash:08x}),"
                f" not {runner.config.hash:08x}"
            )
        needed = program.program_memory_used
        if needed and runner.program_bytes < needed:
            raise AcceleratorError(
                f"the program memory must have {needed:,} bytes for {program.name}, not"
                f" {runner.program_bytes:,}"
            )
        super().__init__(program)
        self._variables = _FIRST  # their values in the core, or why these are lost
        self.cycles: int | None = None
        self._runner = runner
        self._timeout = timeout
        self._products = None  # between the lists
        multiply = []
        if program.products:
            self._products = ListProducts(runner, timeout=timeout, space=program.products_space)
            multiply = [core_sums(self._products)]
        self._host_runs = {step: host_run(step.work, *multiply) for step in program.host}
        self._ready = False  # whether the resident weights are in the buffers
        self._second = second_place(program, runner.program_bytes if needed else 0)
        self._write_lists()
        self._uses = runner.uses

    def close(self) -> None:
        """Close the runner."""
        super().close()
        self._runner.close()

    def __call__(
        self, x, *, stats: bool = False, activations: bool = False,
        watch: Callable[[NetworkCoreRecord], None] | None = None,
    ):
        """Run the network; arguments and results are as for `weft.models.session.Session`.

        With several inputs, the next one is written while a list computes, if the program has a
        `second_place`. ``stats`` returns a list of `NetworkCoreRecord`. ``activations`` needs a
        program that was compiled with ``activations=True``, else it raises ModelError.
        """
        program = self.program
        if activations and not program.keeps_maps:
            raise ModelError(
                f"{program.name}: activations need a program that is compiled with activations=True"
            )
        values, inferences, is_float = read_inputs(program, x)
        batches = -(-inferences // program.batch)
        records = Records(batches, watch, keep=activations)
        log = stats or watch is not None  # else the log of the core is not read
        with self._call():
            if self._second and batches > 1 and not activations:
                outputs = self._overlapped(values, inferences, records, log)
            else:
                outputs = self._in_turn(
                    values, inferences, program.batch,
                    lambda batch, count: self._run_batch(batch, count, records, log, activations),
                )
        added = [
            *([records.records] if stats else []), *([records.outputs()] if activations else [])
        ]
        return self._results(outputs, inferences, is_float, *added)

    def _run_batch(self, values, count, records, log, activations):
        """Run all operators for ``count`` inferences."""
        program = self.program
        self._setup()
        cycles = []
        for segment in program.segments:
            for step in segment.before:
                cycles.append(self._host(step, values, count, records))
            cycles.append(self._list(segment, values, count, records, log, activations))
        for step in program.after:
            cycles.append(self._host(step, values, count, records))
        self.cycles = None if None in cycles else sum(cycles)
        records.end_part()

    def _overlapped(self, values, inferences, records, log):
        """Run all inferences; while a list runs, the host writes the next inputs.

        It also reads the results of the list before, and computes its own operators. Inputs and
        maps alternate between two places.
        """
        program = self.program
        segment, = program.segments
        second, data = self._second
        places = self._place(segment), second
        starts = range(0, inferences, program.batch)
        counts = [min(program.batch, inferences - first) for first in starts]
        parts: list[dict] = []
        reports: list[ListReport] = []
        noted: list[_Notes] = []  # of the operators before each list
        self._setup()
        if not self._second_written:
            self._write_program(second.first, data, second.on_chip)
            self._second_written = True

        def begin(number):
            """Compute what a list needs, and write its inputs."""
            first, count = starts[number], counts[number]
            parts.append({n: value[first : first + count] for n, value in values.items()})
            noted.append(_Notes())
            for step in segment.before:
                self._host(step, parts[number], count, noted[number])
            for write in self._input_writes(segment, parts[number], count, places[number % 2]):
                self._runner.write(**write)

        def finish(number):
            """Read the results of a list, and compute what follows it."""
            part, count = parts[number], counts[number]
            for note in noted[number]:
                records.note(*note)
            self._read_results(
                segment, reports[number], part, count, records, log, False, places[number % 2]
            )
            for step in program.after:
                self._host(step, part, count, records)
            records.end_part()
            parts[number] = {n: self._value(part, n, count) for n in program.outputs}

        def beside(number):
            """Work while list ``number`` runs."""
            if number:
                finish(number - 1)
            if number + 1 < len(starts):
                begin(number + 1)

        begin(0)
        for number in range(len(starts)):
            with self._lists_run():
                reports.append(self._execute(
                    places[number % 2], segment.steps, lambda number=number: beside(number)
                ))
        finish(len(starts) - 1)
        self.cycles = reports[-1].cycles
        return {n: np.concatenate([part[n] for part in parts]) for n in program.outputs}

    def _all_runs(self):
        """Return the runs of host operators, whose states the base class keeps."""
        return self._host_runs.values()

    def _host(self, step, values, inferences, records) -> int | None:
        """Run an operator of the host, with its products on the core; return their cycles."""
        start, run_step = time.perf_counter(), self._host_runs[step]
        if not step.placement.on_weft:
            self._run_step(step, run_step, values, inferences)
            counted, cycles = 0, None
        else:
            before = self._products.counters.counted
            with self._lists_run():
                self._run_step(step, run_step, values, inferences)
            after = self._products.counters.counted
            counted = cycles = None if None in (before, after) else after - before
        seconds = time.perf_counter() - start
        records.note(NetworkCoreRecord(step, cycles, seconds), [values[n] for n in step.outputs])
        return counted

    def _list(
        self, segment: "NetworkCoreSegment", values, inferences, records, log, activations
    ) -> int | None:
        """Run a list, and add its results to ``values``; return its cycles."""
        place = self._place(segment)
        writes = list(self._input_writes(segment, values, inferences, place))
        with self._lists_run():
            report = self._execute(place, segment.steps, writes=writes)
        self._read_results(segment, report, values, inferences, records, log, activations, place)
        return report.cycles

    def _place(self, segment):
        """Return the place of a list of the program."""
        return ListPlace(0, segment.run_first, self.program.log, self._on_chip)

    def _read_results(
        self, segment, report, values, inferences, records, log, activations, place
    ):
        """Add the results of a list to ``values``, and note its steps."""
        maps = {result.tensor: result.place for result in segment.results}
        if activations:
            maps |= {
                step.tensor: step.place for step in (*segment.steps, *segment.renamed) if step.place
            }
        for tensor, placed in maps.items():
            values[tensor] = np.stack([
                self._read(segment, tensor, placed, n, report, place) for n in range(inferences)
            ])
        layers = self._cycles_of_layers(segment, report, log, place)
        for step, cycles in zip(segment.steps, layers, strict=True):
            records.note(
                NetworkCoreRecord(step, cycles, 0.0), [values[step.tensor]] if activations else []
            )
        for other in segment.renamed if activations else ():
            if other.place is None:
                shape = self.program.tensors[other.tensor].shape
                source = self._value(values, other.source, inferences)
                values[other.tensor] = source.reshape(inferences, *shape)
            records.note(NetworkCoreRecord(other, None, 0.0), [values[other.tensor]])

    def _input_writes(self, segment, values, inferences, place):
        """Yield the writes of the maps that the host writes before a list."""
        for entry in segment.written:
            batch = self._value(values, entry.form.tensor, inferences)
            dtype = self.program.tensors[entry.form.tensor].dtype
            for n in range(inferences):
                first = place.maps + n * self.program.arena
                yield from input_writes(entry, batch[n, ...], dtype, self.program.config, first)

    def _read(self, segment, tensor, placed, inference, report: ListReport, place):
        """Return the values of a map."""
        program, depth = self.program, self.program.config.array.depth
        # A list of several inferences has no ``result_bytes``, so the report is of inference 0.
        if segment.result_bytes and segment.results[0].place == placed:
            data = report.result
        else:
            vector = place.maps + placed.first + inference * program.arena
            data = self._runner.read(self._address(vector), placed.pitches.vectors * depth)
        return map_values(data, placed, program.tensors[tensor], depth)

    def _setup(self):
        """Load resident weights and parameters, if the core does not have them.

        All lists of the setup, with their weights, have the same place: each is executed before the
        next one is written. Without a program memory this is the place of the maps, which have no
        values yet. A core with ``resident`` has no loads: what they would load is written.
        """
        if not self._ready:
            if not self._lists_written:
                self._write_lists()
            on_chip = self.program.whole
            for setup_list in self.program.setup:
                if self.program.config.resident:
                    for first, data in resident_writes(self.program.config, setup_list):
                        self._runner.write(self._address(first), data)
                    continue
                self._write_program(0, setup_list, on_chip)
                self._execute(ListPlace(0, 0, self.program.log, on_chip), ())
        if self._variables == _FIRST:
            for write in self._first_values():
                self._runner.write(**write)
            self._variables = _KEPT

    def _first_values(self):
        """Yield the writes of the variables' first values."""
        program = self.program
        initial = {state.before: state.initial for state in program.states}
        for entry in program.variables:
            value = initial[entry.form.tensor]
            yield from input_writes(entry, value, value.dtype, program.config, 0)

    @contextmanager
    def _call(self):
        """As in the base class, but variables in the core are lost if the call fails in a list.

        They are lost, too, if others used the core since the last call.
        """
        with super()._call():
            if self._runner.uses != self._uses:
                self._ready = self._lists_written = False
                if self._products is not None:
                    self._products.forget()
                if self._variables != _FIRST:
                    self._variables = "another program or another session has used the core"
            if self.program.variables and self._variables not in (_FIRST, _KEPT):
                raise AcceleratorError(
                    f"{self.program.name}: the variables in the memory of the core are lost:"
                    f" {self._variables}; reset() gives them their first values"
                )
            self._list_began = False
            try:
                yield
            except BaseException:
                if self._list_began:
                    self._variables = "a call failed after it had started a list"
                raise
            finally:
                self._uses = self._runner.uses

    def _reset(self):
        super()._reset()
        self._variables = _FIRST

    def _write_lists(self):
        """Write the lists of an inference."""
        self._lists_written = self._second_written = False
        for segment in self.program.segments:
            self._write_program(segment.run_first, segment.run, self._on_chip)
            if segment.stream:
                self._write_program(segment.stream_first, segment.stream, False)
        self._lists_written = True

    @property
    def _on_chip(self):
        """Whether lists and log lie in the memory on the chip, of a core with two."""
        return self.program.lists_on_chip and self.program.config.program_words > 0

    def _write_program(self, first, data, on_chip):
        """Write lists and their data, from vector ``first`` on."""
        other = self.program.config.program_words and not on_chip
        write = self._runner.write_program if other else self._runner.write
        write(self._address(first), data)

    @contextmanager
    def _lists_run(self):
        """Lists run: an error or an interrupt empties the buffers, and may mean lost power."""
        self._list_began = True
        written, self._ready, self._lists_written = self._lists_written, False, False
        yield
        self._ready, self._lists_written = True, written

    def _execute(self, place, steps, beside=None, writes=()) -> ListReport:
        """Execute a list with these layers after ``writes``, and call ``beside`` while it runs.

        A list without layers loads resident weights.
        """
        # As in `_lists_run`: a lost connection may mean lost power. Setup runs outside of that.
        written, self._lists_written = self._lists_written, False
        if self._products is not None:
            self._products.forget()  # the list uses the buffers
        report = self._runner.run(
            self._address(place.first) | place.on_chip * ON_CHIP, self._address(place.log),
            timeout=self._timeout, beside=beside, writes=writes,
        )
        self._lists_written = written
        if report.error != ListError.NONE:
            raise AcceleratorError(
                f"{self.program.name}: {report.problem(_where(report.jobs, steps))}"
            )
        return report

    def _cycles_of_layers(self, segment, report, log, place):
        """Return the cycles of each layer from the log; None for each without ``log``."""
        if report.cycles is None or not log:
            return [None] * len(segment.steps)
        program, depth = self.program, self.program.config.array.depth
        size = -(-_LOG_ENTRY.size // depth) * depth
        jobs = sum(step.jobs for step in segment.steps)
        read = self._runner.read if program.lists_on_chip else self._runner.read_program
        data = read(self._address(place.log), jobs * size)
        job_ends = [end for _, end in (_LOG_ENTRY.unpack_from(data, n * size) for n in range(jobs))]
        ends = [0] + [job_ends[step.first_job + step.jobs - 1] for step in segment.steps]
        return [after - before for before, after in zip(ends, ends[1:], strict=False)]

    def _address(self, vector):
        return split(vector, self.program.config.banks)


def _where(job, steps):
    """Return the words for the place of a job in a list with these layers."""
    if not steps:
        return "while it loaded the resident weights"
    for number, step in enumerate(steps, 1):
        if job < step.first_job + step.jobs:
            return f"in job {job} (layer {number} of {len(steps)}: {', '.join(step.operators)})"
    return f"after its last job, {job - 1}"
