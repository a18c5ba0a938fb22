"""A complete core behind a serial port; a board adds only a clock."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from weft.frames import WRITE_FIELDS
from weft.hw.core import Core
from weft.hw.network_core.cores import network_core
from weft.hw.network_core.host.host_port import HostPort
from weft.hw.serial.link import Link
from weft.hw.serial.network_link import NetworkLink
from weft.hw.serial.uart import UartReceiver, UartTransmitter
from weft.network_core.config import NetworkCoreConfig

__all__ = ["SerialAccelerator"]


class SerialAccelerator(wiring.Component):
    """The core of a Config or of a NetworkCoreConfig, its link and its serial port.

    Parameters
    ----------
    config : Config or NetworkCoreConfig
        With a NetworkCoreConfig the core is a `weft.hw.network_core.core.NetworkCore` with its host
        port.
    divisor : int
        Clock cycles per bit of the serial port: 4 or more.

    Attributes
    ----------
    rx : In
        Serial input; 1 bit, asynchronous to the clock, high when idle.
    tx : Out
        Serial output; 1 bit, high when idle.
    """

    def __init__(self, config, *, divisor):
        self.config = config
        self.divisor = divisor
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(divisor=self.divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(divisor=self.divisor)
        if isinstance(self.config, NetworkCoreConfig):
            m.submodules.link = link = NetworkLink(
                target=self.config.array.target, max_write=WRITE_FIELDS + self.config.write_bytes
            )
            m.submodules.host_port = host_port = HostPort(self.config)
            m.submodules.core = core = network_core(self.config)
            connect(m, link.frames, host_port.frames)
            connect(m, host_port.core, core)
        else:
            m.submodules.link = link = Link(self.config)
            m.submodules.core = core = Core(self.config)
            connect(m, link.core, core)
        connect(m, receiver.bytes, link.rx_bytes)
        connect(m, link.tx_bytes, transmitter.bytes)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            link.rx_error.eq(receiver.error),
        ]
        return m
