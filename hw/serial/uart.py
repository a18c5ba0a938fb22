"""The serial port: bytes on a wire as 1 start bit, 8 data bits, no parity and 1 stop bit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

BITS = 10  # bits per byte on the wire: start, 8 data bits (lowest first), stop


class _Uart(wiring.Component):
    """One direction of the port.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit: 4..65535.

    Raises
    ------
    TypeError, ValueError
        If ``divisor`` is not an integer, or out of range.
    """

    def __init__(self, signature, *, divisor):
        if not isinstance(divisor, int) or isinstance(divisor, bool):
            raise TypeError(f"divisor must be an integer, not {divisor!r}")
        if not 4 <= divisor < 1 << 16:
            raise ValueError(f"divisor must be in 4..{(1 << 16) - 1}, not {divisor}")
        self.divisor = divisor
        super().__init__(signature)


class UartReceiver(_Uart):
    """Receives bytes from a wire; samples each bit in its middle.

    A start bit that ends before its middle is ignored. A byte is valid from the middle of its stop
    bit. It must be accepted before the next byte is complete; otherwise the next byte is lost.

    Attributes
    ----------
    rx : In
        Serial input; 1 bit, asynchronous to the clock, high when idle.
    bytes : Out, stream of 8 bits
        Received bytes.
    error : Out
        Pulse: a stop bit was low, or a byte was lost; 1 bit.
    """

    def __init__(self, *, divisor):
        super().__init__({
            "rx": In(1, init=1),
            "bytes": Out(stream.Signature(8)),
            "error": Out(1),
        }, divisor=divisor)

    def elaborate(self, platform):
        m = Module()
        rx = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx, init=1)
        timer = Signal(range(self.divisor))
        remaining = Signal(range(-1, BITS), init=-1)  # bits after the current one; -1 when idle
        is_start, is_stop = Signal(), Signal()  # the current bit; stable long before its sample
        shift = Signal(BITS - 1)
        sample = Signal()
        m.d.sync += [
            self.error.eq(0), sample.eq(timer == 1), timer.eq(timer - 1),
            is_start.eq(remaining == BITS - 1), is_stop.eq(remaining == 0),
        ]
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(sample):
            m.d.sync += timer.eq(self.divisor - 1)
        with m.If(remaining < 0):
            m.d.sync += [timer.eq(self.divisor // 2 - 1), sample.eq(0)]
            with m.If(~rx):
                m.d.sync += remaining.eq(BITS - 1)
        with m.Elif(sample):
            m.d.sync += [remaining.eq(remaining - 1), shift.eq(Cat(shift[1:], rx))]
            with m.If(is_start & rx):
                m.d.sync += remaining.eq(-1)
            with m.If(is_stop):
                overrun = self.bytes.valid & ~self.bytes.ready
                m.d.sync += self.error.eq(~rx | overrun)
                with m.If(rx & ~overrun):
                    m.d.sync += [self.bytes.valid.eq(1), self.bytes.payload.eq(shift[1:])]
        return m


class UartTransmitter(_Uart):
    """Sends bytes to a wire, without a gap between them.

    Attributes
    ----------
    bytes : In, stream of 8 bits
        Bytes to send.
    tx : Out
        Serial output; 1 bit, high when idle.
    """

    def __init__(self, *, divisor):
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "tx": Out(1, init=1),
        }, divisor=divisor)

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self.divisor))
        bit_end = Signal()  # last cycle of the current bit
        remaining = Signal(range(-1, BITS), init=-1)  # bits after the current one; -1 when idle
        shift = Signal(8)  # the rest of the byte; ones follow it, as the stop bit
        fire = self.bytes.valid & self.bytes.ready
        m.d.sync += [timer.eq(timer - 1), bit_end.eq(timer == 1)]
        with m.If(bit_end):
            m.d.sync += timer.eq(self.divisor - 1)
        m.d.sync += self.bytes.ready.eq((remaining < 0) & ~fire)
        with m.If(remaining < 0):
            m.d.sync += [
                timer.eq(self.divisor - 1), bit_end.eq(0), shift.eq(self.bytes.payload),
                self.tx.eq(~fire), remaining.eq(Mux(fire, BITS - 1, -1)),
            ]
        with m.Elif(bit_end):
            m.d.sync += [
                self.tx.eq(shift[0]), shift.eq(Cat(shift[1:], Const(1, 1))),
                remaining.eq(remaining - 1),
            ]
        return m
