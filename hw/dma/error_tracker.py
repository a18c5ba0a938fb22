"""The error tracker: finds the job to which a read error belongs."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ErrorTracker"]

DELAY = 3  # cycles from the last pack word of a load until all its read errors are reported


class ErrorTracker(wiring.Component):
    """Keeps read errors for the status of the job to which they belong.

    ================================ ===========================================================
    read error in a load             job whose status gets READ_ERROR
    ================================ ===========================================================
    that feeds the latest job (FEED) the latest job: ``latest_error``, until the job has ended
    of any other kind                the next job with results: ``next_error``, until the
                                     result address generator has taken the words of that job
    ================================ ===========================================================

    The latest job may have started already. ``hold_jobs`` keeps the next job back until the
    latest one has ended, so ``latest_error`` always means the same job. It also keeps the next
    job back until all errors of the load before it are reported.

    Attributes
    ----------
    read_error : In
        1 bit; pulse: a beat with an error was used for the load whose header was sent last.
    load_done : In
        1 bit; pulse: the last pack word of a load left the aligner.
    feeds_latest : In
        1 bit; the load whose header was sent last feeds the latest job, which has results.
    job_taken : In
        1 bit; pulse: the last word of a job was sent to the result address generator.
    no_job : In
        1 bit; the result address generator has no job.
    next_error, latest_error : Out
        1 bit each; operands of the next job with results, or of the latest one, are wrong.
    hold_jobs : Out
        1 bit; no header of a job may be sent.
    """

    def __init__(self):
        super().__init__({
            "read_error": In(1), "load_done": In(1), "feeds_latest": In(1), "job_taken": In(1),
            "no_job": In(1),
            "next_error": Out(1), "latest_error": Out(1), "hold_jobs": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        pending = Signal(DELAY)
        m.d.comb += self.hold_jobs.eq(self.load_done | pending.any() | self.latest_error)
        m.d.sync += pending.eq(Cat(self.load_done, pending))
        with m.If(self.job_taken):
            m.d.sync += self.next_error.eq(0)
        with m.If(self.no_job):
            m.d.sync += self.latest_error.eq(0)
        with m.If(self.read_error):
            with m.If(self.feeds_latest):
                m.d.sync += self.latest_error.eq(1)
            with m.Else():
                m.d.sync += self.next_error.eq(1)
        return m
