"""`Scales`: reciprocals of totals and roots of sums of squares, by tables, for each head."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.language_core.config import HEADS, LANES
from weft.language_core.descriptors import Source
from weft.language_core.latencies import SCALAR_OUT, SELECTED

__all__ = ["Scales"]

_BITS = 48  # of the number that is normalised
_NORMALISED = 3  # stages, each with two of the six bits of the exponent
_NUMBER = 2  # stages before: the number, and its sum with the addend


class Scales(wiring.Component):
    """A scale ``m * 2^-e`` for each head: of a reciprocal, of a root, or a parameter.

    With ``v = 1.f * 2^k``, ``m = base[i] + ((slope[i] * r + 64) >> 7)``. For a reciprocal, i is
    the first 9 bits of the fraction f, r is the next 7, and ``e = k``. For a root, i is ``k mod 2``
    followed by the first 8 bits, and ``e = k // 2``. A table has 512 entries of 32 bits, the base
    and the slope; two are a parameter group.

    It takes a head a cycle. The last scale is written LATENCY cycles after its head.

    Parameters
    ----------
    target : str
        As in the Config.

    Attributes
    ----------
    start : In, 1 bit
        Pulse.
    heads : In, 5 bits
    source : In, `Source`
    addend : In, 32 bits
    place : In, 16 bits
        First parameter group of the table, or the group of the parameter.
    lane : In, 2 bits
        Of the parameter.
        All of these are stable until ``done``.
    squares : In, 48 bits
    total_head, total : Out 4 bits, In 25 bits
    group : Out, 16 bits
        A parameter group is read in each cycle while ``busy``.
    parameters : In, 4 words of 16 bits
        SELECTED cycles later.
    busy : Out, 1 bit
        From the cycle after ``start`` to ``done``.
    done : Out, 1 bit
        Pulse: the last scale is written with the clock edge that ends this cycle.
    head, scale, exponent : In 4 bits, Out 16 bits, Out 6 bits
        The scale of a head, in the same cycle.
    """

    LATENCY = SCALAR_OUT

    def __init__(self, *, target):
        self.multiplier = FABRICS[target].multiplier
        super().__init__({
            "start": In(1), "heads": In(range(HEADS + 1)), "source": In(2), "addend": In(32),
            "place": In(16), "lane": In(2), "squares": In(48),
            "total_head": Out(range(HEADS)), "total": In(25),
            "group": Out(16), "parameters": In(data.ArrayLayout(16, LANES)),
            "busy": Out(1), "done": Out(1),
            "head": In(range(HEADS)), "scale": Out(16), "exponent": Out(6),
        })

    def elaborate(self, platform):
        m = Module()
        reading, last = Signal(), self.total_head == self.heads - 1
        with m.If(self.start):
            m.d.sync += [reading.eq(1), self.total_head.eq(0), self.busy.eq(1)]
        with m.Elif(reading):
            m.d.sync += [self.total_head.eq(self.total_head + 1), reading.eq(~last)]
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        exponent, fraction = self._normalised(m)
        scale = self._looked_up(m, exponent, fraction)
        root = self.source == Source.ROOT
        e = Mux(self.source == Source.PARAMETER, 0, Mux(root, exponent >> 1, exponent))
        after = self.LATENCY - _NUMBER - _NORMALISED
        valid = pipeline(m, reading, self.LATENCY, "valid")
        memory = Memory(shape=16 + 6, depth=HEADS, init=[])
        m.submodules.scale_of_head = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            self.done.eq(valid & pipeline(m, last, self.LATENCY, "last")),
            write.en.eq(valid), write.addr.eq(pipeline(m, self.total_head, self.LATENCY, "head")),
            write.data.eq(Cat(scale, pipeline(m, e, after, "e"))),
            read.addr.eq(self.head), Cat(self.scale, self.exponent).eq(read.data),
        ]
        return m

    def _normalised(self, m):
        """The exponent of the number, and the 16 bits after its first one."""
        number = pipeline(
            m, Mux(self.source == Source.ROOT, self.squares, self.total), 1, "number"
        )
        addend = Mux(self.source == Source.ROOT, self.addend, 0)
        number = pipeline(m, (number + addend)[:_BITS], 1, "normalised_0")
        exponent = C(_BITS - 1, 6)
        for stage in range(_NORMALISED):
            for bit in (5 - 2 * stage, 4 - 2 * stage):
                places = 1 << bit
                small = ~number[max(0, _BITS - places):].any()
                number = Mux(small, number << places, number)[:_BITS]
                exponent = (exponent - Mux(small, places, 0))[:6]
            number = pipeline(m, number, 1, f"normalised_{stage + 1}")
            exponent = pipeline(m, exponent, 1, f"exponent_{stage + 1}")
        return exponent, number[_BITS - 17 : _BITS - 1]

    def _looked_up(self, m, exponent, fraction):
        """The scale, from the entry of the fraction or from a parameter."""
        given = self.source == Source.PARAMETER
        root = self.source == Source.ROOT
        argument = Mux(root, Cat(fraction[1:], exponent[0]), fraction)
        m.d.sync += self.group.eq(self.place + Mux(given, 0, argument[8:]))
        second = pipeline(m, argument[7], 1 + SELECTED, "second")
        rest = pipeline(m, argument[:7], 1 + SELECTED, "rest")
        base, slope = (Mux(second, self.parameters[n + 2], self.parameters[n]) for n in (0, 1))
        parameter = self.parameters.as_value().word_select(self.lane, 16)
        m.submodules.interpolate = product = self.multiplier(a=signed(16), b=7)
        m.d.comb += [product.a.eq(Mux(given, 0, slope).as_signed()), product.b.eq(rest)]
        base = pipeline(m, Mux(given, parameter, base), product.LATENCY, "base")
        return pipeline(m, (base + ((product.product + 64) >> 7))[:16], 1, "scale")
