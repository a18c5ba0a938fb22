"""The designs that are priced: a Config, the choices of the chip, a device and its clock."""

import dataclasses
from dataclasses import dataclass

from tools.chip_price.fetch import WindowBuffer
from weft.boards.devices import DEVICES, Device
from weft.config import Config

__all__ = ["DESIGNS", "ChipDesign", "choices"]


@dataclass(frozen=True, kw_only=True)
class ChipDesign:
    """One design.

    Attributes
    ----------
    name : str
    device : Device
    config : Config
        Array and lanes; ``b_words`` may be exceeded, see there.
    clock : float
        Assumed clock in MHz.
    port : int
        Bytes of a memory word.
    ports : int
        2: one read and one write a cycle. 1: one of them.
    sub : int
        Banks for each row of A; 0: a strip (`tools.chip_price.fetch`).
    b_words : int
        Words of B.
    entries : int
        Columns whose parameters stay on the chip.
    collects : bool
        Stores are collected to whole memory words. Otherwise each row of a tile is one.
    add_passes : int
        Times that a chunk passes through the scalers for its result and ADD: 2 with a table of
        each operand, 4 without tables.
    """

    name: str
    device: Device
    config: Config
    clock: float
    port: int
    ports: int = 2
    sub: int = 0
    b_words: int = 512
    entries: int = 4096
    collects: bool = False
    add_passes: int = 4

    @property
    def buffer(self) -> WindowBuffer:
        """The A buffer."""
        return WindowBuffer(self.config.rows, self.config.depth, self.port, self.sub)


def _config(target, **fields):
    # Large operand buffers: the cycle model computes the core alone, with all operands ready.
    return Config(
        target=target, requantize="tflite", activation="none", a_words=65536, b_words=65536,
        jobs=4, **fields,
    )


_NETWORKS = ChipDesign(
    name="85F", device=DEVICES["LFE5U-85F"], clock=105, port=32,
    config=_config("ecp5", rows=8, cols=8, depth=8, hop=2, dsp_cols=3, lanes=8),
)
_SMALL = ChipDesign(
    name="25F", device=DEVICES["LFE5U-25F"], clock=125, port=16, entries=1024,
    config=_config("ecp5", rows=8, cols=4, depth=4, hop=2, dsp_cols=0, lanes=4),
)
_BATCH1 = ChipDesign(
    name="85F batch1", device=DEVICES["LFE5U-85F"], clock=105, port=32,
    config=_config("ecp5", rows=1, cols=32, depth=16, hop=4, dsp_cols=13, lanes=8),
)
_ICE40 = ChipDesign(
    name="UP5K", device=DEVICES["iCE40UP5K"], clock=36, port=8, ports=1, entries=256,
    config=_config(
        "ice40up", multiplier="plain", rows=2, cols=2, depth=4, lanes=1, scale_cycles=2,
    ),
)

# The design of docs/chip.md for each device.
DESIGNS = {
    "networks": _NETWORKS, "networks-25f": _SMALL, "batch1": _BATCH1, "ice40up5k": _ICE40,
}


def choices() -> list[ChipDesign]:
    """The choices around `DESIGNS` that the page compares; each changes a few fields."""
    def change(base, name, **fields):
        return dataclasses.replace(base, name=f"{base.name}, {name}", **fields)

    def lanes(base, number, **fields):
        config = dataclasses.replace(base.config, lanes=number)
        return change(base, f"{number} lanes", config=config, **fields)

    return [
        change(_NETWORKS, "copies, 1 bank", sub=1),
        change(_NETWORKS, "copies, 2 banks", sub=2),
        change(_NETWORKS, "copies, 4 banks", sub=4),
        _NETWORKS,
        change(_NETWORKS, "16 bytes", port=16),
        change(_NETWORKS, "one port", ports=1),
        change(_NETWORKS, "one port, stores collected", ports=1, collects=True),
        change(_NETWORKS, "tables for ADD", add_passes=2),
        change(_NETWORKS, "B of 1,024 words", b_words=1024),
        lanes(_NETWORKS, 4),
        lanes(_NETWORKS, 2),
        _SMALL,
        change(_SMALL, "copies, 2 banks", sub=2),
        change(_SMALL, "4 x 4 x 8", config=dataclasses.replace(_SMALL.config, rows=4, depth=8)),
        lanes(_SMALL, 2),
        _BATCH1,
        _ICE40,
    ]
