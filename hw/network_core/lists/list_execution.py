"""The execution of a list: starts of jobs and loads, the state in which nothing can start, the log.
"""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.network_core.interface import JobPort, LoadPort, MemoryWindow, ReadPort, VectorWrite
from weft.hw.network_core.layouts import VectorAddress, add_vectors, within
from weft.hw.network_core.lists.descriptor_reader import DescriptorReader
from weft.hw.network_core.lists.reader_head import ReaderHead
from weft.network_core.descriptors import ListError, ListJob, ListLoad
from weft.network_core.latencies import LIST_SETTLE, lead, starts_steps

__all__ = ["ENTRY_BYTES", "JobLog", "ListExecution"]

ENTRY_BYTES = 8  # the cycles of start and end, 32 bits each


class JobLog(wiring.Component):
    """Writes an entry after each job; a job may start before the entry of the last one is written.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    begin : In, 1 bit
        Pulse: the first entry is at ``address``.
    address : In, `VectorAddress`
        Includes the base.
    window : In, `MemoryWindow`
        What the log may use.
    cycles : In, 32 bits
    start, done : In, 1 bit each
        Pulses: ``cycles`` is the start of a job; its end.
    accepts : Out, 1 bit
        A job may start in the next cycle.
    inside : Out, 1 bit
        The entry of the next job lies within the limits. Valid from the second cycle after
        ``begin`` or ``start``.
    writes : Out, stream of `VectorWrite`
    empty : Out, 1 bit
        All entries of the jobs that have ended are written.
    """

    def __init__(self, config):
        self.config = config
        address = VectorAddress(config)
        super().__init__({
            "begin": In(1), "address": In(address), "window": In(MemoryWindow.of(config)),
            "cycles": In(32), "start": In(1), "done": In(1),
            "accepts": Out(1), "inside": Out(1),
            "writes": Out(stream.Signature(VectorWrite(config))),
            "empty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, depth = self.config, self.config.array.depth
        vectors = -(-ENTRY_BYTES // depth)
        times, entry = (Signal(8 * ENTRY_BYTES, reset_less=True) for _ in range(2))
        ended, left = Signal(), Signal(range(vectors + 1))
        write, pending = self.writes, Signal()
        m.d.comb += [
            pending.eq(left != 0),
            self.empty.eq(~ended & ~pending),
            # The times of the last job must have left their register before a job starts. A job
            # that starts before the last one ends needs more.
            self.accepts.eq(~ended & ~(pending if lead(config) else self.done & pending)),
            write.valid.eq(pending),
            write.payload.data.eq(entry),
            write.payload.enable.eq(~0),
        ]
        # The address of the next job's entry, of the running job's, of the entry that is written.
        following, own = Signal(VectorAddress(config)), Signal(VectorAddress(config))
        after = Signal(VectorAddress(config))  # a job later than following
        address = write.payload.address
        m.d.sync += [
            after.eq(add_vectors(m, following, vectors, config.banks, "entry_after")),
            self.inside.eq(within(
                config, following, vectors, self.window.base, self.window.limit
            )),
        ]
        with m.If(self.begin):
            m.d.sync += following.eq(self.address)
        with m.If(self.start):
            m.d.sync += [
                times[:32].eq(self.cycles), own.eq(following), following.eq(after),
            ]
        with m.If(self.done):
            m.d.sync += [times[32:].eq(self.cycles), ended.eq(1)]
        with m.If(pending & write.ready):
            m.d.sync += [
                entry.eq(entry >> min(8 * depth, len(entry))), left.eq(left - 1),
                address.eq(add_vectors(m, address, 1, config.banks, "next_vector")),
            ]
        with m.If(ended & ~pending):
            m.d.sync += [entry.eq(times), address.eq(own), ended.eq(0), left.eq(vectors)]
        return m


class ListExecution(wiring.Component):
    """Executes one list after each reset; it stops when no job and no load can start any more.

    Attributes without a text are as of `weft.hw.network_core.lists.list_reader.ListReader`.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    begin : In, 1 bit
        Pulse, once after a reset.
    list, log : In, `VectorAddress`
        With the first word of lists; valid with ``begin``.
    cycles : In, 32 bits
        For the log.
    window : In
    list_window : In, `MemoryWindow`
        What the list may read, and where its log may lie.
    reads, writes, written : In or Out
    job, job_done, load : In or Out
    job_ending, output_job : In or Out; only if `weft.network_core.latencies.starts_steps`
    step_error, follows : In or Out, 1 bit each; only with the option ``early``
    step_failed : Out, 1 bit; only with the option ``early``
        A step of the job was refused, and the job before it has ended.
    read_error, load_read_error, stored : In, 1 bit each; only with a program memory
    jobs : Out, 16 bits
        Jobs that have ended.
    logged : Out, 16 bits; only with a program memory
        Jobs whose log entries are stored.
    stopped : Out, 1 bit
        The list has ended; the following outputs are valid.
    error : Out, `weft.network_core.descriptors.ListError`
        NONE if the list has reached its end.
    interrupt, result, result_bytes : Out
        1 bit, `VectorAddress`, 16 bits: the fields of END; the address includes the base.
    """

    def __init__(self, config):
        self.config = config
        self.starts_steps = starts_steps(config)
        address = VectorAddress(config)
        super().__init__({
            "begin": In(1), "list": In(address), "log": In(address), "cycles": In(32),
            "window": In(MemoryWindow.of(config)), "list_window": In(MemoryWindow.of(config)),
            **({
                "read_error": In(1), "load_read_error": In(1),
                "stored": In(1), "logged": Out(ReaderHead.COUNT_BITS),
            } if config.program_words else {}),
            "reads": Out(ReadPort(config)),
            "job": Out(JobPort(config)), "job_done": In(1),
            **({
                "job_ending": In(1), "output_job": Out(JobPort(config)),
            } if self.starts_steps else {}),
            **({
                "step_error": In(1), "step_failed": Out(1), "follows": Out(1),
            } if config.early else {}),
            **({} if config.resident else {"load": Out(LoadPort(config))}),
            "writes": Out(stream.Signature(VectorWrite(config))), "written": In(1, init=1),
            "jobs": Out(ReaderHead.COUNT_BITS), "stopped": Out(1), "error": Out(ListError),
            "interrupt": Out(1), "result": Out(address), "result_bytes": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        loads = None
        if not self.config.resident:
            m.submodules.loads = loads = ReaderHead(self.config, ListLoad)
        m.submodules.jobs = jobs = ReaderHead(self.config, ListJob)
        m.submodules.log = log = JobLog(self.config)
        job_busy, load_busy, load_failed = Signal(), Signal(), Signal()
        load_fault = Signal(ListError, init=ListError.ADDRESS)  # valid with load_failed
        self._read(m, loads, jobs, job_busy)
        self._count_jobs(m, jobs, log, load_failed)
        start_ok = self._start_jobs(m, jobs, log, job_busy)
        if loads:
            self._start_loads(m, loads, load_busy, load_failed)
        if self.config.program_words:
            self._watch_program(m, load_failed, load_fault)

        # Each head waits, and nothing is in flight that could change that.
        waiting, settle = Signal(2), Signal(range(LIST_SETTLE + 1))
        m.d.comb += [
            waiting[0].eq(
                ~job_busy & ~start_ok & log.empty & self.written
                & (jobs.ready | jobs.end | (jobs.fault != ListError.NONE))
            ),
            waiting[1].eq(
                load_failed | ~load_busy & ~self.load.request.valid
                & (loads.ready | loads.end | (loads.fault != ListError.NONE))
                if loads else Const(1)
            ),
            self.stopped.eq(settle == LIST_SETTLE),
        ]
        with m.If(~waiting.all()):
            m.d.sync += settle.eq(0)
        with m.Elif(~self.stopped):
            m.d.sync += settle.eq(settle + 1)

        with m.If(jobs.fault != ListError.NONE):
            m.d.sync += self.error.eq(jobs.fault)
        with m.Elif(jobs.ready & jobs.satisfied):  # only the log keeps the job from its start
            m.d.sync += self.error.eq(ListError.ADDRESS)
        if loads:
            with m.Elif(load_failed):
                m.d.sync += self.error.eq(load_fault)
            with m.Elif(loads.fault != ListError.NONE):
                m.d.sync += self.error.eq(loads.fault)
        with m.Else():
            ended = jobs.end & loads.end if loads else jobs.end
            m.d.sync += self.error.eq(Mux(ended, ListError.NONE, ListError.DEADLOCK))
        m.d.comb += [
            self.interrupt.eq(jobs.interrupt), self.result.eq(jobs.result),
            self.result_bytes.eq(jobs.result_bytes),
        ]
        return m

    def _read(self, m, loads, jobs, job_busy):
        """Read descriptors for the heads. The next job comes first while a job runs.

        In cores of one row, it always comes first: layers are short, and their weights stay in the
        buffers.
        """
        m.submodules.reader = reader = DescriptorReader(self.config)
        connect(m, reader.reads, flipped(self.reads))
        choose_job, for_job, window = Signal(), Signal(), self.window
        connect(m, flipped(self.list_window), reader.window)
        one_row = self.config.array.rows == 1
        m.d.comb += [
            *([reader.read_error.eq(self.read_error)] if self.config.program_words else []),
            choose_job.eq(jobs.fetch if one_row else jobs.fetch & (job_busy | ~loads.fetch)),
            reader.start.eq(~reader.busy & (jobs.fetch | loads.fetch if loads else jobs.fetch)),
            reader.address.eq(
                Mux(choose_job, jobs.address, loads.address) if loads else jobs.address
            ),
        ]
        with m.If(reader.start):
            m.d.sync += for_job.eq(choose_job)
        # The loader adds the base to a source on the chip, if there are two memories.
        heads = [
            (loads, ~for_job, 0 if self.config.program_words else window.base),
            (jobs, for_job, window.base),
        ]
        for head, mine, base in heads if loads else heads[1:]:
            m.d.comb += [
                head.begin.eq(self.begin), head.list.eq(self.list),
                head.window.base.eq(base), head.window.limit.eq(window.limit),
                head.part.eq(reader.part), head.part.valid.eq(reader.part.valid & mine),
                head.fetched.eq(reader.done & mine), head.opcode.eq(reader.opcode),
                head.error.eq(reader.error), head.following.eq(reader.following),
            ]

    def _start_jobs(self, m, jobs, log, job_busy):
        """Start the next job; returns whether it waits only for the end of the running one."""
        start_ok = Signal()
        # The next job starts in the next cycle: only then its head learns it, by ``jobs.take``.
        take = Signal()
        job = Signal(self.job.fields.shape(), reset_less=True)
        busy, ending = job_busy, self.job_done
        if self.starts_steps:
            busy, ending = Signal(name="steps_busy"), self.job_ending
            stores, waits = self._store_jobs(m, log, job, take)
            m.d.comb += job_busy.eq(busy | stores | waits if self.config.early else busy | stores)
        ready = jobs.ready & jobs.satisfied & log.inside & ~take & ~self.job.start
        may_take = start_ok & (~busy | ending) & log.accepts
        if self.config.early:
            # A job without steps ends them with its output.
            ending |= self.job_done & ~waits
            may_take = start_ok & Mux(
                jobs.next.early, ~busy | ending, ~job_busy | self.job_done
            )
            # The place of the next entry of the log is checked two cycles after such a start.
            output_started = Signal()
            m.d.sync += output_started.eq(self.output_job.start)
            ready &= ~waits & ~self.output_job.start & ~output_started
        m.d.comb += [
            jobs.take.eq(self.job.start),
            take.eq(may_take),
            self.job.fields.eq(job),
        ]
        m.d.sync += [
            start_ok.eq(ready),
            self.job.start.eq(take),
        ]
        with m.If(ending):
            m.d.sync += busy.eq(0)
        with m.If(take):
            m.d.sync += [busy.eq(1), job.eq(jobs.next)]
        return start_ok

    def _store_jobs(self, m, log, job, take):
        """Start the output of a job after the end of the job before.

        Returns ``stores``: the output of a job runs; and ``waits``: the output of the job that was
        taken has not started.
        """
        waits, stores = Signal(), Signal()
        begin = Signal()
        fields = Signal.like(self.output_job.fields, reset_less=True)
        may_begin = waits & (~stores | self.job_done)
        if self.config.early:
            failed = Signal()
            may_begin &= log.accepts & ~failed
            with m.If(self.step_error):
                m.d.sync += failed.eq(1)
            m.d.comb += [
                self.follows.eq(waits & stores),
                # The error counts after the job before, whose entry of the log is written.
                self.step_failed.eq(failed & (~waits | (~stores & log.empty))),
            ]
        m.d.comb += [
            begin.eq(may_begin), self.output_job.fields.eq(fields),
        ]
        m.d.sync += self.output_job.start.eq(begin)
        with m.If(self.job_done):
            m.d.sync += stores.eq(0)
        with m.If(begin):
            m.d.sync += [stores.eq(1), waits.eq(0), fields.eq(job)]
        with m.If(take):
            m.d.sync += waits.eq(1)
        return stores, waits

    def _count_jobs(self, m, jobs, log, load_failed):
        """Count jobs and loads that have ended, and write the log.

        A load whose read had an error ends, too, but is not counted.
        """
        connect(m, log.writes, flipped(self.writes))
        connect(m, flipped(self.list_window), log.window)
        ended = Const(0) if self.config.resident else self.load.done
        loads_done, complete = Signal(ReaderHead.COUNT_BITS), ended
        if self.config.program_words:
            complete = complete & ~load_failed
        with m.If(complete & ~loads_done.all()):
            m.d.sync += loads_done.eq(loads_done + 1)
        with m.If(self.job_done & ~self.jobs.all()):
            m.d.sync += self.jobs.eq(self.jobs + 1)
        m.d.comb += [
            jobs.counted.eq(loads_done),
            log.begin.eq(self.begin), log.address.eq(self.log), log.cycles.eq(self.cycles),
            log.start.eq(self.output_job.start if self.starts_steps else self.job.start),
            log.done.eq(self.job_done),
        ]

    def _start_loads(self, m, loads, load_busy, load_failed):
        """Offer the next load when its jobs have ended."""
        request = self.load.request
        m.d.comb += [
            loads.counted.eq(self.jobs),
            loads.take.eq(request.valid & request.ready),
            request.payload.eq(loads.next),
        ]
        m.d.sync += request.valid.eq(loads.ready & loads.satisfied & ~loads.take)
        with m.If(self.load.done):
            m.d.sync += load_busy.eq(0)
        with m.If(loads.take):
            m.d.sync += load_busy.eq(1)
        with m.If(self.load.address_error):
            m.d.sync += load_failed.eq(1)

    def _watch_program(self, m, load_failed, load_fault):
        """Note a read of a load with an error, and count the log entries that are stored."""
        with m.If(self.load_read_error):
            m.d.sync += [load_failed.eq(1), load_fault.eq(ListError.BUS)]
        vectors = -(-ENTRY_BYTES // self.config.array.depth)
        stored = Signal(len(self.logged) + ceil_log2(vectors))
        with m.If(self.stored):
            m.d.sync += stored.eq(stored + 1)
        # An entry has a power of two of vectors, because ``depth`` is one.
        m.d.comb += self.logged.eq(stored >> ceil_log2(vectors))
