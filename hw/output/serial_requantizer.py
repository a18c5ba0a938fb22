"""The int8 epilogue in few logic cells: a result takes several steps of small adders."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import Region
from weft.hw.buffers.bank import Bank
from weft.hw.delay import pipeline
from weft.hw.output.lanes import look_up
from weft.hw.output.serial_scaler import DigitSource, SerialProduct, SerialShifter
from weft.hw.output.stream_packer import ResultPipeline
from weft.latencies import MEMORY_READ, TABLE, SerialSchedule

__all__ = ["ParameterBuffer", "SerialRequantizer"]


_PART = 4  # bytes
_PARTS = 4  # of the parameters of a column


class ParameterBuffer(wiring.Component):
    """The parameters of each column as four parts of 32 bits; two of them can be read in a cycle.

    Parts 0 and 2 are in one memory, parts 1 and 3 in another. It is not
    `weft.hw.buffers.operands.OperandBuffer`, which reads a whole word: it is as wide as the word,
    and a block RAM of few words is nearly empty.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
        Words of ``edge`` entries of 16 bytes, on a stream of at most 8 bytes.
    write : shape
        ``valid`` and `weft.hw.control.job_table.BufferWrite`.
    target : str
        As for `weft.hw.buffers.bank.Bank`.

    Attributes
    ----------
    write : In, shape ``write``
    even_addr : In, ``Cat(part 2, word address)``
    even : Out, ``edge`` x 32 bits
        Part 0 or 2 of each entry, LATENCY cycles after ``even_addr``.
    odd_addr : In, ``Cat(part 3, word address)``
    odd : Out, ``edge`` x 32 bits
        Part 1 or 3 of each entry, LATENCY cycles after ``odd_addr``.
    """

    LATENCY = Bank.LATENCY

    def __init__(self, *, geometry, write, target):
        self.geometry = geometry
        self.target = target
        address, parts = 1 + ceil_log2(geometry.words), data.ArrayLayout(8 * _PART, geometry.edge)
        super().__init__({
            "write": In(write),
            "even_addr": In(address), "even": Out(parts),
            "odd_addr": In(address), "odd": Out(parts),
        })

    def elaborate(self, platform):
        m = Module()
        ports = (self.even_addr, self.even), (self.odd_addr, self.odd)
        width = min(_PART, self.geometry.stream)  # bytes of a bank
        for lane in range(self.geometry.edge):
            for part, (address, values) in enumerate(ports):
                banks = [
                    self._bank(m, lane, part, first, width, address)
                    for first in range(0, _PART, width)
                ]
                m.d.comb += values[lane].eq(Cat(banks))
        return m

    def _bank(self, m, lane, part, first, width, address):
        """Bytes ``first`` to ``first + width - 1`` of parts ``part`` and ``part + 2``."""
        stream, write = self.geometry.stream, self.write.write
        start = _PART * (_PARTS * lane + part) + first  # of part `part` in a word
        segments = [(start + half) // stream for half in (0, 2 * _PART)]
        name = f"bank_{lane}_{part}_{first}"
        m.submodules[name] = bank = Bank(
            width=8 * width, depth=2 * self.geometry.words, target=self.target
        )
        second = write.segment[ceil_log2(2 * _PART // stream)]
        m.d.comb += [
            bank.write_en.eq(self.write.valid & write.segment.matches(*segments)),
            bank.write_addr.eq(Cat(second, write.line)),
            bank.write_data.eq(write.data[8 * (start % stream) :]),
            bank.read_addr.eq(address),
        ]
        return bank.read_data


class SerialRequantizer(ResultPipeline):
    """``y = table[clamp(scale(S + bias) + zero, low, high)]``, in int8, in mode ``tflite``.

    A result is in the low byte of its lane. It equals the result of a
    `weft.hw.output.requantizer.Requantizer`, and takes more cycles. Parameters are read when a step
    needs them; `weft.latencies.SerialSchedule` has the cycles.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        The memories of the core, by `weft.commands.Region`.
    cycles : int
        4, 8, 16 or 32. While a result is in the pipeline, requests are multiples of so many cycles
        apart.
    target : str
        The target of the Config.
    chunk, acc, lanes, sum_latency, writes
        As for `ResultPipeline`. ``writes`` has ``parameters``, and ``table`` if there is a table.
    """

    def __init__(self, *, geometries, cycles, target, sum_latency, writes, **common):
        self.geometries = geometries
        self.target = target
        self.schedule = SerialSchedule(cycles, sum_latency)
        self.has_table = "table" in writes
        self.LATENCY = self.schedule.latency + TABLE * self.has_table
        super().__init__(sum_latency=sum_latency, writes=writes, **common)

    def stages(self, m, chunk):
        times = self.schedule
        # The cycle since the last request, modulo the least cycles between two of them.
        phase = Signal(range(times.cycles))
        with m.If(self.request.valid & self.request.chunk.uses_epilogue):
            m.d.sync += phase.eq(1)
        with m.Else():
            m.d.sync += phase.eq(phase + 1)
        m.submodules.parameters = buffer = self._parameters(m, chunk, phase)
        strobes = {name: Signal(name=name) for name in _events(times)}
        # Registered. No event is in the first cycle after a request, which may break the count.
        m.d.sync += [
            strobes[name].eq(phase == times.phase(cycle - 1))
            for name, cycle in _events(times).items()
        ]
        results = []
        for n in range(self.lanes):
            m.submodules[f"lane_{n}"] = lane = _Lane(bits=times.bits)
            m.d.comb += [
                lane.sum.eq(pipeline(m, self.sums[n], times.join - self.sum_latency, f"sum_{n}")),
                lane.even.eq(buffer.even[n]), lane.odd.eq(buffer.odd[n]),
                *(getattr(lane, name).eq(strobe) for name, strobe in strobes.items()),
            ]
            results.append(lane.result)
        if self.has_table:
            use_table = pipeline(
                m, self.request.chunk.epilogue.table, times.latency, "use_table_0"
            )
            results = look_up(
                m, results, use_table=use_table, geometry=self.geometries[Region.TABLE],
                write=self.table,
            )
        m.d.comb += [self.results[n].eq(result) for n, result in enumerate(results)]

    def _parameters(self, m, chunk, phase):
        """The parameter buffer. Each read has the address of its result, and its own phase."""
        times, geometry = self.schedule, self.geometries[Region.PARAMETERS]
        buffer = ParameterBuffer(
            geometry=geometry, write=self.parameters.shape(), target=self.target
        )
        address = (chunk.b_panel * geometry.page + chunk.index)[: ceil_log2(geometry.words)]
        # The address of the chunk that was requested 0, 1, 2, ... periods ago.
        addresses = [address]
        for age in range(times.age(times.limits_read + 1)):
            older = Signal(len(address), name=f"address_{age + 1}", reset_less=True)
            with m.If(phase == 0):
                m.d.sync += older.eq(addresses[-1])
            addresses.append(older)
        reads = (
            (buffer.even_addr, (
                (times.shift_read, 1), (times.bias_read, 0), (times.right_shift_read, 1),
                (times.zero_read, 1),
            )),
            (buffer.odd_addr, (
                (times.multiplier_read, 0), (times.limits_read, 1), (times.limits_read + 1, 1),
            )),
        )
        for port, cycles in reads:
            with m.Switch(phase):
                for cycle, half in cycles:
                    with m.Case(times.phase(cycle)):
                        m.d.comb += port.eq(Cat(half, addresses[times.age(cycle)]))
                with m.Default():
                    m.d.comb += port.eq(Cat(1, addresses[times.age(cycles[-1][0])]))
        m.d.comb += buffer.write.eq(self.parameters)
        return buffer


def _events(times):
    """The cycle of each strobe of a lane."""
    return {
        "has_shift": times.shift_read + MEMORY_READ,
        "has_sum": times.join,
        "has_multiplier": times.multiplier_read + MEMORY_READ,
        "first": times.join + times.levels + 4,
        "has_product": times.product,
        "is_shifted": times.shifted,
        "has_zero": times.zero_read + MEMORY_READ,
    }


class _Shift(data.Struct):
    """Part 2 of the parameters of a column."""

    shift: signed(8)
    b_zero: signed(8)
    zero: signed(16)


class _Limits(data.Struct):
    """Part 3 of the parameters of a column."""

    low: signed(16)
    high: signed(16)


class _Lane(wiring.Component):
    """The arithmetic of one lane. A strobe is high in the cycle in which its value is valid.

    Parameters
    ----------
    bits : int
        Bits of a digit of the sum.

    Attributes
    ----------
    sum : In, signed 32 bits
        Valid with ``has_sum``.
    even : In, 32 bits
        Bias with ``has_sum``; shift with ``has_shift`` and ``has_product``; zero point with
        ``has_zero``.
    odd : In, 32 bits
        Multiplier with ``has_multiplier``; limits in the third and fourth cycle before ``result``.
    has_shift, has_sum, has_multiplier, has_product, has_zero : In, 1 bit
    first : In, 1 bit
        As for `weft.hw.output.serial_scaler.SerialProduct`.
    is_shifted : In, 1 bit
        The shifted product is valid.
    result : Out, signed 8 bits
        Valid one cycle after the last cycle of the limits.
    """

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({
            "sum": In(signed(32)), "even": In(32), "odd": In(32), "result": Out(signed(8)),
            **dict.fromkeys(_events(SerialSchedule(32, 0)), In(1)),
        })

    def elaborate(self, platform):
        m = Module()
        shift, limits = _Shift(self.even), _Limits(self.odd)
        biased, left = Signal(32, reset_less=True), Signal(5, reset_less=True)
        multiplier = Signal(31, reset_less=True)
        with m.If(self.has_shift):
            m.d.sync += left.eq(Mux(shift.shift < 0, 0, shift.shift))
        with m.If(self.has_sum):
            m.d.sync += biased.eq(self.sum + self.even.as_signed())
        with m.If(self.has_multiplier):
            m.d.sync += multiplier.eq(self.odd)
        m.submodules.digits = digits = DigitSource(bits=self.bits)
        m.submodules.product = product = SerialProduct(bits=self.bits)
        m.submodules.shifter = shifter = SerialShifter(bits=self.bits)
        m.d.comb += [
            digits.start.eq(self.has_sum), digits.acc.eq(biased), digits.left.eq(left),
            product.digit.eq(digits.digit), product.below.eq(digits.below),
            product.first.eq(self.first), product.multiplier.eq(multiplier),
            shifter.start.eq(self.has_product), shifter.value.eq(product.product),
            shifter.right.eq(Mux(shift.shift < 0, -shift.shift, 0)),
        ]
        self._clamp(m, shifter, shift.zero[:9].as_signed(), limits)
        return m

    def _clamp(self, m, shifter, zero, limits):
        """``clamp(y + zero, low, high)``; a tie of a value below 0 is rounded down."""
        low, high = (
            pipeline(m, limit[:9].as_signed(), 1, name)
            for name, limit in (("low", limits.low), ("high", limits.high))
        )
        y, round_up = Signal.like(shifter.y, reset_less=True), Signal(reset_less=True)
        y_sign, total_sign = (  # fits, negative
            Signal(2, name=f"{name}_sign", reset_less=True) for name in ("y", "total")
        )
        total = Signal(signed(len(y) + 1), reset_less=True)
        with m.If(self.is_shifted):
            m.d.sync += [
                y.eq(shifter.y), y_sign.eq(Cat(shifter.fits, shifter.negative)),
                round_up.eq(shifter.half & (~shifter.negative | shifter.sticky)),
            ]
        with m.If(self.has_zero):
            padded = Cat(1, y).as_signed() + Cat(round_up, zero).as_signed()
            m.d.sync += [total.eq(padded[1:].as_signed()), total_sign.eq(y_sign)]
        fits, negative = total_sign
        is_low, is_high = Signal(), Signal()  # a ``<`` is one carry chain, a ``>`` also an equality
        m.d.sync += [
            is_low.eq(Mux(fits, total < low, negative)),
            is_high.eq(Mux(fits, high < total, ~negative)),
            self.result.eq(Mux(is_low, low, Mux(is_high, high, total))),
        ]
