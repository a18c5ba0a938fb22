"""The panel buffer: the pixels of the running panel, and of the next one as they come."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.layouts import JobFields
from weft.hw.network_core.steps.pixel_generator import OutputPixel, WindowOrigin

__all__ = ["PanelBuffer", "PanelRow", "ReadyPanel"]


class PanelRow(data.StructLayout):
    """A row of the array: the `WindowOrigin` of its pixel, if the panel has this row (``used``)."""

    def __init__(self, config):
        super().__init__({"used": 1, "origin": WindowOrigin(config)})


class ReadyPanel(data.StructLayout):
    """A panel: its ``rows``, 1 to the rows of the array, and whether it is the ``last`` one."""

    def __init__(self, config):
        super().__init__({"rows": range(config.array.rows + 1), "last": 1})


class PanelBuffer(wiring.Component):
    """Collects pixels for the next panel, one a cycle, while the array works on a panel.

    A panel ends after ``panel_rows`` pixels, at the last pixel, and at the end of a map row if
    ``cross`` is 0. It is offered in the cycle after its last pixel. Its rows are in ``rows`` from
    the cycle after it was taken. In the cycle in which it is taken, the first pixel of the next
    panel is accepted. So panels of n pixels can follow each other every n cycles.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `JobFields`
    pixels : In, stream of `OutputPixel`
    panel : Out, stream of `ReadyPanel`
    rows : Out, `PanelRow` for each row of the array
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "job": In(JobFields(config)),
            "pixels": In(stream.Signature(OutputPixel(config))),
            "panel": Out(stream.Signature(ReadyPanel(config))),
            "rows": Out(data.ArrayLayout(PanelRow(config), config.array.rows)),
        })

    def elaborate(self, platform):
        m = Module()
        pixel, panel = self.pixels.payload, self.panel
        used = Signal(len(self.rows))  # rows of the next panel that have their pixel
        origins = Signal(
            data.ArrayLayout(WindowOrigin(self.config), len(self.rows)), reset_less=True
        )
        rows = Signal.like(self.rows, reset_less=True)
        slot = Signal(self.config.array.rows, init=1)  # one-hot: the row of the next pixel
        count = Signal.like(panel.payload.rows, init=1)  # pixels of the panel, with this one
        write, panel_end, take = Signal(), Signal(), Signal()
        m.d.comb += [
            self.rows.eq(rows),
            take.eq(panel.valid & panel.ready),
            self.pixels.ready.eq(~panel.valid | panel.ready),
            write.eq(self.pixels.valid & self.pixels.ready),
            panel_end.eq(
                (count == self.job.panel_rows) | pixel.last | (pixel.row_last & ~self.job.cross)
            ),
        ]
        with m.If(take):
            m.d.sync += [panel.valid.eq(0), used.eq(0)]
            for n, row in enumerate(rows):
                m.d.sync += [row.used.eq(used[n]), row.origin.eq(origins[n])]
        for n, origin in enumerate(origins):
            with m.If(write & slot[n]):
                m.d.sync += [used[n].eq(1), origin.eq(pixel.origin)]
        with m.If(write):
            m.d.sync += [
                slot.eq(Mux(panel_end, 1, slot << 1)), count.eq(Mux(panel_end, 1, count + 1)),
                panel.payload.rows.eq(count), panel.payload.last.eq(pixel.last),
            ]
            with m.If(panel_end):
                m.d.sync += panel.valid.eq(1)
        return m
