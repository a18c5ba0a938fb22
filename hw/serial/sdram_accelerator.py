"""A core behind a serial port, with the controller of its SDRAM."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.sdram.controller import SdramController, SdramPins
from weft.hw.sdram.phase import connect_controller
from weft.hw.serial.accelerator import SerialAccelerator

__all__ = ["SdramAccelerator"]


class SdramAccelerator(wiring.Component):
    """A `SerialAccelerator` whose program memory is an SDRAM.

    Parameters
    ----------
    config : NetworkCoreConfig or LanguageCoreConfig
        With a program memory, as large as the chip or smaller.
    divisor : int
        As of `SerialAccelerator`.
    chip : `weft.sdram.SdramChip`
    timing : `weft.sdram.SdramTiming`
        Of this chip, at the clock of the core.
    phase : `weft.sdram.SdramPhase`
        Of the clock of the chip, at first.

    Attributes
    ----------
    rx : In, 1 bit; tx : Out, 1 bit
        As of `SerialAccelerator`.
    sdram_ pins
        The fields of `SdramPins`.
    phase : Out
        Of `weft.hw.sdram.phase.PhaseRegister`.
    busy, rx_error : Signal
        As of `SerialAccelerator`.
    """

    def __init__(self, config, *, divisor, chip, timing, phase):
        self.accelerator = SerialAccelerator(config, divisor=divisor)
        self.controller = SdramController(chip, timing, data_bytes=config.beat_bytes)
        self.config, self.first = config, phase
        self.busy, self.rx_error = Signal(), Signal()
        super().__init__({
            "rx": In(1, init=1), "tx": Out(1, init=1), "phase": Out(range(phase.steps)),
            **{f"sdram_{name}": member for name, member in SdramPins(chip).members.items()},
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.accelerator = accelerator = self.accelerator
        m.submodules.controller = controller = self.controller
        register = connect_controller(
            m, self.config, accelerator.memory, controller, self.first
        )
        for name, member in controller.pins.signature.members.items():
            pin, port = getattr(self, f"sdram_{name}"), getattr(controller.pins, name)
            m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
        m.d.comb += [
            self.phase.eq(register.phase),
            accelerator.rx.eq(self.rx), self.tx.eq(accelerator.tx),
            self.busy.eq(accelerator.busy), self.rx_error.eq(accelerator.rx_error),
        ]
        return m
