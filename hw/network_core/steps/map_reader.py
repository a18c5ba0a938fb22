"""The map reader: the vectors of all rows of the array, for each step of a job; and its offset."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import job_ports
from weft.hw.network_core.layouts import VectorAddress, bank_bias
from weft.hw.network_core.memory.banked_memory import RowRead
from weft.hw.network_core.steps.panels import (
    POSITION,
    LoopCounter,
    OutputPixel,
    PanelBuffer,
    PanelGate,
    PanelRow,
    PixelGenerator,
    ReadyPanel,
)
from weft.hw.network_core.steps.step_sequencer import JobStep
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core.latencies import PANEL_START, is_spread

__all__ = ["AddressOffset", "MapReader", "RowAddress", "StepOffsets", "TapLimits"]

class AddressOffset(data.StructLayout):
    """The address of a tap relative to its window origin, and the origins that it allows.

    ============== ================================================================================
    ``biased``     bank of the offset, plus :func:`weft.hw.network_core.layouts.bank_bias`
    ``word``       word of the offset
    ``bank``       bank of the two origins below
    ``low_word``   signed word of the origin whose tap is the first vector of BASE
    ``high_word``  signed word of the origin whose tap is the first vector beyond LIMIT
    ============== ================================================================================
    """

    def __init__(self, config):
        address = VectorAddress(config)
        bank, word = address["bank"].width, address["word"].width
        limit = signed(word + 2)
        super().__init__({
            "biased": bank, "word": word, "bank": bank, "low_word": limit, "high_word": limit,
        })


class TapLimits(data.Struct):
    """The y and x of window origins whose tap lies inside the map: from low to below high."""

    y_low: POSITION
    y_high: POSITION
    x_low: POSITION
    x_high: POSITION


class StepOffsets(wiring.Component):
    """``for group: for tile: for ky: for kx: for c``: the offset of each step, by additions.

    Limits are subtracted from what they limit: ``origin + offset < limit`` is ``origin < limit -
    offset``. So a row compares its origin, and needs no sum.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    step : In, `weft.hw.network_core.steps.step_sequencer.JobStep`
    offset : Out, `AddressOffset`
        Of this step.
    group : Out, `AddressOffset`
        Of the first step of this group of tiles.
    limits : Out, `TapLimits`
        Of this step.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            **job_ports(config),
            "step": In(JobStep(config)),
            "offset": Out(AddressOffset(config)),
            "group": Out(AddressOffset(config)),
            "limits": Out(TapLimits),
        })

    def elaborate(self, platform):
        m = Module()
        job, step = self.job.fields, self.step
        restart, tile_end = Signal(), step.capture
        m.d.comb += restart.eq(self.job.start | step.panel_last)
        m.submodules.c_loop = c_loop = LoopCounter(len(job.tap_vectors))
        m.submodules.x_loop = x_loop = LoopCounter(len(job.kernel_width))
        m.submodules.group_loop = group_loop = LoopCounter(len(job.group_tiles))
        m.d.comb += [
            c_loop.count.eq(job.tap_vectors), c_loop.restart.eq(self.job.start | tile_end),
            c_loop.advance.eq(step.en),
            x_loop.count.eq(job.kernel_width), x_loop.restart.eq(self.job.start | tile_end),
            x_loop.advance.eq(step.en & c_loop.last),
            group_loop.count.eq(job.group_tiles), group_loop.restart.eq(restart),
            group_loop.advance.eq(tile_end),
        ]
        self._offset(m, restart, c_loop.last, x_loop.last, group_loop.last)
        self._limits(m, tile_end, c_loop.last, x_loop.last)
        return m

    def _offset(self, m, restart, c_last, x_last, group_last):
        """The offset moves from step to step, and from the group's first step to the next tile."""
        address = VectorAddress(self.config)
        job, step = self.job.fields, self.step
        offset, group = (
            Signal.like(port, name=f"s_{name}", reset_less=True)
            for name, port in (("offset", self.offset), ("group", self.group))
        )
        m.d.comb += [self.offset.eq(offset), self.group.eq(group)]
        tap, by_group = Signal(address), Signal(address)
        with m.If(~c_last):
            one = {"word": 1} if self.config.banks == 1 else {"bank": 1}
            m.d.comb += tap.eq(address.const({"bank": 0, "word": 0} | one))
        with m.Else():
            m.d.comb += tap.eq(Mux(x_last, job.tap_y_step.as_value(), job.tap_x_step.as_value()))
        with m.If(group_last):
            m.d.comb += by_group.eq(job.group_step)
        # Both sums at once: only the choice waits for the step.
        moved = self._moved(m, offset, tap, "tap")
        next_group = self._moved(m, group, by_group, "group")
        origin = {
            "biased": bank_bias(self.config.banks), "word": 0, "bank": 0,
            "low_word": self.window.base, "high_word": self.window.limit,
        }
        with m.If(restart):
            m.d.sync += [offset[name].eq(value) for name, value in origin.items()]
            m.d.sync += [group[name].eq(value) for name, value in origin.items()]
        with m.Elif(step.capture):
            m.d.sync += [offset.eq(next_group), group.eq(next_group)]
        with m.Elif(step.en):
            m.d.sync += offset.eq(moved)

    def _moved(self, m, offset, by, of):
        """The offset, moved by an address: each part in one carry chain.

        A bit between bank and word, which lets a carry pass, tells it.
        """
        bias, bits = bank_bias(self.config.banks), len(by.bank)
        moved = Signal.like(offset, name=f"{of}_moved")
        total = Signal(bits + 1 + len(by.word), name=f"{of}_total")
        step = Cat(by.bank, Const(0, 1), by.word)
        m.d.comb += [
            total.eq(Cat(offset.biased, Const(1, 1), offset.word) + step),
            moved.word.eq(total[bits + 1 :]),
            # Without a carry the sum has the bias already.
            moved.biased.eq(Mux(total[bits], total[:bits], total[:bits] + bias)),
        ]
        for name in ("low_word", "high_word"):
            rest = Signal(signed(bits + 1 + len(offset[name])), name=f"{of}_{name}_rest")
            m.d.comb += [
                rest.eq(Cat(offset.bank, Const(0, 1), offset[name]).as_signed() - step.as_signed()),
                moved[name].eq(rest[bits + 1 :]),
                # A borrow takes one word, which has `banks` banks. Both words borrow alike.
                moved.bank.eq(Mux(rest[bits], rest[:bits] - bias, rest[:bits])),
            ]
        return moved

    def _limits(self, m, tile_end, c_last, x_last):
        """The limits of y and x move against the tap."""
        job = self.job.fields
        limits = Signal.like(self.limits, name="s_limits", reset_less=True)
        m.d.comb += self.limits.eq(limits)
        with m.If(self.job.start | tile_end):
            m.d.sync += [
                limits.y_low.eq(0), limits.y_high.eq(job.in_height),
                limits.x_low.eq(0), limits.x_high.eq(job.in_width),
            ]
        with m.Elif(self.step.en & c_last):
            with m.If(x_last):
                m.d.sync += [
                    limits.y_low.eq(limits.y_low - job.dilation_y),
                    limits.y_high.eq(limits.y_high - job.dilation_y),
                    limits.x_low.eq(0), limits.x_high.eq(job.in_width),
                ]
            with m.Else():
                m.d.sync += [
                    limits.x_low.eq(limits.x_low - job.dilation_x),
                    limits.x_high.eq(limits.x_high - job.dilation_x),
                ]


class RowAddress(wiring.Component):
    """``origin + offset``, if the tap lies inside the map and the limits.

    It comes a cycle later, and two if the core `is_spread`.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    en : In, 1 bit
        A step.
    row : In, `PanelRow`
    offset : In, `AddressOffset`
    limits : In, `TapLimits`
    request : Out, `RowRead`
    address_error : Out, 1 bit
        The tap lies inside the map, but not in BASE..LIMIT. So ``request`` is not valid.
    """

    def __init__(self, config):
        self.chooses_later = is_spread(config)
        self.bias = bank_bias(config.banks)
        super().__init__({
            "en": In(1),
            "row": In(PanelRow(config)),
            "offset": In(AddressOffset(config)),
            "limits": In(TapLimits),
            "request": Out(RowRead(config)),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        origin, offset, limits = self.row.origin, self.offset, self.limits
        bits = len(origin.address.bank)
        # Bank and word in one carry chain: a bit between them lets a carry pass, and tells it.
        total = Signal(bits + 1 + len(origin.address.word))
        place = Cat(origin.address.bank, origin.address.word).as_signed()
        inside_y, inside_x, above, below = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            total.eq(
                Cat(offset.biased, Const(1, 1), offset.word)
                + Cat(origin.address.bank, Const(0, 1), origin.address.word)
            ),
            inside_y.eq((origin.y >= limits.y_low) & (origin.y < limits.y_high)),
            inside_x.eq((origin.x >= limits.x_low) & (origin.x < limits.x_high)),
            above.eq(place >= Cat(offset.bank, offset.low_word).as_signed()),
            below.eq(place < Cat(offset.bank, offset.high_word).as_signed()),
        ]
        found = total, inside_y, inside_x, above, below
        used = self.en & self.row.used
        if self.chooses_later:
            r_used = Signal()
            m.d.sync += r_used.eq(used)
            used, found = r_used, [pipeline(m, one, 1, one.name) for one in found]
        self._choose(m, used, *found)
        return m

    def _choose(self, m, used, total, inside_y, inside_x, above, below):
        """The request of a row that the panel has, or its error."""
        bits = len(self.row.origin.address.bank)
        inside, allowed, valid = Signal(), Signal(), Signal()
        request = Signal.like(self.request, reset_less=True)
        m.d.comb += [
            inside.eq(inside_y & inside_x), allowed.eq(above & below),
            self.request.eq(request), self.request.valid.eq(valid),
        ]
        m.d.sync += [
            valid.eq(used & inside & allowed),
            request.address.word.eq(total[bits + 1 :]),
            request.address.bank.eq(Mux(total[bits], total[:bits] - self.bias, total[:bits])),
            request.outside.eq(~inside),
            self.address_error.eq(used & inside & ~allowed),
        ]


class MapReader(wiring.Component):
    """The vectors that `weft.network_core.descriptors.ListJob` describes, without a multiplication.

    Each row of the array has the window origin of its pixel. A step adds the same offset to all
    origins. The reader collects the next panel while the array works on a panel. A panel of n rows
    can follow the panel before after n cycles. The first step of a job with such a panel comes
    START_LATENCY + n cycles after ``start``.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    job : In, `weft.hw.network_core.interface.JobPort`
        It starts when all steps of the job before have come, and is stable until the last values of
        ``a``.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
    step : In, `weft.hw.network_core.steps.step_sequencer.JobStep`
    panel : Out, stream of `ReadyPanel`
        It must be taken in the cycle before the first step of the panel.
    rows : Out, `RowRead` for each row of the array
    row_data : In, a vector for each row
        `weft.network_core.latencies.ROW_READ` cycles after ``rows``.
    a : Out, ``rows`` x ``depth`` int8
        `weft.network_core.latencies.map_read` cycles after the step; ``outside`` of the job if the
        tap lies outside the map, and undefined in rows beyond the panel.
    address_error : Out, 1 bit
        Pulse: a step would read beyond BASE..LIMIT. It has not.
    follows, frontier : In, 1 bit and `VectorAddress`; only with the option ``early``
        As of `PanelGate`.
    """

    START_LATENCY = PANEL_START

    def __init__(self, config):
        self.config = config
        array = config.array
        super().__init__({
            **job_ports(config),
            "step": In(JobStep(config)),
            "panel": Out(stream.Signature(ReadyPanel(config))),
            "rows": Out(data.ArrayLayout(RowRead(config), array.rows)),
            "row_data": In(data.ArrayLayout(8 * array.depth, array.rows)),
            "a": Out(data.ArrayLayout(data.ArrayLayout(signed(8), array.depth), array.rows)),
            "address_error": Out(1),
            **({"follows": In(1), "frontier": In(VectorAddress(config))} if config.early else {}),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.pixels = pixels = PixelGenerator(config)
        m.submodules.panels = panels = PanelBuffer(config)
        m.submodules.offsets = offsets = StepOffsets(config)
        # The panel that is taken does not reach the generator in the same cycle.
        m.submodules.skid = skid = SkidBuffer(OutputPixel(config))
        wiring.connect(m, pixels.pixels, skid.i)
        wiring.connect(m, skid.o, panels.pixels)
        if config.early:
            m.submodules.gate = gate = PanelGate(config)
            wiring.connect(m, panels.panel, gate.i)
            wiring.connect(m, gate.o, wiring.flipped(self.panel))
            m.d.comb += [
                gate.origin.eq(panels.last_origin), gate.span.eq(self.job.fields.span),
                gate.follows.eq(self.follows), gate.frontier.eq(self.frontier),
            ]
        else:
            wiring.connect(m, panels.panel, wiring.flipped(self.panel))
        wiring.connect(m, wiring.flipped(self.window), offsets.window)
        wiring.connect(m, wiring.flipped(self.job), pixels.job)
        addresses = [RowAddress(config) for _ in self.rows]
        step, rows, offset, limits = self.step, panels.rows, offsets.offset, offsets.limits
        en = step.en
        if is_spread(config):
            # Registers on the long ways from the list reader and the sequencer. The offset starts a
            # cycle later, too: its first step comes after START_LATENCY. So does the first pixel.
            fields = pipeline(m, self.job.fields, 1, "fields")
            en, step = Signal(), Signal.like(self.step)
            m.d.sync += [
                offsets.job.start.eq(self.job.start), step.eq(self.step), en.eq(step.en),
            ]
            m.d.comb += [offsets.job.fields.eq(fields), panels.job.eq(fields)]
            rows, offset, limits = (
                pipeline(m, value, 1, name)
                for value, name in ((rows, "rows"), (offset, "offset"), (limits, "limits"))
            )
        else:
            wiring.connect(m, wiring.flipped(self.job), offsets.job)
            m.d.comb += panels.job.eq(self.job.fields)
        m.d.comb += offsets.step.eq(step)
        for n, address in enumerate(addresses):
            m.submodules[f"row_{n}"] = address
            m.d.comb += [
                address.en.eq(en), address.row.eq(rows[n]),
                address.offset.eq(offset), address.limits.eq(limits),
                self.rows[n].eq(address.request),
            ]
            m.d.comb += self.a[n].eq(pipeline(m, self.row_data[n], 1, f"a_{n}"))
        m.d.comb += self.address_error.eq(Cat(row.address_error for row in addresses).any())
        return m
