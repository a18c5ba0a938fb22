"""The engine: descriptors in, the core's commands out; the core's results in; memory beside it."""

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.commands import JobFlag, epilogue_flags, result
from weft.descriptors import DescriptorWord, write_unit
from weft.geometry import memories
from weft.hw.dma.address_generator import AddressGenerator
from weft.hw.dma.aligner import Aligner
from weft.hw.dma.axi import Axi4
from weft.hw.dma.descriptor_fetcher import DescriptorFetcher
from weft.hw.dma.error_tracker import ErrorTracker
from weft.hw.dma.header_inserter import HeaderInserter
from weft.hw.dma.layout import granule, layouts
from weft.hw.dma.pack_reader import PackReader
from weft.hw.dma.packer import Packer
from weft.hw.dma.reader import Reader
from weft.hw.dma.result_addresses import SPOILT, ResultAddressGenerator
from weft.hw.dma.writer import Writer
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = ["DESCRIPTORS", "Dma"]

DESCRIPTORS = 32  # that wait at most
READS = 256  # beats that are on their way, or wait, at most
PIECES = 16  # that wait for their beats at most


class Dma(wiring.Component):
    """Feeds a core from memory, and puts its results there; ``docs/dma.md`` has the descriptors.

    ::

        descriptors -> Front -> Walker -> Reader -> Aligner -> Packer -> Outlet -> commands
                         +--> Headers --------------------------+
                         +--> Scatter <- results
                                 +-> Gather -> Writer

    Parameters
    ----------
    config : Config
    window : bool
        Memory may be restricted to a window.

    Attributes
    ----------
    descriptors : In, stream of 32 bits
        Sixteen words each, the lowest first; taken as they come while there is `room`.
    room : Out
        Whole descriptors that are taken at once.
    commands : Out, stream of ``bytes_in`` bytes
    results : In, stream of `weft.hw.output.stream_packer.Result`
    axi : Out, `Axi4`
    stop : In
        No burst begins, what comes in is dropped, and nothing is told. With it and ``idle`` the
        engine forgets all; it may fall then, when what surrounds the engine has been reset.
    idle : Out
        No burst is under way.
    busy : Out
        A descriptor, or results, are under way.
    ended : Out
        Pulse: a job has ended, its last write was answered. With ``tag`` and ``status``.
    dma_read_error, dma_write_error : Out
        Pulses: a beat read, a burst written was answered by an error.
    bad_descriptor, bad_address : Out
        Pulses: a descriptor was dropped; and that for where its addresses lead.
    base, limit : In
        Of an engine with a window: its first and its last address, in whole beats.
    """

    def __init__(self, config, *, window=False):
        self.config = config
        self.window = window
        # What makes results narrow; the flags of both kinds of jobs, and the units of both.
        self.narrows = epilogue_flags(config)[0] if epilogue_flags(config) else JobFlag(0)
        self.kinds = [JobFlag(0), *([self.narrows] if self.narrows else [])]
        self.sizes = [result(config, flags).bytes for flags in self.kinds]
        self.units = [write_unit(config, flags) for flags in self.kinds]
        super().__init__({
            "descriptors": In(stream.Signature(32)),
            "room": Out(range(DESCRIPTORS + 1)),
            "commands": Out(stream.Signature(8 * config.bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=config.bytes_out))),
            "axi": Out(Axi4(data_bytes=config.bytes_in)),
            "stop": In(1),
            "idle": Out(1),
            "busy": Out(1),
            "ended": Out(1),
            "tag": Out(16),
            "status": Out(8),
            "dma_read_error": Out(1),
            "dma_write_error": Out(1),
            "bad_descriptor": Out(1), "bad_address": Out(1),
            **({"base": In(32), "limit": In(32)} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        self.clear = Signal()
        m.d.sync += self.clear.eq(self.stop & self.idle)

        def add(name, component):
            """A part that forgets all with a stop."""
            m.submodules[name] = ResetInserter(self.clear)(component)
            return component

        self.packs = Signal()  # commands are under way
        front, blame = self._fetch(m, add)
        scatter = self._store(m, add, front, blame)
        m.d.comb += [
            self.idle.eq(self.reader.idle & self.writer.idle),
            self.busy.eq(
                self.packs | ~(front.idle & self.walker.idle & scatter.idle & self.idle)
            ),
            self.room.eq(front.room),
            self.bad_descriptor.eq(front.bad & ~self.stop),
            self.bad_address.eq(front.outside & ~self.stop),
            self.dma_read_error.eq(self.reader.error & ~self.stop),
            self.dma_write_error.eq(self.writer.error & ~self.stop),
        ]
        return m

    def _fetch(self, m, add):
        """Descriptors -> beats -> commands."""
        c = self.config
        geometries, lays = memories(c), layouts(c)
        common = {"geometries": geometries, "layouts": lays}
        front = add("front", DescriptorFetcher(
            depth=DESCRIPTORS, geometries=geometries, size=c.format.a.bytes,
            data_bytes=c.bytes_in, narrows=self.narrows, sizes=self.sizes, units=self.units,
            target=c.target, window=self.window,
        ))
        self.walker = walker = add("walker", AddressGenerator(data_bytes=c.bytes_in, **common))
        self.reader = reader = add("reader", Reader(
            data_bytes=c.bytes_in, beats=walker.beats, unit=granule(c), depth=READS, target=c.target
        ))
        pieces = add("pieces", Fifo(walker.Piece, depth=PIECES, target=c.target))
        aligner = add("aligner", Aligner(
            data_bytes=c.bytes_in, granule=granule(c), piece=walker.Piece, pieces=walker.most
        ))
        headers = add("headers", HeaderInserter(bytes_in=c.bytes_in, granule=aligner.Granule))
        packer = add("packer", Packer(granule=aligner.Granule, layouts=lays, target=c.target))
        outlet = add("outlet", PackReader(bytes_in=c.bytes_in, places=packer.parts))
        connect(m, flipped(self.descriptors), front.descriptors)
        connect(m, walker.stretches, reader.stretches)
        connect(m, walker.pieces, pieces.i)
        connect(m, pieces.o, aligner.pieces)
        connect(m, reader.ar, flipped(self.axi.ar))
        connect(m, flipped(self.axi.r), reader.r)
        connect(m, outlet.commands, flipped(self.commands))
        due = Signal()  # a load's header was handed out, and its payload follows
        with m.If(aligner.final | front.send | self.clear):
            m.d.sync += due.eq(front.send & ~self.clear)
        m.d.comb += [
            reader.stop.eq(self.stop),
            walker.word.eq(front.word), walker.index.eq(front.index), walker.take.eq(front.walk),
            walker.start.eq(front.fetch), front.fetching.eq(~walker.idle),
            headers.word.eq(front.word), headers.index.eq(front.index),
            headers.take.eq(front.header), front.wait.eq(headers.wait),
            front.sending.eq(due | ~packer.room),
            aligner.there.eq(reader.there), aligner.unit.eq(reader.unit),
            reader.index.eq(aligner.index), reader.leaves.eq(aligner.leaves),
            aligner.room.eq(packer.room & due), packer.begin.eq(aligner.begin | headers.begin),
            packer.granules.eq(headers.granules.as_value() | aligner.granules.as_value()),
            *(getattr(outlet, name).eq(getattr(packer, name)) for name in (
                "filled", "row", "place", "places", "word",
            )),
            *(getattr(packer, name).eq(getattr(outlet, name)) for name in (
                "address", "en", "release",
            )),
            self.packs.eq(due | ~packer.idle | ~outlet.idle),
            *(getattr(front, name).eq(getattr(self, name))
              for name in ("base", "limit") if self.window),
        ]
        blame = add("blame", ErrorTracker())
        m.d.comb += [
            blame.spoilt.eq(reader.spoilt), blame.final.eq(aligner.final), blame.fed.eq(front.fed),
            blame.takes.eq(front.store & (front.index == DescriptorWord.STRIDE)),
            front.holds.eq(blame.holds),
        ]
        return front, blame

    def _store(self, m, add, front, blame):
        """Results -> beats."""
        c = self.config
        scatter = add("scatter", ResultAddressGenerator(
            rows=c.rows, cols=c.cols, lanes=c.lanes, units=self.units,
            sizes=self.sizes,
            narrows=self.narrows, data_bytes=c.bytes_in, target=c.target,
        ))
        self.writer = writer = add("writer", Writer(data_bytes=c.bytes_in, target=c.target))
        for name in ("aw", "w"):
            connect(m, getattr(writer, name), flipped(getattr(self.axi, name)))
        connect(m, flipped(self.axi.b), writer.b)
        m.d.sync += scatter.room.eq(writer.room & ~self.stop)
        m.d.comb += [
            scatter.word.eq(front.word), scatter.take.eq(front.store),
            scatter.spoilt.eq(blame.latest), blame.rests.eq(scatter.rests),
            scatter.results.payload.eq(self.results.payload),
            scatter.results.valid.eq(self.results.valid & ~self.stop),
            self.results.ready.eq(scatter.results.ready | self.stop),
            writer.beats.eq(scatter.beats),
            self.ended.eq(writer.ended & ~self.stop),
            self.tag.eq(writer.tag), self.status.eq(writer.status),
        ]
        with m.If(front.index == 3):
            m.d.comb += scatter.word[SPOILT].eq(blame.next)
        return scatter
