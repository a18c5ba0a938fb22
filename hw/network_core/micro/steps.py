"""The step unit: the vectors and the words of B of a tile, a step every second cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import MemoryWindow

__all__ = ["StepUnit", "TapFields"]


class TapFields(data.Struct):
    """The fields of a job that its steps need, as in `weft.network_core.descriptors.ListJob`."""

    kernel_height: 8
    kernel_width: 8
    tap_vectors: 16
    in_height: 16
    in_width: 16
    dilation_y: 8
    dilation_x: 8
    tap_x_step: 16
    tap_y_step: 16


class StepUnit(wiring.Component):
    """``for ky: for kx: for c in tap_vectors``, from the first tap of a pixel on.

    A step reads a vector in its first cycle, and a half of a word of B in each of both. The last
    step of a tile waits for ``may_end``. A tile with n steps takes 2 n + 1 cycles at least.

    Parameters
    ----------
    b_words : int

    Attributes
    ----------
    fields : In, `TapFields`
    x, y, origin, b_word : In
        Place and vector of the first tap, and the first word of B: taken with ``start``.
    start : In, 1 bit
        Pulse, while ``idle``.
    idle : Out, 1 bit
    may_end : In, 1 bit
        The columns will be free for the sums of the tile.
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    read : Out, 1 bit
        The vector at ``address`` is read in this cycle. Its data are not used if the tap lies
        outside the map, or after an ``address_error``.
    address : Out, 16 bits
    b_address : Out
        The half of a word of B that the next cycle needs.
    first_half, second_half : Out, 1 bit each
        The halves of the vector are the operands of the next cycle.
    outside : Out, 1 bit
        With ``first_half``: the tap lies outside the map.
    ends : Out, 1 bit
        Pulse, in the cycle after the one of the last step.
    address_error : Out, 1 bit
        Pulse: a vector inside the map lies beyond the window.
    """

    def __init__(self, *, b_words):
        bits = (b_words - 1).bit_length()
        super().__init__({
            "fields": In(TapFields), "x": In(16), "y": In(16), "origin": In(16),
            "b_word": In(bits), "start": In(1), "idle": Out(1, init=1), "may_end": In(1),
            "window": In(MemoryWindow(16)), "read": Out(1), "address": Out(16),
            "b_address": Out(bits + 1), "first_half": Out(1), "second_half": Out(1),
            "outside": Out(1), "ends": Out(1), "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        fields, address = self.fields, self.address
        x, y, first_x, word = (Signal.like(s) for s in (self.x, self.y, self.x, self.b_word))
        vectors_left, taps_left, rows_left = Signal(16), Signal(8), Signal(8)
        # All of these are known a cycle before the step, since it changes two cycles before.
        vector_last, tap_last, last = Signal(), Signal(), Signal()
        step, inside, allowed, is_last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_last.eq((vectors_left == 1) & (taps_left == 1) & (rows_left == 1)),
            self.read.eq(step),
            self.address_error.eq(step & inside & ~allowed),
            self.b_address.eq((word << 1) | self.first_half),
        ]
        m.d.sync += [
            vector_last.eq(vectors_left == 1), tap_last.eq(taps_left == 1), last.eq(is_last),
            inside.eq((x < fields.in_width) & (y < fields.in_height)),
            allowed.eq((address >= self.window.base) & (address < self.window.limit)),
            step.eq(~self.idle & ~step & (self.may_end | ~is_last)),
        ]
        m.d.sync += [
            self.first_half.eq(step), self.second_half.eq(self.first_half),
            self.outside.eq(~inside), self.ends.eq(step & last),
        ]
        with m.If(self.first_half):
            m.d.sync += word.eq(word + 1)
        to_next = Mux(tap_last, fields.tap_y_step, fields.tap_x_step)
        with m.If(step):
            m.d.sync += [
                self.idle.eq(last), address.eq(address + Mux(vector_last, to_next, 1)),
                vectors_left.eq(Mux(vector_last, fields.tap_vectors, vectors_left - 1)),
            ]
            with m.If(vector_last):
                m.d.sync += [x.eq(x + fields.dilation_x), taps_left.eq(taps_left - 1)]
                with m.If(tap_last):
                    m.d.sync += [
                        x.eq(first_x), y.eq(y + fields.dilation_y),
                        taps_left.eq(fields.kernel_width), rows_left.eq(rows_left - 1),
                    ]
        with m.If(self.start):
            m.d.sync += [
                self.idle.eq(0), address.eq(self.origin), x.eq(self.x),
                first_x.eq(self.x), y.eq(self.y), word.eq(self.b_word),
                vectors_left.eq(fields.tap_vectors), taps_left.eq(fields.kernel_width),
                rows_left.eq(fields.kernel_height),
            ]
        return m
