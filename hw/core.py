"""The core: an accelerator between a command stream and a result stream."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from weft import timing
from weft.commands import HEADER_BYTES, JobFlag, epilogue_flags, supported_flags
from weft.geometry import memories, operands
from weft.hw.arith.cells import MACS
from weft.hw.array.edges import Drain, Feeder
from weft.hw.array.systolic import SystolicArray
from weft.hw.buffers.operands import ResultBuffer
from weft.hw.control.decoder import CommandDecoder, header_bits
from weft.hw.control.job_table import JobTable, Loader
from weft.hw.control.sequencer import PassBuilder, Sequencer
from weft.hw.control.tile_generator import TileGate
from weft.hw.dtypes import HARDWARE
from weft.hw.fabrics import FABRICS
from weft.hw.interface import ACTIVITY, CoreInterface
from weft.hw.output.lanes import LaneSelect
from weft.hw.output.reorder_buffer import PendingTiles, ReorderBuffer
from weft.hw.output.requantizer import Corrector
from weft.hw.output.result_scheduler import ResultScheduler
from weft.hw.output.stream_packer import StreamPacker
from weft.hw.registers import Registers

__all__ = ["Core"]


class Core(wiring.Component):
    """``C = A @ B``, job by job: commands in, results out.

    The methods follow the data: commands -> jobs -> tiles -> passes -> cycles -> array -> drain ->
    output -> results. ``docs/interfaces.md`` defines the two streams.

    Parameters
    ----------
    config : Config
    mac : Mac class, optional
        Replaces the MAC cell of the Config.

    Attributes
    ----------
    commands, results, abort, reg_address, reg_data, activity
        The ports of `weft.hw.interface.CoreInterface`, flipped.
    """

    def __init__(self, config, *, mac=None):
        self.config = config
        self.mac = mac or MACS[config.mac_cell]
        self.folded = config.drain == "folded"
        super().__init__(CoreInterface(config).flip())

    def elaborate(self, platform):
        m = Module()
        operand_decoder = self.mac.OPERAND_DECODER
        decoder_latency = operand_decoder.LATENCY if operand_decoder else 0
        latencies = timing.Latencies(
            self.config, mac_latency=self.mac.latency(self.config.depth) + decoder_latency,
            slots=self.mac.SLOTS,
        )
        decoder, job_table, loader = self._commands(m)
        tile_gate, sequencer = self._control(m, job_table, latencies)
        array = self._array(m, loader, sequencer.step)
        packer = self._results(m, loader, sequencer, array, latencies)
        # Inside the core, the index of a job in the job table stands for its tag.
        word = packer.results.payload
        m.d.comb += [
            job_table.tag_index.eq(word.tag),
            self.results.payload.eq(word), self.results.payload.tag.eq(job_table.tag),
            self.results.valid.eq(packer.results.valid),
            packer.results.ready.eq(self.results.ready),
        ]
        m.d.sync += job_table.retire.eq(packer.retire)
        self._registers(m, {
            "busy": ~decoder.idle | ~job_table.empty | (self.commands.valid & self.commands.ready),
            "active": sequencer.active,
            "starved": tile_gate.starved,
            "stalled": sequencer.stalled,
            "words_in": self.commands.valid & self.commands.ready,
            "words_out": self.results.valid & self.results.ready,
            "finished": packer.retire,
            "errors": decoder.error,
        })
        return m

    def _commands(self, m):
        """Commands -> jobs, which go to the job table, and loads, which fill the buffers."""
        c = self.config
        geometries = memories(c)
        bits = [8] * HEADER_BYTES
        if c.family.narrow_headers:
            bits = header_bits(geometries, supported_flags(c))
        m.submodules.decoder = decoder = CommandDecoder(
            geometries=geometries, bytes_in=c.bytes_in, header_bits=bits
        )
        m.submodules.job_table = job_table = JobTable(
            geometries=geometries, jobs=c.jobs, supported_flags=supported_flags(c),
            epilogue_flags=epilogue_flags(c), slots=self.mac.SLOTS,
        )
        m.submodules.loader = loader = Loader(geometries=geometries, bytes_in=c.bytes_in)
        connect(m, flipped(self.commands), decoder.commands)
        connect(m, decoder.job, job_table.push)
        connect(m, decoder.words, loader.words)
        m.d.comb += [
            job_table.load.eq(decoder.load.payload),
            loader.load.payload.eq(decoder.load.payload),
            loader.load.valid.eq(decoder.load.valid & ~job_table.conflict),
            decoder.load.ready.eq(loader.load.ready & ~job_table.conflict),
            decoder.last.eq(loader.last),
        ]
        for x, port in enumerate((loader.a, loader.b)):
            m.d.comb += job_table.panel_done[x].eq(port.valid & port.write.end & loader.feed)
        return decoder, job_table, loader

    def _control(self, m, job_table, latencies):
        """Jobs -> tiles -> passes -> cycles."""
        c, slots = self.config, self.mac.SLOTS
        m.submodules.tile_gate = tile_gate = TileGate(
            geometries=memories(c), job=job_table.Job, count=job_table.Count,
            job_index=job_table.pull_index.shape(),
        )
        m.submodules.pass_builder = pass_builder = PassBuilder(tile=tile_gate.Tile, slots=slots)
        m.submodules.sequencer = sequencer = Sequencer(
            geometries=operands(c), tile=tile_gate.Tile, slots=slots,
            rows=c.rows, depth=c.depth, credits=latencies.buffer_passes,
            folded=self.folded,
        )
        connect(m, job_table.pull, tile_gate.jobs)
        connect(m, tile_gate.tiles, pass_builder.tiles)
        connect(m, pass_builder.passes, sequencer.passes)
        m.d.comb += [
            tile_gate.job_index.eq(job_table.pull_index),
            tile_gate.rejected.eq(job_table.rejected),
            tile_gate.ready_panels.eq(job_table.ready_panels),
            pass_builder.abort.eq(self.abort),
            tile_gate.abort.eq(pass_builder.cancel),
            pass_builder.slot.eq(sequencer.slot),
        ]
        return tile_gate, sequencer

    def _array(self, m, loader, step):
        """Cycles -> operand buffers -> skew -> array."""
        c, mac = self.config, self.mac
        writes = {name: getattr(loader, name) for name in "abc" if name in loader.names.values()}
        m.submodules.array = array = SystolicArray(
            rows=c.rows, cols=c.cols, hop=c.hop,
            mac=lambda col: mac(
                depth=c.depth, resource=c.resource(col), blocks=c.pe_blocks, folded=self.folded
            ),
            lut_ram=FABRICS[c.target].lut_ram,
        )
        m.submodules.feeder = feeder = Feeder(
            geometries=memories(c), writes={name: port.shape() for name, port in writes.items()},
            step=step.shape(), mac=mac, hop=c.hop, target=c.target,
        )
        inputs = ["a", "b", "control", *(["preload", "init"] if feeder.starts else [])]
        m.d.comb += [
            *(feeder.writes[name].eq(port) for name, port in writes.items()),
            feeder.step.eq(step),
            *(getattr(array, name).eq(getattr(feeder, name)) for name in inputs),
        ]
        return array

    def _results(self, m, loader, sequencer, array, latencies):
        """Array -> result buffer -> chunks -> result stream."""
        c, mac = self.config, self.mac
        registered = latencies.read_latency > 1
        buffer = self._result_buffer(m, sequencer, array, latencies, registered)
        scheduler = self._scheduler(m, sequencer, latencies)
        m.submodules.lanes = lanes = LaneSelect(
            acc=mac.ACC, cols=c.cols, lanes=c.lanes, registered=registered
        )
        m.submodules.reorder = reorder = ReorderBuffer(
            chunk=scheduler.Chunk, acc=mac.ACC, lanes=c.lanes, depth=latencies.reorder_depth,
            sum_latency=latencies.sum_latency, epilogue_latency=latencies.epilogue_latency,
            output_latency=latencies.reorder_latency,
        )
        m.submodules.packer = packer = StreamPacker(
            chunk=reorder.Completion, bytes_out=c.bytes_out,
            narrow=c.data_type.narrow.bytes if epilogue_flags(c) else 0,
        )
        m.d.comb += [
            scheduler.row_written.eq(buffer.row_written),
            scheduler.popped.eq(reorder.o.valid & reorder.o.ready),
            buffer.read_addr.eq(scheduler.address),
            lanes.index.eq(scheduler.index),
            lanes.row.eq(buffer.row),
            reorder.request.eq(scheduler.request),
        ]
        m.d.sync += sequencer.release.eq(scheduler.release)  # RELEASE cycles later
        connect(m, reorder.o, packer.chunks)
        sums = lanes.sums
        common = {"chunk": scheduler.Chunk, "lanes": c.lanes}
        if mac.CORRECTED:
            m.submodules.corrector = corrector = Corrector(
                geometries=operands(c), writes=(loader.a.shape(), loader.b.shape()),
                target=c.target, **common,
            )
            m.d.comb += [
                corrector.request.eq(scheduler.request), corrector.sums.eq(sums),
                corrector.a.eq(loader.a), corrector.b.eq(loader.b),
            ]
            sums = corrector.corrected
        m.d.comb += reorder.sums.eq(sums)
        epilogue = self.epilogue(
            loader, acc=mac.ACC, sum_latency=latencies.sum_latency, **common
        )
        if epilogue is not None:
            m.submodules.epilogue = epilogue
            m.d.comb += [
                epilogue.request.eq(scheduler.request), epilogue.sums.eq(sums),
                reorder.results.eq(epilogue.results),
                *(getattr(epilogue, name).eq(getattr(loader, name)) for name in epilogue.writes),
            ]
        return packer

    def _result_buffer(self, m, sequencer, array, latencies, registered):
        """Array -> drain -> result buffer."""
        c = self.config
        m.submodules.drain = drain = Drain(
            rows=c.rows, slots=self.mac.SLOTS, delay=latencies.drain_latency, folded=self.folded
        )
        m.submodules.buffer = buffer = ResultBuffer(
            south=array.South, cols=c.cols, depth=latencies.buffer_rows, registered=registered,
            target=c.target,
        )
        m.d.comb += [
            drain.start.eq(sequencer.step.drain),
            *([drain.flush.eq(sequencer.step.flush)] if self.folded else []),
            array.valid.eq(drain.valid),
            array.shift.eq(drain.shift),
            buffer.south.eq(array.south),
        ]
        return buffer

    def _scheduler(self, m, sequencer, latencies):
        """Announced tiles -> pending tiles -> chunk requests."""
        c, slots = self.config, self.mac.SLOTS
        # An entry for every tile in flight, and for every job without results.
        m.submodules.pending = pending = PendingTiles(
            results=sequencer.Results, cols=c.cols, lanes=c.lanes,
            depth=latencies.buffer_passes * slots + c.jobs,
        )
        flags = [flag.name.lower() for flag in epilogue_flags(c) if flag != JobFlag.TABLE]
        m.submodules.scheduler = scheduler = ResultScheduler(
            tile=pending.Tile, rows=c.rows, cols=c.cols, lanes=c.lanes, slots=slots,
            buffer_rows=latencies.buffer_rows, epilogue_flags=flags,
            reorder_depth=latencies.reorder_depth, interval=c.scale_cycles,
            epilogue_lag=latencies.epilogue_lag, serial_epilogue=latencies.serial_epilogue,
            read_delay=latencies.read_delay,
        )
        m.d.comb += pending.results.eq(sequencer.results)
        connect(m, pending.tiles, scheduler.tiles)
        return scheduler

    def epilogue(self, loader, **common):
        """The component that turns sums into results; None if the core gives only the sums."""
        c = self.config
        if not epilogue_flags(c):
            return None
        hardware = HARDWARE[c.dtype](c)
        names = [loader.names[region] for region in hardware.regions if region in loader.names]
        writes = {name: getattr(loader, name).shape() for name in names}
        return hardware.epilogue(geometries=memories(c), writes=writes, **common)

    def _registers(self, m, events):
        """The register block, whose counters count the events, and the activity port."""
        m.submodules.registers = registers = Registers(config=self.config)
        m.d.comb += [
            registers.address.eq(self.reg_address),
            self.reg_data.eq(registers.data),
            *(registers.count[name].eq(event) for name, event in events.items()),
            *(self.activity[name].eq(events[name]) for name in ACTIVITY.members),
        ]
