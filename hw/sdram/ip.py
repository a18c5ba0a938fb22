"""The SDRAM controller as an IP core: flat ports with the names of AXI4."""

from amaranth.hdl import ClockDomain, Module, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from weft.hw.dma.axi import FIXED, Axi4
from weft.hw.sdram.controller import SdramController

__all__ = ["SdramIp"]


class SdramIp(wiring.Component):
    """An `SdramController` behind the pins of a slave; ``docs/sdram.md`` describes its ports.

    Parameters
    ----------
    chip, timing, data_bytes
        As of `SdramController`.

    Attributes
    ----------
    aclk, aresetn : In, 1 bit each
        Clock, and reset, which is synchronous and low.
    s_axi_ pins
        The fields of `Axi4`, and size and burst. An address has the bits of the chip.
    sdram_ pins
        The fields of `weft.hw.sdram.controller.SdramPins`.

    Raises
    ------
    ValueError
        As `SdramController`.
    """

    def __init__(self, chip, timing, *, data_bytes):
        self.controller = SdramController(chip, timing, data_bytes=data_bytes)
        self.size = exact_log2(data_bytes)
        self.channels = Axi4(data_bytes=data_bytes).members
        pins = {"aclk": In(1), "aresetn": In(1)}
        for channel, member in self.channels.items():
            # The flow of a slave is that of the master, turned around.
            given, taken = (In, Out) if member.flow == Out else (Out, In)
            for field, shape in member.signature.members["payload"].shape.members.items():
                width = exact_log2(chip.size) if field == "addr" else Shape.cast(shape).width
                pins[f"s_axi_{channel}{field}"] = given(width)
            if channel in ("ar", "aw"):
                pins |= {f"s_axi_{channel}size": In(3), f"s_axi_{channel}burst": In(2)}
            pins |= {f"s_axi_{channel}valid": given(1), f"s_axi_{channel}ready": taken(1)}
        outside = self.controller.pins.signature.members
        super().__init__(pins | {f"sdram_{name}": member for name, member in outside.items()})

    def elaborate(self, platform):
        m = Module()
        m.submodules.controller = controller = self.controller
        m.domains.sync = sync = ClockDomain("sync")
        sync.clk = self.aclk
        m.d.comb += sync.rst.eq(~self.aresetn)
        for name, member in controller.pins.signature.members.items():
            pin, port = getattr(self, f"sdram_{name}"), getattr(controller.pins, name)
            m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
        for channel, member in self.channels.items():
            port, prefix = getattr(controller.axi, channel), f"s_axi_{channel}"
            given = member.flow == Out
            pairs = {"valid": port.valid, **{
                field: port.payload[field] for field in port.payload.shape().members
            }}
            for field, value in pairs.items():
                pin = getattr(self, f"{prefix}{field}")
                m.d.comb += Value.cast(value).eq(pin) if given else pin.eq(Value.cast(value))
            ready = getattr(self, f"{prefix}ready")
            m.d.comb += ready.eq(port.ready) if given else port.ready.eq(ready)
            if channel in ("ar", "aw"):
                size, burst = (getattr(self, f"{prefix}{field}") for field in ("size", "burst"))
                m.d.comb += getattr(controller, f"{channel}_foreign").eq(
                    (size != self.size) | (burst != FIXED["burst"])
                )
        return m
