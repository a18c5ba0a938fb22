"""The pins of a simulated board's serial port in cocotb, for tests that use the real driver."""

import cocotb
from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import FallingEdge, Timer

from weft.host.link import Frame, FrameDecoder
from weft.host.network_driver import NetworkDriver
from weft.host.transport import TransportTimeout
from weft.sim.bench import PERIOD_NS
from weft.sim.gates.gate_network import GateTransport
from weft.sim.transport import DIVISOR

__all__ = ["BoardPins"]

_BIT = DIVISOR * PERIOD_NS  # ns
_RESET_BITS = 50


class BoardPins:
    """Frames over ``rx`` and ``tx`` of the module ``board``.

    The driver of the host blocks until an answer comes, so it runs in a thread:
    ``await bridge(pins.infer)(program, x)``, with `cocotb.task.bridge`.

    Attributes
    ----------
    send : callable
        ``send(frame)``, in such a thread.
    receive : callable
        ``receive(cycles)``: the next frame, in such a thread. TransportTimeout if none comes
        within the cycles.
    """

    def __init__(self, dut):
        self._dut, self._frames, self._decoder = dut, [], FrameDecoder()
        self.send, self.receive = resume(self._send), resume(self._receive)

    @classmethod
    async def start(cls, dut) -> "BoardPins":
        """The pins of a board after its reset, with a running clock."""
        self = cls(dut)
        dut.rx.value = 1
        Clock(dut.clk, PERIOD_NS, unit="ns").start()
        if hasattr(dut, "rst"):  # an iCE40 resets itself after its configuration
            dut.rst.value = 1
            await Timer(_BIT, unit="ns")
            dut.rst.value = 0
        cocotb.start_soon(self._listen())
        await Timer(_RESET_BITS * _BIT, unit="ns")
        return self

    def infer(self, program, x):
        """The result of a network, compiled for this board, for the input ``x``."""
        transport = GateTransport(self, 2 * program.cycles)
        with program.open(NetworkDriver(transport, program.config)) as session:
            return session(x)

    async def _send(self, frame: Frame):
        for byte in frame.encode():
            word = byte << 1 | 1 << 9  # start bit 0, 8 data bits, stop bit 1
            for bit in range(10):
                self._dut.rx.value = word >> bit & 1
                await Timer(_BIT, unit="ns")

    async def _receive(self, cycles) -> Frame:
        for _ in range(0, cycles, 10 * DIVISOR):
            if self._frames:
                item = self._frames.pop(0)
                if isinstance(item, Frame):
                    return item
                raise TransportTimeout(f"the board sent an invalid frame: {item.text}")
            await Timer(10 * _BIT, unit="ns")
        raise TransportTimeout(f"no frame from the board within {cycles:,} cycles")

    async def _listen(self):
        while True:
            await FallingEdge(self._dut.tx)
            await Timer(_BIT * 3 // 2, unit="ns")  # the middle of the first data bit
            byte = 0
            for bit in range(8):
                byte |= int(self._dut.tx.value) << bit
                await Timer(_BIT, unit="ns")
            self._frames += self._decoder.feed(bytes([byte]))
