"""When a network core loads, computes and stores in an inference, by the exact cycle model."""

from dataclasses import dataclass

from weft.models.network_core.prediction import predict_run
from weft.models.network_core.program import NetworkCoreProgram, NetworkCoreSegment
from weft.network_core.cycles import softmax_cycles
from weft.network_core.cycles.array import panel_sizes
from weft.network_core.descriptors import ListJob, ListLoad, unpack_list

__all__ = ["JobPhases", "LayerWork", "ListPhases", "list_phases"]


@dataclass(frozen=True)
class JobPhases:
    """The cycles of a job, counted from the START of its list.

    Attributes
    ----------
    start, computed, end : int
        Its start, its last array step, its last store.
    """

    start: int
    computed: int
    end: int


@dataclass(frozen=True)
class LayerWork:
    """What a layer needs of each part of the core, in cycles of an inference.

    Attributes
    ----------
    compute : int
        Cycles of the array steps.
    drain : int
        Cycles in which the lanes are busy, or the unit for SOFTMAX.
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
    found = predict_run(config, segment.run, segment.run_first, program.log)
    phases = tuple(
        JobPhases(start, computed, end) for (start, end), computed in zip(
            found.jobs[: len(jobs)], found.computed, strict=False
        )
    )
    loaded = _loaded_bytes(descriptors, config)
    layers = []
    for step in segment.steps:
        numbers = range(step.first_job, step.first_job + step.jobs)
        steps = sum(_steps(jobs[n], config) for n in numbers if not jobs[n].softmax)
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
            vectors = 0 if entry.fill else entry.word_vectors(config)
            waiting += entry.words * vectors * config.array.depth
        elif isinstance(entry, ListJob):
            found.append(waiting)
            waiting = 0
    return found
