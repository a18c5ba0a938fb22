"""Stores of vectors to the program memory: each is a burst of one beat."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.interface import VectorWrite
from weft.hw.network_core.layouts import beat_place, vector_number

__all__ = ["ProgramStores"]


class ProgramStores(wiring.Component):
    """Writes one vector after the other, and awaits the response of each.

    Only the log of a list is stored, one entry a job: a longer burst would make the end of a list
    wait, and save nothing.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    writes, base, halt
        As of `weft.hw.network_core.program_memory.ProgramMemory`.
    aw, w, b : as of `Axi4`
    stored, error : Out, 1 bit each
        The response of a store of the running list arrives: OKAY, or an error.
    idle : Out, 1 bit
        No store waits for its response.
    """

    def __init__(self, config):
        self.config = config
        self.data_bytes = config.beat_bytes
        axi = Axi4(data_bytes=self.data_bytes).members
        super().__init__({
            "writes": In(stream.Signature(VectorWrite(config))), "base": In(32), "halt": In(1),
            **{name: axi[name] for name in ("aw", "w", "b")},
            "stored": Out(1), "error": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, given = self.config, self.writes.payload
        low, shift = ceil_log2(self.data_bytes), ceil_log2(config.read_vectors)
        place, stale = Signal(range(config.read_vectors)), Signal()
        number = Signal(32 - low + shift, reset_less=True)
        vector, enable = Signal.like(given.data), Signal.like(given.enable)
        aw, w = self.aw, self.w
        with m.If(self.halt & ~self.idle):
            m.d.sync += stale.eq(1)  # of a list that has ended
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.writes.ready.eq(1)]
                m.d.sync += [
                    number.eq(vector_number(config, given.address)),
                    place.eq(beat_place(config, given.address)), stale.eq(self.halt),
                    vector.eq(given.data), enable.eq(given.enable),
                ]
                with m.If(self.writes.valid):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.sync += [
                    aw.valid.eq(1), w.valid.eq(1), w.payload.last.eq(1),
                    aw.payload.addr[low:].eq(number[shift:] + self.base[low:]),
                    w.payload.data.eq(vector.replicate(config.read_vectors)),
                    w.payload.strb.eq(enable << (place * config.array.depth)),
                ]
                m.next = "SEND"
            with m.State("SEND"):
                for channel in (aw, w):
                    with m.If(channel.ready):
                        m.d.sync += channel.valid.eq(0)
                with m.If((~aw.valid | aw.ready) & (~w.valid | w.ready)):
                    m.next = "RESPONSE"
            with m.State("RESPONSE"):
                current = self.b.valid & ~stale & ~self.halt
                failed = self.b.payload.resp.as_value()[1]
                m.d.comb += [
                    self.b.ready.eq(1),
                    self.stored.eq(current & ~failed), self.error.eq(current & failed),
                ]
                with m.If(self.b.valid):
                    m.next = "IDLE"
        return m
