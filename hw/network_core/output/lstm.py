"""`Lstm`: computes jobs with LSTM, a step in time of a recurrent layer."""

from itertools import pairwise

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.hw.network_core.interface import ReadPort, ScalePort, job_ports
from weft.hw.network_core.layouts import VectorAddress, add_addresses, add_vectors, within
from weft.hw.network_core.memory.banked_memory import MemoryWrite
from weft.latencies import MEMORY_READ
from weft.network_core.config import (
    ADD_TABLE_WORDS,
    LSTM_CELL_SHIFT,
    LSTM_LIMITS,
    LSTM_PARAMETERS,
    LSTM_SCALES,
)
from weft.network_core.latencies import LSTM_FUNCTION, MAP_PRODUCT, scale

__all__ = ["Interpolation", "Lstm"]

_GATES = 4
_NEW = 2  # the gate whose function is tanh
_MAPS = 4
_FED, _CELL = 0, 2  # in the order in which they are used
_SAME = 3  # shift of a value that keeps its scale
# The values that the scaler computes of a unit: its gates' sums of the inputs, then those of the
# hidden values, then three products.
_FORGET, _UPDATE, _HIDDEN = range(2 * _GATES, LSTM_SCALES)


class Interpolation(wiring.Component):
    """The sigmoid or the tanh of a value, by a table: `weft.golden.network_core.lstm.lstm_step`.

    It takes a value a cycle.

    Attributes
    ----------
    start : In, 1 bit
        The inputs are valid.
    x : In, 16 bits, signed
    shift : In, 3 bits
    is_tanh : In, 1 bit
    index : Out, 8 bits
        A word of the table.
    word : In, 32 bits
        That word, `weft.latencies.MEMORY_READ` cycles later.
    step, rest : Out, 16 bits, signed
        Factors.
    product : In, 32 bits, signed
        Their product, `weft.network_core.latencies.MAP_PRODUCT` cycles later.
    y : Out, 16 bits, signed
    done : Out, 1 bit
        ``y`` is valid, LATENCY cycles after ``start``.
    """

    LATENCY = LSTM_FUNCTION

    def __init__(self):
        super().__init__({
            "start": In(1), "x": In(signed(16)), "shift": In(3), "is_tanh": In(1),
            "index": Out(8), "word": In(signed(32)), "step": Out(signed(16)),
            "rest": Out(signed(16)), "product": In(signed(32)), "y": Out(signed(16)),
            "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        valid = Signal(self.LATENCY)
        m.d.sync += valid.eq(Cat(self.start, valid))
        m.d.comb += self.done.eq(valid[-1])
        sign, is_tanh = self._find(m)
        self._add(m, *(
            pipeline(m, value, MEMORY_READ + MAP_PRODUCT, name)
            for value, name in ((sign, "late_sign"), (is_tanh, "late_is_tanh"))
        ))
        return m

    def _find(self, m):
        """The place in the table; returns the sign of the value, and the function."""
        tripled = Signal(signed(18))
        m.d.comb += tripled.eq(self.x + (self.x << 1))
        value, size = Signal(signed(22), reset_less=True), Signal(22)
        m.d.sync += value.eq(((tripled << self.shift) + (1 << (_SAME - 1))) >> _SAME)
        is_tanh = pipeline(m, self.is_tanh, 1, "is_tanh")
        m.d.comb += size.eq(Mux(value[-1], -value, value))
        entry = Mux(is_tanh, size[8:], size[9:])
        rest = Signal(9, reset_less=True)
        m.d.sync += [
            self.index.eq(Mux(entry[8:].any(), 0xFF, entry[:8])),
            rest.eq(Mux(is_tanh, size[:8], size[:9])),
        ]
        m.d.comb += [
            self.step.eq(self.word[16:]), self.rest.eq(pipeline(m, rest, MEMORY_READ, "rest")),
        ]
        return pipeline(m, value[-1], 1, "sign"), pipeline(m, is_tanh, 1, "entry_is_tanh")

    def _add(self, m, sign, is_tanh):
        """The value of the table at the place, rounded."""
        base = pipeline(m, self.word[:16], MAP_PRODUCT, "base")
        # Of a tanh less 2^24: that is the highest bit of the base.
        below = is_tanh & ~base[15]
        whole = Cat(base[:15], Mux(is_tanh, below, base[15]), below).as_signed()
        term = self.product[:25].as_signed()
        total, offset = Signal(signed(27), reset_less=True), Signal(26, reset_less=True)
        negative, half = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            total.eq((whole << 9) + Mux(is_tanh, term << 1, term)), negative.eq(sign),
            half.eq(is_tanh),
            offset.eq(Mux(is_tanh, 1 << 8, Mux(sign, (1 << 25) + (1 << 9), 1 << 9))),
        ]
        rounded = Signal(signed(28))
        # The complement of a number is its negative, less 1.
        m.d.comb += rounded.eq(Mux(negative, ~total, total) + offset)
        m.d.sync += self.y.eq(Mux(half, rounded >> 9, rounded >> 10))


def _saturated(m, value, bits, name):
    """``value`` limited to ``bits`` bits, with sign."""
    found, upper = Signal(signed(bits), name=name), value[bits - 1 :]
    m.d.comb += found.eq(Mux(
        upper.any() & ~upper.all(), Cat((~value[-1]).replicate(bits - 1), value[-1]), value[:bits]
    ))
    return found


class _Parameters(wiring.Component):
    """The scales and the limits of a layer, which a job reads from the ADD table first.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: reads the words.
    place : Out
        A word of the ADD table, from the cycle after ``start`` on.
    word : In, 32 bits
        That word, `weft.latencies.MEMORY_READ` cycles later.
    done : Out, 1 bit
        Pulse: all words are there in the next cycle.
    index : In
        A scale.
    multiplier, shift : Out
        Its parameters, in the same cycle.
    high, low : Out, 16 bits, signed
        The limits of the cell.
    cell_shift : Out, 3 bits
    """

    def __init__(self):
        super().__init__({
            "start": In(1), "place": Out(range(ADD_TABLE_WORDS)), "word": In(signed(32)),
            "done": Out(1), "index": In(range(LSTM_SCALES)), "multiplier": Out(31),
            "shift": Out(signed(8)), "high": Out(signed(16)), "low": Out(signed(16)),
            "cell_shift": Out(3),
        })

    def elaborate(self, platform):
        m = Module()
        # Of the word that is read, and of the one that has come; the last one is that of the shift.
        number, found = Signal(5), Signal(5)
        reading = Signal()
        m.d.sync += number.eq(number + 1)
        with m.If(number == LSTM_CELL_SHIFT - LSTM_PARAMETERS):
            m.d.sync += reading.eq(0)
        with m.If(self.start):
            m.d.sync += [number.eq(0), reading.eq(1)]
        valid = pipeline(m, reading, MEMORY_READ, "valid")
        m.d.comb += [
            self.place.eq(LSTM_PARAMETERS + number),
            found.eq(pipeline(m, number, MEMORY_READ, "found")),
            self.done.eq(valid & (found == LSTM_CELL_SHIFT - LSTM_PARAMETERS)),
        ]
        for odd, port in enumerate((self.multiplier, self.shift)):
            memory = Memory(shape=len(port), depth=1 << (len(found) - 1), init=[])
            m.submodules += memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(valid & (found[0] == odd)), write.addr.eq(found[1:]),
                write.data.eq(self.word), read.addr.eq(self.index), port.eq(read.data),
            ]
        with m.If(valid & (found == LSTM_LIMITS - LSTM_PARAMETERS)):
            m.d.sync += [self.high.eq(self.word[:16]), self.low.eq(self.word[16:])]
        with m.If(self.done):
            m.d.sync += self.cell_shift.eq(self.word[:3])
        return m


class Lstm(wiring.Component):
    """Computes the jobs with the flag ``lstm``: one unit of the layer after the other.

    The vectors with the sums of the inputs are read, then those with the sums of the hidden values,
    then the one with the cell. Each sum goes to the scaler of a lane, and each gate to an
    `Interpolation`. A multiplier computes the products of 16 bits; the same scaler scales them.

    An access beyond the window does not happen: the job waits until a reset.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
        It starts when the job before is done. Jobs without the flag have no effect.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    busy : Out, 1 bit
        A job runs.
    reads : Out, `weft.hw.network_core.interface.ReadPort`
        The first vector of the data is used.
    place : Out
        A word of the ADD table.
    word : In, 32 bits
        That word, `weft.latencies.MEMORY_READ` cycles later.
    scale : Out, `weft.hw.network_core.interface.ScalePort`
    write : Out, `weft.hw.network_core.memory.banked_memory.MemoryWrite`
    done : Out, 1 bit
        Pulse, with the last write of the job.
    address_error : Out, 1 bit
        Pulse: an access beyond the window.
    """

    def __init__(self, config):
        self.config = config
        self.cycles, self.depth = config.array.scale_cycles, config.array.depth
        super().__init__({
            **job_ports(config),
            "busy": Out(1),
            "reads": Out(ReadPort(config)),
            "place": Out(range(ADD_TABLE_WORDS)),
            "word": In(signed(32)),
            "scale": Out(ScalePort()),
            "write": Out(MemoryWrite(config)),
            "done": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.parameters = parameters = _Parameters()
        m.submodules.function = function = Interpolation()
        m.submodules.multiplier = multiplier = FABRICS[self.config.target].multiplier(
            a=signed(16), b=signed(16), pipelined=False
        )
        # Pulses: a sum is taken; two factors are multiplied; the first map moves on; the next map
        # becomes the first one; a value is stored there.
        take, multiply, advance, rotate, store = (
            Signal(name=name) for name in ("take", "multiply", "advance", "rotate", "store")
        )
        gate, unit = Signal(range(_GATES)), Signal(16)
        vector = Signal(8 * self.depth, reset_less=True)
        inside, map_ = self._maps(m, advance, rotate)
        sum_, last_sum = self._part(vector, Cat(gate, unit), 32)
        cell, last_cell = self._part(vector, unit, 16)
        slot = self._slot(m, take | multiply)
        first = (gate == 0) & (map_ == _FED)
        y, number = self._scaler(m, take, multiply, first, sum_, multiplier, parameters)
        new_cell, cell_done = self._function(m, y, number, function, parameters)
        gates, gates_done = self._gates(m, function, number)
        last_byte = self._store(m, store, map_, unit, new_cell, y)
        m.d.comb += [
            parameters.start.eq(self.job.start & self.job.fields.lstm),
            parameters.word.eq(self.word), function.word.eq(self.word),
            self.place.eq(function.index),
            multiplier.a.eq(function.step), multiplier.b.eq(function.rest),
            function.product.eq(multiplier.product),
        ]

        def product(a, b):
            return [multiplier.a.eq(a), multiplier.b.eq(b), multiply.eq(1)]

        m.d.sync += self.done.eq(0)
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(parameters.start):
                    m.d.sync += [self.busy.eq(1), unit.eq(0)]
                    m.next = "PARAMETERS"
            with m.State("PARAMETERS"):
                m.d.comb += self.place.eq(parameters.place)
                with m.If(parameters.done):
                    m.next = "CHECK"
            self._read(m, inside, vector, map_)
            with m.State("SUM"):
                with m.If(slot):
                    m.d.comb += [take.eq(1), advance.eq(last_sum), rotate.eq(gate == _GATES - 1)]
                    m.d.sync += gate.eq(gate + 1)
                    with m.If(last_sum | rotate):
                        m.next = "CHECK"
            self._cell_products(m, product, gates, gates_done, cell, slot)
            with m.State("CELL"):
                with m.If(cell_done):
                    m.d.comb += [store.eq(1), advance.eq(last_cell), rotate.eq(1)]
                    m.next = "SHOWN"
            with m.State("SHOWN"):
                with m.If(function.done):
                    m.d.comb += product(gates[3], function.y)
                    m.next = "HIDDEN"
            with m.State("HIDDEN"):
                with m.If(y.valid):
                    m.d.comb += self.address_error.eq(~inside)
                    m.next = "FAILED"
                    with m.If(inside):
                        m.d.comb += [store.eq(1), advance.eq(last_byte), rotate.eq(1)]
                        m.d.sync += unit.eq(unit + 1)
                        m.next = "CHECK"
                        with m.If(unit == self.job.fields.columns - 1):
                            m.d.sync += self.done.eq(1)
                            m.next = "IDLE"
        return m

    def _maps(self, m, advance, rotate):
        """Whether the vector of the first map lay in the window a cycle ago; which map it is.

        The maps take turns: sums of the inputs, sums of the hidden values, cell, hidden values.
        """
        job, banks = self.job.fields, self.config.banks
        first, *others = (
            Signal(VectorAddress(self.config), name=f"vector_{n}", reset_less=True)
            for n in range(_MAPS)
        )
        map_, inside = Signal(range(_MAPS)), Signal()
        after = Signal.like(first)
        m.d.comb += after.eq(Mux(advance, add_vectors(m, first, 1, banks, "next"), first))
        with m.If(rotate):
            m.d.sync += [first.eq(others[0]), others[-1].eq(after), map_.eq(map_ + 1)]
            m.d.sync += [a.eq(b) for a, b in pairwise(others)]
        with m.Else():
            m.d.sync += first.eq(after)
        with m.If(self.job.start):
            cell = add_addresses(m, job.add_input, job.add_pixel_step, banks, "cell_address")
            m.d.sync += [
                place.eq(value) for place, value in zip(
                    (first, *others), (job.input, job.add_input, cell, job.output), strict=True
                )
            ]
            m.d.sync += map_.eq(_FED)
        m.d.sync += inside.eq(within(self.config, first, 1, self.window.base, self.window.limit))
        m.d.comb += self.reads.request.payload.eq(first)
        m.d.sync += self.write.address.eq(first)
        return inside, map_

    def _part(self, vector, number, bits):
        """The part of a vector with a value, and whether it is the last one."""
        parts = 8 * self.depth // bits
        place = number[: ceil_log2(parts)]
        return vector.word_select(place, bits) if parts > 1 else vector, place.all()

    def _slot(self, m, starts):
        """Whether the scaler is ready for a value."""
        if self.cycles == 1:
            return C(1)
        wait = Signal(range(self.cycles))
        with m.If(starts):
            m.d.sync += wait.eq(self.cycles - 1)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        return wait == 0

    def _read(self, m, inside, vector, map_):
        """The states in which a vector is read."""
        with m.State("CHECK"):
            m.next = "READ"
        with m.State("READ"):
            m.d.comb += [self.reads.request.valid.eq(inside), self.address_error.eq(~inside)]
            with m.If(~inside):
                m.next = "FAILED"
            with m.Elif(self.reads.request.ready):
                m.next = "WAIT"
        with m.State("WAIT"):
            m.d.sync += vector.eq(self.reads.data[0])
            with m.If(self.reads.data_valid):
                m.next = "SUM"
                with m.If(map_ == _CELL):
                    m.next = "GATES"
        with m.State("FAILED"):
            pass

    def _cell_products(self, m, product, gates, gates_done, cell, slot):
        """The states of the two products of a cell, when all gates are there."""
        with m.State("GATES"):
            with m.If(gates_done):
                m.next = "FORGET"
        with m.State("FORGET"):
            m.d.comb += product(gates[1], cell)
            m.next = "UPDATE"
        with m.State("UPDATE"):
            with m.If(slot):
                m.d.comb += product(gates[0], gates[_NEW])
                m.next = "CELL"

    def _scaler(self, m, take, multiply, first, sum_, multiplier, parameters):
        """The scaled values, limited to 16 bits, and the number of each one in its unit."""
        port, index, number = self.scale, Signal.like(parameters.index), Signal(4)
        scaled = Signal(scale(self.config.array))
        product = pipeline(m, multiply, MAP_PRODUCT, "product")
        y = Signal(data.StructLayout({"value": signed(16), "valid": 1}))
        with m.If(take | product):
            m.d.sync += [
                port.acc.eq(Mux(take, sum_, multiplier.product)),
                index.eq(Mux(first, 0, index + 1)),
            ]
        m.d.sync += [port.start.eq(take | product), scaled.eq(Cat(port.start, scaled))]
        m.d.comb += [
            parameters.index.eq(index), port.multiplier.eq(parameters.multiplier),
            port.shift.eq(parameters.shift), y.valid.eq(scaled[-1]),
            y.value.eq(_saturated(m, port.y, 16, "scaled_value")),
        ]
        with m.If(y.valid):
            m.d.sync += number.eq(Mux(number == _HIDDEN, 0, number + 1))
        with m.If(self.job.start):
            m.d.sync += number.eq(0)
        return y, number

    def _function(self, m, y, number, function, parameters):
        """Give gates and cells to the function; returns the cell, and whether it is new.

        The value before a product's is added to it: of a gate, four values before.
        """
        before = [Signal(signed(16), name=f"before_{n}", reset_less=True) for n in range(_GATES)]
        partner = Mux(number == _UPDATE, before[-1], before[0])
        total, limited = (
            Signal(signed(16), name=name, reset_less=True) for name in ("total", "limited")
        )
        with m.If(y.valid):
            m.d.sync += [a.eq(b) for a, b in pairwise(before)]
            m.d.sync += before[-1].eq(y.value)
        m.d.sync += total.eq(_saturated(m, y.value + partner, 16, "sum_value"))
        is_cell = number == _UPDATE
        is_gate = (number >= _GATES) & (number < _FORGET)
        late_cell, late_new = (
            pipeline(m, value, 1, name)
            for value, name in ((is_cell, "total_cell"), (number == _GATES + _NEW, "total_new"))
        )
        low = Mux(total < parameters.low, parameters.low, total)
        m.d.sync += limited.eq(total)
        with m.If(late_cell):
            m.d.sync += limited.eq(Mux(low > parameters.high, parameters.high, low))
        of_cell, of_new = pipeline(m, late_cell, 1, "of_cell"), pipeline(m, late_new, 1, "of_new")
        m.d.comb += [
            function.start.eq(pipeline(m, y.valid & (is_gate | is_cell), 2, "function_start")),
            function.x.eq(limited), function.is_tanh.eq(of_cell | of_new),
            function.shift.eq(Mux(of_cell, parameters.cell_shift, _SAME)),
        ]
        return limited, function.start & of_cell

    def _gates(self, m, function, number):
        """The four gates after their functions, and whether all of them are there."""
        gates = [Signal(signed(16), name=f"gate_{n}", reset_less=True) for n in range(_GATES)]
        count = Signal(range(_GATES + 1))
        with m.If(function.done & (count != _GATES)):
            m.d.sync += [a.eq(b) for a, b in pairwise(gates)]
            m.d.sync += [gates[-1].eq(function.y), count.eq(count + 1)]
        with m.If(number == 0):  # of the next unit
            m.d.sync += count.eq(0)
        return gates, count == _GATES

    def _store(self, m, store, map_, unit, cell, y):
        """Store a cell or a hidden value; returns whether the latter is the last one of its vector.

        The write has a register: its way to the memory is long.
        """
        place, pair = unit[: ceil_log2(self.depth)], unit[: ceil_log2(self.depth // 2)]
        hidden = _saturated(m, y.value + self.job.fields.zero, 8, "hidden")
        m.d.sync += [
            self.write.valid.eq(store),
            self.write.data.eq(hidden.replicate(self.depth)), self.write.enable.eq(1 << place),
        ]
        with m.If(map_ == _CELL):
            m.d.sync += [
                self.write.data.eq(cell.replicate(self.depth // 2)),
                self.write.enable.eq(0b11 << (pair << 1)),
            ]
        return place.all()
