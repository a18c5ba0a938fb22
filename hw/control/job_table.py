"""The job table, which holds each job from its header to its last result; and the loader."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import JobFlag, LoadFlag, Region
from weft.hw.control.decoder import JobHeader, LoadHeader, exceeds

__all__ = ["BufferWrite", "JobEntry", "JobTable", "Loader"]

class BufferWrite(data.StructLayout):
    """The write of one stream word into a buffer.

    ``line`` is the address of a row of the buffer's memory. A row holds a *group*: the words that
    share one stream word. If a word is wider than a stream word, the group is one word, and it
    arrives in several stream words, its *segments* (`weft.geometry.Operand`).
    """

    def __init__(self, *, address, segments, pages, bytes_in):
        super().__init__({
            "line": address,
            "segment": range(segments),
            "data": 8 * bytes_in,
            "begin": 1,  # first stream word of a panel that does not continue another panel
            "end": 1,  # last stream word of a panel
            "page": range(pages),
        })


class Loader(wiring.Component):
    """Takes one stream word a cycle: for each panel, for each group of its words, each segment.

    The write leaves one cycle after its stream word arrives. Flags for the end of a word and of a
    panel are computed one word ahead.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    bytes_in : int

    Attributes
    ----------
    load : In, stream of `LoadHeader`
        The payload is valid from one cycle before ``valid`` on. A load may come only after the last
        word of the load before; ``ready`` is always 1.
    words : In, stream of ``bytes_in`` bytes
    last : Out, 1 bit
        The word on ``words`` is the last one of the load; valid with ``words.valid``.
    feed : Out, 1 bit
        The load has the flag FEED: its panels are for the latest job in the job table.
    a, b, parameters, table, c : Out, ``valid`` and `BufferWrite`
        Writes for each buffer that exists.
    """

    def __init__(self, *, geometries, bytes_in):
        self.geometries = geometries
        self.names = {region: region.name.lower() for region in geometries}
        super().__init__({
            "load": In(stream.Signature(LoadHeader)),
            "words": In(stream.Signature(8 * bytes_in)),
            "last": Out(1),
            "feed": Out(1),
            **{
                self.names[region]: Out(data.StructLayout({
                    "valid": 1,
                    "write": BufferWrite(
                        address=ceil_log2(g.words // g.group), segments=g.segments,
                        pages=g.pages, bytes_in=bytes_in,
                    ),
                }))
                for region, g in geometries.items()
            },
        })

    def elaborate(self, platform):
        m = Module()
        geometries = self.geometries.values()
        max_pages = max(g.pages for g in geometries)
        max_words = max(g.words for g in geometries)
        # The load.
        operand = Signal(range(max(self.geometries) + 1))
        pitch = Signal(range(max_pages + 1))
        panel_words = Signal(range(max_words + 1))
        single_group = Signal()  # a panel is one group of words
        continues = Signal()  # the panels continue those loaded before
        # The position in the load, and the ends that it has reached.
        page = Signal(range(max_pages))
        panels_left = Signal(range(max_pages + 1))
        last_panel = Signal()
        word_index = Signal(range(max_words + 1))  # first word of the group, in its panel
        words_ahead = Signal(range(2 * max_words + 1))  # word_index and two groups more
        last_group = Signal()
        segment = Signal(range(max(g.segments for g in geometries)))
        last_segment = Signal()

        new = self.load.payload
        new_group, new_single_segment, new_single_group = self._new_geometry(m, len(panel_words))
        new_single_panel = Signal()  # follows the payload by one cycle, as new_single_group does
        m.d.sync += new_single_panel.eq(new.panels[: len(panels_left)] == 1)
        group = self._group("group")
        max_segment = self._max_segment(m, operand, segment.shape())
        next_segment = Mux(last_segment, 0, segment + 1)[: len(segment)]
        panel_end = last_segment & last_group
        m.d.comb += [
            self.load.ready.eq(1),
            self.words.ready.eq(1),
            self.last.eq(panel_end & last_panel),
        ]
        with m.If(self.words.valid):
            m.d.sync += [segment.eq(next_segment), last_segment.eq(next_segment == max_segment)]
            with m.If(last_segment):
                m.d.sync += [
                    word_index.eq(word_index + group), words_ahead.eq(words_ahead + group),
                    last_group.eq(words_ahead >= panel_words),
                ]
            with m.If(panel_end):
                m.d.sync += [
                    word_index.eq(0), words_ahead.eq(group << 1), last_group.eq(single_group),
                    panels_left.eq(panels_left - 1), last_panel.eq(panels_left == 2),
                    page.eq(page + pitch),
                ]
        with m.If(self.load.valid):
            m.d.sync += [
                operand.eq(new.operand),
                group.eq(new_group),
                last_segment.eq(new_single_segment),
                self.feed.eq((new.flags & LoadFlag.FEED).any()),
                continues.eq((new.flags & LoadFlag.CONTINUE).any()),
                page.eq(new.page),
                pitch.eq(new.pitch),
                panels_left.eq(new.panels),
                last_panel.eq(new_single_panel),
                panel_words.eq(new.words),
                single_group.eq(new_single_group),
                last_group.eq(new_single_group),
                words_ahead.eq(new_group << 1),
            ]
        for region, g in self.geometries.items():
            port = getattr(self, self.names[region])
            m.d.sync += [
                port.valid.eq(self.words.valid & (operand == region)),
                port.write.line.eq((page * g.page + word_index) >> ceil_log2(g.group)),
                port.write.segment.eq(segment),
                port.write.data.eq(self.words.payload),
                port.write.begin.eq((word_index == 0) & (segment == 0) & ~continues),
                port.write.end.eq(panel_end),
                port.write.page.eq(page + (word_index >> ceil_log2(g.page))),
            ]
        return m

    def _group(self, name):
        """A signal for the words of a group."""
        return Signal(range(max(g.group for g in self.geometries.values()) + 1), name=name)

    def _new_geometry(self, m, bits):
        """The geometry of the load at the input.

        Returns the words of a group, whether a word is one segment, and whether a panel is one
        group. The last one is registered: it follows the payload by one cycle.
        """
        group, single_segment, single_group = self._group("new_group"), Signal(), Signal()
        new = self.load.payload
        words = new.words[:bits]  # the decoder has checked the other bits
        with m.Switch(new.operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += [group.eq(g.group), single_segment.eq(g.segments == 1)]
                    m.d.sync += single_group.eq((words - 1)[ceil_log2(g.group) : bits] == 0)
        return group, single_segment, single_group

    def _max_segment(self, m, operand, shape):
        """The last segment of a word of the running load."""
        max_segment = Signal(shape)
        with m.Switch(operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += max_segment.eq(g.segments - 1)
        return max_segment


_OPERANDS = {"a": Region.A, "b": Region.B, "c": Region.C}
_NUMBERS = {"m", "n", "k", *(f"{x}_{field}" for x in _OPERANDS for field in ("page", "pitch"))}
_FLAGS = JobFlag.ACCUMULATE, JobFlag.KEEP
_C_FLAGS = JobFlag.PRELOAD, JobFlag.BROADCAST


class JobEntry(data.StructLayout):
    """The fields of a job that the tile generator needs.

    ``epilogue`` has one bit for each of the ``epilogue_flags``.
    """

    def __init__(self, geometries, epilogue_flags, tag=16):
        operands = {
            name: geometries[region] for name, region in _OPERANDS.items() if region in geometries
        }
        flags = [*_FLAGS, *(_C_FLAGS if Region.C in geometries else [])]
        super().__init__({
            "tag": tag,
            **{flag.name.lower(): 1 for flag in flags},
            "epilogue": data.StructLayout({flag.name.lower(): 1 for flag in epilogue_flags}),
            **{name: range(size + 1) for name, size in _max_sizes(geometries).items()},
            **{f"{name}_page": range(g.pages) for name, g in operands.items()},
            **{f"{name}_pitch": range(g.pages + 1) for name, g in operands.items()},
        })


class JobTable(wiring.Component):
    """A ring of ``jobs`` entries: the decoder pushes, the tile gate pulls, the results retire.

    A job can be pulled in the cycle after its push. A table of two jobs stores the fields of one
    job for the pull: its only job must be pulled before the next push. Inside the core the index
    of its entry stands for its tag; the table returns the tag for an index.

    The table counts the panels of each job that are in the buffers. An operand without FEED is
    complete from the start; each FEED load adds panels to the job pushed last.

    A load conflicts while it overlaps pages of a job in the table, unless it feeds that job. A job
    without PRELOAD has no pages of C. A load of the activation table conflicts with every job.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    jobs : int
        Power of two.
    supported_flags : JobFlag
        The flags that the core supports; the table rejects a job with any other flag.
    epilogue_flags : sequence of JobFlag
        The flags for the result path.
    slots : int
        Tiles of a pass.

    Attributes
    ----------
    push : In, stream of `JobHeader`
        The payload must stay for one cycle after the transfer.
    pull : Out, stream of `JobEntry`
        Jobs in order. The entry stays in the table.
    pull_index : Out, entry index
        Index of the job at ``pull``.
    rejected : Out, 1 bit
        The job pulled last is invalid; valid from the cycle after the pull on.
    ready_panels : Out, 2 counts
        Panels of A and of B in the buffers, for the job pulled last; valid from the second cycle
        after the pull on.
    panel_done : In, 2 bits
        Pulse: a panel of A or of B was fed.
    tag_index : In, entry index
    tag : Out, 16 bits
        Tag of the job at ``tag_index``.
    retire : In
        Pulse: the oldest job has ended.
    load : In, `LoadHeader`
        The load at the decoder.
    conflict : Out, 1 bit
        The load must wait. Valid from the third cycle after ``load`` changes on; it follows a
        change of the table by one cycle.
    empty : Out, 1 bit
        No job is in the table, or the only one retires in this cycle.
    """

    def __init__(self, *, geometries, jobs, supported_flags, epilogue_flags, slots):
        self.geometries = geometries
        self.supported_flags = supported_flags
        self.jobs = jobs
        self.slots = slots
        self.Job = JobEntry(geometries, epilogue_flags, tag=range(jobs))
        self.Count = range(max(geometries[r].pages for r in (Region.A, Region.B)) + 1)
        super().__init__({
            "push": In(stream.Signature(JobHeader)),
            "pull": Out(stream.Signature(self.Job)),
            "pull_index": Out(range(jobs)),
            "rejected": Out(1),
            "ready_panels": Out(data.ArrayLayout(self.Count, 2)),
            "panel_done": In(data.ArrayLayout(1, 2)),
            "tag_index": In(range(jobs)),
            "tag": Out(16),
            "retire": In(1),
            "load": In(LoadHeader),
            "conflict": Out(1),
            "empty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        header = self.push.payload
        push_fire = self.push.valid & self.push.ready
        pull_fire = self.pull.valid & self.pull.ready
        tail = Signal(range(self.jobs))  # entry of the next job
        head = Signal(range(self.jobs))  # entry of the job at `pull`
        current = Signal(range(self.jobs))  # entry of the job pulled last
        with m.If(pull_fire):
            m.d.sync += [current.eq(head), head.eq(head + 1)]
        self._store(m, header, push_fire, tail, head)
        valid = self._track(m, push_fire, pull_fire, tail)

        # The rest happens one cycle after the push, while the header is still at the port.
        r_push, r_tail = Signal(), Signal(range(self.jobs))
        is_tail = Signal(self.jobs)  # one-hot: r_tail
        newest = Signal(self.jobs)  # one-hot: the job pushed last
        m.d.comb += is_tail.eq(Cat(r_tail == n for n in range(self.jobs)))
        m.d.sync += [r_push.eq(push_fire), r_tail.eq(tail)]
        with m.If(r_push):
            m.d.sync += newest.eq(1 << r_tail)
        self._check(m, header, r_push, r_tail, current)
        self._count_panels(m, header, r_push, is_tail, newest, current)
        spans = self._spans(m, header, r_push, is_tail)
        self._compare(m, spans, valid, newest)
        return m

    def _store(self, m, header, push_fire, tail, head):
        """The jobs that were not pulled yet, and the tags, read at `tag_index`."""
        job = Signal(self.Job)
        m.d.comb += [job.tag.eq(tail), *self._job_fields(job, header)]
        if self.jobs == 2:
            # The first of two jobs is pulled in the cycle after its push, so only one waits.
            with m.If(push_fire):
                m.d.sync += self.pull.payload.eq(job)
        else:
            m.submodules.jobs = jobs = Memory(shape=self.Job, depth=self.jobs, init=[])
            job_write, job_read = jobs.write_port(), jobs.read_port(domain="comb")
            m.d.comb += [
                job_write.addr.eq(tail), job_write.en.eq(push_fire), job_write.data.eq(job),
                job_read.addr.eq(head), self.pull.payload.eq(job_read.data),
            ]
        m.submodules.tags = tags = Memory(shape=16, depth=self.jobs, init=[])
        tag_write, tag_read = tags.write_port(), tags.read_port(domain="comb")
        m.d.comb += [
            self.pull_index.eq(head),
            tag_write.addr.eq(tail), tag_write.en.eq(push_fire), tag_write.data.eq(header.tag),
            tag_read.addr.eq(self.tag_index), self.tag.eq(tag_read.data),
        ]

    def _job_fields(self, job, header):
        """Assignments of the fields of a header to a `JobEntry`, except its tag."""
        return [
            *(job[name].eq(header[name]) for name in job.shape().members if name in _NUMBERS),
            *(
                bits[flag.name.lower()].eq(_has_any(header, flag))
                for bits in (job, job.epilogue)
                for flag in JobFlag if flag.name.lower() in bits.shape().members
            ),
        ]

    def _track(self, m, push_fire, pull_fire, tail):
        """The entries in use, and the counts that give ``push.ready`` and ``pull.valid``."""
        valid = Signal(self.jobs)
        oldest = Signal(range(self.jobs))
        level = Signal(range(self.jobs + 1))  # jobs in the table
        pull_level = Signal(range(self.jobs + 1))  # jobs not pulled yet
        full = Signal()
        m.d.comb += [
            self.push.ready.eq(~full),
            self.empty.eq(~valid.any() | (self.retire & (level == 1))),
        ]
        m.d.sync += [
            level.eq(level + push_fire - self.retire),
            pull_level.eq(pull_level + push_fire - pull_fire),
        ]
        with m.If(push_fire & ~self.retire):
            m.d.sync += full.eq(level == self.jobs - 1)
        with m.Elif(self.retire):
            m.d.sync += full.eq(0)
        with m.If(push_fire):
            m.d.sync += self.pull.valid.eq(1)
        with m.Elif(pull_fire):
            m.d.sync += self.pull.valid.eq(pull_level != 1)
        with m.If(self.retire):
            m.d.sync += [valid.bit_select(oldest, 1).eq(0), oldest.eq(oldest + 1)]
        with m.If(push_fire):
            m.d.sync += [valid.bit_select(tail, 1).eq(1), tail.eq(tail + 1)]
        return valid

    def _check(self, m, header, r_push, r_tail, current):
        """Whether a job is invalid: one bit for each rule in one cycle, their OR in the next."""
        a, b = self.geometries[Region.A], self.geometries[Region.B]
        single_pass = _has_any(header, JobFlag.ACCUMULATE | JobFlag.KEEP)
        two_starts = _has_any(header, JobFlag.ACCUMULATE) & _has_any(header, JobFlag.PRELOAD)
        violations = [
            (header.flags & (0xFFFF & ~int(self.supported_flags))).any() | two_starts,
            single_pass & (header.m > a.edge),
            single_pass & (header.n > self.slots * b.edge),
        ]
        for name, size in _max_sizes(self.geometries).items():
            violations += [header[name] == 0, exceeds(header[name], size)]
        rejected = Signal(self.jobs)
        r_violations = Signal(len(violations))
        m.d.sync += r_violations.eq(Cat(violations))
        with m.If(r_push):
            m.d.sync += rejected.bit_select(r_tail, 1).eq(r_violations.any())
        m.d.comb += self.rejected.eq(rejected.bit_select(current, 1))

    def _count_panels(self, m, header, r_push, is_tail, newest, current):
        """Panels of A and B of each job that are in the buffers; all ones if not fed."""
        for x, name in enumerate("ab"):
            counts = Array(Signal(self.Count, name=f"panels_{name}_{n}") for n in range(self.jobs))
            m.d.sync += self.ready_panels[x].eq(counts[current])
            for n, count in enumerate(counts):
                with m.If(self.panel_done[x] & newest[n] & ~count.all()):
                    m.d.sync += count.eq(count + 1)
            with m.If(r_push):
                for n, count in enumerate(counts):
                    with m.If(is_tail[n]):
                        m.d.sync += count.eq(Mux(header.flags[x], 0, ~0))  # FEED_A, FEED_B

    def _spans(self, m, header, r_push, is_tail):
        """The pages of each operand that each job reads; lists by operand."""
        spans = {}
        for name, region in _OPERANDS.items():
            if region not in self.geometries:
                continue
            pages = self.geometries[region].pages
            shape = data.StructLayout({"begin": range(pages), "end": range(2 * pages + 1)})
            spans[name] = [Signal(shape, name=f"span_{name}_{n}") for n in range(self.jobs)]
            begin = header[f"{name}_page"]
            present = _has_any(header, JobFlag.PRELOAD) if name == "c" else 1
            with m.If(r_push):
                for n, span in enumerate(spans[name]):
                    with m.If(is_tail[n]):
                        m.d.sync += [
                            span.begin.eq(begin),
                            span.end.eq(Mux(present, begin + header[f"{name}_pages"], 0)),
                        ]
        return spans

    def _compare(self, m, spans, valid, newest):
        """Compare the load with each entry; ``conflict`` says whether one must end before it.

        One cycle compares: each comparison has a register of its own. The next one combines them.
        """
        load = self.load
        operand = load.operand[: max(Region).bit_length()]  # the decoder checks the others
        width = max(len(span[0].end) for span in spans.values())
        end = Signal(width)
        is_table = Signal()  # all jobs share the activation table
        m.d.sync += [
            end.eq(load.page + load.pages),
            is_table.eq(operand == Region.TABLE),
        ]
        conflicts = [valid & is_table.replicate(self.jobs)]
        for name, job_spans in spans.items():
            # Parameters have the pages of their panels of B.
            regions = [_OPERANDS[name], *([Region.PARAMETERS] if name == "b" else [])]
            before_end, after_begin, concerned = (
                Signal(self.jobs, name=f"{what}_{name}")
                for what in ("before_end", "after_begin", "concerned")
            )
            for n, span in enumerate(job_spans):
                feeds = load.flags[0] & newest[n]
                m.d.sync += [
                    before_end[n].eq(load.page[:width] < span.end),
                    after_begin[n].eq(span.begin < end),
                    concerned[n].eq(operand.matches(*regions) & ~feeds),
                ]
            conflicts.append(valid & before_end & after_begin & concerned)
        m.d.sync += self.conflict.eq(Cat(conflicts).any())


def _has_any(header, flags):
    """Whether a header has any of ``flags``."""
    return (header.flags & flags).any()


def _max_sizes(geometries):
    """The largest M, N and K that the buffers and a header can hold."""
    a, b = geometries[Region.A], geometries[Region.B]
    edges = [min(g.pages * g.edge, 0xFFFF) for g in (a, b)]
    return {"m": edges[0], "n": edges[1], "k": min(a.words, b.words) * a.depth}
