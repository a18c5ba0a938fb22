"""The step offsets: what a step adds to the window origins of all rows, and their limits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import job_ports
from weft.hw.network_core.layouts import VectorAddress, bank_bias
from weft.hw.network_core.steps.pixel_generator import POSITION, LoopCounter
from weft.hw.network_core.steps.step_sequencer import JobStep

__all__ = ["AddressOffset", "StepOffsets", "TapLimits"]


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
