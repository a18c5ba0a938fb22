"""The pixel generator: the window origins of all pixels of a job's output map, one a cycle."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import JobPort
from weft.hw.network_core.layouts import VectorAddress, add_addresses

__all__ = ["POSITION", "LoopCounter", "OutputPixel", "PixelGenerator", "WindowOrigin"]


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
