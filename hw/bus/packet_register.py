"""The result stream as AXI4-Stream packets, which a soft reset does not break."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Status
from weft.hw.bus.job_done import JobDone
from weft.hw.output.stream_packer import Result

__all__ = ["PacketRegister"]


class PacketRegister(wiring.Component):
    """``packets`` are ``results``; a word that is offered stays, even in a soft reset.

    If a soft reset cuts a packet, a word of zeros with ``last``, the tag of the packet and the
    status ABORTED ends it. The data of words with a status other than 0 are zeros too.
    ``results.ready`` depends on no input except ``flush``. It is not a `SkidBuffer`: the output
    register survives a soft reset, and the skid register does not.

    Parameters
    ----------
    bytes_out : int
        Bytes of a stream word.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    flush : In, 1 bit
        Soft reset: drops the words that are not offered yet, and accepts none.
    packets : Out, stream of `weft.hw.output.stream_packer.Result`
    job_done : Out, `weft.hw.bus.job_done.JobDone`
        The last word of a job was taken; not for a job from before a soft reset.
    """

    def __init__(self, *, bytes_out):
        word = Result(bytes_out=bytes_out)
        super().__init__({
            "results": In(stream.Signature(word)), "flush": In(1),
            "packets": Out(stream.Signature(word)), "job_done": Out(JobDone),
        })

    def elaborate(self, platform):
        m = Module()
        o = self.packets
        o_last = Signal(init=1)  # the newest word at `o` ended its packet
        o_current = Signal()  # that word is not from before a soft reset
        ready = Signal()
        skid_valid, skid = Signal(), Signal.like(o.payload, reset_less=True)
        i_word = Signal.like(o.payload)
        i_fire = self.results.valid & self.results.ready
        advance = ~o.valid | o.ready
        cut = (self.flush | ~o_current) & ~o_last
        m.d.comb += [
            self.results.ready.eq(ready & ~self.flush),
            i_word.eq(self.results.payload),
        ]
        with m.If(self.results.payload.status != 0):
            m.d.comb += i_word.data.eq(0)
        m.d.sync += ready.eq(
            Mux(advance, ~self.flush, ~skid_valid & ~i_fire & ~cut & ~self.flush)
        )
        with m.If(advance & cut):
            m.d.sync += [
                o.valid.eq(1), o_last.eq(1), o_current.eq(0),
                o.payload.data.eq(0), o.payload.status.eq(Status.ABORTED), o.payload.last.eq(1),
            ]
        with m.Elif(advance):
            m.d.sync += o.valid.eq(skid_valid | i_fire)
            with m.If(skid_valid | i_fire):
                word = data.View(
                    skid.shape(), Mux(skid_valid, skid.as_value(), i_word.as_value())
                )
                m.d.sync += [
                    o.payload.eq(word), o_last.eq(word.last), o_current.eq(1), skid_valid.eq(0),
                ]
        with m.Elif(i_fire):
            m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]
        with m.If(self.flush):
            m.d.sync += [skid_valid.eq(0), o_current.eq(0)]
            with m.If(advance & ~cut):
                m.d.sync += o.valid.eq(0)
        m.d.sync += [
            self.job_done.valid.eq(o.valid & o.ready & o_last & o_current & ~self.flush),
            self.job_done.tag.eq(o.payload.tag), self.job_done.status.eq(o.payload.status),
        ]
        return m
