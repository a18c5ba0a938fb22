"""The job table: every job from its header until its last result, and what loads must not touch."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.commands import JobFlag, Region
from weft.hw.control.headers import JobHeader, LoadHeader, exceeds

__all__ = ["JobEntry", "JobTable"]


class JobEntry(data.StructLayout):
    """What the tiler needs of a job; ``epilogue`` has a bit for each of the ``finishes``."""

    def __init__(self, geometries, finishes, tag=16):
        operands = {
            name: geometries[region] for name, region in _OPERANDS.items() if region in geometries
        }
        flags = [*_FLAGS, *(_C_FLAGS if Region.C in geometries else [])]
        super().__init__({
            "tag": tag,
            **{flag.name.lower(): 1 for flag in flags},
            "epilogue": data.StructLayout({flag.name.lower(): 1 for flag in finishes}),
            **{name: range(size + 1) for name, size in _most(geometries).items()},
            **{f"{name}_page": range(g.pages) for name, g in operands.items()},
            **{f"{name}_pitch": range(g.pages + 1) for name, g in operands.items()},
        })


class JobTable(wiring.Component):
    """A ring of ``jobs`` jobs: pushed by the decoder, read by the tiler, retired by the results.

    A job pushed in one cycle can be read in the next; its tag stays, and its place goes on for it.
    Panels of a job without FEED are all ready; those of one with it become so as FEED loads end.
    The load on offer conflicts while it spans a page of a job in the table, the job that it feeds
    excepted; a job without PRELOAD has no C. What is said of a load is true three cycles after it
    came, and follows the table by one.

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
        It stays for a cycle after it was taken.
    pull : Out, stream of `JobEntry`
        Jobs in order; one pulled stays in the table.
    owner : Out
        The place of the job on offer.
    rejected : Out
        The job pulled last cannot be run. Right from the cycle after the pull on.
    loaded : Out, 2 counts
        Panels ready of A and B of the job pulled last. Right from two cycles after the pull on.
    panel : In, 2 bits
        A panel of A or of B was fed.
    place : In, tag : Out
        Of a job in the table.
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
        self.Job = JobEntry(geometries, finishes, tag=range(jobs))
        self.Count = range(max(geometries[r].pages for r in (Region.A, Region.B)) + 1)
        super().__init__({
            "push": In(stream.Signature(JobHeader)),
            "pull": Out(stream.Signature(self.Job)),
            "owner": Out(range(jobs)),
            "rejected": Out(1),
            "loaded": Out(data.ArrayLayout(self.Count, 2)),
            "panel": In(data.ArrayLayout(1, 2)),
            "place": In(range(jobs)),
            "tag": Out(16),
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
        fresh = Signal(self.jobs)  # the latest
        tail = Signal(ring)  # where the next job goes
        head = Signal(ring)  # what the tiler has next
        pulled = Signal(ring)  # what it has
        oldest = Signal(ring)
        held = Signal(range(self.jobs + 1))  # jobs in the table,
        unread = Signal(range(self.jobs + 1))  # and those of them not yet pulled
        full = Signal()

        header = self.push.payload
        pushes = self.push.valid & self.push.ready
        pulls = self.pull.valid & self.pull.ready
        m.d.comb += [
            self.push.ready.eq(~full),
            read.addr.eq(head),
            self.owner.eq(head),
            self.pull.payload.eq(read.data),
            self.empty.eq(~valid.any() | (self.retire & (held == 1))),
        ]
        m.d.sync += [self.loaded[x].eq(loaded[x][pulled]) for x in range(2)]
        m.d.sync += [
            held.eq(held + pushes - self.retire),
            unread.eq(unread + pushes - pulls),
        ]
        with m.If(pushes & ~self.retire):
            m.d.sync += full.eq(held == self.jobs - 1)
        with m.Elif(self.retire):
            m.d.sync += full.eq(0)
        with m.If(pushes):
            m.d.sync += self.pull.valid.eq(1)
        with m.Elif(pulls):
            m.d.sync += self.pull.valid.eq(unread != 1)
        with m.If(self.retire):
            m.d.sync += [valid.bit_select(oldest, 1).eq(0), oldest.eq(oldest + 1)]
        with m.If(pulls):
            m.d.sync += [pulled.eq(head), head.eq(head + 1)]
        for x in range(2):
            for n in ring:
                with m.If(self.panel[x] & fresh[n] & ~loaded[x][n].all()):
                    m.d.sync += loaded[x][n].eq(loaded[x][n] + 1)
        m.submodules.tags = tags = Memory(shape=16, depth=self.jobs, init=[])
        of_tag, tag = tags.write_port(), tags.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(tail), write.en.eq(pushes), write.data.tag.eq(tail),
            *self._fill(write.data, header),
            of_tag.addr.eq(tail), of_tag.en.eq(pushes), of_tag.data.eq(header.tag),
            tag.addr.eq(self.place), self.tag.eq(tag.data),
        ]
        with m.If(pushes):
            m.d.sync += [valid.bit_select(tail, 1).eq(1), tail.eq(tail + 1)]
        # The rest of it in the cycle after, when the header is still there.
        pushed = Signal()
        place = Signal(ring)
        m.d.sync += [pushed.eq(pushes), place.eq(tail)]
        self._check(m, header, pushed, place, pulled)
        with m.If(pushed):
            m.d.sync += fresh.eq(1 << place)
            for n in ring:
                with m.If(place == n):
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
        """Whether the load has to wait: for which places, if there is a job."""
        load = self.load
        # As wide as any page or end that there is.
        width = max(len(span[0].end) for span in spans.values())
        end = Signal(width)
        shared = Signal()  # the table: it is everybody's
        overlaps = Signal(self.jobs)
        m.d.sync += [
            end.eq(load.page + load.pages),
            shared.eq(load.operand == Region.TABLE),
            overlaps.eq(0),
        ]
        for x, held in spans.items():
            # Parameters lie where B lies.
            regions = [_OPERANDS[x], *([Region.PARAMETERS] if x == "b" else [])]
            for n, span in enumerate(held):
                overlap = (load.page[:width] < span.end) & (span.begin < end)
                feeds = load.flags[0] & fresh[n]
                with m.If(overlap & ~feeds & load.operand.matches(*regions)):
                    m.d.sync += overlaps[n].eq(1)
        m.d.sync += self.conflict.eq((valid & (overlaps | shared.replicate(self.jobs))).any())

    def _check(self, m, header, pushed, place, pulled):
        """Whether a job can be run at all: part by part in one cycle, the whole in the next."""
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        kept = _set(header, JobFlag.ACCUMULATE | JobFlag.KEEP)
        both = _set(header, JobFlag.ACCUMULATE) & _set(header, JobFlag.PRELOAD)
        parts = [
            (header.flags & (0xFFFF & ~int(self.known))).any() | both,
            kept & (header.m > a.edge),
            kept & (header.n > self.slots * b.edge),
        ]
        for name, most in _most(self.geometries).items():
            parts += [header[name] == 0, exceeds(header[name], most)]
        rejected = Signal(self.jobs)
        wrong = Signal(len(parts))
        m.d.sync += wrong.eq(Cat(parts))
        with m.If(pushed):
            m.d.sync += rejected.bit_select(place, 1).eq(wrong.any())
        m.d.comb += self.rejected.eq(rejected.bit_select(pulled, 1))

    def _fill(self, job, header):
        """Statements that take a header over."""
        return [
            *(job[name].eq(header[name]) for name in job.shape().members if name in _NUMBERS),
            *(
                bits[flag.name.lower()].eq(_set(header, flag))
                for bits in (job, job.epilogue)
                for flag in JobFlag if flag.name.lower() in bits.shape().members
            ),
        ]


_OPERANDS = {"a": Region.A, "b": Region.B, "c": Region.C}
_NUMBERS = {"m", "n", "k", *(f"{x}_{of}" for x in _OPERANDS for of in ("page", "pitch"))}
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
