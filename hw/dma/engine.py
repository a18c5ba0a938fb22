"""The DMA engine: feeds a core with operands from memory, and writes its results to memory.

Two small parts come first: one finds the job of a read error, one inserts headers.
"""

from amaranth.hdl import Cat, Module, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.commands import HEADER_BYTES, JobFlag, epilogue_flags, result
from weft.descriptors import DescriptorWord, write_unit
from weft.geometry import memories
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.axi import Axi4
from weft.hw.dma.bounds_check import AddressWindow
from weft.hw.dma.descriptor_fetcher import DescriptorFetcher
from weft.hw.dma.layout import layouts, pack_bytes
from weft.hw.dma.packer import Aligner, Packer, PackReader
from weft.hw.dma.reader import Reader
from weft.hw.dma.result_addresses import OPERAND_ERROR, ResultAddressGenerator
from weft.hw.dma.writer import Writer
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = ["DESCRIPTORS", "Dma", "ErrorTracker", "HeaderInserter"]


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


class HeaderInserter(wiring.Component):
    """Sends a header as the pack words of a PACKED slice, with zeros up to the last stream word.

    Small pack words take part of a header word each; large ones collect several header words.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word.
    pack_word : shape
        `weft.hw.dma.packer.PackWord`.

    Attributes
    ----------
    word, index : In
        A word of the header, 32 bits, and its index; valid with ``take``.
    take : In
        1 bit; take the word. Only while not ``busy``.
    busy : Out
        1 bit; no word can be taken in this cycle.
    slice_start : Out
        1 bit; pulse: the first word of a header is taken.
    words : Out, ``valid`` and ``word``, a `PackWord`
        All zeros while no header is in progress.
    """

    def __init__(self, *, bytes_in, pack_word):
        self.bytes_in = bytes_in
        super().__init__({
            "word": In(32), "index": In(4), "take": In(1),
            "busy": Out(1),
            "slice_start": Out(1),
            "words": Out(data.StructLayout({"valid": 1, "word": pack_word})),
        })

    def elaborate(self, platform):
        m = Module()
        valid, out = self.words.valid, self.words.word
        size = len(out.bytes)
        per_word, per_pack_word = max(4 // size, 1), max(size // 4, 1)  # pack words; header words
        zeros = max(self.bytes_in - HEADER_BYTES, 0) // size  # pack words of padding
        count = max(self.bytes_in, HEADER_BYTES) // size
        buffer = Signal(8 * max(size, 4), reset_less=True)
        index = Signal(ceil_log2(count))
        remaining = Signal(range(per_word + zeros))  # pack words after the one on the output
        position = self.index[: ceil_log2(per_pack_word)]  # of the header word in its pack word
        last = self.index[: ceil_log2(HEADER_BYTES // 4)].all()
        m.d.comb += [
            self.busy.eq(remaining != 0), self.slice_start.eq(self.take & (self.index == 0)),
            out.packed.eq(valid), out.last.eq(valid & index.all()),
            out.bytes.eq(buffer), out.index.eq(index),
        ]
        m.d.sync += valid.eq(self.busy | (self.take & (position.all() | last)))
        with m.If(valid):
            m.d.sync += [index.eq(index + 1), buffer.eq(0)]
        with m.If(self.busy):
            m.d.sync += [remaining.eq(remaining - 1), buffer.eq(buffer >> 8 * size)]
        with m.If(self.take):
            m.d.sync += remaining.eq(per_word - 1)
            with m.If(last):
                m.d.sync += remaining.eq(per_word - 1 + zeros)
            with m.If(position == 0):
                m.d.sync += buffer.eq(self.word)
            for n in range(1, per_pack_word):
                with m.If(position == n):
                    m.d.sync += buffer[32 * n : 32 * (n + 1)].eq(self.word)
        return m


DESCRIPTORS = 32  # descriptors in the queue, at most
READ_BEATS = 256  # beats requested and not yet used, at most
TASKS = 16  # depth of the queue of pack tasks


class Dma(wiring.Component):
    """Executes descriptors. ``docs/dma.md`` describes them, and the parts of the engine.

    ::

        descriptors -> DescriptorFetcher -> AddressGenerator -> Reader <- memory
                         |          |              |              |
                         |          |              +-- tasks -> Aligner
                         |          |                             |
                         |          +-- headers -> HeaderInserter-+-> Packer -> PackReader -> core
                         |
                         +-- jobs -> ResultAddressGenerator <- results of the core
                                              |
                                       WriteCombiner -> Writer -> memory

    Parameters
    ----------
    config : Config
    window : bool
        The engine has a window of addresses, and checks each descriptor against it.

    Attributes
    ----------
    descriptors : In, stream of 32 bits
        Sixteen words each, the lowest first.
    desc_free : Out
        Number of whole descriptors for which the queue has space.
    commands : Out, stream of ``bytes_in`` bytes
    results : In, stream of `weft.hw.output.stream_packer.Result`
    axi : Out, `Axi4`
    stop : In
        1 bit; no burst starts, results are dropped, and no pulse is given. With ``idle`` it
        resets the engine. It may become 0 after that, if the parts around the
        engine are reset, too.
    idle : Out
        1 bit; no burst is in flight.
    busy : Out
        1 bit; a descriptor, a load or results are in progress.
    job_done : Out
        1 bit; pulse: a job has ended, and its last write has its response.
    job_tag, job_status : Out
        16 and 8 bits; valid with ``job_done``.
    dma_read_error, dma_write_error : Out
        1 bit each; pulses: a beat that was read, a burst that was written had an error response.
    bad_descriptor, bad_address : Out
        1 bit each; pulses: a descriptor was dropped; it was dropped because of its addresses.
    allowed : In, `weft.hw.dma.bounds_check.AddressWindow`; only with a window
    """

    def __init__(self, config, *, window=False):
        self.config = config
        self.window = window
        # The flag of jobs with narrow results, if the core has such a flag. Bytes of a result and
        # of a write unit: for jobs without the flag, then for jobs with it.
        self.narrow_flags = epilogue_flags(config)[0] if epilogue_flags(config) else JobFlag(0)
        kinds = [JobFlag(0), *([self.narrow_flags] if self.narrow_flags else [])]
        self.sizes = [result(config, flags).bytes for flags in kinds]
        self.units = [write_unit(config, flags) for flags in kinds]
        super().__init__({
            "descriptors": In(stream.Signature(32)),
            "desc_free": Out(range(DESCRIPTORS + 1)),
            "commands": Out(stream.Signature(8 * config.bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=config.bytes_out))),
            "axi": Out(Axi4(data_bytes=config.bytes_in)),
            "stop": In(1),
            "idle": Out(1),
            "busy": Out(1),
            "job_done": Out(1),
            "job_tag": Out(16),
            "job_status": Out(8),
            "dma_read_error": Out(1),
            "dma_write_error": Out(1),
            "bad_descriptor": Out(1), "bad_address": Out(1),
            **({"allowed": In(AddressWindow())} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        clear = Signal()
        m.d.sync += clear.eq(self.stop & self.idle)

        def add(name, component):
            """Add a component that is reset at the end of a stop."""
            m.submodules[name] = ResetInserter(clear)(component)
            return component

        fetcher = self._add_fetcher(m, add)
        errors = add("errors", ErrorTracker())
        addresses, reader, aligner = self._read(m, add, fetcher)
        packing = self._pack(m, add, fetcher, aligner, clear)
        results, writer = self._write(m, add, fetcher, errors)
        m.d.comb += [
            errors.read_error.eq(reader.pop_error), errors.load_done.eq(aligner.load_done),
            errors.feeds_latest.eq(fetcher.feeds_latest), errors.no_job.eq(results.no_job),
            errors.job_taken.eq(fetcher.store_take & (fetcher.index == DescriptorWord.STRIDE)),
            fetcher.hold_jobs.eq(errors.hold_jobs),
            self.idle.eq(reader.idle & writer.idle),
            self.busy.eq(
                packing | ~(fetcher.idle & addresses.idle & results.idle & self.idle)
            ),
            self.bad_descriptor.eq(fetcher.bad_descriptor & ~self.stop),
            self.bad_address.eq(fetcher.bad_address & ~self.stop),
            self.dma_read_error.eq(reader.error & ~self.stop),
            self.dma_write_error.eq(writer.error & ~self.stop),
        ]
        return m

    def _add_fetcher(self, m, add):
        """The queue of descriptors."""
        c = self.config
        fetcher = add("fetcher", DescriptorFetcher(
            depth=DESCRIPTORS, geometries=memories(c), size=c.data_type.a.bytes,
            data_bytes=c.bytes_in, narrow_flags=self.narrow_flags, sizes=self.sizes,
            units=self.units, target=c.target, window=self.window,
        ))
        connect(m, flipped(self.descriptors), fetcher.descriptors)
        m.d.comb += self.desc_free.eq(fetcher.free)
        if self.window:
            connect(m, flipped(self.allowed), fetcher.allowed)
        return fetcher

    def _read(self, m, add, fetcher):
        """From descriptors to pack words; returns address generator, reader and aligner."""
        c = self.config
        addresses = add("addresses", AddressGenerator(
            data_bytes=c.bytes_in, geometries=memories(c), layouts=layouts(c)
        ))
        reader = add("reader", Reader(
            data_bytes=c.bytes_in, max_beats=addresses.max_beats, part_bytes=pack_bytes(c),
            depth=READ_BEATS, target=c.target,
        ))
        tasks = add("tasks", Fifo(addresses.task_shape, depth=TASKS, target=c.target))
        aligner = add("aligner", Aligner(
            data_bytes=c.bytes_in, pack_bytes=pack_bytes(c), task=addresses.task_shape,
            max_tasks=addresses.max_tasks,
        ))
        connect(m, addresses.requests, reader.requests)
        connect(m, addresses.tasks, tasks.i)
        connect(m, tasks.o, aligner.tasks)
        connect(m, reader.ar, flipped(self.axi.ar))
        connect(m, flipped(self.axi.r), reader.r)
        m.d.comb += [
            addresses.word.eq(fetcher.word), addresses.index.eq(fetcher.index),
            addresses.take.eq(fetcher.fetch_take), addresses.start.eq(fetcher.fetch_start),
            fetcher.fetch_busy.eq(~addresses.idle),
            reader.stop.eq(self.stop),
            aligner.beat_valid.eq(reader.valid), aligner.part.eq(reader.part),
            reader.index.eq(aligner.index), reader.pop.eq(aligner.pop),
        ]
        return addresses, reader, aligner

    def _pack(self, m, add, fetcher, aligner, clear):
        """From headers and pack words to commands; returns whether any are in progress."""
        c = self.config
        inserter = add("inserter", HeaderInserter(
            bytes_in=c.bytes_in, pack_word=aligner.word_shape
        ))
        packer = add("packer", Packer(
            pack_word=aligner.word_shape, layouts=layouts(c), target=c.target
        ))
        sender = add("sender", PackReader(bytes_in=c.bytes_in, row_words=packer.row_words))
        connect(m, sender.half, packer.half)
        connect(m, sender.commands, flipped(self.commands))
        payload_due = Signal()  # the header of a load was sent, and its payload comes next
        with m.If(aligner.load_done | fetcher.load_sent | clear):
            m.d.sync += payload_due.eq(fetcher.load_sent & ~clear)
        m.d.comb += [
            inserter.word.eq(fetcher.word), inserter.index.eq(fetcher.index),
            inserter.take.eq(fetcher.header_take), fetcher.stall.eq(inserter.busy),
            fetcher.header_busy.eq(payload_due | ~packer.room),
            aligner.room.eq(packer.room & payload_due),
            packer.claim.eq(aligner.slice_start | inserter.slice_start),
            packer.words.eq(inserter.words.as_value() | aligner.words.as_value()),
        ]
        packing = Signal()
        m.d.comb += packing.eq(payload_due | ~packer.idle | ~sender.idle)
        return packing

    def _write(self, m, add, fetcher, errors):
        """From results to bursts; returns result address generator and writer."""
        c = self.config
        results = add("results", ResultAddressGenerator(
            rows=c.rows, cols=c.cols, lanes=c.lanes, sizes=self.sizes, units=self.units,
            narrow_flags=self.narrow_flags, data_bytes=c.bytes_in, target=c.target,
        ))
        writer = add("writer", Writer(data_bytes=c.bytes_in, target=c.target))
        for name in ("aw", "w"):
            connect(m, getattr(writer, name), flipped(getattr(self.axi, name)))
        connect(m, flipped(self.axi.b), writer.b)
        # A cycle later: `weft.hw.dma.writer.SLACK` counts it.
        m.d.sync += results.room.eq(writer.room & ~self.stop)
        m.d.comb += [
            results.word.eq(fetcher.word), results.take.eq(fetcher.store_take),
            results.operand_error.eq(errors.latest_error),
            results.results.payload.eq(self.results.payload),
            results.results.valid.eq(self.results.valid & ~self.stop),
            self.results.ready.eq(results.results.ready | self.stop),
            writer.beats.eq(results.beats),
            self.job_done.eq(writer.job_done & ~self.stop),
            self.job_tag.eq(writer.tag), self.job_status.eq(writer.status),
        ]
        with m.If(fetcher.index == 3):  # N, whose word has unused bits
            m.d.comb += results.word[OPERAND_ERROR].eq(errors.next_error)
        return results, writer
