"""The designs that ``weft bench`` measures: Config, device, and the figures each must reach."""

from dataclasses import dataclass, replace

from amaranth.lib import wiring

from weft.boards.devices import DEVICES, Device
from weft.config import Config
from weft.hw.arith.cells import MACS
from weft.hw.array.systolic import SystolicArray
from weft.hw.serial.accelerator import SerialAccelerator

__all__ = ["PRESETS", "Preset", "component"]

DIVISOR = 50  # clock cycles per bit of the serial port: 3 to 4 Mbaud at the clocks reached


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One row of the performance table.

    Attributes
    ----------
    name : str
    device : Device
    config : Config
    goal : float, optional
        Minimum throughput in GMAC/s.
    clock : float, optional
        fmax must be higher than this, in MHz.
    luts : int, optional
        Maximum number of LUTs.
    array_only : bool
        Only the array is built, with unconnected ports, to compare it with other bare arrays.
    """

    name: str
    device: Device
    config: Config
    goal: float | None = None
    clock: float | None = None
    luts: int | None = None
    array_only: bool = False


def _static(die):
    """The device, placed with the static placer: best for arrays that fill the whole device."""
    device = DEVICES[die]
    return replace(device, options=(*device.options, "--placer", "static"))


def _on_85f(name, clock, **fields):
    """A point of the cost curve, as is ``ecp5-85f``: a whole accelerator on an LFE5U-85F."""
    return Preset(
        name=name, device=_static("LFE5U-85F"), clock=clock,
        config=Config(
            target="ecp5", jobs=4, activation="none", a_words=512, b_words=512, **fields
        ),
    )


def _pe(name, luts, **fields):
    """A single PE with registers at its ports."""
    return Preset(
        name=name, device=DEVICES["LFE5U-25F"], luts=luts, array_only=True,
        config=Config(target="ecp5", rows=1, cols=1, **fields),
    )


PRESETS = {
    entry.name: entry for entry in (
        Preset(
            name="ecp5-85f", device=_static("LFE5U-85F"), goal=100,
            config=Config(
                target="ecp5", rows=8, cols=12, depth=8, hop=3, dsp_cols=4, ram_cols=4, lanes=4,
                jobs=4, activation="none", a_words=512, b_words=512,
            ),
        ),
        Preset(
            name="ecp5-25f", device=_static("LFE5U-25F"), goal=34,
            config=Config(
                target="ecp5", rows=4, cols=7, depth=8, hop=2, dsp_cols=1, ram_cols=1, lanes=1,
                jobs=4, activation="none", a_words=512, b_words=512,
            ),
        ),
        Preset(
            name="ecp5-85f-bf16", device=DEVICES["LFE5U-85F"], goal=6,
            config=Config(
                target="ecp5", dtype="bf16", rows=8, cols=8, hop=2, lanes=1, jobs=4,
                activation="none", c_words=0, a_words=512, b_words=4096,
            ),
        ),
        Preset(
            name="ice40up5k", device=DEVICES["iCE40UP5K"], goal=1.2,
            config=Config(
                target="ice40up", multiplier="plain", rows=4, cols=1, depth=6, lanes=1, jobs=2,
                activation="none", scale_cycles=8, a_words=256, b_words=256, bytes_in=8,
                bytes_out=1,
            ),
        ),
        Preset(
            name="ice40hx8k", device=DEVICES["iCE40HX8K"], goal=3,
            config=Config(
                target="ice40hx", multiplier="plain", rows=4, cols=2, depth=4, lanes=1, jobs=2,
                activation="none", scale_cycles=8, a_words=256, b_words=256, bytes_in=8,
                bytes_out=1,
            ),
        ),
        _on_85f("ecp5-64", 165, rows=4, cols=8, depth=2, hop=2, lanes=1),
        _on_85f("ecp5-16", 150, rows=2, cols=4, depth=2, lanes=1),
        _on_85f("ecp5-256", 145, rows=8, cols=8, depth=4, hop=3, lanes=1),
        _on_85f("ecp5-512", 120, rows=8, cols=8, depth=8, hop=3, dsp_cols=4, ram_cols=4, lanes=2),
        Preset(
            # The best published open array of this size takes 3,040 LUTs and 256 CCU2C, which are
            # two LUTs each.
            name="array-4x4x4", device=DEVICES["LFE5U-85F"], array_only=True, luts=3552,
            config=Config(target="ecp5", rows=4, cols=4, depth=4),
        ),
        _pe("pe-dsp", 90, depth=2),
        _pe("pe-dsp-folded", 60, depth=2, drain="folded"),
        _pe("pe-ram", 420, depth=8, dsp_cols=0, ram_cols=1),
        _pe("pe-logic", 640, depth=8, dsp_cols=0),
        _pe("pe-logic-folded", 160, depth=2, dsp_cols=0, drain="folded"),
    )
}


def component(preset: Preset) -> wiring.Component:
    """The component to place: a whole accelerator, or only its array."""
    c = preset.config
    if preset.array_only:
        mac_cell = MACS[c.mac_cell]
        return SystolicArray(
            rows=c.rows, cols=c.cols, hop=c.hop,
            mac=lambda col: mac_cell(
                depth=c.depth, resource=c.resource(col), folded=c.drain == "folded"
            ),
        )
    return SerialAccelerator(c, divisor=DIVISOR)
