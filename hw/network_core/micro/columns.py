"""The array of a micro core: its columns, and the steps of a tile."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.config import Config
from weft.hw.arith.cells import MACS
from weft.hw.arith.ice40 import LoadableCounter, SkewedQuadMac
from weft.hw.delay import pipeline
from weft.hw.network_core.interface import MemoryWindow
from weft.network_core import latencies

__all__ = ["ArrayColumns", "StepUnit", "TapFields"]


class ArrayColumns(wiring.Component):
    """The sums of a tile: ``sums[n] = sum(a * b[n])`` over its steps, a step a cycle.

    The sums of a tile are captured in a shift register. So the steps of the next tile may come, and
    no multiplexer selects a column.

    Parameters
    ----------
    array : Config
        With vectors of 4 bytes.

    Attributes
    ----------
    vector : In, 32 bits
        The vector of A of a step.
    outside : In, 8 bits; is_outside : In, 1 bit
        The value of all bytes of A, if the tap lies outside the map.
    b : In, 32 bits for each column
        The vector of B. If `weft.network_core.latencies.is_skewed`, its upper half comes a cycle
        later.
    valid, ends : In, 1 bit each
        As of `weft.hw.network_core.micro.columns.StepUnit`: the operands are there.
    clear : In, 1 bit
        All sums are 0.
    captured : Out, 1 bit
        Pulse: ``sums`` has the sums of the first column of the next tile from the next cycle on.
    take : In, 1 bit
        ``sums`` has the sums of the next column from the next cycle on.
    sums : Out, 32 bits
    """

    def __init__(self, array: Config):
        self.array = array
        super().__init__({
            "vector": In(32), "outside": In(8), "is_outside": In(1),
            "b": In(data.ArrayLayout(32, array.cols)), "valid": In(1), "ends": In(1),
            "clear": In(1), "captured": Out(1), "take": In(1), "sums": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        latency = latencies.sums(self.array)
        adds, ends = Signal(latency - 1), Signal(latency)
        starts = Signal(init=1)  # the next step is the first one of its tile
        m.d.sync += [adds.eq(Cat(self.valid, adds)), ends.eq(Cat(self.ends, ends))]
        m.d.comb += self.captured.eq(ends[-1])
        with m.If(self.captured | self.clear):
            m.d.sync += starts.eq(1)
        with m.Elif(adds[-1]):
            m.d.sync += starts.eq(0)
        a = Signal(32)
        m.d.comb += a.eq(Mux(self.is_outside, self.outside.replicate(4), self.vector))
        if latencies.is_skewed(self.array):
            a = Cat(a[:16], pipeline(m, a[16:], 1, "late"))
        following = 0  # what the column behind holds
        for column in reversed(range(self.array.cols)):
            m.submodules[f"column_{column}"] = mac = self._mac()
            m.d.comb += [
                mac.a.eq(a), mac.b.eq(self.b[column]), mac.en.eq(self.valid), mac.clear.eq(starts),
            ]
            held = Signal(32, name=f"held_{column}", reset_less=True)
            with m.If(self.captured | self.take):
                m.d.sync += held.eq(Mux(self.captured, mac.sum, following))
            following = held
        m.d.comb += self.sums.eq(held)
        return m

    def _mac(self):
        if latencies.is_skewed(self.array):
            return SkewedQuadMac()
        return MACS[self.array.cell.name](depth=self.array.depth)


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

    A step reads a vector and a word of B, in a cycle in which the memory is ``free``. The last step
    of a tile waits for ``may_end``. A tile with n steps takes n + 1 cycles at least.

    Parameters
    ----------
    b_words : int

    Attributes
    ----------
    fields : In, `TapFields`
        Taken while ``idle``.
    x, y, origin, b_word : In
        Place and vector of the first tap, and the first word of B: taken with ``start``. ``x``
        stays until the unit is ``idle``.
    start : In, 1 bit
        Pulse, while ``idle``.
    idle : Out, 1 bit
    free : In, 1 bit
        The memory can serve a read of this unit.
    may_end : In, 1 bit
        The columns will be free for the sums of the tile.
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    read : Out, 1 bit
        The vector at ``address`` is read in this cycle. Its data are not used if the tap lies
        outside the map, or with an ``address_error``.
    address : Out, 16 bits
    b_address : Out
        The word of B that the next cycle needs.
    valid : Out, 1 bit
        The operands of a step are there: in the cycle after ``read``.
    outside : Out, 1 bit
        With ``valid``: the tap lies outside the map.
    ends : Out, 1 bit
        Pulse, with ``valid`` of the last step.
    address_error : Out, 1 bit
        Pulse, with ``valid``: a vector inside the map lies beyond the window.
    """

    def __init__(self, *, b_words):
        bits = (b_words - 1).bit_length()
        super().__init__({
            "fields": In(TapFields), "x": In(16), "y": In(16), "origin": In(16),
            "b_word": In(bits), "start": In(1), "idle": Out(1, init=1), "free": In(1),
            "may_end": In(1), "window": In(MemoryWindow(16)), "read": Out(1), "address": Out(16),
            "b_address": Out(bits), "valid": Out(1), "outside": Out(1), "ends": Out(1),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        fields, address, idle, step = self.fields, self.address, self.idle, self.read
        vector_last, tap_last, last = self._count(m, step)
        m.d.comb += step.eq(~idle & self.free & (self.may_end | ~last))
        x, y = Signal.like(self.x), Signal.like(self.y)
        m.submodules.b_address = b_address = LoadableCounter(len(self.b_word))
        m.d.comb += [
            b_address.en.eq(step | idle), b_address.load.eq(idle),
            b_address.start.eq(self.b_word), self.b_address.eq(b_address.value),
        ]
        inside, allowed = Signal(), Signal()
        # The place is checked while the memory reads the vector.
        m.d.sync += [
            self.valid.eq(step), self.ends.eq(step & last),
            inside.eq((x < fields.in_width) & (y < fields.in_height)),
            allowed.eq((address >= self.window.base) & (address < self.window.limit)),
        ]
        m.d.comb += [
            self.outside.eq(~inside), self.address_error.eq(self.valid & inside & ~allowed),
        ]
        to_next = Mux(tap_last, fields.tap_y_step, fields.tap_x_step)
        with m.If(step):
            m.d.sync += address.eq(address + Mux(vector_last, to_next, 1))
            with m.If(vector_last):
                m.d.sync += x.eq(x + fields.dilation_x)
                with m.If(tap_last):
                    m.d.sync += [x.eq(self.x), y.eq(y + fields.dilation_y)]
            with m.If(last):
                m.d.sync += idle.eq(1)
        with m.If(idle):
            m.d.sync += [
                address.eq(self.origin), x.eq(self.x), y.eq(self.y), idle.eq(~self.start),
            ]
        return m

    def _count(self, m, step):
        """Whether the step is the last one of a tap, of a row of taps, and of the tile.

        The counters begin again while the unit is idle.
        """
        vector_last, tap_last, row_last = Signal(), Signal(), Signal()
        advances = step
        for name, count, is_last in (
            ("vectors", self.fields.tap_vectors, vector_last),
            ("taps", self.fields.kernel_width, tap_last),
            ("rows", self.fields.kernel_height, row_last),
        ):
            m.submodules[name] = left = LoadableCounter(len(count), down=True)
            # After the last row, the unit is idle.
            again = self.idle if is_last is row_last else self.idle | is_last
            m.d.comb += [
                left.en.eq(advances | self.idle), left.load.eq(again), left.start.eq(count),
            ]
            with m.If(left.en):
                m.d.sync += is_last.eq(Mux(again, count == 1, left.value == 2))
            advances = advances & is_last
        return vector_last, tap_last, vector_last & tap_last & row_last
