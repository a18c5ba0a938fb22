"""The address of a row of the array in a step, and whether its tap lies inside the map."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.layouts import bank_bias
from weft.hw.network_core.memory.banked_memory import RowRead
from weft.hw.network_core.steps.panel_buffer import PanelRow
from weft.hw.network_core.steps.step_offsets import AddressOffset, TapLimits

__all__ = ["RowAddress"]


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
