"""The serial port: bytes to and from a pair of wires, 8 data bits, no parity, one stop bit."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

BITS = 10  # of a byte on the wire: start, eight of data from the lowest on, stop


class _Port(wiring.Component):
    """One direction of the port.

    Parameters
    ----------
    divisor : int
        Clock cycles a bit, 4 or more.

    Raises
    ------
    TypeError, ValueError
        For a ``divisor`` that is none.
    """

    def __init__(self, signature, *, divisor):
        if not isinstance(divisor, int) or isinstance(divisor, bool):
            raise TypeError(f"divisor must be an integer, not {divisor!r}")
        if not 4 <= divisor < 1 << 16:
            raise ValueError(f"divisor must be in 4..{(1 << 16) - 1}, not {divisor}")
        self.divisor = divisor
        super().__init__(signature)


class UartReceiver(_Port):
    """Bytes from a wire; each bit is looked at in its middle.

    A start bit that is over by its middle is none. A byte is out half a bit before its stop bit
    ends, and must be taken before the next one: one that is not is lost.

    Attributes
    ----------
    rx : In
        The wire: high at rest; of no clock.
    bytes : Out, stream of 8 bits
    broken : Out
        Pulse: a stop bit was low, or a byte was lost.
    """

    def __init__(self, *, divisor):
        super().__init__({
            "rx": In(1, init=1),
            "bytes": Out(stream.Signature(8)),
            "broken": Out(1),
        }, divisor=divisor)

    def elaborate(self, platform):
        m = Module()
        rx = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx, init=1)
        timer = Signal(range(self.divisor))
        left = Signal(range(BITS + 1))  # bits of the byte under way, the one that is due included
        shifted = Signal(BITS - 1)
        sample = Signal()
        m.d.sync += [self.broken.eq(0), sample.eq(timer == 1), timer.eq(timer - 1)]
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(sample):
            m.d.sync += timer.eq(self.divisor - 1)
        with m.If(left == 0):
            m.d.sync += [timer.eq(self.divisor // 2 - 1), sample.eq(0)]
            with m.If(~rx):
                m.d.sync += left.eq(BITS)
        with m.Elif(sample):
            m.d.sync += [left.eq(left - 1), shifted.eq(Cat(shifted[1:], rx))]
            with m.If((left == BITS) & rx):
                m.d.sync += left.eq(0)
            with m.If(left == 1):
                lost = self.bytes.valid & ~self.bytes.ready
                m.d.sync += self.broken.eq(~rx | lost)
                with m.If(rx & ~lost):
                    m.d.sync += [self.bytes.valid.eq(1), self.bytes.payload.eq(shifted[1:])]
        return m


class UartTransmitter(_Port):
    """Bytes to a wire, one behind the other.

    Attributes
    ----------
    bytes : In, stream of 8 bits
    tx : Out
        The wire: high at rest.
    """

    def __init__(self, *, divisor):
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "tx": Out(1, init=1),
        }, divisor=divisor)

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self.divisor))
        over = Signal()  # the bit on the wire ends with this cycle
        left = Signal(range(BITS + 1))
        bits = Signal(BITS, init=-1)
        m.d.comb += self.tx.eq(bits[0])
        m.d.sync += [timer.eq(timer - 1), over.eq(timer == 1)]
        with m.If(over):
            m.d.sync += timer.eq(self.divisor - 1)
        m.d.sync += self.bytes.ready.eq((left == 0) & ~(self.bytes.valid & self.bytes.ready))
        with m.If(left == 0):
            m.d.sync += [timer.eq(self.divisor - 1), over.eq(0)]
            with m.If(self.bytes.valid & self.bytes.ready):
                m.d.sync += [
                    left.eq(BITS), bits.eq(Cat(Const(0, 1), self.bytes.payload, Const(1, 1))),
                ]
        with m.Elif(over):
            m.d.sync += [left.eq(left - 1), bits.eq(Cat(bits[1:], Const(1, 1)))]
        return m
