"""The map reader: the vectors of all rows of the array, for each step of a job."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import job_ports
from weft.hw.network_core.layouts import bank_bias
from weft.hw.network_core.memory.banked_memory import RowRead
from weft.hw.network_core.steps.panel_buffer import PanelBuffer, PanelRow, ReadyPanel
from weft.hw.network_core.steps.pixel_generator import OutputPixel, PixelGenerator
from weft.hw.network_core.steps.step_offsets import AddressOffset, StepOffsets, TapLimits
from weft.hw.network_core.steps.step_sequencer import JobStep
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core.latencies import MAP_READ, PANEL_START

__all__ = ["MapReader", "RowAddress"]


class RowAddress(wiring.Component):
    """``origin + offset``, LATENCY cycles later, if the tap lies inside the map and the limits.

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

    LATENCY = 1

    def __init__(self, config):
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
        inside, allowed, used, valid = Signal(), Signal(), Signal(), Signal()
        request = Signal.like(self.request, reset_less=True)
        m.d.comb += [
            total.eq(
                Cat(offset.biased, Const(1, 1), offset.word)
                + Cat(origin.address.bank, Const(0, 1), origin.address.word)
            ),
            inside.eq(
                (origin.y >= limits.y_low) & (origin.y < limits.y_high)
                & (origin.x >= limits.x_low) & (origin.x < limits.x_high)
            ),
            allowed.eq(
                (place >= Cat(offset.bank, offset.low_word).as_signed())
                & (place < Cat(offset.bank, offset.high_word).as_signed())
            ),
            used.eq(self.en & self.row.used & inside),
            self.request.eq(request), self.request.valid.eq(valid),
        ]
        m.d.sync += [
            valid.eq(used & allowed),
            request.address.word.eq(total[bits + 1 :]),
            request.address.bank.eq(Mux(total[bits], total[:bits] - self.bias, total[:bits])),
            request.outside.eq(~inside),
            self.address_error.eq(used & ~allowed),
        ]
        return m


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
        LATENCY cycles after the step; ``outside`` of the job if the tap lies outside the map, and
        undefined in rows beyond the panel.
    address_error : Out, 1 bit
        Pulse: a step would read beyond BASE..LIMIT. It has not.
    """

    LATENCY = MAP_READ  # RowAddress, the memory, and a register
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
        wiring.connect(m, panels.panel, wiring.flipped(self.panel))
        wiring.connect(m, wiring.flipped(self.window), offsets.window)
        wiring.connect(m, wiring.flipped(self.job), pixels.job, offsets.job)
        m.d.comb += [
            panels.job.eq(self.job.fields), offsets.step.eq(self.step),
        ]
        addresses = [RowAddress(config) for _ in self.rows]
        for n, address in enumerate(addresses):
            m.submodules[f"row_{n}"] = address
            m.d.comb += [
                address.en.eq(self.step.en), address.row.eq(panels.rows[n]),
                address.offset.eq(offsets.offset), address.limits.eq(offsets.limits),
                self.rows[n].eq(address.request),
            ]
            m.d.comb += self.a[n].eq(pipeline(m, self.row_data[n], 1, f"a_{n}"))
        m.d.comb += self.address_error.eq(Cat(row.address_error for row in addresses).any())
        return m
