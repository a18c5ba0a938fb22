"""The link: the core's streams, registers and abort over one byte stream in each direction."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.interface import CoreInterface
from weft.hw.serial.frame_receiver import FrameReceiver
from weft.hw.serial.frame_transmitter import FrameTransmitter

__all__ = ["Link"]


class Link(wiring.Component):
    """Translates between frames (``docs/interfaces.md``) and the ports of a `weft.hw.core.Core`.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    rx_bytes : In, stream of 8 bits
        Bytes from the host.
    rx_error : In
        Pulse: bytes from the host were lost; 1 bit.
    tx_bytes : Out, stream of 8 bits
        Bytes to the host.
    core : Out, `weft.hw.interface.CoreInterface`
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "rx_bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "tx_bytes": Out(stream.Signature(8)),
            "core": Out(CoreInterface(config)),
        })

    def elaborate(self, platform):
        m = Module()
        c, core = self.config, self.core
        m.submodules.receiver = receiver = FrameReceiver(bytes_in=c.bytes_in, target=c.target)
        m.submodules.transmitter = transmitter = FrameTransmitter(
            bytes_out=c.bytes_out, target=c.target
        )
        connect(m, flipped(self.rx_bytes), receiver.bytes)
        connect(m, receiver.commands, flipped(core.commands))
        connect(m, receiver.request, transmitter.request)
        connect(m, receiver.ack, transmitter.ack)
        connect(m, flipped(core.results), transmitter.results)
        connect(m, transmitter.bytes, flipped(self.tx_bytes))
        m.d.comb += [
            receiver.rx_error.eq(self.rx_error),
            core.reg_address.eq(transmitter.address),
            transmitter.data.eq(core.reg_data),
            core.abort.eq(transmitter.abort),
        ]
        return m
