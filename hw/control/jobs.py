"""The job table: every job from its header until its last result, and what loads must not touch."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.commands import JobFlag, Region, Status
from weft.hw.control.headers import JobHeader, LoadHeader

__all__ = ["Job", "JobTable"]


class Job(data.StructLayout):
    """What the tiler needs of a job; ``finish`` has a bit for each of the ``finishes``."""

    def __init__(self, geometries, finishes):
        operands = {
            name: geometries[region] for name, region in _OPERANDS.items() if region in geometries
        }
        flags = [*_FLAGS, *(_C_FLAGS if Region.C in geometries else [])]
        super().__init__({
            "tag": 16,
            "status": 2,
            **{flag.name.lower(): 1 for flag in flags},
            "finish": data.StructLayout({flag.name.lower(): 1 for flag in finishes}),
            **{name: range(size + 1) for name, size in _most(geometries).items()},
            **{f"{name}_page": range(g.pages) for name, g in operands.items()},
            **{f"{name}_pitch": range(g.pages + 1) for name, g in operands.items()},
        })


class JobTable(wiring.Component):
    """A ring of ``jobs`` jobs: pushed by the decoder, read by the tiler, retired by the results.

    A job pushed in one cycle can be read in the next. Panels of a job without FEED are all ready;
    those of one with it become so as FEED loads end. The load on offer conflicts while it spans a
    page of a job in the table, the job that it feeds excepted; a job without PRELOAD has no C.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    jobs : int
        Power of two.
    known : JobFlag
        All flags that this core knows.
    finishes : sequence of JobFlag
        Those of its result path.
    slots : int
        Tiles of a pass.

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

    def __init__(self, *, geometries, jobs, known, finishes, slots):
        self.geometries = geometries
        self.known = known
        self.jobs = jobs
        self.slots = slots
        self.Job = Job(geometries, finishes)
        self.Count = range(max(geometries[r].pages for r in (Region.A, Region.B)) + 1)
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
        owners = [name for name, region in _OPERANDS.items() if region in self.geometries]
        m.submodules.jobs = jobs = Memory(shape=self.Job, depth=self.jobs, init=[])
        write, read = jobs.write_port(), jobs.read_port(domain="comb")
        loaded = [Array(Signal(self.Count, name=f"loaded_{x}_{n}") for n in ring) for x in "ab"]
        spans = {
            x: [Signal(self._span(x), name=f"span_{x}_{n}") for n in ring] for x in owners
        }
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
            for n in ring:
                with m.If(tail == n):
                    for x in owners:
                        begin = header[f"{x}_page"]
                        there = _set(header, JobFlag.PRELOAD) if x == "c" else 1
                        m.d.sync += [
                            spans[x][n].begin.eq(begin),
                            spans[x][n].end.eq(Mux(there, begin + header[f"{x}_pages"], 0)),
                        ]
                    for x in range(2):
                        m.d.sync += loaded[x][n].eq(Mux(header.flags[x], 0, ~0))
        self._compare(m, spans, valid, fresh)
        return m

    def _span(self, x):
        """The shape of the pages that a job has of an operand."""
        pages = self.geometries[_OPERANDS[x]].pages
        return data.StructLayout({"begin": range(pages), "end": range(2 * pages + 1)})

    def _compare(self, m, spans, valid, fresh):
        """Whether the load has to wait."""
        load, end = self.load, self.load.page + self.load.pages
        # The table is everybody's.
        with m.If((load.operand == Region.TABLE) & valid.any()):
            m.d.comb += self.conflict.eq(1)
        for x, held in spans.items():
            # Parameters lie where B lies.
            regions = [_OPERANDS[x], *([Region.PARAMETERS] if x == "b" else [])]
            for n, span in enumerate(held):
                overlap = (load.page < span.end) & (span.begin < end)
                feeds = load.flags[0] & fresh[n]
                with m.If(valid[n] & overlap & ~feeds & load.operand.matches(*regions)):
                    m.d.comb += self.conflict.eq(1)

    def _fill(self, job, header):
        """Statements that take a header over, and say whether it can be run at all."""
        wrong = (header.flags & (0xFFFF & ~int(self.known))).any()
        for name, most in _most(self.geometries).items():
            wrong |= (header[name] == 0) | (header[name] > most)
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        kept = _set(header, JobFlag.ACCUMULATE | JobFlag.KEEP)
        wrong |= kept & ((header.m > a.edge) | (header.n > self.slots * b.edge))
        wrong |= _set(header, JobFlag.ACCUMULATE) & _set(header, JobFlag.PRELOAD)
        return [
            job.status.eq(Mux(wrong, Status.REJECTED, 0)),
            *(job[name].eq(header[name]) for name in job.shape().members if name in _NUMBERS),
            *(
                bits[flag.name.lower()].eq(_set(header, flag))
                for bits in (job, job.finish)
                for flag in JobFlag if flag.name.lower() in bits.shape().members
            ),
        ]


_OPERANDS = {"a": Region.A, "b": Region.B, "c": Region.C}
_NUMBERS = {"tag", "m", "n", "k", *(f"{x}_{of}" for x in _OPERANDS for of in ("page", "pitch"))}
_FLAGS = JobFlag.ACCUMULATE, JobFlag.KEEP
_C_FLAGS = JobFlag.PRELOAD, JobFlag.BROADCAST


def _set(header, flags):
    """Whether a header has any of some flags."""
    return (header.flags & flags).any()


def _most(geometries):
    """The largest M, N and K that the buffers and a header hold."""
    a, b = geometries[Region.A], geometries[Region.B]
    lines = [min(g.pages * g.edge, 0xFFFF) for g in (a, b)]
    return {"m": lines[0], "n": lines[1], "k": min(a.words, b.words) * a.depth}
