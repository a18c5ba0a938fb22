"""The cycle model of lists: a network core, cycle by cycle, without data."""

from collections.abc import Callable, Sequence

from weft.network_core.config import NetworkCoreConfig, has_single_port
from weft.network_core.cycles.heads import DescriptorTimes, HeadTimes, LoaderTimes
from weft.network_core.cycles.lstm import LstmLayer
from weft.network_core.cycles.memory import ProgramPortTimes, ProgramTiming, SidePortTimes
from weft.network_core.cycles.micro import ListPrediction, predict_micro
from weft.network_core.cycles.output import AddedLayer, PartialLayer, PlainLayer
from weft.network_core.cycles.softmax import SoftmaxLayer
from weft.network_core.cycles.tiles import StoredJob
from weft.network_core.descriptors import ON_CHIP, ListJob, ListLoad, join
from weft.network_core.latencies import LIST_SETTLE, lead, starts_steps

__all__ = ["predict_list"]

LOG_BYTES = 8  # of an entry of the log
ADDED, LIST = range(2)  # clients of the side port, by priority; loads follow the list
WAITING = "ready", "end"  # states of a head that does nothing
_Layer = PlainLayer | AddedLayer | PartialLayer | SoftmaxLayer | LstmLayer


def predict_list(
    config: NetworkCoreConfig, descriptors: Sequence, list_address: int, log_address: int,
    *, limit: int = 1 << 32, timing: ProgramTiming | None = None,
    watch: Callable[[], object] | None = None,
) -> ListPrediction:
    """Predict the cycles of a list without errors, while the host does not use the memory.

    Parameters
    ----------
    config : NetworkCoreConfig
    descriptors : sequence
        The descriptors of `weft.network_core.descriptors`, to the end.
    list_address, log_address : int
        As in START, with ON_CHIP: the banks decide which reads wait for writes.
    limit : int
        Cycles at most.
    timing : ProgramTiming, optional
        Of the program memory, if the core has one.
    watch : callable, optional
        Called after each job.

    Raises
    ------
    ValueError
        If the list does not end in ``limit`` cycles, or if loads and jobs wait for each other.
    """
    if has_single_port(config.array):
        return predict_micro(config, descriptors, list_address, log_address, limit, watch)
    timing = timing or ProgramTiming()
    model = _ListModel(config, descriptors, list_address, log_address, timing, watch)
    while not model.stopped:
        model.skip()
        if model.now >= limit:
            raise ValueError(f"a list must end in {limit} cycles")
        model.step()
    if not model.ended:
        raise ValueError("loads and jobs of a list must not wait for each other")
    return ListPrediction(
        tuple(model.times), tuple(model.started), tuple(model.computed), tuple(model.load_times),
        model.now + 1,
    )


class _LogTimes:
    """`weft.hw.network_core.lists.list_execution.JobLog`, cycle by cycle."""

    def __init__(self, config, first):
        self._banks = config.banks
        self._starts_early = lead(config) > 0
        self._vectors = -(-LOG_BYTES // config.array.depth)
        self._number = first
        self.ended, self.left = False, 0

    @property
    def busy(self):
        """An entry is not written yet."""
        return self.ended or self.left > 0

    @property
    def bank(self):
        """The bank that it wants to write, or None."""
        return self._number % self._banks if self.left else None

    def accepts(self, done):
        """Whether a job may start in the next cycle; ``done``: a job ends in this one."""
        return not self.ended and not ((done or self._starts_early) and self.left)

    def step(self, done, written):
        """A cycle: whether a job ends, and whether the write is accepted in it."""
        moved = self.ended and not self.left
        if written:
            self.left -= 1
            self._number += 1
        if moved:
            self.ended, self.left = False, self._vectors
        if done:
            self.ended = True


class _ListModel:
    """The execution of a list, and the parts around it."""

    def __init__(self, config, descriptors, list_address, log_address, timing, watch):
        self._network_core, self._watch = config, watch
        self._early, self._one_row = config.early, config.array.rows == 1
        self._starts_steps = starts_steps(config)
        self._loads = HeadTimes(config, descriptors, ListLoad)
        if config.resident:  # no such head
            self._loads.state = "end"
        self._jobs = HeadTimes(config, descriptors, ListJob)
        self._on_chip = not config.program_words or bool(list_address & ON_CHIP)
        list_address &= ~ON_CHIP
        self._reader = DescriptorTimes(config, join(list_address, config.banks))
        self._loader = LoaderTimes(config)
        self._log = _LogTimes(config, join(log_address, config.banks))
        self._port = SidePortTimes(config)
        self._program = ProgramPortTimes(config, timing) if config.program_words else None
        self._layer: _Layer | None = None  # whose results are stored
        self._taken: tuple[ListJob, int] | None = None  # the next job whose steps run; their start
        self._before: StoredJob | None = None  # with the option ``early``: the job before
        self._start = 0  # of the output of this layer
        self._load_start = 0  # of the load that runs
        self._for_job = False  # the descriptor is read for the head of jobs
        self._job_taken = False  # in the cycle before
        self._steps_busy = self._start_ok = self._load_valid = self._load_busy = False
        self._loads_done = self._jobs_done = 0
        self._settle = 0
        self._quiet = 0  # cycles in which only the running job did something
        self.now = 1  # the heads begin in this cycle
        self.times: list[tuple[int, int]] = []
        self.started: list[int] = []
        self.computed: list[int] = []
        self.load_times: list[tuple[int, int]] = []

    @property
    def stopped(self) -> bool:
        """The list has stopped: nothing can start any more."""
        return self._settle == LIST_SETTLE

    @property
    def ended(self) -> bool:
        """Both heads have reached the end."""
        return self._loads.state == self._jobs.state == "end"

    def step(self) -> None:
        """A cycle: the outputs of all parts, from their registers; then their next registers."""
        loads, jobs, reader, loader = self._loads, self._jobs, self._reader, self._loader
        ending = self._layer is not None and self._layer.ending(self.now)
        stored = self._layer.stored(self.now) if self._layer else None
        done = stored is not None and stored.last
        bank = stored.bank if stored else None
        may_log = bank is None and self._on_chip
        log_bank = self._log.bank if may_log else None
        logged = log_bank is not None
        program = self._program
        if program and not self._on_chip and self._log.left and not program.stores(self.now):
            program.store(self.now)
            logged = True
        accepts = self._log.accepts(done)
        take_job = self._start_ok and self._may_take(ending, done, accepts)
        take_load = self._load_valid and not loader.busy
        job = jobs.next if take_job else None
        load = loads.next if take_load else None
        fetched, load_done = reader.done, loader.done
        descriptor = self._descriptor()

        self._settle = self._settle + 1 if self._waits() else 0
        self._start_ok = (
            jobs.state == "ready" and jobs.satisfied and not (take_job or self._job_taken)
            and not (self._early and (self._taken or self.now - self._start in (0, 1)))
        )
        self._load_valid = loads.state == "ready" and loads.satisfied and not take_load
        jobs.step(fetched and self._for_job, self._job_taken, self._loads_done)
        self._job_taken = take_job
        loads.step(fetched and not self._for_job, take_load, self._jobs_done)
        self._access(log_bank if bank is None else bank, stored and stored.second)
        if descriptor:
            self._for_job, index = descriptor
            reader.start(index)
        self._log.step(done, logged)
        self._load_busy = take_load or (self._load_busy and not load_done)
        self._loads_done += load_done
        if load_done:
            self.load_times.append((self._load_start, self.now))
        self.now += 1
        if load:
            loader.accept(load)
            self._load_start = self.now
        if done and self._layer:
            self.times.append((self._start, self.now - 1))
            self.computed.append(self._layer.computed)
            self._before = self._layer.stored_job if self._early else None
            self._layer = None
            self._jobs_done += 1
            if self._watch:
                self._watch()
        self._steps_busy = take_job or (self._steps_busy and not ending)
        if self._taken and not self._layer and (accepts or not self._early):
            self._begin(*self._taken)
            self._taken = None
        if job:
            self._quiet = 0  # its head will read the next descriptor
            self.started.append(self.now)
            if self._starts_steps:
                self._taken = job, self.now
            else:
                self._begin(job, self.now)

    def _may_take(self, ending, done, accepts):
        """Whether the next job may start, if it waits for no load."""
        if not self._early:
            return accepts and (ending or not self._steps_busy)
        if self._jobs.next.early:
            return self._layer is None or self._layer.steps_end(self.now)
        return done or self._layer is None

    def _begin(self, job, start):
        """Start the output of a job now, whose steps have started."""
        config = self._network_core
        self._start = self.now
        if job.softmax:
            self._layer = SoftmaxLayer(config, job)
        elif job.lstm:
            self._layer = LstmLayer(config, job)
        elif job.partial:
            self._layer = PartialLayer(config, job, start)
        else:
            kind = AddedLayer if job.add else PlainLayer
            overlap = (self._before, self.now) if self._early else ()
            self._layer = kind(config, job, start, *overlap)

    @property
    def _job_busy(self):
        """A job runs, or its results are stored."""
        return self._steps_busy or self._layer is not None or self._taken is not None

    def skip(self) -> None:
        """Go to the cycle in which the job is ending, if nothing else happens until then."""
        busy = (
            self._load_busy or self._load_valid or self._log.busy or self._reader.busy
            or (self._program and not self._program.idle)
            or "fetch" in (self._loads.state, self._jobs.state)
        )
        waits = self._loads.state in WAITING and self._jobs.state in WAITING
        self._quiet = 0 if busy or not waits else self._quiet + 1
        if self._quiet > LIST_SETTLE and self._layer:
            steps = (
                self._early and self._taken is None and self._jobs.state == "ready"
                and self._jobs.next.early and not self._layer.steps_end(self.now - 1)
            )
            self.now = self._layer.finish(self.now, self._port, steps)

    def _descriptor(self):
        """What the reader starts with, or None: whether it is for a job, and its index."""
        jobs, loads = self._jobs, self._loads
        for_job, for_load = jobs.state == "fetch", loads.state == "fetch"
        if self._reader.busy or not (for_job or for_load):
            return None
        choose_job = for_job and (self._one_row or self._job_busy or not for_load)
        return choose_job, (jobs if choose_job else loads).index

    def _waits(self):
        """Each head waits, and nothing is in flight that could change that."""
        return (
            not (self._job_busy or self._start_ok or self._log.busy)
            and not (self._program and self._program.stores(self.now))
            and not (self._load_busy or self._load_valid)
            and self._jobs.state in WAITING and self._loads.state in WAITING
        )

    def _access(self, written, second):
        """The side port, and the next registers of its clients.

        ``written`` and ``second`` are banks, or None.
        """
        layer = self._layer
        added = layer.read if layer else None
        parts = self._reader, self._loader
        on_chip = self._on_chip, self._loader.on_chip
        reads = [part.read if mine else None for part, mine in zip(parts, on_chip, strict=True)]
        arrived = self._port.arrival(self.now)
        accepted = self._port.step(self.now, (added, *reads), written, second)
        if layer:
            layer.step(self.now, accepted == ADDED, arrived == ADDED)
        taken, come = [accepted], [arrived]
        if self._program:
            reads = [None if mine else part.read for part, mine in zip(parts, on_chip, strict=True)]
            come.append(self._program.arrival())
            taken.append(self._program.step(self.now, reads))
        for number, (part, mine) in enumerate(zip(parts, on_chip, strict=True)):
            port, client = (0, LIST + number) if mine else (1, number)
            part.step(taken[port] == client, come[port] == client)
