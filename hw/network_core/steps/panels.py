"""The panels of a job: the window origins of its pixels, one a cycle, and their buffer."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import JobPort
from weft.hw.network_core.layouts import JobFields, VectorAddress, add_addresses, bank_bias
from weft.network_core.latencies import is_spread

__all__ = [
    "LoopCounter", "OutputPixel", "POSITION", "PanelBuffer", "PanelGate", "PanelRow",
    "PixelGenerator",
    "ReadyPanel", "WindowOrigin",
]

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
    the cycle after it was taken, and a cycle later if the core `is_spread`. The first pixel
    of the next panel is accepted in the cycle in which the panel is taken, or before. So panels of
    n pixels can follow each other every n cycles.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `JobFields`
    pixels : In, stream of `OutputPixel`
    panel : Out, stream of `ReadyPanel`
    rows : Out, `PanelRow` for each row of the array
    last_origin : Out, `VectorAddress`; only with the option ``early``
        Of the last pixel of the panel; valid with ``panel.valid``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "job": In(JobFields(config)),
            "pixels": In(stream.Signature(OutputPixel(config))),
            "panel": Out(stream.Signature(ReadyPanel(config))),
            "rows": Out(data.ArrayLayout(PanelRow(config), config.array.rows)),
            **({"last_origin": Out(VectorAddress(config))} if config.early else {}),
        })

    def elaborate(self, platform):
        m = Module()
        pixel, panel = self.pixels.payload, self.panel
        used = Signal(len(self.rows))  # rows of the panel that have their pixel
        origins = Signal(
            data.ArrayLayout(WindowOrigin(self.config), len(self.rows)), reset_less=True
        )
        slot = Signal(self.config.array.rows, init=1)  # one-hot: the row of the next pixel
        count = Signal.like(panel.payload.rows, init=1)  # pixels of the panel, with this one
        write, panel_end, take = Signal(), Signal(), Signal()
        m.d.comb += [
            take.eq(panel.valid & panel.ready),
            write.eq(self.pixels.valid & self.pixels.ready),
            panel_end.eq(
                (count == self.job.panel_rows) | pixel.last | (pixel.row_last & ~self.job.cross)
            ),
        ]
        if is_spread(self.config):
            held, begun, first, first_end = self._hold(m, write, take, panel_end)
            copied, copy, to_slot = Signal.like(used, reset_less=True), Signal(), Signal()
            m.d.comb += to_slot.eq(write & ~panel.valid)
            m.d.sync += [copied.eq(used), copy.eq(take)]
            with m.If(copy):  # its slot is free if there was no first pixel
                m.d.sync += origins[0].eq(held.origin)
        else:
            m.d.comb += self.pixels.ready.eq(~panel.valid | panel.ready)
            begun, first, first_end = write, pixel, panel_end
            copied, copy, to_slot = used, take, write
        self._copy_rows(m, copy, copied, origins)
        for n, origin in enumerate(origins):
            with m.If(to_slot & slot[n]):
                m.d.sync += origin.eq(pixel.origin)
        with m.If(write):
            m.d.sync += [
                slot.eq(Mux(panel_end, 1, slot << 1)), count.eq(Mux(panel_end, 1, count + 1)),
            ]
        with m.If(take):
            m.d.sync += [
                panel.valid.eq(begun & first_end), used.eq(begun),
                panel.payload.rows.eq(1), panel.payload.last.eq(first.last),
            ]
        with m.Elif(write & ~panel.valid):
            m.d.sync += [
                panel.valid.eq(panel_end), used.eq(used | slot),
                panel.payload.rows.eq(count), panel.payload.last.eq(pixel.last),
            ]
        if self.config.early:
            with m.If(take):
                m.d.sync += self.last_origin.eq(first.origin.address)
            with m.Elif(~panel.valid):
                m.d.sync += self.last_origin.eq(pixel.origin.address)
        return m

    def _hold(self, m, write, take, panel_end):
        """Hold the first pixel of the next panel, beside a panel that waits.

        So neither ``pixels.ready`` nor the many registers of slots and rows wait for
        ``panel.ready``, which comes from far in a large array. Returns the held pixel, and what the
        next panel has when this one is taken: whether it has its first pixel, the pixel, and
        whether the panel ends with it.
        """
        pixel = self.pixels.payload
        holds, held_end = Signal(), Signal(reset_less=True)
        held, first = Signal.like(pixel, reset_less=True), Signal.like(pixel)
        m.d.comb += [
            self.pixels.ready.eq(~self.panel.valid | ~holds),
            first.eq(Mux(holds, held.as_value(), pixel.as_value())),
        ]
        with m.If(write & self.panel.valid):
            m.d.sync += [holds.eq(1), held.eq(pixel), held_end.eq(panel_end)]
        with m.If(take):
            m.d.sync += holds.eq(0)
        return held, holds | write, first, Mux(holds, held_end, panel_end)

    def _copy_rows(self, m, copy, used, origins):
        rows = Signal.like(self.rows, reset_less=True)
        m.d.comb += self.rows.eq(rows)
        with m.If(copy):
            for n, row in enumerate(rows):
                m.d.sync += [row.used.eq(used[n]), row.origin.eq(origins[n])]


class PanelGate(wiring.Component):
    """Holds a panel while the job before may still store a vector that the panel reads.

    The job before stores panel after panel, at growing addresses: from now on at ``frontier`` or
    behind it. A panel reads nothing behind ``origin + span``, where ``origin`` is of its last
    pixel. So it passes if ``origin + span < frontier``, computed as ``origin < frontier - span``.

    A change of ``frontier`` lets a panel pass two cycles later. A panel is compared in the cycle in
    which it arrives. While ``follows`` is 0, a panel passes at once.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    i : In, stream of `ReadyPanel`
    o : Out, stream of `ReadyPanel`
    origin : In, `VectorAddress`
        Of the last pixel of the panel; valid with ``i.valid``.
    span : In, `VectorAddress`
        Of the job, a step.
    frontier : In, `VectorAddress`
    follows : In, 1 bit
        The job before has not stored all its results.
    """

    def __init__(self, config):
        self.config = config
        address = VectorAddress(config)
        panel = stream.Signature(ReadyPanel(config))
        super().__init__({
            "i": In(panel), "o": Out(panel), "origin": In(address), "span": In(address),
            "frontier": In(address), "follows": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        frontier, span, bits = self.frontier, self.span, len(self.span.bank)
        # Bank and word in one carry chain, a bit more than an address: it may lie beyond it on both
        # sides.
        rest = Signal(signed(bits + 1 + len(span.word) + 1))
        limit = Signal(signed(bits + len(span.word) + 1), reset_less=True)
        reached, passes = Signal(), Signal()
        m.d.comb += [
            rest.eq(
                Cat(frontier.bank, Const(0, 1), frontier.word).as_signed()
                - Cat(span.bank, Const(0, 1), span.word).as_signed()
            ),
            passes.eq(~self.follows | reached),
            self.o.valid.eq(self.i.valid & passes),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & passes),
        ]
        bank = Mux(rest[bits], rest[:bits] - bank_bias(self.config.banks), rest[:bits])[:bits]
        m.d.sync += [
            limit.eq(Cat(bank, rest[bits + 1 :]).as_signed()),
            # Of this panel: not of the one that leaves.
            reached.eq(
                self.i.valid & ~self.i.ready & (self.origin.as_value().as_signed() < limit)
            ),
        ]
        return m


class LoopCounter(wiring.Component):
    """``for turn in range(count)``: ``last`` is a register, with no comparison behind it.

    ``advance`` in the last turn begins the first turn of the next loop, as ``restart`` does in any
    turn. ``count`` must be stable from ``restart`` on.

    Parameters
    ----------
    width : int
        Bits of ``count``.

    Attributes
    ----------
    count : In, ``width`` bits
        Turns of a loop: 1 or more.
    restart : In, 1 bit
        Begins a loop, also before the first one.
    advance : In, 1 bit
        Ends a turn.
    last : Out, 1 bit
        The turn is the last one of its loop.
    """

    def __init__(self, width):
        super().__init__({
            "count": In(width), "restart": In(1), "advance": In(1), "last": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        turns_left = Signal.like(self.count, reset_less=True)  # after this one
        with m.If(self.restart | (self.advance & self.last)):
            m.d.sync += [turns_left.eq(self.count - 1), self.last.eq(self.count == 1)]
        with m.Elif(self.advance):
            m.d.sync += [turns_left.eq(turns_left - 1), self.last.eq(turns_left == 1)]
        return m


POSITION = signed(17)  # y or x of a tap: it may lie outside the map, on both sides


class WindowOrigin(data.StructLayout):
    """The first tap of a pixel of the output map: ``address``, and its place ``y``, ``x``."""

    def __init__(self, config):
        super().__init__({"address": VectorAddress(config), "y": POSITION, "x": POSITION})


class OutputPixel(data.StructLayout):
    """A pixel of the output map.

    ============ ================================================
    ``origin``   its `WindowOrigin`
    ``row_last`` the pixel is the last one of its row of the map
    ``last``     the pixel is the last one of the map
    ============ ================================================
    """

    def __init__(self, config):
        super().__init__({"origin": WindowOrigin(config), "row_last": 1, "last": 1})


class PixelGenerator(wiring.Component):
    """``for oy in out_height: for ox in out_width``, by additions.

    The first pixel is valid in the cycle after ``start``. ``y`` and ``x`` of all taps of a job must
    be in -65,536..65,535.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
    pixels : Out, stream of `OutputPixel`
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "job": In(JobPort(config)),
            "pixels": Out(stream.Signature(OutputPixel(config))),
        })

    def elaborate(self, platform):
        m = Module()
        job, pixel = self.job.fields, self.pixels.payload
        origin = Signal.like(pixel.origin, reset_less=True)
        m.submodules.x_loop = x_loop = LoopCounter(len(job.out_width))
        m.submodules.y_loop = y_loop = LoopCounter(len(job.out_height))
        fire = self.pixels.valid & self.pixels.ready
        start = self.job.start
        m.d.comb += [
            x_loop.count.eq(job.out_width), x_loop.restart.eq(start), x_loop.advance.eq(fire),
            y_loop.count.eq(job.out_height), y_loop.restart.eq(start),
            y_loop.advance.eq(fire & x_loop.last),
            pixel.origin.eq(origin), pixel.row_last.eq(x_loop.last),
            pixel.last.eq(x_loop.last & y_loop.last),
        ]
        # Both sums at once: only the choice waits for the loop.
        next_pixel, next_row = (
            add_addresses(m, origin.address, step, self.config.banks, name)
            for step, name in (
                (job.input_pixel_step, "next_pixel"), (job.input_row_step, "next_row"),
            )
        )
        with m.If(start):
            m.d.sync += [
                self.pixels.valid.eq(1), origin.address.eq(job.input),
                origin.y.eq(job.first_y), origin.x.eq(job.first_x),
            ]
        with m.Elif(fire):
            m.d.sync += [
                self.pixels.valid.eq(~pixel.last), origin.address.eq(next_pixel),
                origin.x.eq(origin.x + job.stride_x),
            ]
            with m.If(x_loop.last):
                m.d.sync += [
                    origin.address.eq(next_row), origin.x.eq(job.first_x),
                    origin.y.eq(origin.y + job.stride_y),
                ]
        return m
