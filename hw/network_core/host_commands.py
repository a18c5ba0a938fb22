"""The host's commands: WRITE and START frames, executed in order."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import WRITE_FIELDS, FrameType
from weft.hw.network_core.interface import ListBegin, VectorWrite
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.network_core.pixel_writer import PixelWriter
from weft.hw.stream.skid_buffer import SkidBuffer

__all__ = ["HostCommands"]

_HEADER, _START = 6, 8  # bytes of a header without SYNC, and of START's payload


class HostCommands(wiring.Component):
    """Writes the data of WRITE frames, and begins lists.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    commands : In, stream of 8 bits
        Frames: type, sequence number, length (32 bits), payload.
    idle : Out, 1 bit
        The last byte of a frame was executed, and no frame has begun.
    writes : Out, stream of `weft.hw.network_core.interface.VectorWrite`
    list : Out, stream of `weft.hw.network_core.interface.ListBegin`
        A list to begin. Its ``valid`` repeats the one of the stream.
    sequence : Out, 8 bits
        Sequence number of the START frame on ``list``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "commands": In(stream.Signature(8)),
            "idle": Out(1),
            "writes": Out(stream.Signature(VectorWrite(config))),
            "list": Out(stream.Signature(ListBegin(config))),
            "sequence": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = PixelWriter(self.config)
        connect(m, writer.writes, flipped(self.writes))
        # Data of WRITE pass a register, so that nothing waits for the memory in the same cycle.
        m.submodules.skid = skid = SkidBuffer(data.StructLayout({"byte": 8, "last": 1}))
        commands = self.commands

        def address(value):
            return Cat(*VectorAddress(self.config).from_list(value).values())

        fields = Signal(8 * WRITE_FIELDS)  # the last bytes: header, or fields of the payload
        frame_type = Signal(8)
        missing = Signal(range(WRITE_FIELDS + 1))  # bytes until the fields are complete
        length = Signal(16)  # bytes of the payload that did not arrive
        complete, last, no_more = Signal(), Signal(), Signal()  # missing is 0; length is 1, is 0
        fire, in_data = Signal(), Signal()
        m.d.comb += fire.eq(commands.valid & commands.ready)
        self._count(m, fire, missing, length, complete, last, no_more)
        with m.If(fire & ~in_data):
            m.d.sync += fields.eq(Cat(fields, commands.payload)[8:])
        place, begin, start = writer.placement, self.list.payload, fields[-8 * _START:]
        m.d.comb += [
            place.address.eq(address(fields[:32])), place.run.eq(fields[32:40]),
            place.pitch.eq(fields[40:48]), place.pixels.eq(fields[48:64]),
            place.row_step.eq(address(fields[64:96])),
            begin.valid.eq(self.list.valid), begin.list.eq(address(start[:32])),
            begin.log.eq(address(start[32:])),
            skid.i.payload.byte.eq(commands.payload), skid.i.payload.last.eq(last),
            writer.bytes.payload.eq(skid.o.payload.byte), writer.last.eq(skid.o.payload.last),
            writer.bytes.valid.eq(skid.o.valid), skid.o.ready.eq(writer.bytes.ready),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~commands.valid)
                m.d.sync += [missing.eq(_HEADER), complete.eq(0)]
                m.next = "IDLE"
                with m.If(commands.valid):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += commands.ready.eq(~complete)
                with m.If(complete):
                    header = fields[-8 * _HEADER:]
                    m.d.sync += [
                        frame_type.eq(header[:8]), self.sequence.eq(header[8:16]),
                        length.eq(header[16:32]), missing.eq(WRITE_FIELDS), complete.eq(0),
                        last.eq(header[16:32] == 1), no_more.eq(header[16:32] == 0),
                    ]
                    m.next = "FIELDS"
            with m.State("FIELDS"):
                with m.If(no_more):  # no data follow
                    m.next = "END"
                    with m.If(frame_type == FrameType.START):
                        m.next = "BEGIN"
                with m.Elif(complete):
                    m.d.comb += writer.start.eq(1)
                    m.next = "DATA"
                with m.Else():
                    m.d.comb += commands.ready.eq(1)
            with m.State("DATA"):
                m.d.comb += [
                    in_data.eq(1), skid.i.valid.eq(commands.valid),
                    commands.ready.eq(skid.i.ready),
                ]
                with m.If(fire & last):
                    m.next = "END"
            with m.State("BEGIN"):
                m.d.comb += self.list.valid.eq(1)
                with m.If(self.list.ready):
                    m.next = "END"
            with m.State("END"):
                with m.If(writer.idle & ~skid.o.valid):
                    m.next = "IDLE"
        return m

    @staticmethod
    def _count(m, fire, missing, length, complete, last, no_more):
        """Count the bytes of a frame."""
        with m.If(fire):
            m.d.sync += [
                missing.eq(missing - 1), length.eq(length - 1), complete.eq(missing == 1),
                last.eq(length == 2), no_more.eq(length == 1),
            ]
