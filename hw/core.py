"""The core: command stream in, result stream out, everything of the accelerator between."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from weft import timing
from weft.commands import JobFlag
from weft.geometry import memories, operands
from weft.hw.arith.fip import FastInnerProductMac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.drain import Drain
from weft.hw.array.skew import Skew
from weft.hw.array.systolic import SystolicArray
from weft.hw.control.decoder import Decoder
from weft.hw.control.jobs import JobTable
from weft.hw.control.loader import Loader
from weft.hw.control.passes import Passes
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tiler import Tiler
from weft.hw.memory.operands import OperandBuffer
from weft.hw.memory.results import ResultBuffer
from weft.hw.post.collector import Collector
from weft.hw.post.corrections import Corrector
from weft.hw.post.finisher import Finisher
from weft.hw.post.sender import Result, Sender
from weft.hw.registers import Registers

__all__ = ["Core", "MACS"]

MACS = {"plain": PlainMac, "fip": FastInnerProductMac}


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
        self.mac = mac or MACS[config.multiplier]
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
        delays = timing.Delays(self.config, latency=self.mac.LATENCY, slots=self.mac.SLOTS)
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
        flags = JobFlag.FEED_A | JobFlag.FEED_B | JobFlag.ACCUMULATE | JobFlag.KEEP
        if c.requantize != "none":
            flags |= JobFlag.REQUANTIZE
            flags |= JobFlag.TABLE if c.activation != "none" else 0
        m.submodules.decoder = decoder = Decoder(geometries=geometries, bytes_in=c.bytes_in)
        m.submodules.table = table = JobTable(
            geometries=operands(c), jobs=c.jobs, flags=flags
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
        geometries = operands(c)
        m.submodules.tiler = tiler = Tiler(geometries=geometries, job=table.Job, count=table.Count)
        m.submodules.passes = passes = Passes(tile=tiler.Tile, slots=slots)
        m.submodules.sequencer = sequencer = Sequencer(
            geometries=geometries, tile=tiler.Tile, slots=slots,
            rows=c.rows, depth=c.depth, room=delays.room,
        )
        connect(m, table.pull, tiler.jobs)
        connect(m, tiler.tiles, passes.tiles)
        connect(m, passes.passes, sequencer.passes)
        m.d.comb += [tiler.loaded.eq(table.loaded), tiler.abort.eq(self.abort)]
        return tiler, sequencer

    def _array(self, m, loader, step):
        """Cycles -> buffers -> skew -> array."""
        c, mac = self.config, self.mac
        m.submodules.array = array = SystolicArray(
            rows=c.rows, cols=c.cols, hop=c.hop, mac=lambda: mac(depth=c.depth)
        )
        edges = {
            "a": (array.a, loader.a, step.a, [n // c.hop for n in reversed(range(c.rows))]),
            "b": (array.b, loader.b, step.b, [n // c.hop for n in range(c.cols)]),
        }
        for (name, edge), geometry in zip(edges.items(), operands(c), strict=True):
            entry, write, address, delays = edge
            buffer = OperandBuffer(geometry=geometry, write=write.shape())
            skew = Skew(shape=entry.shape().elem_shape, delays=delays)
            m.submodules[name] = buffer
            m.submodules[f"skew_{name}"] = skew
            m.d.comb += [
                buffer.write.eq(write),
                buffer.en.eq(1),
                buffer.address.eq(address),
                skew.i.eq(buffer.word),
                entry.eq(skew.o),
            ]
        read = OperandBuffer.LATENCY
        orders = {"en": read, "clear": read, "capture": read + mac.LATENCY}
        m.submodules.orders = skew = Skew(shape=1, delays=list(orders.values()))
        for n, name in enumerate(orders):
            m.d.comb += [skew.i[n].eq(step[name]), array.control[name].eq(skew.o[n])]
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
            chunk=collector.Chunk, bytes_out=c.bytes_out, int8=c.requantize != "none"
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
        if c.requantize != "none":
            inputs = ["a", *loader.names[2:]]
            m.submodules.finisher = finisher = Finisher(
                geometries=memories(c), chunk=collector.Chunk, mode=c.requantize,
                zero_points=c.b_zero_point != "none",
                writes={name: getattr(loader, name).shape() for name in inputs},
            )
            connect(m, chunks, finisher.i)
            m.d.comb += [getattr(finisher, name).eq(getattr(loader, name)) for name in inputs]
            chunks = finisher.o
        connect(m, chunks, sender.chunks)
        connect(m, sender.results, flipped(self.results))
        return sender

    def _registers(self, m, count):
        """What the outside may know."""
        m.submodules.registers = registers = Registers(config=self.config)
        m.d.comb += [
            registers.address.eq(self.address),
            self.data.eq(registers.data),
            *(registers.count[name].eq(value) for name, value in count.items()),
            *(self.activity[name].eq(count[name]) for name in self.Activity.members),
        ]
