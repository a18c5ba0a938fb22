"""The link: a core's streams, registers and abort over a byte stream each way."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.output.stream_packer import Result
from weft.hw.serial.frame_receiver import FrameReceiver
from weft.hw.serial.frame_transmitter import FrameTransmitter

__all__ = ["Link"]


class Link(wiring.Component):
    """Frames, as ``docs/interfaces.md`` has them, to and from the ports of a `weft.hw.core.Core`.

    Parameters
    ----------
    bytes_in, bytes_out : int
        Of the core's streams.
    target : str
        That of a Config.

    Attributes
    ----------
    host : In, stream of 8 bits
        Bytes from the host.
    broken : In
        Pulse: some of them were lost.
    answers : Out, stream of 8 bits
        Bytes to the host.
    commands : Out, stream of ``bytes_in`` bytes
    results : In, stream of `weft.hw.output.stream_packer.Result`
    address : Out, data : In
    abort : Out
    """

    def __init__(self, *, bytes_in, bytes_out, target):
        self.bytes_in = bytes_in
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "host": In(stream.Signature(8)),
            "broken": In(1),
            "answers": Out(stream.Signature(8)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "address": Out(8),
            "data": In(32),
            "abort": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.intake = intake = FrameReceiver(bytes_in=self.bytes_in, target=self.target)
        m.submodules.answers = answers = FrameTransmitter(
            bytes_out=self.bytes_out, target=self.target
        )
        connect(m, flipped(self.host), intake.bytes)
        connect(m, intake.commands, flipped(self.commands))
        connect(m, intake.question, answers.question)
        connect(m, intake.taken, answers.taken)
        connect(m, flipped(self.results), answers.results)
        connect(m, answers.bytes, flipped(self.answers))
        m.d.comb += [
            intake.broken.eq(self.broken),
            self.address.eq(answers.address),
            answers.data.eq(self.data),
            self.abort.eq(answers.abort),
        ]
        return m
