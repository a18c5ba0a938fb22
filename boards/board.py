"""A board: its FPGA, its pins, and the accelerator that is built for it."""

import dataclasses
import re
from collections.abc import Mapping

from weft.boards.devices import DEVICES, Device
from weft.config import Config

__all__ = ["LEDS", "Board", "BoardError"]

LEDS = "alive", "busy", "error"
SPEEDS = "6", "7", "8"  # grades of an ECP5
OFF = 0.01  # of a baud rate, by which a divided clock may miss it


class BoardError(ValueError):
    """A board is unknown, or is not as a board must be."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Board:
    """What `weft.boards.top.Top` is built for.

    Attributes
    ----------
    name : str
    platform : type
        A platform of Amaranth's, with a default clock and a resource ``uart``.
    config : Config
        What is built where nothing else is asked for.
    clock : float
        MHz of the accelerator, made by the PLL.
    baud : int
        Of the serial port.
    bridge : str
        What makes the serial port USB.
    leds : dict of tuple
        Resource, number and, where it has several, pin, by those of `LEDS` that there are.
    programmers : tuple of tuple of str
        Commands that load a bitstream, its path left out, the best one first.
    at_pad : bool
        Of an iCE40: the clock's pin is the PLL's own.

    Raises
    ------
    BoardError
    """

    name: str
    platform: type
    config: Config
    clock: float
    baud: int
    bridge: str
    leds: Mapping[str, tuple] = dataclasses.field(default_factory=dict)
    programmers: tuple[tuple[str, ...], ...] = ()
    at_pad: bool = False

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", self.name):
            raise BoardError(
                f"name of a board must be lower-case letters, digits and hyphens, not {self.name!r}"
            )
        for led in self.leds:
            if led not in LEDS:
                raise BoardError(f"LED must be one of {', '.join(LEDS)}, not {led!r}")
        if self.config.target != self.device.target:
            raise BoardError(
                f"target of {self.name} must be {self.device.target}, not {self.config.target}"
            )
        if not self.clock > 0 or not self.baud > 0:
            raise BoardError(
                f"clock and baud of {self.name} must be over 0, not {self.clock:g} MHz and"
                f" {self.baud}"
            )
        cycles = self.clock * 1e6 / self.baud
        if not 4 <= cycles < (1 << 16) - 1 or abs(cycles / self.divisor - 1) > OFF:
            raise BoardError(
                f"baud must divide {self.clock:g} MHz by 4 to 65535, to within {OFF:.0%},"
                f" not {self.baud}"
            )

    @property
    def divisor(self) -> int:
        """Clock cycles a bit of the serial port."""
        return round(self.clock * 1e6 / self.baud)

    @property
    def device(self) -> Device:
        """The platform's FPGA, in its package and speed grade; BoardError for one of no target."""
        name, package, speed = (
            getattr(self.platform, part, None) for part in ("device", "package", "speed")
        )
        if not isinstance(name, str) or not isinstance(package, str):
            raise BoardError(f"platform of {self.name} must say its device and package")
        if name in DEVICES and name.startswith("iCE40"):
            chip, *_ = DEVICES[name].options
            return _in_package(name, name, (chip, "--package", package.lower()))
        ecp5 = re.fullmatch(r"LFE5(U|UM|UM5G)-(12|25|45|85)F", name)
        if not ecp5 or str(speed) not in SPEEDS:
            raise BoardError(
                f"FPGA must be an ECP5 of speed 6, 7 or 8, an iCE40UP5K or iCE40HX8K, not {name}"
            )
        kind, size = ecp5.groups()
        chip = f"--{size}k" if kind == "U" else f"--{kind.lower()}-{size}k"
        package = package.replace("BG", "CABGA").replace("MG", "CSFBGA")
        die = f"LFE5U-{'25' if size == '12' else size}F"  # a 12F is a 25F, not tested as one
        options = chip, "--speed", str(speed), "--package", package
        return _in_package(die, name, options)


def _in_package(die, name, options):
    return dataclasses.replace(DEVICES[die], name=name, options=options)
