"""The output unit of a core of one row: from sums of tiles to vectors of the map, with ADD."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.arith.ice40 import LoadableCounter
from weft.hw.delay import pipeline
from weft.hw.network_core.interface import LineRead, MemoryWindow, TableRead
from weft.hw.network_core.micro.loads import PortRequest
from weft.hw.network_core.output.rescaler import Issue, Rescaler
from weft.network_core import latencies
from weft.network_core.latencies import add_slot

__all__ = ["AddedVector", "OutputFields", "OutputUnit", "SlotRescaler"]


class AddedVector(wiring.Component):
    """Reads a vector for each tile, when the bytes of the tile before have been taken.

    Parameters
    ----------
    cols : int

    Attributes
    ----------
    tile : In, 1 bit
        Pulse: a tile needs its vector. Not while ``pending`` is 1.
    cols : In; first : In, 1 bit; start : In, 16 bits
        Of the tile: its columns, whether it is the first one of a pixel, and the first vector of
        that pixel.
    pending : Out, 1 bit
        The vector of a tile was not read yet.
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    read : Out, `PortRequest`; read_ready : In, 1 bit; read_data : In, 32 bits
        The data follow a cycle after ``read_ready``.
    take : In, 1 bit
        Takes ``value``.
    value : Out, signed 8 bits
    address_error : Out, 1 bit
        The vector lies beyond the window: its data must not be used.
    """

    def __init__(self, *, cols):
        super().__init__({
            "tile": In(1), "cols": In(range(cols + 1)), "first": In(1), "start": In(16),
            "pending": Out(1), "window": In(MemoryWindow(16)),
            "read": Out(PortRequest(write=False)), "read_ready": In(1), "read_data": In(32),
            "take": In(1), "value": Out(signed(8)), "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.address = counter = LoadableCounter(16)
        vector = Signal(32)
        left, cols = Signal.like(self.cols), Signal.like(self.cols)
        arrives, wants, inside = Signal(), Signal(), Signal()
        begins, address = self.tile & self.first, self.read.address
        # The address is checked a cycle before the read.
        m.d.sync += [
            wants.eq(self.pending & (left == 0) & ~self.read_ready & ~arrives),
            inside.eq((address >= self.window.base) & (address < self.window.limit)),
        ]
        m.d.comb += [
            counter.en.eq(begins | self.read_ready), counter.load.eq(begins),
            counter.start.eq(self.start), address.eq(counter.value),
            self.read.valid.eq(wants), self.address_error.eq(wants & ~inside),
            self.value.eq(vector[:8]),
        ]
        m.d.sync += arrives.eq(self.read_ready)
        with m.If(self.take):
            m.d.sync += [vector.eq(vector >> 8), left.eq(left - 1)]
        with m.If(self.read_ready):
            m.d.sync += self.pending.eq(0)
        with m.If(arrives):
            m.d.sync += [vector.eq(self.read_data), left.eq(cols)]
        with m.If(self.tile):
            m.d.sync += [self.pending.eq(1), cols.eq(self.cols)]
        return m


class SlotRescaler(Rescaler):
    """A `Rescaler` whose slots begin every ``scale_cycles`` cycles.

    A chunk is requested in the first cycle of a slot: of every slot, of every second one with ADD,
    or of every fourth one with sums. So a bit for each slot tells the issues of all cycles before.

    Attributes
    ----------
    reads_multiplier : Signal
        The multiplier of the line comes a cycle later, and stays until the next one; 1 bit. Of a
        serial scaler only.
    """

    HOLDS_MULTIPLIER = False

    def __init__(self, config):
        super().__init__(config)
        self.reads_multiplier = Signal()

    def _serial_scaler(self, m, lane, biased, column, issues):
        scaler = super()._serial_scaler(m, lane, biased, column, issues)
        m.d.comb += self.reads_multiplier.eq(scaler.reads_multiplier)
        return scaler

    def _issues(self, m):
        cycles, job = self.core.scale_cycles, self.job.fields
        phase, slot = Signal(range(cycles)), Signal(2)
        slots = -(-latencies.total_latency(self.config) // cycles) + add_slot(self.config)
        requests = Signal(slots)  # in the slots before
        m.d.sync += phase.eq(phase + 1)
        with m.If(phase == cycles - 1):
            m.d.sync += slot.eq(slot + 1)
        with m.If(phase == 0):
            m.d.sync += requests.eq(Cat(self.request.valid, requests))
        with m.If(self.job.start):
            m.d.sync += [phase.eq(0), slot.eq(0), requests.eq(0)]
        m.d.comb += self.ready.eq(
            (phase == 0) & ~Mux(job.sums, slot.any(), job.add & slot[0])
        )
        return _Issues(m, self, Cat(self.request.valid, requests), phase)

    def _total(self, m, lane, y, issues):
        """The sum of both values of the table, until the next chunk has one.

        One register takes one after the other, in few cells. Two slots are between two sums, so
        the sum before has been used when the register is cleared.
        """
        found, total = self._read_table(m, lane, y, issues), Signal(signed(32), reset_less=True)
        last = latencies.total_latency(self.config) - 1
        with m.If(issues[last - 1].layer | issues[last].layer):
            m.d.sync += total.eq(total + found)
        with m.If(issues[last - 2].layer):
            m.d.sync += total.eq(0)
        return total


class _Issues:
    """``issues[cycles]``: the issue of that many cycles before."""

    def __init__(self, m, rescaler, requests, phase):
        self._m, self._requests, self._phase = m, requests, phase
        self._job, self._core = rescaler.job.fields, rescaler.core
        self._add_slot = add_slot(rescaler.config)
        self._found = {}

    def __getitem__(self, cycle):
        if cycle not in self._found:
            slots, phase = divmod(cycle, self._core.scale_cycles)
            issue = self._found[cycle] = Signal(Issue, name=f"issue_{cycle}")
            # A slot is in its place of the requests from its second cycle on.
            place, now = slots + (phase > 0), self._phase == phase
            scaled = cycle <= latencies.join(self._core) or ~self._job.sums
            self._m.d.comb += [
                issue.layer.eq(now & self._requests[place] & scaled),
                issue.total.eq(
                    now & self._requests[place + self._add_slot] & self._job.add
                ),
            ]
        return self._found[cycle]


class OutputFields(data.Struct):
    """The fields of a job that its results need, as in `weft.network_core.descriptors.ListJob`."""

    add: 1
    sums: 1
    parameter_line: 16
    add_line: 16
    zero: 8
    low: 8
    high: 8
    sum_zero: 8
    sum_low: 8
    sum_high: 8


class OutputUnit(wiring.Component):
    """Rescales the columns of a tile one after the other, and stores a vector for each tile.

    A job with sums stores a vector for each column. The vectors of a pixel follow each other.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    fields : In, `OutputFields`
    start : In, 1 bit
        Pulse: a job starts. Its ``fields`` come after this cycle, and before its first tile.
    cols : In; first : In, 1 bit
        Columns of the tile whose steps end, and whether it is the first one of its pixel: valid
        with ``ends``.
    ends : In, 1 bit
        Pulse: all steps of a tile have come. Only while ``may_end`` is 1.
    may_end : Out, 1 bit
    captured : In, 1 bit
        Pulse: the sums of the tile are held from the next cycle on.
    sums : In, 32 bits
        Of the first column that was not taken.
    take : Out, 1 bit
        Takes ``sums``.
    output, added : In, 16 bits
        First vectors of a pixel of the output map, and of the added map.
    output_taken : Out, 1 bit
        Pulse: ``output`` and ``added`` are not needed any more.
    lines : Out, `weft.hw.network_core.interface.LineRead`
    reads_multiplier : Out, 1 bit
        As of a `SlotRescaler`. The address of the line was there in the cycle before.
    table : Out, `weft.hw.network_core.interface.TableRead`
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    store, read : Out, `PortRequest`; store_ready, read_ready : In, 1 bit
        Of the output map, and of the added map.
    read_data : In, 32 bits
        The vector, in the cycle after ``read_ready``.
    empty : Out, 1 bit
        All results are stored.
    address_error : Out, 1 bit
        Pulse: a vector beyond the window was neither read nor written.
    """

    def __init__(self, config):
        self.config = config
        cols = config.array.cols
        super().__init__({
            "fields": In(OutputFields), "start": In(1), "cols": In(range(cols + 1)),
            "first": In(1), "ends": In(1), "may_end": Out(1), "captured": In(1),
            "sums": In(32), "take": Out(1), "output": In(16), "added": In(16),
            "output_taken": Out(1),
            "lines": Out(LineRead(config)), "reads_multiplier": Out(1),
            "table": Out(TableRead(config)),
            "window": In(MemoryWindow(16)),
            "store": Out(PortRequest(write=True)), "store_ready": In(1),
            "read": Out(PortRequest(write=False)), "read_ready": In(1), "read_data": In(32),
            "empty": Out(1), "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.rescaler = rescaler = SlotRescaler(self.config)
        m.submodules.added_vector = added = AddedVector(cols=self.config.array.cols)
        connect(m, flipped(self.window), added.window)
        next_cols, next_first = Signal.like(self.cols), Signal()  # of the tile before its sums
        with m.If(self.ends):
            m.d.sync += [next_cols.eq(self.cols), next_first.eq(self.first)]
        last, first, idle = self._request(m, rescaler, added, next_cols, next_first)
        self._rescale(m, rescaler)
        m.d.comb += [
            added.tile.eq(self.captured & self.fields.add), added.first.eq(next_first),
            added.cols.eq(next_cols), added.start.eq(self.added),
            added.read_ready.eq(self.read_ready), added.read_data.eq(self.read_data),
            added.take.eq(rescaler.added.ready),
            self.read.eq(added.read),
            rescaler.added.payload[0].eq(added.value), rescaler.added.valid.eq(1),
        ]
        stored, beyond = self._store(m, rescaler, last, first)
        m.d.comb += [
            self.empty.eq(idle & ~self.ends & stored),
            self.address_error.eq(added.address_error | beyond),
        ]
        return m

    def _request(self, m, rescaler, added, next_cols, next_first):
        """Request the columns of a tile.

        Returns whether the column is the last one of its tile, and whether it is the first one of
        its pixel; and whether all are requested.
        """
        request, last = rescaler.request, Signal()
        cols, first, busy, taken = Signal.like(self.cols), Signal(), Signal(), Signal()
        column, line = Signal(range(self.config.array.cols)), Signal.like(self.lines.address)
        m.d.comb += [
            self.may_end.eq(~taken & ~added.pending),
            request.valid.eq(busy & rescaler.ready), last.eq(column == (cols - 1)[:len(column)]),
            request.chunk.line.eq(line),
            self.take.eq(pipeline(m, request.valid, rescaler.join, "take")),
        ]
        with m.If(request.valid):
            m.d.sync += [column.eq(column + 1), line.eq(line + 1)]
            with m.If(last):
                m.d.sync += busy.eq(0)
        ends = request.valid & last
        if latencies.ends_early(self.config.array):
            most = self.config.array.cols
            early = (cols == most) & ~self.fields.add & ~self.fields.sums
            ends = request.valid & (column == Mux(early, most - 2, cols - 1))
        with m.If(ends):
            m.d.sync += taken.eq(0)
        with m.If(self.ends):
            m.d.sync += taken.eq(1)
        with m.If(self.captured):
            m.d.sync += [busy.eq(1), column.eq(0), cols.eq(next_cols), first.eq(next_first)]
            with m.If(next_first):
                m.d.sync += line.eq(self.fields.parameter_line)
        return last, first & (column == 0), ~taken & ~busy

    def _rescale(self, m, rescaler):
        """Connect the rescaler, and the fields of the job that it needs."""
        job, fields = rescaler.job.fields, self.fields
        for name in ("add", "sums", "add_line", "zero", "low", "high", "sum_zero", "sum_low",
                     "sum_high"):
            m.d.comb += job[name].eq(fields[name])
        m.d.comb += [
            rescaler.job.start.eq(self.start), rescaler.sums[0].eq(self.sums),
            self.reads_multiplier.eq(rescaler.reads_multiplier),
        ]
        connect(m, rescaler.lines, flipped(self.lines))
        connect(m, rescaler.table, flipped(self.table))

    def _store(self, m, rescaler, last, first):
        """Collect the results of a tile, and store them.

        Returns whether all are stored, and whether an address is wrong.
        """
        ring = 1 << (latencies.chunks_in_flight(self.config) - 1).bit_length()
        lasts, firsts = Signal(ring), Signal(ring)  # of the columns between request and result
        asked, found, beyond = Signal(range(ring)), Signal(range(ring)), Signal()
        with m.If(rescaler.request.valid):
            m.d.sync += [
                asked.eq(asked + 1), lasts.bit_select(asked, 1).eq(last),
                firsts.bit_select(asked, 1).eq(first),
            ]
        comes = Signal(rescaler.NEXT)
        m.d.sync += comes.eq(Cat(rescaler.results_next, comes))
        sums_come = Signal()
        m.d.sync += sums_come.eq(rescaler.biased_next)
        byte, arrives, complete, pending = Signal(2), Signal(), Signal(), Signal()
        m.submodules.address = counter = LoadableCounter(16)
        vector, enable, address = self.store.data, Signal(4), self.store.address
        is_last, is_first = lasts.bit_select(found, 1), firsts.bit_select(found, 1)
        m.d.comb += [
            arrives.eq(comes[-1] | sums_come), self.output_taken.eq(arrives & is_first),
        ]
        for n in range(4):  # an enable a byte: a choice among old and new bytes costs more cells
            part = slice(8 * n, 8 * n + 8)
            with m.If(sums_come | (comes[-1] & (byte == n))):
                m.d.sync += vector[part].eq(
                    Mux(sums_come, rescaler.biased[0][part], rescaler.results[0])
                )
        with m.If(sums_come):
            m.d.sync += enable.eq(0xF)
        with m.If(comes[-1]):
            m.d.sync += [byte.eq(byte + 1), enable.eq((Const(2, 5) << byte) - 1)]
            with m.If(is_last):
                m.d.sync += byte.eq(0)
        with m.If(arrives):
            m.d.sync += found.eq(found + 1)
        stored, inside = Signal(), Signal()
        # The address of the vector is checked a cycle before the store.
        m.d.sync += [
            complete.eq(sums_come | (comes[-1] & is_last)),
            inside.eq((address >= self.window.base) & (address < self.window.limit)),
        ]
        m.d.comb += [
            self.store.valid.eq(pending), self.store.enable.eq(enable & inside.replicate(4)),
            beyond.eq(pending & ~inside),
            stored.eq((asked == found) & ~complete & ~pending),
        ]
        with m.If(complete):
            m.d.sync += pending.eq(1)
        with m.If(self.store_ready):
            m.d.sync += pending.eq(0)
        m.d.comb += [
            counter.en.eq(self.store_ready | self.output_taken),
            counter.load.eq(self.output_taken), counter.start.eq(self.output),
            address.eq(counter.value),
        ]
        return stored, beyond
