"""The feeder: a step of the sequencer becomes what enters the array, each at its time."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import Region
from weft.hw.array.element import PeControl
from weft.hw.array.skew import Skew
from weft.hw.buffers.operands import OperandBuffer

__all__ = ["Feeder"]


class Feeder(wiring.Component):
    """Operand buffers, the skew at the array's edges, and what decodes a value there.

    What a step reads is at the edge LATENCY cycles later, in the PE of the top left corner; row p
    from the top and column c follow by ``p // hop`` and ``c // hop`` cycles. Orders and starts come
    when the leaf wants them.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    writes : dict of shapes
        Of ``a``, ``b`` and, where sums may start from it, ``c``.
    step : shape
        `weft.hw.control.sequencer.ArrayStep`.
    mac : Mac class
    hop : int
    target : str
        Of the Config: what the buffers are made of.

    Attributes
    ----------
    writes : In, as the parameter says
        What is loaded.
    step : In
    a, b, control, preload, init : Out
        As `weft.hw.array.systolic.SystolicArray` takes them.
    """

    def __init__(self, *, geometries, writes, step, mac, hop, target="generic"):
        self.geometries = geometries
        self.mac = mac
        self.hop = hop
        self.target = target
        self.rows, self.cols = (geometries[region].edge for region in (Region.A, Region.B))
        self.starts = "c" in writes
        depth = geometries[Region.A].depth
        self._sum = mac.latency(depth)
        self._decode = mac.OPERAND_DECODER.LATENCY if mac.OPERAND_DECODER else 0
        # Blocks of memory are far from the array: a register between them, but on small devices
        # and where the tool of a generic target moves registers itself.
        self._way = int(target == "ecp5")
        self.LATENCY = OperandBuffer.LATENCY + self._way + self._decode
        start = {}
        if self.starts:
            start = {
                "preload": Out(self.rows), "init": Out(data.ArrayLayout(mac.START, self.cols)),
            }
        super().__init__({
            "writes": In(data.StructLayout(writes)),
            "step": In(step),
            "a": Out(data.ArrayLayout(data.ArrayLayout(mac.A, depth), self.rows)),
            "b": Out(data.ArrayLayout(data.ArrayLayout(mac.B, depth), self.cols)),
            "control": Out(PeControl),
            **start,
        })

    def elaborate(self, platform):
        m = Module()
        # Row 0 of the tile is the lowest one.
        rows = [p // self.hop for p in reversed(range(self.rows))]
        cols = [c // self.hop for c in range(self.cols)]
        decoder = self.mac.OPERAND_DECODER
        self._edge(m, "a", Region.A, self.step.a, rows, decoder, self.a)
        self._edge(m, "b", Region.B, self.step.b, cols, decoder, self.b)
        # A sum comes round so much later than its step's operands.
        turn = self._sum - self.mac.SLOTS
        times = {"en": 0, "clear": turn, "capture": self._sum}
        m.submodules.orders = orders = Skew(
            shape=1, delays=[self.LATENCY + time for time in times.values()]
        )
        for n, name in enumerate(times):
            m.d.comb += [orders.i[n].eq(self.step[name]), self.control[name].eq(orders.o[n])]
        if self.starts:
            m.submodules.preload = preload = Skew(
                shape=1, delays=[self.LATENCY + turn + delay for delay in rows]
            )
            m.d.comb += [preload.i.eq(self.step.preload), self.preload.eq(preload.o)]
            decoder = self.mac.START_DECODER
            wait = self._decode + turn - (decoder.LATENCY if decoder else 0)
            m.submodules.wait = late = Skew(shape=self.step.c.shape(), delays=[wait])
            m.d.comb += late.i[0].eq(self.step.c)
            init = data.ArrayLayout(data.ArrayLayout(self.mac.START, 1), self.cols)(self.init)
            self._edge(m, "c", Region.C, late.o[0], cols, decoder, init)
        return m

    def _edge(self, m, name, region, address, delays, decoder, out):
        """A buffer, its skew, and a decoder for each value of a word."""
        geometry = self.geometries[region]
        write = self.writes[name]
        buffer = OperandBuffer(
            geometry=geometry, write=write.shape(), target=self.target
        )
        word = buffer.word.shape()
        skew = Skew(shape=word.elem_shape, delays=[self._way + delay for delay in delays])
        m.submodules[name] = buffer
        m.submodules[f"skew_{name}"] = skew
        m.d.comb += [
            buffer.write.eq(write),
            buffer.en.eq(1),
            buffer.address.eq(address),
            skew.i.eq(buffer.word),
        ]
        for e in range(geometry.edge):
            for d in range(geometry.depth):
                value = skew.o[e][d]
                if decoder:
                    m.submodules[f"decoder_{name}_{e}_{d}"] = one = decoder()
                    m.d.comb += one.i.eq(value)
                    value = one.o
                m.d.comb += out[e][d].eq(value)
