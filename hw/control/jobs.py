"""The job table: every job from its header until its last result, and what loads must not touch."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.commands import JobFlag, Status
from weft.hw.control.headers import JobHeader, LoadHeader

__all__ = ["Job", "JobTable"]


class Job(data.StructLayout):
    """What the tiler needs of a job."""

    def __init__(self, geometries):
        a, b = geometries
        most = _most(geometries)
        super().__init__({
            "tag": 16,
            "status": 2,
            "accumulate": 1,
            "keep": 1,
            "requantize": 1,
            "table": 1,
            **{name: range(size + 1) for name, size in most.items()},
            "a_page": range(a.pages),
            "a_pitch": range(a.pages + 1),
            "b_page": range(b.pages),
            "b_pitch": range(b.pages + 1),
        })


class JobTable(wiring.Component):
    """A ring of ``jobs`` jobs: pushed by the decoder, read by the tiler, retired by the results.

    A job pushed in one cycle can be read in the next. Panels of a job without FEED are all ready;
    those of one with it become so as FEED loads end. The load on offer conflicts while it spans a
    page of a job in the table, the job that it feeds excepted.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    jobs : int
        Power of two.
    flags : JobFlag
        Those that this core knows.

    Attributes
    ----------
    push : In, stream of `JobHeader`
    pull : Out, stream of `Job`
        Jobs in order; one pulled stays in the table.
    loaded : Out, 2 counts
        Panels ready of A and B of the job pulled last.
    panel : In, 2 bits
        A panel of A or of B was fed.
    retire : In
        The oldest job has ended.
    load : In, `LoadHeader`
    conflict : Out
        The load has to wait.
    empty : Out
    """

    def __init__(self, *, geometries, jobs, flags):
        self.geometries = geometries
        self.flags = flags
        self.jobs = jobs
        self.Job = Job(geometries)
        self.Count = range(max(g.pages for g in geometries) + 1)
        super().__init__({
            "push": In(stream.Signature(JobHeader)),
            "pull": Out(stream.Signature(self.Job)),
            "loaded": Out(data.ArrayLayout(self.Count, 2)),
            "panel": In(data.ArrayLayout(1, 2)),
            "retire": In(1),
            "load": In(LoadHeader),
            "conflict": Out(1),
            "empty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        ring = range(self.jobs)
        pages = max(g.pages for g in self.geometries)
        span = data.StructLayout({"begin": range(pages), "end": range(2 * pages + 1)})
        m.submodules.jobs = jobs = Memory(shape=self.Job, depth=self.jobs, init=[])
        write, read = jobs.write_port(), jobs.read_port(domain="comb")
        loaded = [Array(Signal(self.Count, name=f"loaded_{x}_{n}") for n in ring) for x in "ab"]
        spans = [[Signal(span, name=f"span_{x}_{n}") for n in ring] for x in "ab"]
        valid = Signal(self.jobs)  # in the table
        unread = Signal(self.jobs)  # not yet pulled
        fresh = Signal(self.jobs)  # the latest
        tail = Signal(ring)  # where the next job goes
        head = Signal(ring)  # what the tiler has next
        pulled = Signal(ring)  # what it has
        oldest = Signal(ring)

        header = self.push.payload
        m.d.comb += [
            self.push.ready.eq(~valid.bit_select(tail, 1)),
            self.pull.valid.eq(unread.bit_select(head, 1)),
            read.addr.eq(head),
            self.pull.payload.eq(read.data),
            self.empty.eq(~valid.any()),
        ]
        m.d.comb += [self.loaded[x].eq(loaded[x][pulled]) for x in range(2)]
        with m.If(self.retire):
            m.d.sync += [valid.bit_select(oldest, 1).eq(0), oldest.eq(oldest + 1)]
        with m.If(self.pull.valid & self.pull.ready):
            m.d.sync += [unread.bit_select(head, 1).eq(0), pulled.eq(head), head.eq(head + 1)]
        for x in range(2):
            for n in ring:
                with m.If(self.panel[x] & fresh[n] & ~loaded[x][n].all()):
                    m.d.sync += loaded[x][n].eq(loaded[x][n] + 1)
        m.d.comb += [write.addr.eq(tail), write.en.eq(self.push.valid & self.push.ready)]
        m.d.comb += self._fill(write.data, header)
        with m.If(self.push.valid & self.push.ready):
            m.d.sync += [
                valid.bit_select(tail, 1).eq(1),
                unread.bit_select(tail, 1).eq(1),
                fresh.eq(1 << tail),
                tail.eq(tail + 1),
            ]
            starts = [header.a_page, header.b_page]
            sizes = [header.a_pages, header.b_pages]
            for n in ring:
                with m.If(tail == n):
                    for x in range(2):
                        m.d.sync += [
                            spans[x][n].begin.eq(starts[x]),
                            spans[x][n].end.eq(starts[x] + sizes[x]),
                            loaded[x][n].eq(Mux(header.flags[x], 0, ~0)),
                        ]

        end = self.load.page + self.load.pages
        # Parameters lie where B lies; a table is everybody's.
        with m.If((self.load.operand == 3) & valid.any()):
            m.d.comb += self.conflict.eq(1)
        for x in range(2):
            operands = (self.load.operand == x) | ((self.load.operand == 2) & (x == 1))
            for n in ring:
                overlap = (self.load.page < spans[x][n].end) & (spans[x][n].begin < end)
                feeds = self.load.flags[0] & fresh[n]
                with m.If(valid[n] & overlap & ~feeds & operands):
                    m.d.comb += self.conflict.eq(1)
        return m

    def _fill(self, job, header):
        """Statements that take a header over, and say whether it can be run at all."""
        wrong = header.destination.any() | (header.flags & (0xFFFF & ~int(self.flags))).any()
        for name, most in _most(self.geometries).items():
            wrong |= (header[name] == 0) | (header[name] > most)
        a, b = self.geometries
        kept = (header.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP)).any()
        wrong |= kept & ((header.m > a.edge) | (header.n > b.edge))
        same = ("tag", "m", "n", "k", "a_page", "a_pitch", "b_page", "b_pitch")
        return [
            *(job[name].eq(header[name]) for name in same),
            job.status.eq(Mux(wrong, Status.REJECTED, 0)),
            *(
                job[flag.name.lower()].eq((header.flags & flag).any())
                for flag in (JobFlag.ACCUMULATE, JobFlag.KEEP, JobFlag.REQUANTIZE, JobFlag.TABLE)
            ),
        ]


def _most(geometries):
    """The largest M, N and K that the buffers hold."""
    a, b = geometries
    return {
        "m": a.pages * a.edge, "n": b.pages * b.edge, "k": min(a.words, b.words) * a.depth,
    }
