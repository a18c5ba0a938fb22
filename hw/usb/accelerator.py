"""A complete core behind USB; a board adds clocks and the pins."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from weft.hw.serial.accelerator import linked_core, memory_port, memory_side
from weft.hw.usb.device import UsbPort

__all__ = ["UsbAccelerator"]


class UsbAccelerator(wiring.Component):
    """The core of a Design, its link and its USB device.

    Parameters
    ----------
    config : Config or NetworkCoreConfig
    bus, packet, serial
        As of `weft.hw.usb.device.UsbPort`.

    Attributes
    ----------
    connect : In
        High for a device that is on the bus; 1 bit, asynchronous.
    memory : Out, `weft.hw.dma.axi.Axi4`; only of a network core with a program memory
        To this memory.
    busy : Signal
        The core computes; 1 bit. It is no port, because only boards with LEDs use it.
    rx_error : Signal
        Low, and no port either: packets have a CRC and are repeated, so no byte is lost.
    """

    def __init__(self, config, bus, *, packet, serial):
        self.config = config
        self._bus, self._packet, self._serial = bus, packet, serial
        self.busy, self.rx_error = Signal(), Signal()
        super().__init__({"connect": In(1), **memory_port(config)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.usb = port = UsbPort(self._bus, packet=self._packet, serial=self._serial)
        link, busy = linked_core(m, self.config, fast=True, memory=memory_side(self))
        connect(m, port.rx_bytes, link.rx_bytes)
        connect(m, link.tx_bytes, port.tx_bytes)
        m.d.comb += [port.connect.eq(self.connect), self.busy.eq(busy)]
        return m
