"""A language core with the controller of its SDRAM."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from weft.hw.language_core.core import LanguageCore
from weft.hw.sdram.controller import SdramController, SdramPins

__all__ = ["SdramLanguageCore"]


class SdramLanguageCore(wiring.Component):
    """A `LanguageCore` whose program memory is an SDRAM; a simulation has it without a board.

    Parameters
    ----------
    config : LanguageCoreConfig
        With a program memory.
    chip : `weft.sdram.SdramChip`
    timing : `weft.sdram.SdramTiming`
        Of this chip, at the clock of the core.

    Attributes
    ----------
    sdram_ pins
        The fields of `SdramPins`.
    others
        The ports of the core, but for ``memory``.
    """

    def __init__(self, config, *, chip, timing):
        self.core = LanguageCore(config)
        self.controller = SdramController(chip, timing, data_bytes=config.beat_bytes)
        self._ports = {
            name: member for name, member in self.core.signature.members.items()
            if name != "memory"
        }
        super().__init__({
            **self._ports,
            **{f"sdram_{name}": member for name, member in SdramPins(chip).members.items()},
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.core, m.submodules.controller = core, controller = self.core, self.controller
        connect(m, core.memory, controller.axi)
        inner = {name: (getattr(core, name), member) for name, member in self._ports.items()}
        for name, member in controller.pins.signature.members.items():
            inner[f"sdram_{name}"] = getattr(controller.pins, name), member
        for name, (port, member) in inner.items():
            pin = getattr(self, name)
            m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
        return m
