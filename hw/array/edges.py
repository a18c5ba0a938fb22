"""The edges of the array: the feeder of its operands and control bits, and the drain of results."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region
from weft.hw.array.systolic import PeControl
from weft.hw.buffers.operands import OperandBuffer
from weft.targets import TARGETS

__all__ = ["Drain", "Feeder", "Skew"]


class Drain(wiring.Component):
    """``valid`` for ``rows * slots`` cycles, from ``delay`` cycles after ``start``.

    Row p from the top shifts only in the first ``(p + 1) * slots - 1`` of these cycles, until the
    last of its own results is in its lowest register. So the next pass can be captured one row
    after the other, ``rows * slots`` cycles after the pass before. If folded, the sums themselves
    move: row p shifts for one cycle more, and is then 0. Starts and flushes are at least ``rows *
    slots`` cycles apart, if folded one cycle more.

    Parameters
    ----------
    rows, slots : int
    delay : int
        3 or more.
    folded : bool
    chains : int
        As of a `weft.hw.array.systolic.SystolicArray`: a pass drains in ``rows / chains * slots``
        cycles, and each row shifts as the row of its chain does.

    Attributes
    ----------
    start : In
        Pulse: a pass ends.
    flush : In; only if folded
        Pulse: as ``start``, but the sums are discarded: ``valid`` stays 0.
    valid : Out, 1 bit
        Results are at the south edge of the array.
    shift : Out, 1 bit a row, from the top
    """

    def __init__(self, *, rows, slots, delay, folded=False, chains=1):
        self.rows = rows
        self.chains = chains
        self.slots = slots
        self.delay = delay
        self.folded = folded
        flush = {"flush": In(1)} if folded else {}
        super().__init__({"start": In(1), **flush, "valid": Out(1), "shift": Out(rows)})

    def elaborate(self, platform):
        m = Module()
        cycles = self.rows // self.chains * self.slots
        starts = Signal(self.delay - 2)  # delay line
        remaining = Signal(range(cycles + 1))
        is_result = Signal(init=1)  # the sums that move are results
        m.d.sync += [
            starts.eq(Cat(self.start, starts)), self.valid.eq(remaining.any() & is_result),
        ]
        for p in range(self.rows):
            of_chain = p // self.chains
            # Of the cycles, the last ones.
            idle = cycles - (of_chain + 1) * self.slots + (not self.folded)
            if idle < cycles:
                m.d.sync += self.shift[p].eq(remaining > idle)
        if self.folded:
            flushes = Signal(self.delay - 2)  # delay line
            m.d.sync += [
                starts.eq(Cat(self.start | self.flush, starts)),
                flushes.eq(Cat(self.flush, flushes)),
            ]
            with m.If(starts[-1]):
                m.d.sync += is_result.eq(~flushes[-1])
        with m.If(starts[-1]):
            m.d.sync += remaining.eq(cycles)
        with m.Elif(remaining.any()):
            m.d.sync += remaining.eq(remaining - 1)
        return m


class Skew(wiring.Component):
    """``o[n]`` is ``i[n]``, ``delays[n]`` cycles later.

    Parameters
    ----------
    shape : shape-like
        Shape of one element.
    delays : list of int

    Attributes
    ----------
    i : In, ``len(delays)`` elements
    o : Out, ``len(delays)`` elements
    """

    def __init__(self, *, shape, delays):
        self.delays = delays
        layout = data.ArrayLayout(shape, len(delays))
        super().__init__({"i": In(layout), "o": Out(layout)})

    def elaborate(self, platform):
        m = Module()
        for n, delay in enumerate(self.delays):
            value = self.i[n]
            for stage in range(delay):
                register = Signal.like(value, name=f"lane_{n}_{stage}")
                m.d.sync += register.eq(value)
                value = register
            m.d.comb += self.o[n].eq(value)
        return m


class Feeder(wiring.Component):
    """Operand buffers, the skew at the edges of the array, and the operand decoders behind it.

    The operands of a step reach the PE in the top left corner LATENCY cycles later; row p from the
    top follows ``p // hop`` cycles later, column c follows ``c // hop`` cycles later. Control bits
    and start values arrive at the cycle that the MAC cell requires.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    writes : dict of shapes
        Write ports of the buffers ``a``, ``b`` and, if sums can start from it, ``c``.
    step : shape
        `weft.hw.control.sequencer.ArrayStep`.
    mac : Mac class
    hop : int
    target : str
        As in the Config: the kind of memory that the buffers use.

    Attributes
    ----------
    writes : In, struct of the shapes in ``writes``
        Words from the loader.
    step : In, `weft.hw.control.sequencer.ArrayStep`
    a, b, control, preload, init : Out
        As the inputs of `weft.hw.array.systolic.SystolicArray`.
    """

    def __init__(self, *, geometries, writes, step, mac, hop, target):
        self.geometries = geometries
        self.mac = mac
        self.hop = hop
        self.target = target
        self.rows, self.cols = (geometries[region].edge for region in (Region.A, Region.B))
        self.starts = "c" in writes
        depth = geometries[Region.A].depth
        self._mac_latency = mac.latency(depth)
        self._decoder_latency = mac.OPERAND_DECODER.LATENCY if mac.OPERAND_DECODER else 0
        # Where block RAM is far from the array, a register follows each buffer.
        self._edge_registers = TARGETS[target].edge_registers
        self.LATENCY = OperandBuffer.LATENCY + self._edge_registers + self._decoder_latency
        start = {}
        if self.starts:
            start = {
                "preload": Out(self.rows), "init": Out(data.ArrayLayout(mac.START, self.cols)),
            }
        super().__init__({
            "writes": In(data.StructLayout(writes)),
            "step": In(step),
            "a": Out(data.ArrayLayout(data.ArrayLayout(mac.A, depth), self.rows)),
            "b": Out(data.ArrayLayout(data.ArrayLayout(mac.B, depth), self.cols)),
            "control": Out(PeControl),
            **start,
        })

    def elaborate(self, platform):
        m = Module()
        # Row 0 of the tile is the lowest row of PEs.
        row_delays = [p // self.hop for p in reversed(range(self.rows))]
        col_delays = [c // self.hop for c in range(self.cols)]
        decoder = self.mac.OPERAND_DECODER
        self._edge(m, "a", Region.A, self.step.a_addr, row_delays, decoder, self.a)
        self._edge(m, "b", Region.B, self.step.b_addr, col_delays, decoder, self.b)
        # Cycles from the operands of a step to the cycle in which its sum can start anew.
        start_delay = self._mac_latency - self.mac.SLOTS
        delays = {"en": 0, "clear": start_delay, "capture": self._mac_latency}
        m.submodules.pe_control = pe_control = Skew(
            shape=1, delays=[self.LATENCY + delay for delay in delays.values()]
        )
        for n, name in enumerate(delays):
            m.d.comb += [
                pe_control.i[n].eq(self.step[name]), self.control[name].eq(pe_control.o[n]),
            ]
        if self.starts:
            self._starts(m, start_delay, row_delays, col_delays)
        return m

    def _starts(self, m, start_delay, row_delays, col_delays):
        """The preload bits of the rows, and the start values, which are read from the C buffer."""
        m.submodules.preload = preload = Skew(
            shape=1, delays=[self.LATENCY + start_delay + delay for delay in row_delays]
        )
        m.d.comb += [preload.i.eq(self.step.preload), self.preload.eq(preload.o)]
        decoder = self.mac.START_DECODER
        # The read is late enough that decoded values meet their sums.
        delay = self._decoder_latency + start_delay - (decoder.LATENCY if decoder else 0)
        m.submodules.c_addr = c_addr = Skew(shape=self.step.c_addr.shape(), delays=[delay])
        m.d.comb += c_addr.i[0].eq(self.step.c_addr)
        init = data.ArrayLayout(data.ArrayLayout(self.mac.START, 1), self.cols)(self.init)
        self._edge(m, "c", Region.C, c_addr.o[0], col_delays, decoder, init)

    def _edge(self, m, name, region, addr, delays, decoder, out):
        """One edge of the array: a buffer, its skew, and a decoder for each value of a word."""
        geometry = self.geometries[region]
        write = self.writes[name]
        buffer = OperandBuffer(
            geometry=geometry, write=write.shape(), target=self.target
        )
        word = buffer.read_data.shape()
        skew = Skew(
            shape=word.elem_shape, delays=[self._edge_registers + delay for delay in delays]
        )
        m.submodules[name] = buffer
        m.submodules[f"skew_{name}"] = skew
        m.d.comb += [
            buffer.write.eq(write),
            buffer.read_en.eq(1),
            buffer.read_addr.eq(addr),
            skew.i.eq(buffer.read_data),
        ]
        for e in range(geometry.edge):
            for d in range(geometry.depth):
                value = skew.o[e][d]
                if decoder:
                    m.submodules[f"decoder_{name}_{e}_{d}"] = value_decoder = decoder()
                    m.d.comb += value_decoder.i.eq(value)
                    value = value_decoder.o
                m.d.comb += out[e][d].eq(value)
