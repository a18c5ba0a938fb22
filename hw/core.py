"""The core: command stream in, result stream out, everything of the accelerator between."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft import timing
from weft.commands import Region, finishes, known
from weft.geometry import memories, operands
from weft.hw.arith.bf16 import Bf16Mac, FlushingBf16Mac
from weft.hw.arith.fip import FastInnerProductMac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.drain import Drain
from weft.hw.array.feeder import Feeder
from weft.hw.array.systolic import SystolicArray
from weft.hw.control.decoder import Decoder
from weft.hw.control.jobs import JobTable
from weft.hw.control.loader import Loader
from weft.hw.control.passes import Passes
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tiler import Tiler
from weft.hw.memory.results import ResultBuffer
from weft.hw.post.collector import Collector
from weft.hw.post.corrections import Corrector
from weft.hw.post.finisher import Finisher
from weft.hw.post.rounder import Rounder
from weft.hw.post.sender import Result, Sender
from weft.hw.registers import Registers

__all__ = ["Core", "MACS"]

MACS = {
    "plain": PlainMac, "fip": FastInnerProductMac, "bf16": Bf16Mac, "bf16_ftz": FlushingBf16Mac,
}


class Core(wiring.Component):
    """A matmul accelerator on two streams; ``docs/interfaces.md`` says what they carry.

    Parameters
    ----------
    config : Config
    mac : Mac class, optional
        A leaf other than the Config's.

    Attributes
    ----------
    commands : In, stream of ``bytes_in`` bytes
    results : Out, stream of `weft.hw.post.sender.Result`
    abort : In
        Pulse: end the running job.
    address : In, data : Out
        Registers; data follows the address by a cycle.
    activity : Out
        What happens in this cycle: a command word is taken, operands enter the array, a job is
        starved or stalled, a result word is taken, anything at all is under way.
    """

    def __init__(self, config, *, mac=None):
        self.config = config
        self.mac = mac or MACS[config.leaf]
        self.Activity = data.StructLayout(
            dict.fromkeys(("words_in", "active", "starved", "stalled", "words_out", "busy"), 1)
        )
        super().__init__({
            "commands": In(stream.Signature(8 * config.bytes_in)),
            "results": Out(stream.Signature(Result(bytes_out=config.bytes_out))),
            "abort": In(1),
            "address": In(8),
            "data": Out(32),
            "activity": Out(self.Activity),
        })

    def elaborate(self, platform):
        m = Module()
        decoder = self.mac.OPERAND_DECODER
        latency = self.mac.LATENCY + (decoder.LATENCY if decoder else 0)
        delays = timing.Delays(self.config, latency=latency, slots=self.mac.SLOTS)
        decoder, table, loader = self._commands(m)
        tiler, sequencer = self._control(m, table, delays)
        array = self._array(m, loader, sequencer.step)
        sender = self._results(m, loader, sequencer, array, delays)
        m.d.comb += table.retire.eq(sender.retire)
        self._registers(m, {
            "busy": ~decoder.idle | ~table.empty | (self.commands.valid & self.commands.ready),
            "active": sequencer.active,
            "starved": tiler.starved,
            "stalled": sequencer.stalled,
            "words_in": self.commands.valid & self.commands.ready,
            "words_out": self.results.valid & self.results.ready,
            "finished": sender.retire,
            "errors": decoder.error,
        })
        return m

    def _commands(self, m):
        """The command stream: jobs to the table, loads to the buffers."""
        c = self.config
        geometries = memories(c)
        m.submodules.decoder = decoder = Decoder(geometries=geometries, bytes_in=c.bytes_in)
        m.submodules.table = table = JobTable(
            geometries=geometries, jobs=c.jobs, known=known(c), finishes=finishes(c),
            slots=self.mac.SLOTS,
        )
        m.submodules.loader = loader = Loader(geometries=geometries, bytes_in=c.bytes_in)
        connect(m, flipped(self.commands), decoder.commands)
        connect(m, decoder.job, table.push)
        connect(m, decoder.words, loader.words)
        m.d.comb += [
            table.load.eq(decoder.load.payload),
            loader.load.payload.eq(decoder.load.payload),
            loader.load.valid.eq(decoder.load.valid & ~table.conflict),
            decoder.load.ready.eq(loader.load.ready & ~table.conflict),
            decoder.last.eq(loader.last),
        ]
        for x, port in enumerate((loader.a, loader.b)):
            m.d.sync += table.panel[x].eq(port.valid & port.write.end & loader.feed)
        return decoder, table, loader

    def _control(self, m, table, delays):
        """Job -> tiles -> passes -> cycles."""
        c, slots = self.config, self.mac.SLOTS
        m.submodules.tiler = tiler = Tiler(
            geometries=memories(c), job=table.Job, count=table.Count
        )
        m.submodules.passes = passes = Passes(tile=tiler.Tile, slots=slots)
        m.submodules.sequencer = sequencer = Sequencer(
            geometries=operands(c), tile=tiler.Tile, slots=slots,
            rows=c.rows, depth=c.depth, room=delays.room,
        )
        connect(m, table.pull, tiler.jobs)
        connect(m, tiler.tiles, passes.tiles)
        connect(m, passes.passes, sequencer.passes)
        m.d.comb += [
            tiler.loaded.eq(table.loaded),
            passes.abort.eq(self.abort),
            tiler.abort.eq(passes.give_up),
            passes.slot.eq(sequencer.slot),
        ]
        return tiler, sequencer

    def _array(self, m, loader, step):
        """Cycles -> buffers -> skew -> array."""
        c, mac = self.config, self.mac
        writes = {name: getattr(loader, name) for name in "abc" if name in loader.names.values()}
        m.submodules.array = array = SystolicArray(
            rows=c.rows, cols=c.cols, hop=c.hop, mac=lambda: mac(depth=c.depth)
        )
        m.submodules.feeder = feeder = Feeder(
            geometries=memories(c), writes={name: port.shape() for name, port in writes.items()},
            step=step.shape(), mac=mac, hop=c.hop,
        )
        names = ["a", "b", "control", *(["preload", "init"] if feeder.starts else [])]
        m.d.comb += [
            *(feeder.writes[name].eq(port) for name, port in writes.items()),
            feeder.step.eq(step),
            *(getattr(array, name).eq(getattr(feeder, name)) for name in names),
        ]
        return array

    def _results(self, m, loader, sequencer, array, delays):
        """Array -> drain -> buffer -> chunks -> result stream."""
        c, mac = self.config, self.mac
        m.submodules.drain = drain = Drain(rows=c.rows, slots=mac.SLOTS, delay=delays.drain)
        m.submodules.buffer = buffer = ResultBuffer(
            foot=array.Foot, cols=c.cols, depth=delays.result_rows
        )
        # Every tile under way has its place here, and every job that has no results.
        facts = [name for name in sequencer.Results.members if name != "valid"]
        announced = data.StructLayout({name: sequencer.Results[name].shape for name in facts})
        m.submodules.tiles = tiles = SyncFIFOBuffered(
            width=announced.size, depth=delays.room * mac.SLOTS + c.jobs
        )
        m.submodules.collector = collector = Collector(
            announced=announced, acc=mac.ACC, rows=c.rows, cols=c.cols, lanes=c.lanes,
            slots=mac.SLOTS, written=len(buffer.written),
        )
        m.submodules.sender = sender = Sender(
            chunk=collector.Chunk, bytes_out=c.bytes_out,
            narrow=c.format.narrow.bytes if finishes(c) else 0,
        )
        announce = Signal(announced)
        m.d.comb += [
            drain.start.eq(sequencer.step.drain),
            array.valid.eq(drain.valid),
            array.shift.eq(drain.shift),
            buffer.foot.eq(array.foot),
            *(announce[name].eq(sequencer.results[name]) for name in facts),
            tiles.w_en.eq(sequencer.results.valid),
            tiles.w_data.eq(announce),
            collector.tiles.valid.eq(tiles.r_rdy),
            collector.tiles.payload.eq(tiles.r_data),
            tiles.r_en.eq(collector.tiles.ready),
            collector.written.eq(buffer.written),
            buffer.read.eq(collector.read),
            buffer.address.eq(collector.address),
            collector.row.eq(buffer.row),
            sequencer.release.eq(collector.release),
        ]
        chunks = collector.chunks
        if mac.CORRECTED:
            m.submodules.corrector = corrector = Corrector(
                geometries=operands(c), chunk=collector.Chunk,
                writes=(loader.a.shape(), loader.b.shape()),
            )
            connect(m, chunks, corrector.i)
            m.d.comb += [corrector.a.eq(loader.a), corrector.b.eq(loader.b)]
            chunks = corrector.o
        pipeline = self.pipeline(collector.Chunk, loader)
        if pipeline is not None:
            m.submodules.pipeline = pipeline
            connect(m, chunks, pipeline.i)
            m.d.comb += [
                getattr(pipeline, name).eq(getattr(loader, name)) for name in pipeline.writes
            ]
            chunks = pipeline.o
        connect(m, chunks, sender.chunks)
        connect(m, sender.results, flipped(self.results))
        return sender

    def pipeline(self, chunk, loader):
        """What makes results of sums; None where the core gives the sums alone."""
        c = self.config
        if not finishes(c):
            return None
        rest = (Region.PARAMETERS, Region.TABLE)
        regions = rest if c.dtype == "bf16" else (Region.A, *rest)
        names = [loader.names[region] for region in regions if region in loader.names]
        common = {
            "geometries": memories(c), "chunk": chunk,
            "writes": {name: getattr(loader, name).shape() for name in names},
        }
        if c.dtype == "bf16":
            return Rounder(**common)
        return Finisher(mode=c.requantize, zero_points=c.b_zero_point != "none", **common)

    def _registers(self, m, count):
        """What the outside may know."""
        m.submodules.registers = registers = Registers(config=self.config)
        m.d.comb += [
            registers.address.eq(self.address),
            self.data.eq(registers.data),
            *(registers.count[name].eq(value) for name, value in count.items()),
            *(self.activity[name].eq(count[name]) for name in self.Activity.members),
        ]
