"""The execution of a list that holds one job: it reads the next one when the job has ended."""

from amaranth.hdl import Signal

from weft.hw.chip.list_execution import ListExecution

__all__ = ["OneJobExecution"]


class OneJobExecution(ListExecution):
    """A `ListExecution` whose ``job`` is the descriptor that its head holds.

    It needs no second register for the fields, which are stable from ``start`` to ``job_done``. The
    next job starts when its descriptor has been read and checked.
    """

    def _start_jobs(self, m, jobs, log, job_busy):
        start_ok, take = Signal(), Signal()
        # The log accepts no job in the cycle after job_done, in which start_ok may still be 1.
        m.d.comb += [
            jobs.take.eq(self.job_done), self.job.eq(jobs.next),
            take.eq(start_ok & ~job_busy & log.accepts),
        ]
        m.d.sync += [
            start_ok.eq(jobs.ready & jobs.satisfied & log.inside & ~take),
            self.start.eq(take),
        ]
        with m.If(self.job_done):
            m.d.sync += job_busy.eq(0)
        with m.If(take):
            m.d.sync += job_busy.eq(1)
        return start_ok
