"""The link: the core's streams, registers and abort over one byte stream in each direction."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.output.stream_packer import Result
from weft.hw.serial.frame_receiver import FrameReceiver
from weft.hw.serial.frame_transmitter import FrameTransmitter

__all__ = ["Link"]


class Link(wiring.Component):
    """Translates between frames (``docs/interfaces.md``) and the ports of a `weft.hw.core.Core`.

    Parameters
    ----------
    bytes_in, bytes_out : int
        Widths of the core's command and result streams, in bytes.
    target : str
        FPGA family, as in the Config.

    Attributes
    ----------
    rx_bytes : In, stream of 8 bits
        Bytes from the host.
    rx_error : In
        Pulse: bytes from the host were lost; 1 bit.
    tx_bytes : Out, stream of 8 bits
        Bytes to the host.
    commands : Out, stream of ``bytes_in`` bytes
        The core's command stream.
    results : In, stream of `weft.hw.output.stream_packer.Result`
        The core's result stream.
    address : Out
        Address of a core register; 8 bits.
    data : In
        Value of the register at ``address``; 32 bits.
    abort : Out
        Pulse: abort the core's current job; 1 bit.
    """

    def __init__(self, *, bytes_in, bytes_out, target):
        self.bytes_in = bytes_in
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "rx_bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "tx_bytes": Out(stream.Signature(8)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "address": Out(8),
            "data": In(32),
            "abort": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(bytes_in=self.bytes_in, target=self.target)
        m.submodules.transmitter = transmitter = FrameTransmitter(
            bytes_out=self.bytes_out, target=self.target
        )
        connect(m, flipped(self.rx_bytes), receiver.bytes)
        connect(m, receiver.commands, flipped(self.commands))
        connect(m, receiver.request, transmitter.request)
        connect(m, receiver.ack, transmitter.ack)
        connect(m, flipped(self.results), transmitter.results)
        connect(m, transmitter.bytes, flipped(self.tx_bytes))
        m.d.comb += [
            receiver.rx_error.eq(self.rx_error),
            self.address.eq(transmitter.address),
            transmitter.data.eq(self.data),
            self.abort.eq(transmitter.abort),
        ]
        return m
