"""The links: the ports of a core over one byte stream in each direction, as checked frames."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.interface import CoreInterface
from weft.hw.serial.frame_receiver import NETWORK_FRAMES, FrameReceiver, FrameRequest
from weft.hw.serial.frame_sender import FrameHeader, FrameSender
from weft.hw.serial.frame_transmitter import FrameTransmitter
from weft.targets import TARGETS

__all__ = ["HostFrames", "Link", "NetworkLink"]


class Link(wiring.Component):
    """Translates between frames (``docs/interfaces.md``) and the ports of a `weft.hw.core.Core`.

    Parameters
    ----------
    config : Config
    fast : bool
        Move a byte of a payload a cycle, or nearly so, for a link that is faster than the bits of a
        serial port. It takes more cells.

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

    def __init__(self, config, *, fast=False):
        self.config = config
        self.fast = fast
        super().__init__({
            "rx_bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "tx_bytes": Out(stream.Signature(8)),
            "core": Out(CoreInterface(config)),
        })

    def elaborate(self, platform):
        m = Module()
        c, core = self.config, self.core
        m.submodules.receiver = receiver = FrameReceiver(
            bytes_in=c.bytes_in, target=c.target, fast=self.fast
        )
        m.submodules.transmitter = transmitter = FrameTransmitter(
            bytes_out=c.bytes_out, target=c.target, fast=self.fast
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


class HostFrames(wiring.Signature):
    """The frames between a link and a host port, from the link's side.

    `weft.hw.network_core.host.host_port.HostPort` executes them.

    Attributes
    ----------
    commands : Out, stream of 8 bits
        Accepted WRITE and START frames: type, sequence number, length (32 bits), payload.
    pending : Out, 1 bit
        High while ``commands`` has bytes.
    request : Out, stream of `weft.hw.serial.frame_receiver.FrameRequest`
        Frames to answer.
    ack : Out, stream of 8 bits
        Sequence numbers for ACK frames.
    frame : In, stream of `weft.hw.serial.frame_sender.FrameHeader`
        Frames to the host.
    payload : In, stream of 8 bits
        The bytes of their payloads.
    """

    def __init__(self):
        super().__init__({
            "commands": Out(stream.Signature(8)),
            "pending": Out(1),
            "request": Out(stream.Signature(FrameRequest(NETWORK_FRAMES))),
            "ack": Out(stream.Signature(8)),
            "frame": In(stream.Signature(FrameHeader)),
            "payload": In(stream.Signature(8)),
        })


class NetworkLink(wiring.Component):
    """Checks the frames from the host, and sends frames to it; ``docs/network-core.md`` has their
    types.

    Parameters
    ----------
    target : str
        FPGA family, as in the Config.
    accepted : weft.hw.serial.frame_receiver.ReceivedFrames
        Of a network core, or of a language core.
    fast : bool
        As of `Link`.

    Attributes
    ----------
    rx_bytes : In, stream of 8 bits
        Bytes from the host.
    rx_error : In
        Pulse: bytes from the host were lost; 1 bit.
    tx_bytes : Out, stream of 8 bits
        Bytes to the host.
    frames : Out, `HostFrames`
    """

    def __init__(self, *, target, accepted=NETWORK_FRAMES, fast=False):
        self.target = target
        self.fast = fast
        self.accepted = accepted
        super().__init__({
            "rx_bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "tx_bytes": Out(stream.Signature(8)),
            "frames": Out(HostFrames()),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(
            bytes_in=1, target=self.target, frames=self.accepted, fast=self.fast,
        )
        # The host port keeps the header of a frame until the frame is accepted.
        m.submodules.sender = sender = FrameSender(
            fast=self.fast, holds_header=not TARGETS[self.target].serial_epilogue
        )
        frames = self.frames
        connect(m, flipped(self.rx_bytes), receiver.bytes)
        connect(m, receiver.commands, flipped(frames.commands))
        connect(m, receiver.request, flipped(frames.request))
        connect(m, receiver.ack, flipped(frames.ack))
        connect(m, flipped(frames.frame), sender.frame)
        connect(m, flipped(frames.payload), sender.payload)
        connect(m, sender.bytes, flipped(self.tx_bytes))
        m.d.comb += [receiver.rx_error.eq(self.rx_error), frames.pending.eq(receiver.pending)]
        return m
