"""The list reader: executes a list with two heads, one for loads and one for jobs.

A core with the option ``resident`` has no loads: its list reader has the head for jobs alone.
"""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import (
    JobPort,
    ListBegin,
    LoadPort,
    MemoryWindow,
    NetworkStatus,
    ReadPort,
    VectorWrite,
)
from weft.hw.network_core.layouts import VectorAddress, beat_place
from weft.hw.network_core.lists.list_execution import ListExecution
from weft.network_core.descriptors import ListError, NetworkState
from weft.network_core.latencies import starts_steps

__all__ = ["ListReader"]


class ListReader(wiring.Component):
    """Reads descriptors ahead, starts each job and load in order, and ends the list.

    The next job starts in the cycle after ``job_done``, if it waits for nothing else. If steps have
    a start of their own, it starts in the cycle after ``job_ending``, and its output after
    ``job_done``; with the option ``early`` only a job with the flag ``early`` does so. The fault of
    a load ends the list when no job can start any more, the fault of a job after all jobs before
    it: so the job of ``status`` is the one that the fault stops. An ``address_error`` or a
    ``store_error`` ends the list at once.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    begin : In, `ListBegin`
        Starts a list; only while no list runs. Its addresses are relative to the first word of
        lists.
    abort : In, 1 bit
        Ends the running list with the state ABORTED.
    window : In, `MemoryWindow`
        What the list may use of the memory on the chip.
    program_limit : In; this and the next one only with a program memory
        First word of it beyond the list, its log and the sources of its loads.
    on_chip : Out, 1 bit
        List and log lie in the memory on the chip. It changes while no list runs.
    reads : Out, `ReadPort`
    read_error : In, 1 bit, valid with the data of ``reads``; only with a program memory
        The memory answered the read with an error.
    job : Out, `JobPort`
        Stable to ``job_done``, at least.
    job_done : In, 1 bit
        Pulse: the last store of the job.
    job_ending : In, 1 bit; this and the next one only if `weft.network_core.latencies.starts_steps`
        Pulse: ``job`` may change after it. It comes `weft.network_core.latencies.lead` cycles
        before ``job_done``; with the option ``early``, when the last step has read A and B.
    output_job : Out, `JobPort`
        The job whose results are stored; stable to ``job_done``, at least. The log has the cycle of
        its start.
    step_error : In, 1 bit; this and the next one only with the option ``early``
        Pulse: a read of a step of ``job`` was suppressed. The list goes on to the end of the job
        before.
    follows : Out, 1 bit
        The results of the job before ``job`` are not stored yet.
    load : Out, `LoadPort`; not with the option ``resident``
    address_error : In, 1 bit
        Pulse: an access of the running job was suppressed.
    load_read_error : In, 1 bit; only with a program memory
        Pulse: it answered a read of the load with an error, at the latest in the cycle before
        ``load.done``.
    stored, store_error : In, 1 bit each; only with a program memory
        Pulses: it has stored a vector of the log, or answered the store with an error. The job of
        ``status`` is then the one of the entry.
    timed_out : In, 1 bit
        Pulse: it does not answer.
    writes : Out, stream of `VectorWrite`
        The log.
    written : In, 1 bit
        The memory has all writes that it accepted. The list ends then.
    halt : Out, 1 bit
        No list runs. The core resets all blocks of jobs and loads while it is 1.
    status : Out, `NetworkStatus`
        ``result`` includes the base. ``cycles`` is 0 in the first cycle after ``begin``.
    interrupt : Out, 1 bit
        The field of END, valid with ``finished``.
    finished : Out, 1 bit
        Pulse: the list has ended; ``status`` is valid.
    """

    def __init__(self, config):
        self.config = config
        address = VectorAddress(config)
        word = address["word"].width
        super().__init__({
            "begin": In(ListBegin(config)), "abort": In(1),
            "window": In(MemoryWindow.of(config)),
            **({
                "program_limit": In(word), "on_chip": Out(1), "read_error": In(1),
                "load_read_error": In(1), "stored": In(1), "store_error": In(1),
            } if config.program_words else {}),
            "reads": Out(ReadPort(config)),
            "job": Out(JobPort(config)), "job_done": In(1),
            **({
                "job_ending": In(1), "output_job": Out(JobPort(config)),
            } if starts_steps(config) else {}),
            **({"step_error": In(1), "follows": Out(1)} if config.early else {}),
            **({} if config.resident else {"load": Out(LoadPort(config))}),
            "address_error": In(1), "timed_out": In(1),
            "writes": Out(stream.Signature(VectorWrite(config))), "written": In(1, init=1),
            "halt": Out(1, init=1),
            "status": Out(NetworkStatus(config)), "interrupt": Out(1), "finished": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        run = ListExecution(self.config)
        m.submodules.run = ResetInserter(self.halt)(run)
        status, go, bad_begin = self.status, Signal(), Signal()
        connect(m, run.reads, flipped(self.reads))
        connect(m, flipped(self.window), run.window)
        if not self.config.resident:
            connect(m, run.load, flipped(self.load))
        connect(m, run.writes, flipped(self.writes))
        m.d.comb += [
            run.begin.eq(go), run.cycles.eq(status.cycles),
            run.written.eq(self.written), run.job_done.eq(self.job_done),
        ]
        connect(m, run.job, flipped(self.job))
        if starts_steps(self.config):
            connect(m, run.output_job, flipped(self.output_job))
            m.d.comb += run.job_ending.eq(self.job_ending)
        address_error = self.address_error
        if self.config.early:
            m.d.comb += [run.step_error.eq(self.step_error), self.follows.eq(run.follows)]
            address_error |= run.step_failed
        m.d.sync += [go.eq(0), self.finished.eq(0)]
        with m.If(self.halt):
            with m.If(self.begin.valid):
                m.d.sync += [
                    self.halt.eq(0), go.eq(1), status.state.eq(NetworkState.RUNNING),
                    status.error.eq(ListError.NONE), status.cycles.eq(0), status.job.eq(0),
                ]
        with m.Else():
            m.d.sync += [
                status.cycles.eq(status.cycles + 1), status.job.eq(run.jobs),
                status.result.eq(run.result), status.result_bytes.eq(run.result_bytes),
                self.interrupt.eq(run.interrupt),
            ]
            with m.If(self.abort):
                self._finish(m, NetworkState.ABORTED, ListError.ABORTED)
            with m.Elif(bad_begin):
                self._finish(m, NetworkState.ERROR, ListError.FIELD)
            with m.Elif(address_error):
                self._finish(m, NetworkState.ERROR, ListError.ADDRESS)
            with m.Elif(self.timed_out):
                self._finish(m, NetworkState.ERROR, ListError.TIMEOUT)
            with m.Elif(run.stopped):
                failed = run.error != ListError.NONE
                state = Mux(failed, NetworkState.ERROR, NetworkState.DONE)
                self._finish(m, state, run.error)
            if self.config.program_words:
                with m.If(self.store_error & ~self.abort):  # the log of an earlier job
                    m.d.sync += status.job.eq(run.logged)
                    self._finish(m, NetworkState.ERROR, ListError.BUS)
        bad, base = [], self.window.base
        connect(m, flipped(self.window), run.list_window)
        if self.config.program_words:
            base = Mux(self.begin.on_chip, base, 0)
            m.d.sync += self.on_chip.eq(Mux(self.halt, self.begin.on_chip, self.on_chip))
            with m.If(~self.on_chip):
                m.d.comb += [
                    run.list_window.base.eq(0), run.list_window.limit.eq(self.program_limit),
                ]
            m.d.comb += [
                run.read_error.eq(self.read_error),
                run.load_read_error.eq(self.load_read_error), run.stored.eq(self.stored),
            ]
        for target, address in ((run.list, self.begin.list), (run.log, self.begin.log)):
            start = Signal.like(target)
            m.d.comb += target.eq(start)
            with m.If(self.halt):
                m.d.sync += [start.bank.eq(address.bank), start.word.eq(address.word + base)]
            if self.config.banks & (self.config.banks - 1):
                bad.append(address.bank >= self.config.banks)
        if self.config.program_words:
            bad.append(beat_place(self.config, self.begin.list).any() & ~self.begin.on_chip)
        m.d.sync += bad_begin.eq(Cat(bad).any() & self.halt)
        return m

    def _finish(self, m, state, error):
        """End the list."""
        m.d.sync += [
            self.finished.eq(1), self.halt.eq(1),
            self.status.state.eq(state), self.status.error.eq(error),
        ]
