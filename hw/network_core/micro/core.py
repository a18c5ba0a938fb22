"""The network core of one row, in few logic cells: the micro engine and its units."""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from weft.hw.buffers.bank import Bank
from weft.hw.delay import pipeline
from weft.hw.network_core.interface import NetworkInterface
from weft.hw.network_core.micro.columns import ArrayColumns, StepUnit, TapFields
from weft.hw.network_core.micro.engine import MicroEngine
from weft.hw.network_core.micro.loads import LoadUnit, SharedPort, WeightBuffer
from weft.hw.network_core.micro.output import OutputFields, OutputUnit
from weft.network_core import latencies
from weft.network_core.config import ADD_TABLE_WORDS
from weft.network_core.descriptors import ListError, LoadTarget, NetworkState
from weft.network_core.microcode import Out as Target
from weft.network_core.microcode import Strobe, Wait, assemble

__all__ = ["MicroCore"]


class MicroCore(wiring.Component):
    """The same lists, memory and ports as a `weft.hw.network_core.core.NetworkCore`, one job at a
    time.

    A microprogram (`weft.network_core.microcode.program`) reads the list and walks over the pixels
    and the tiles of a job. The step unit, the array and the output unit work on their tiles
    meanwhile.

    Parameters
    ----------
    config : NetworkCoreConfig
        With one row, vectors of 4 bytes, 4 columns and one lane.

    Attributes
    ----------
    writes, reads, begin, abort, window, status, finished
        The ports of `weft.hw.network_core.interface.NetworkInterface`, flipped.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(NetworkInterface(config).flip())

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.port = port = SharedPort(words=config.words, target=config.array.target)
        m.submodules.engine = engine = MicroEngine(assemble(config))
        halt = Signal(init=1)
        resets = ResetInserter(halt)
        steps, output = StepUnit(b_words=config.b_words), OutputUnit(config)
        columns = ArrayColumns(config.array)
        loads = LoadUnit(cols=config.array.cols)
        for name, unit in (
            ("steps", steps), ("output", output), ("columns", columns), ("loads", loads),
        ):
            m.submodules[name] = resets(unit)
        for unit in (engine, steps, output):
            m.d.comb += [
                unit.window.base.eq(self.window.base), unit.window.limit.eq(self.window.limit),
            ]
        outside, partial = self._fields(m, engine, steps, output)
        m.d.comb += columns.outside.eq(outside)
        self._tiles(m, halt, partial, engine, steps, columns, output)
        self._buffers(m, steps, columns, loads, output)
        self._loads(m, engine, loads, port)
        self._memory(m, engine, steps, columns, output, port)
        m.d.comb += columns.clear.eq(halt)
        address_error = Signal()
        m.d.sync += address_error.eq(steps.address_error | output.address_error)
        self._status(m, engine, halt, address_error)
        return m

    def _set(self, m, engine, target, value, *, bits=None):
        """Write a register by OUT."""
        with m.If(engine.out[target]):
            m.d.sync += value.eq(engine.accumulator if bits is None else engine.accumulator[bits])

    def _fields(self, m, engine, steps, output):
        """The registers of the fields of a job.

        Returns the value outside the map, and whether the job is partial.
        """
        taps, results = Signal(TapFields), Signal(OutputFields)
        low, high = slice(0, 8), slice(8, 16)
        outside, partial = Signal(8), Signal()
        for target, value, bits in (
            (Target.KERNEL, taps.kernel_height, low), (Target.KERNEL, taps.kernel_width, high),
            (Target.TAP_VECTORS, taps.tap_vectors, None), (Target.HEIGHT, taps.in_height, None),
            (Target.WIDTH, taps.in_width, None), (Target.DILATION, taps.dilation_y, low),
            (Target.DILATION, taps.dilation_x, high), (Target.TAP_X, taps.tap_x_step, None),
            (Target.TAP_Y, taps.tap_y_step, None), (Target.FLAGS, results.add, slice(9, 10)),
            (Target.FLAGS, results.sums, slice(10, 11)), (Target.FLAGS, partial, slice(11, 12)),
            (Target.LINE, results.parameter_line, None), (Target.ADD_LINE, results.add_line, None),
            (Target.OUTSIDE, outside, low), (Target.OUTSIDE, results.zero, high),
            (Target.LIMITS, results.low, low), (Target.LIMITS, results.high, high),
            (Target.SUM_ZERO, results.sum_zero, high), (Target.SUM_LIMITS, results.sum_low, low),
            (Target.SUM_LIMITS, results.sum_high, high),
        ):
            self._set(m, engine, target, value, bits=bits)
        m.d.comb += [steps.fields.eq(taps), output.fields.eq(results)]
        return outside, partial

    def _tiles(self, m, halt, partial, engine, steps, columns, output):
        """Start tiles, and pass what belongs to them. A partial job has no results."""
        for target, name in (
            (Target.X, "x"), (Target.Y, "y"), (Target.ORIGIN, "origin"), (Target.B, "b_word"),
        ):
            value = Signal(len(getattr(steps, name)), name=name)
            self._set(m, engine, target, value)
            m.d.comb += getattr(steps, name).eq(value)
        # When a list ends, there are no more tiles.
        m.d.comb += [
            self.status.result.word.eq(steps.x), self.status.result_bytes.eq(steps.y),
        ]
        first, full, drained, most = Signal(), Signal(), Signal(), self.config.array.cols
        more = engine.accumulator  # columns behind the first one
        cols, is_first = Signal(range(most + 1)), Signal()  # of the tile whose steps come
        out = engine.out
        output_pixel, added_pixel = Signal(16), Signal(16)
        with m.If(~full):
            self._set(m, engine, Target.OUTPUT, output_pixel)
        self._set(m, engine, Target.ADDED, added_pixel)
        m.d.comb += [output.output.eq(output_pixel), output.added.eq(added_pixel)]
        with m.If(output.output_taken | halt):
            m.d.sync += full.eq(0)
        with m.Elif(out[Target.OUTPUT]):
            m.d.sync += [full.eq(~partial), first.eq(1)]
        ends = steps.ends & ~partial
        m.d.comb += steps.start.eq(out[Target.TILE] & steps.idle)
        with m.If(steps.start):
            m.d.sync += [
                first.eq(0), is_first.eq(first),
                cols.eq(Mux(more[2:].any(), most, more[:2] + 1)),
            ]
        m.d.comb += [
            output.cols.eq(cols), output.first.eq(is_first), output.ends.eq(ends),
            steps.may_end.eq(output.may_end), output.captured.eq(columns.captured),
            columns.valid.eq(steps.valid), columns.ends.eq(ends), columns.take.eq(output.take),
            output.sums.eq(columns.sums), columns.is_outside.eq(steps.outside),
            output.start.eq(engine.strobe[Strobe.START.bit_length() - 1]),
            engine.ready[Wait.TILE].eq(steps.idle), engine.ready[Wait.OUTPUT].eq(~full),
            engine.ready[Wait.DRAIN].eq(drained),
        ]
        m.d.sync += drained.eq(steps.idle & output.empty)

    def _buffers(self, m, steps, columns, loads, output):
        """The buffers that loads write."""
        config, write = self.config, loads.write
        m.submodules.weights = weights = WeightBuffer(
            cols=config.array.cols, words=config.b_words,
            is_skewed=latencies.is_skewed(config.array),
        )
        for column in range(config.array.cols):
            m.d.comb += weights.enable[column].eq(
                write.valid[LoadTarget.B] & (write.diagonal | (write.group == column))
            )
        m.d.comb += [
            weights.write_address.eq(write.word), weights.write_data.eq(write.data),
            weights.diagonal.eq(write.diagonal),
            weights.read_address.eq(steps.b_address), columns.b.eq(weights.read_data),
        ]
        line = output.lines.data[0]
        valid = [write.valid[LoadTarget.PARAMETERS] & (write.group == n) for n in range(3)]
        for name, field, is_written in (
            ("bias", line.bias, valid[0]), ("shift", line.shift, valid[2]),
        ):
            self._bank(
                m, name, config.lines, len(field), is_written, write, output.lines.address, field
            )
        self._multipliers(m, output, write, valid[1])
        self._bank(
            m, "table", ADD_TABLE_WORDS, 32, write.valid[LoadTarget.ADD_TABLE], write,
            output.table.address[0], output.table.data[0],
        )

    def _multipliers(self, m, output, write, valid):
        """The buffer of the multipliers of lines, whose output holds the one that is in use."""
        m.submodules.multiplier = memory = Memory(
            shape=32, depth=self.config.lines, init=[],
            attrs={"ram_style": "block", "no_rw_check": 1},
        )
        port, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            port.en.eq(valid), port.addr.eq(write.word), port.data.eq(write.data),
            read.addr.eq(pipeline(m, output.lines.address, 1, "line")),
            read.en.eq(output.reads_multiplier), output.lines.data[0].multiplier.eq(read.data),
        ]

    def _bank(self, m, name, words, width, valid, write, address, value):
        """A buffer of words of one vector."""
        m.submodules[name] = bank = Bank(width=width, depth=words, target=self.config.array.target)
        m.d.comb += [
            bank.write_en.eq(valid), bank.write_addr.eq(write.word),
            bank.write_data.eq(write.data), bank.read_addr.eq(address), value.eq(bank.read_data),
        ]

    def _loads(self, m, engine, loads, port):
        """The load unit."""
        out = engine.out
        m.d.comb += [
            loads.value.eq(engine.accumulator), loads.set_flags.eq(out[Target.LOAD_FLAGS]),
            loads.set_target.eq(out[Target.LOAD_TARGET]), loads.set_word.eq(out[Target.LOAD_WORD]),
            loads.set_words.eq(out[Target.LOAD_WORDS]),
            loads.load.eq(engine.strobe[Strobe.LOAD.bit_length() - 1]),
            loads.read_ready.eq(port.load_ready), loads.data.eq(port.read_data),
            port.load.eq(loads.read),
            engine.ready[Wait.LOAD].eq(loads.done),
        ]

    def _memory(self, m, engine, steps, columns, output, port):
        """The clients of the memory."""
        written = Signal()
        m.d.comb += [
            # A step that waits for the columns has the port, too: the address need not wait for
            # that decision.
            port.step.valid.eq(~steps.idle), port.step.address.eq(steps.address),
            steps.free.eq(port.step_free),
            columns.vector.eq(port.read_data),
            port.store.eq(output.store), output.store_ready.eq(port.store_ready),
            port.added.eq(output.read), output.read_ready.eq(port.added_ready),
            output.read_data.eq(port.read_data),
            port.engine_read.eq(engine.read),
            engine.read_ready.eq(port.engine_read_ready), engine.data.eq(port.read_data),
            port.engine_write.valid.eq(engine.write & ~written),
            port.engine_write.address.eq(engine.address),
            port.engine_write.enable.eq(Mux(engine.write_high, 0b1100, 0b0011)),
            port.engine_write.data.eq(engine.accumulator.replicate(2)),
            engine.ready[Wait.WRITE].eq(written),
            engine.next_address.eq(port.load_ready | (engine.write_high & written)),
            port.host_write.address.eq(self.writes.payload.address.word),
            port.host_write.enable.eq(self.writes.payload.enable),
            port.host_write.data.eq(self.writes.payload.data),
            self.writes.ready.eq(port.host_write_ready),
            port.host_read.address.eq(self.reads.request.payload.word),
            self.reads.request.ready.eq(port.host_read_ready),
            self.reads.data[0].eq(port.read_data),
        ]
        m.d.sync += [
            self.reads.data_valid.eq(port.host_read_ready), written.eq(port.engine_write_ready),
        ]

        self._host(m, port)

    def _host(self, m, port):
        """The requests of the host, a cycle later; it reads and writes by turns."""
        writes, reads, read_first = Signal(), Signal(), Signal()
        write, read = self.writes, self.reads.request
        m.d.comb += [port.host_write.valid.eq(writes), port.host_read.valid.eq(reads)]
        with m.If(port.host_write_ready | port.host_read_ready):
            m.d.sync += [writes.eq(0), reads.eq(0), read_first.eq(port.host_write_ready)]
        with m.Elif(~writes & ~reads):
            m.d.sync += [
                writes.eq(write.valid & ~(read.valid & read_first)),
                reads.eq(read.valid & (read_first | ~write.valid)),
            ]

    def _status(self, m, engine, halt, address_error):
        """Begin and end lists."""
        status, begin, out = self.status, self.begin, engine.out
        m.d.comb += [
            engine.halt.eq(halt), engine.begin[:16].eq(begin.list.word),
            engine.begin[16:].eq(begin.log.word),
            engine.cycles.eq(status.cycles),
        ]
        m.d.sync += self.finished.eq(0)
        self._set(m, engine, Target.JOB, status.job)
        with m.If(halt):
            with m.If(begin.valid):
                m.d.sync += [
                    halt.eq(0), status.state.eq(NetworkState.RUNNING),
                    status.error.eq(ListError.NONE), status.cycles.eq(0), status.job.eq(0),
                ]
        with m.Else():
            m.d.sync += status.cycles.eq(status.cycles + 1)
            ends = self.abort | address_error | out[Target.STATE]
            with m.If(ends):
                m.d.sync += [halt.eq(1), self.finished.eq(1)]
            with m.If(self.abort):
                m.d.sync += [
                    status.state.eq(NetworkState.ABORTED), status.error.eq(ListError.ABORTED),
                ]
            with m.Elif(address_error):
                m.d.sync += [
                    status.state.eq(NetworkState.ERROR), status.error.eq(ListError.ADDRESS),
                ]
            with m.Elif(out[Target.STATE]):
                m.d.sync += [
                    status.state.eq(engine.accumulator[:8]),
                    status.error.eq(engine.accumulator[8:]),
                ]
