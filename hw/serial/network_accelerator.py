"""A complete core for networks behind a serial port; a board adds only a clock."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from weft.hw.chip.core import NetworkCore
from weft.hw.chip.host_port import HostPort
from weft.hw.serial.network_link import NetworkLink
from weft.hw.serial.uart import UartReceiver, UartTransmitter

__all__ = ["NetworkAccelerator"]


class NetworkAccelerator(wiring.Component):
    """The `weft.hw.chip.core.NetworkCore` of a ChipConfig, its host port, link and serial port.

    Parameters
    ----------
    chip : ChipConfig
    divisor : int
        Clock cycles per bit of the serial port: 4 or more.

    Attributes
    ----------
    rx : In
        Serial input; 1 bit, asynchronous to the clock, high when idle.
    tx : Out
        Serial output; 1 bit, high when idle.
    """

    def __init__(self, chip, *, divisor):
        self.chip = chip
        self.divisor = divisor
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(divisor=self.divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(divisor=self.divisor)
        m.submodules.link = link = NetworkLink(target=self.chip.core.target)
        m.submodules.host_port = host_port = HostPort(self.chip)
        m.submodules.core = core = NetworkCore(self.chip)
        connect(m, receiver.bytes, link.rx_bytes)
        connect(m, link.tx_bytes, transmitter.bytes)
        connect(m, link.frames, host_port.frames)
        connect(m, host_port.core, core)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            link.rx_error.eq(receiver.error),
        ]
        return m
