"""The report of a network on a network core: places, cycles, memory, bytes on the link."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.models.network_core.prediction import predict_run
from weft.models.network_core.program import (
    NetworkCoreProgram,
    NetworkCoreRename,
    NetworkCoreSegment,
    NetworkCoreStep,
)
from weft.models.network_core.second_place import second_place
from weft.models.program import Step, joined_operators
from weft.models.report.interface import Ceilings, PageParts, Report
from weft.models.report.placement import (
    left_out_json,
    link_bytes,
    link_seconds,
    list_bytes,
    placement_line,
    remedy_of,
)
from weft.network_core.cycles import lstm_cycles, softmax_cycles
from weft.network_core.cycles.tiles import panel_sizes
from weft.network_core.descriptors import ListJob, ListLoad, unpack_list

__all__ = [
    "JobPhases", "LayerWork", "ListPhases", "NetworkCoreLayer", "NetworkCoreReport", "list_phases",
]

@dataclass(frozen=True)
class JobPhases:
    """The cycles of a job, counted from the START of its list.

    Attributes
    ----------
    start, computed, end : int
        Its start, its last array step, its last store.
    started : int
        The start of its array steps: before its own start, if it starts early.
    """

    start: int
    computed: int
    end: int
    started: int


@dataclass(frozen=True)
class LayerWork:
    """What a layer needs of each part of the core, in cycles of an inference.

    Attributes
    ----------
    compute : int
        Cycles of the array steps.
    drain : int
        Cycles in which the lanes are busy, or a unit for SOFTMAX or LSTM.
    wait : int
        Cycles between the end of a job and the start of the next one: for loads or descriptors.
    load_bytes : int
        Weights and parameters that the list loads for the layer.
    """

    compute: int
    drain: int
    wait: int
    load_bytes: int


@dataclass(frozen=True)
class ListPhases:
    """The phases of one list, in its first inference.

    Attributes
    ----------
    cycles : int
    loads : tuple of (int, int)
        Start and end of each load.
    jobs : tuple of JobPhases
    layers : tuple of LayerWork
        In the order of `NetworkCoreSegment.steps`.
    """

    cycles: int
    loads: tuple[tuple[int, int], ...]
    jobs: tuple[JobPhases, ...]
    layers: tuple[LayerWork, ...]


def list_phases(program: NetworkCoreProgram, segment: NetworkCoreSegment) -> ListPhases:
    """Return the phases of a list."""
    config = program.config
    descriptors = unpack_list(segment.run)
    jobs = [entry for entry in descriptors if isinstance(entry, ListJob)]
    loads = sum(isinstance(entry, ListLoad) for entry in descriptors)
    found = predict_run(
        config, segment.run, segment.run_first, program.log, timing=program.target.memory,
        on_chip=program.lists_on_chip,
    )
    phases = tuple(
        JobPhases(start, computed, end, started)
        for (start, end), computed, started in zip(
            found.jobs[: len(jobs)], found.computed, found.started, strict=False
        )
    )
    loaded = _loaded_bytes(descriptors, config)
    layers = []
    for step in segment.steps:
        numbers = range(step.first_job, step.first_job + step.jobs)
        arrays = (jobs[n] for n in numbers if not (jobs[n].softmax or jobs[n].lstm))
        steps = sum(_steps(job, config) for job in arrays)
        layers.append(LayerWork(
            compute=steps,
            drain=sum(_drain(jobs[n], config) for n in numbers),
            wait=sum(phases[n].start - (phases[n - 1].end if n else 0) - 1 for n in numbers),
            load_bytes=sum(loaded[n] for n in numbers),
        ))
    return ListPhases(
        segment.cycles // program.batch, tuple(found.loads[:loads]), phases, tuple(layers)
    )


def _steps(job, config):
    """Return the array steps of a job."""
    panels = sum(1 for _ in panel_sizes(job))
    return panels * -(-job.columns // config.array.cols) * job.tile_words


def _drain(job, config):
    """Return the cycles of the chunks of a job; with ADD a chunk takes two slots.

    A partial job has none.
    """
    if job.lstm:
        return lstm_cycles(config, job.columns)
    if job.softmax:
        return softmax_cycles(config, job.columns, job.out_height * job.out_width)
    if job.partial:
        return 0
    full, rest = divmod(job.columns, config.array.cols)
    chunks = full * config.row_chunks + -(-rest // config.array.lanes)
    slots = 2 if job.add else 1
    return job.out_height * job.out_width * chunks * slots * config.array.scale_cycles


def _loaded_bytes(descriptors, config):
    """Return the bytes that are loaded before each job, after the job before it."""
    found, waiting = [], 0
    for entry in descriptors:
        if isinstance(entry, ListLoad):
            waiting += entry.vectors(config) * config.array.depth
        elif isinstance(entry, ListJob):
            found.append(waiting)
            waiting = 0
    return found


@dataclass(frozen=True, kw_only=True)
class NetworkCoreLayer:
    """A layer on the core, an operator without work, or an operator of the host.

    Between the lists, the core may compute the products of an operator of the host: then it has
    ``jobs`` and ``cycles``, and no map.

    Attributes
    ----------
    operators, name, position, macs
        As in `weft.models.program.Step`.
    on_weft : bool
    reason, remedy : str
        Why the host computes it, and what would change this; empty if the core does.
    output : (int, int, int) or None
        Height, width and channels of its map; None on the host.
    map_bytes : int
        Of its map in the memory.
    jobs, panels, panel_rows, words, cycles : int
        As in `NetworkCoreStep`; 0 without work.
    work : LayerWork
    utilization : float
        ``macs / (cycles * peak)``, in 0..1.
    core_bound : str
        ``compute``, ``load``, ``drain`` or ``latency``; empty without work.
    core_ms : float or None
        None if the target has no clock.
    measured : int or None
        Measured cycles; None if they were not measured.
    """

    operators: tuple[str, ...]
    name: str
    position: tuple[int, ...]
    macs: int
    on_weft: bool
    reason: str = ""
    remedy: str = ""
    output: tuple[int, int, int] | None = None
    map_bytes: int = 0
    jobs: int = 0
    panels: int = 0
    panel_rows: int = 0
    words: int = 0
    cycles: int = 0
    work: LayerWork = LayerWork(0, 0, 0, 0)
    utilization: float = 0.0
    core_bound: str = ""
    core_ms: float | None = None
    measured: int | None = None

    @property
    def operator(self) -> str:
        """The operators in one word: ``CONV_2D+ADD``."""
        return joined_operators(self.operators)

    @property
    def results(self) -> int:
        """Values of its output map."""
        height, width, channels = self.output or (0, 0, 0)
        return height * width * channels


@dataclass(frozen=True)
class NetworkCoreReport(Report):
    """A whole network on a network core.

    Attributes
    ----------
    program : NetworkCoreProgram
    measured : tuple of (tuple of int, int)
        Positions of layers, and their measured cycles.
    others
        As of `Report`.
    """

    program: NetworkCoreProgram
    against: Report | None = None
    measured: tuple[tuple[tuple[int, ...], int], ...] = ()

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.program.name

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.program.target.name

    @property
    def config(self) -> str:
        """Name of the Config: its size."""
        return self.program.config.array.name

    @property
    def config_hash(self) -> int:
        return self.program.config.hash

    @property
    def placement(self) -> str:
        """The placement line."""
        return placement_line(self.program)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.program.notes

    @property
    def clock(self) -> float | None:
        """MHz."""
        return self.program.target.clock

    @property
    def ceilings(self) -> Ceilings:
        """The peak rates of the array, of loads and of the lanes; the sizes of memory and B."""
        config = self.program.config
        array = config.array
        return Ceilings(
            config.peak, config.read_vectors * array.depth, array.lanes / array.scale_cycles,
            config.memory_bytes, config.b_words * array.cols * array.depth,
        )

    @cached_property
    def phases(self) -> tuple[ListPhases, ...]:
        """When each list loads, computes and stores."""
        return tuple(list_phases(self.program, segment) for segment in self.program.segments)

    @cached_property
    def layers(self) -> tuple[NetworkCoreLayer, ...]:
        """All operators, in the order of execution."""
        program, found = self.program, []
        for segment, phases in zip(program.segments, self.phases, strict=True):
            found += [self._host_layer(step) for step in segment.before]
            layers = [
                self._core_layer(step, work)
                for step, work in zip(segment.steps, phases.layers, strict=True)
            ]
            layers += [self._renamed(step) for step in segment.renamed]
            # The layers of a list are in the order of their last operators.
            found += sorted(layers, key=lambda layer: max(layer.position))
        return (*found, *(self._host_layer(step) for step in program.after))

    def _host_layer(self, step: Step):
        program = self.program
        layer = NetworkCoreLayer(
            operators=step.operators, name=step.name, position=step.position, macs=step.macs,
            on_weft=step.placement.on_weft, reason=step.placement.reason,
            remedy=remedy_of(program, step),
        )
        if step.estimate is None:
            return layer
        cycles = step.estimate.cycles // program.batch
        seconds = program.target.core_seconds(cycles)
        return dataclasses.replace(
            layer, jobs=step.estimate.jobs, cycles=cycles,
            utilization=_share(step.macs, cycles * program.config.peak),
            core_ms=None if seconds is None else 1e3 * seconds,
            measured=dict(self.measured).get(step.position),
        )

    def _core_layer(self, step: NetworkCoreStep, work):
        target, peak = self.program.target, self.program.config.peak
        seconds = target.core_seconds(step.cycles)
        return dataclasses.replace(
            self._renamed(step), macs=step.macs, jobs=step.jobs, panels=step.panels,
            panel_rows=step.panel_rows, words=step.words, cycles=step.cycles, work=work,
            utilization=_share(step.macs, step.cycles * peak),
            core_bound=_bound(step.cycles, work),
            core_ms=None if seconds is None else 1e3 * seconds,
            measured=dict(self.measured).get(step.position),
        )

    def _renamed(self, step: NetworkCoreStep | NetworkCoreRename):
        place, target = step.place, self.program.target
        layer = NetworkCoreLayer(
            operators=step.operators, name=step.name, position=step.position, macs=0,
            on_weft=True, core_ms=None if target.clock is None else 0.0,
        )
        return layer if place is None else dataclasses.replace(
            layer, output=(place.height, place.width, place.channels),
            map_bytes=place.pitches.vectors * self.program.config.array.depth,
        )

    @property
    def on_weft(self) -> tuple[NetworkCoreLayer, ...]:
        """The layers on the core that have work."""
        return tuple(layer for layer in self.layers if layer.jobs and layer.output)

    @property
    def products(self) -> tuple[NetworkCoreLayer, ...]:
        """The operators of the host whose products the core computes, one by one."""
        return tuple(layer for layer in self.layers if layer.jobs and not layer.output)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations on the core."""
        return sum(layer.macs for layer in (*self.on_weft, *self.products))

    @property
    def cycles(self) -> int:
        """Predicted cycles of one inference: the sum of all lists, products included."""
        return self.program.cycles // self.program.batch

    @property
    def utilization(self) -> float:
        """MACs, divided by the cycles and the peak; in 0..1."""
        return _share(self.macs, self.cycles * self.ceilings.peak)

    @property
    def core_ms(self) -> float | None:
        """Predicted time of the core; None without a clock."""
        seconds = self.program.target.core_seconds(self.cycles)
        return None if seconds is None else 1e3 * seconds

    @property
    def wire_ms(self) -> float | None:
        """Time of the bytes on the link; None without a serial port."""
        seconds = link_seconds(self.program)
        return None if seconds is None else 1e3 * seconds

    @cached_property
    def overlaps(self) -> bool:
        """Whether the next input is sent while a list computes: there is a `second_place`."""
        return second_place(self.program, self.program.config.program_bytes) is not None

    @property
    def rate(self) -> float | None:
        """Inferences a second at most, with many inputs; None without a clock and a serial port.

        ``1 / max(core, sent)``, with the times of the list and of the bytes to the core, if the
        next input is sent while a list computes. Else ``1 / (core + wire)``.
        """
        if self.core_ms is None or self.wire_ms is None:
            return None
        if not self.overlaps:
            return 1e3 / (self.core_ms + self.wire_ms)
        sent, received = self.link
        return 1e3 / max(self.core_ms, self.wire_ms * max(sent, received) / (sent + received))

    @cached_property
    def link(self) -> tuple[int, int]:
        """Bytes to the core and from it in one inference, with frames."""
        return link_bytes(self.program)

    def with_measured(self, records: Sequence) -> "NetworkCoreReport":
        """Return the report with the measured cycles of a session's records."""
        counted = [record for record in records if record.cycles is not None]
        measured = tuple((record.step.position, record.cycles) for record in counted)
        return dataclasses.replace(self, measured=measured)

    def to_json(self) -> dict[str, Any]:
        """Return all facts as JSON values."""
        program = self.program
        sent, received = self.link
        return {
            "name": program.name, "source": program.source, "mode": program.mode,
            "placement": self.placement, "target": self.target, "config": self.config,
            "network_core_hash": program.config.hash, "clock": self.clock, "batch": program.batch,
            "cycles": self.cycles, "utilization": self.utilization, "core_ms": self.core_ms,
            "wire_ms": self.wire_ms, "rate": self.rate,
            "ceilings": dataclasses.asdict(self.ceilings),
            "memory": program.config.memory_bytes, "areas": dict(program.areas),
            "used": program.memory_used, "streamed": program.streamed,
            "b_words": program.config.b_words,
            "link": {"sent": sent, "received": received},
            "lists": [
                _list(program, segment, phases)
                for segment, phases in zip(program.segments, self.phases, strict=True)
            ],
            "layers": [dataclasses.asdict(layer) for layer in self.on_weft],
            "products": [dataclasses.asdict(layer) for layer in self.products],
            "host": [
                {"operator": layer.operator, "name": layer.name, "position": layer.position,
                 "reason": layer.reason, "remedy": layer.remedy}
                for layer in self.layers if not layer.on_weft
            ],
            "notes": list(program.notes),
            "left_out": left_out_json(program),
            "against": self.against and self.against.to_json(),
        }

    def totals(self) -> dict[str, str]:
        sent, received = self.link
        return super().totals() | {"bytes sent": f"{sent:,}", "bytes received": f"{received:,}"}

    def show(self, console) -> None:
        from weft.models.report.network_core_views import show

        show(self, console)

    def pictures(self) -> dict[str, str]:
        from weft.models.report.network_core_views import pictures

        return pictures(self)

    def page_parts(self) -> PageParts:
        from weft.models.report.network_core_views import page_parts

        return page_parts(self)


def _bound(cycles, work):
    """Return the part of the core that takes longest, or ``latency`` if more than half is left."""
    longest = max(work.compute, work.drain) + work.wait
    if 2 * longest < cycles:
        return "latency"
    parts = {"compute": work.compute, "load": work.wait, "drain": work.drain}
    return max(parts, key=parts.get)


def _share(part, whole):
    return part / whole if whole else 0.0


def _list(program, segment, phases):
    sent, received = list_bytes(program, segment)
    return {
        "cycles": phases.cycles, "sent": sent, "received": received,
        "positions": [step.position for step in segment.steps],
        "loads": phases.loads, "jobs": [dataclasses.astuple(job) for job in phases.jobs],
    }
