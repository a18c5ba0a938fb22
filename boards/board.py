"""`Board`: an FPGA board, its pins, and the accelerator that is built for it by default."""

import dataclasses
import re
from collections.abc import Mapping
from importlib.util import find_spec

from amaranth.build import ResourceError, Subsignal
from amaranth.lib.io import DifferentialPort

from weft.boards import pll
from weft.boards.devices import DEVICES, Device
from weft.boards.memory import Sdram, has_sdram, sdram_problem
from weft.config import Config
from weft.hints import to_install
from weft.language_core.config import LanguageCoreConfig
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming

__all__ = [
    "FULL_SPEED", "LEDS", "ULPI", "Board", "BoardError", "NetworkDesign", "Ports", "check_bridge",
    "check_pins", "resource_of", "usb_pll",
]


LEDS = "alive", "busy", "error"
SPEEDS = "6", "7", "8"  # speed grades of an ECP5
PLACERS = "heap", "static"  # of nextpnr, its default first
# The packages of an ECP5, and their names in nextpnr.
PACKAGES = {
    "BG256": "CABGA256", "MG285": "CSFBGA285", "BG381": "CABGA381", "BG554": "CABGA554",
    "BG756": "CABGA756",
}
# The pins of a USB connector of full speed, and of a PHY of high speed.
FULL_SPEED = "d_p", "d_n", "pullup"
ULPI = "clk", "data", "dir", "nxt", "stp", "rst"
BAUD_TOLERANCE = 0.01  # relative error of the divided clock
# The largest rates of USB bridges, by their data sheets (FTDI DS_FT2232H, DS_FT231X).
BRIDGE_BAUD = {"FT2232H": 12_000_000, "FT231X": 3_000_000}


class BoardError(ValueError):
    """The board is unknown, or one of its attributes is not valid; the message says which."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkDesign:
    """A network core or a language core on a board.

    Attributes
    ----------
    config : NetworkCoreConfig or LanguageCoreConfig
    clock : float
        Clock in MHz.
    baud : int
        Baud rate of the serial port.
    placer : str
        Placer of nextpnr, one of `PLACERS`; ``static`` makes shorter wires of large designs.
    seed : int
        The first seed of nextpnr: one that met the clock, where place and route takes hours.
    placed : bool
        Whether place and route has reached the clock; otherwise it is a goal.
    """

    config: NetworkCoreConfig | LanguageCoreConfig
    clock: float
    baud: int
    placer: str = "heap"
    seed: int = 1
    placed: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Board:
    """An FPGA board that `weft.boards.bitstream.BoardTop` can be built for.

    Attributes
    ----------
    name : str
        Lower-case letters, digits and hyphens.
    platform : type
        An Amaranth platform with a default clock, a resource ``uart`` with ``rx`` and ``tx`` if
        the board has a serial port, and ``connectors``, which may be an empty list.
    config : Config, NetworkCoreConfig or LanguageCoreConfig
        The accelerator to build by default.
    clock : float
        Clock of the accelerator in MHz, made by the PLL.
    baud : int, optional
        Baud rate of the serial port; None for a board that has none.
    bridge : str
        The chip between the serial port and USB; "" if it is not known.
    leds : dict of tuple
        For each LED of `LEDS` that the board has: resource, number and, if the resource has
        several pins, the pin.
    programmers : tuple of tuple of str
        Commands that load a bitstream, without its path, the preferred one first.
    price : str
        Price class in shops when the board was added: ``$`` is less than 100 US dollars, ``$$``
        more; "" if it is not known.
    networks : dict of NetworkDesign
        Cores for networks that can be built instead, by the purpose: ``weft build --for``.
    languages : dict of NetworkDesign
        The same for language cores.
    usb : tuple
        The resource of a USB connector at pins of the FPGA, and its number: with ``d_p``, ``d_n``
        and ``pullup`` for full speed, or with the pins of ULPI for high speed; empty without one.
    link : str
        What carries the frames: ``serial`` for the serial port, ``usb`` for USB, or ``usb:NAME``
        for USB with a serial number, which is the name of the board otherwise.
    supply : type, optional
        A Component that switches on the supply of the pins of USB, where the FPGA controls it. It
        is made with ``clock``, the clock in MHz of its domain ``sync``. Its output ``ready`` is
        high when the pins work.
    sdram : Sdram, optional
        The memory of cores with a program memory.
    at_pad : bool
        iCE40 only: the clock enters at the PLL's own pin, so the PLL must be an SB_PLL40_PAD.
    placer : str
        Placer of nextpnr: ``heap`` is its default, ``static`` makes shorter wires of large designs.
    seed : int
        The first seed of nextpnr.
    placed : bool
        Whether place and route has reached the clock; otherwise it is a goal.

    Raises
    ------
    BoardError
        If the name, the platform, an LED, a programmer, a network core, the clock, the baud
        rate, the link, the placer or the first seed is not valid, or the Config is for another
        target than the FPGA.
    """

    name: str
    platform: type
    config: Config | NetworkCoreConfig | LanguageCoreConfig
    clock: float
    baud: int | None = None
    bridge: str = ""
    leds: Mapping[str, tuple] = dataclasses.field(default_factory=dict)
    programmers: tuple[tuple[str, ...], ...] = ()
    price: str = ""
    networks: Mapping[str, NetworkDesign] = dataclasses.field(default_factory=dict)
    languages: Mapping[str, NetworkDesign] = dataclasses.field(default_factory=dict)
    usb: tuple = ()
    link: str = "serial"
    supply: type | None = None
    sdram: Sdram | None = None
    at_pad: bool = False
    placer: str = "heap"
    seed: int = 1
    placed: bool = True

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", self.name):
            raise BoardError(
                f"name of a board must be lower-case letters, digits and hyphens, not {self.name!r}"
            )
        for led, pin in self.leds.items():
            if led not in LEDS:
                raise BoardError(f"LED must be one of {', '.join(LEDS)}, not {led!r}")
            if not isinstance(pin, tuple) or len(pin) not in (2, 3):
                raise BoardError(
                    f"LED {led} of {self.name} must be (resource, number) or (resource, number,"
                    f" pin), not {pin!r}"
                )
        for command in self.programmers:
            if not isinstance(command, tuple) or not command:
                raise BoardError(
                    f"programmer of {self.name} must be a tuple of a command and its arguments,"
                    f" not {command!r}"
                )
        for name in ("networks", "languages"):
            given = getattr(self, name)
            named = isinstance(given, Mapping)
            if not named or not all(isinstance(d, NetworkDesign) for d in given.values()):
                raise BoardError(
                    f"{name} of {self.name} must be a dict of NetworkDesign, not {given!r}"
                )
        self._check_link()
        if self.placer not in PLACERS:
            raise BoardError(
                f"placer of {self.name} must be {' or '.join(PLACERS)}, not {self.placer!r}"
            )
        if not isinstance(self.seed, int) or self.seed < 1:
            raise BoardError(f"seed of {self.name} must be an integer over 0, not {self.seed!r}")
        target = self.device.target
        for missing in sorted(getattr(self.platform, "__abstractmethods__", ())):
            raise BoardError(f"platform of {self.name} must have the list {missing}")
        if self.config.target != target:
            raise BoardError(
                f"target of {self.name} must be {target}, not {self.config.target}"
            )
        if not self.clock > 0:
            raise BoardError(f"clock of {self.name} must be over 0, not {self.clock:g} MHz")
        if self.link == "serial":
            self._check_baud()
        if has_sdram(self.config) and (problem := sdram_problem(self)):
            raise BoardError(problem)

    def _check_baud(self):
        """Raise BoardError unless the clock can be divided to the baud rate."""
        if not self.baud > 0:
            raise BoardError(f"baud of {self.name} must be over 0, not {self.baud}")
        cycles = self.clock * 1e6 / self.baud
        in_range = 4 <= cycles < (1 << 16) - 1
        if not in_range or abs(cycles / self.divisor - 1) > BAUD_TOLERANCE:
            raise BoardError(
                f"baud must divide {self.clock:g} MHz by 4 to 65535, to within"
                f" {BAUD_TOLERANCE:.0%}, not {self.baud}"
            )

    def _check_link(self):
        """Raise BoardError unless the board has its link."""
        link = re.fullmatch(r"serial|usb(:[A-Za-z0-9._-]{1,32})?", self.link)
        if not link:
            raise BoardError(
                f"link of {self.name} must be serial, usb or usb:NAME, with a NAME of at most 32"
                f" letters, digits, dots, hyphens and underscores, not {self.link!r}"
            )
        if self.usb and self.device.target != "ecp5":
            raise BoardError(
                f"usb of {self.name} must be empty: USB needs the PLLs of an ECP5, and its FPGA is"
                f" an {self.device.name}"
            )
        if self.baud is None and not self.usb:
            raise BoardError(
                f"baud of {self.name} must be a baud rate: without USB at pins of its FPGA, its"
                " link is a serial port"
            )
        if self.link == "serial" and self.baud is None:
            raise BoardError(
                f"link of {self.name} must be usb or usb:NAME, not serial: it has no serial port"
            )
        if self.link != "serial" and not self.usb:
            raise BoardError(
                f"link of {self.name} must be serial, not {self.link}: no USB connector is at pins"
                " of its FPGA"
            )

    @property
    def usb_serial(self) -> str:
        """The serial number of the USB device, or "" with a serial port."""
        return "" if self.link == "serial" else self.link.partition(":")[2] or self.name

    @property
    def usb_pins(self) -> tuple[str, ...]:
        """The pins of the USB connector, of `FULL_SPEED` or of `ULPI`; none with a serial port."""
        if self.link == "serial":
            return ()
        try:
            ios = self.platform().lookup(*self.usb).ios
        except ResourceError:
            raise BoardError(
                f"usb of {self.name} must be a resource of the platform and its number, not"
                f" {self.usb!r}"
            ) from None
        names = {io.name for io in ios if isinstance(io, Subsignal)}
        for pins in (FULL_SPEED, ULPI):
            if names >= {*pins}:
                return pins
        raise BoardError(
            f"usb of {self.name} must have the pins {', '.join(FULL_SPEED)} or"
            f" {', '.join(ULPI)}, not {', '.join(sorted(names))}"
        )

    @property
    def usb_clocks(self) -> tuple[str, ...]:
        """The clock domains of USB whose clocks a PLL makes; a PHY may have a clock of its own."""
        if self.usb_pins == FULL_SPEED:
            return "usb_io", "usb"
        ios = self.platform().lookup(*self.usb).ios if self.usb_pins else ()
        return ("usb",) if any(
            isinstance(io, Subsignal) and io.name == "clk" and io.ios[0].dir == "o" for io in ios
        ) else ()

    @property
    def others(self) -> dict[str, NetworkDesign]:
        """All cores that can be built instead of the default one, by the purpose."""
        return {**self.networks, **self.languages}

    def built_for(self, purpose: str) -> "Board":
        """This board with one of its other cores, at the clock and baud rate of that.

        A board without a serial port has no baud rate.

        Raises BoardError if it has none for the purpose.
        """
        if not self.others:
            raise BoardError(f"{self.name} has no network core")
        if purpose not in self.others:
            known = " or ".join(self.others)
            raise BoardError(f"--for of {self.name} must be {known}, not {purpose!r}")
        design = self.others[purpose]
        return dataclasses.replace(
            self, config=design.config, clock=design.clock, baud=self.baud and design.baud,
            placer=design.placer, seed=design.seed, placed=design.placed,
        )

    def seeds(self, count: int) -> range:
        """The seeds of nextpnr that a build tries, at most ``count``, until one meets the clock."""
        return range(self.seed, self.seed + count)

    @property
    def memory(self) -> ProgramTiming | None:
        """The timing of the program memory of its core, for predictions; None without one."""
        if not has_sdram(self.config):
            return None
        return ProgramTiming.of_sdram(self.sdram.chip, self.clock, self.config.beat_bytes)

    @property
    def divisor(self) -> int:
        """Clock cycles per bit of the serial port."""
        return round(self.clock * 1e6 / self.baud)

    @property
    def device(self) -> Device:
        """The platform's FPGA in its package and speed grade.

        Raises BoardError if Weft has no target for the FPGA.
        """
        if (part := getattr(self.platform, "part", None)) is not None:
            return self._gowin(part, getattr(self.platform, "family", None))
        name, package, speed = (
            getattr(self.platform, part, None) for part in ("device", "package", "speed")
        )
        if not isinstance(name, str) or not isinstance(package, str):
            raise BoardError(f"platform of {self.name} must have the strings device and package")
        if name in DEVICES and name.startswith("iCE40"):
            option, *_ = DEVICES[name].options
            return self._in_package(name, name, (option, "--package", package.lower()))
        ecp5 = re.fullmatch(r"LFE5(U|UM|UM5G)-(12|25|45|85)F", name)
        if not ecp5:
            raise BoardError(
                f"FPGA of {self.name} must be an ECP5, an iCE40UP5K, an iCE40HX8K, a GW2AR-18C or a"
                f" GW1NR-9C, not {name}"
            )
        for part, value, known in (("speed", str(speed), SPEEDS), ("package", package, PACKAGES)):
            if value not in known:
                raise BoardError(
                    f"{part} of {self.name} must be one of {', '.join(known)}, not {value!r}"
                )
        kind, size = ecp5.groups()
        option = f"--{size}k" if kind == "U" else f"--{kind.lower()}-{size}k"
        die = f"LFE5U-{'25' if size == '12' else size}F"  # a 12F has the die of a 25F
        options = option, "--speed", str(speed), "--package", PACKAGES[package]
        return self._in_package(die, name, options)

    def _gowin(self, part, family):
        """The Gowin FPGA with the name ``part``; nextpnr takes its clock as an option."""
        known = [name for name, device in DEVICES.items() if device.target == "gowin"]
        if family not in known:
            raise BoardError(
                f"FPGA of {self.name} must be a {' or a '.join(known)} of Gowin, not a {family}"
            )
        _, _, *family_options = DEVICES[family].options
        # The registers of an SDRAM are in the pads; nextpnr puts them there if it is asked.
        registers = ("--vopt", "ioreg_in_iob") if has_sdram(self.config) else ()
        return self._in_package(
            family, family,
            ("--device", part, *family_options, *registers, "--freq", f"{self.clock:g}"),
        )

    def _in_package(self, die, name, options):
        placer = () if self.placer == PLACERS[0] else ("--placer", self.placer)
        return dataclasses.replace(DEVICES[die], name=name, options=(*options, *placer))


class Ports:
    """The pins of a platform; requests each resource once, even if several of its pins are used."""

    def __init__(self, platform):
        self._platform = platform
        self._requested = {}

    def request(self, name, number, pin=None):
        """The port of resource ``name#number``, or of one ``pin`` of it.

        Raises BoardError unless the platform has the resource, ``pin`` is one of its pins (None if
        it has no named pins), and no other resource uses the same physical pins.
        """
        try:
            ios = self._platform.lookup(name, number).ios
        except ResourceError:
            raise BoardError(f"{name}#{number} must be a resource of the platform") from None
        pins = [io.name for io in ios if isinstance(io, Subsignal)]
        if pin not in (pins or [None]):
            rule = f"have the pin {pin}" if pin else "be named with a pin"
            raise BoardError(f"{name}#{number} must {rule}; its pins: {', '.join(pins) or 'one'}")
        key = name, number
        if key not in self._requested:
            directions = dict.fromkeys(pins, "-") if pins else "-"
            try:
                self._requested[key] = self._platform.request(*key, dir=directions)
            except ResourceError as error:
                raise BoardError(f"{name}#{number} must have pins of its own: {error}") from error
        return getattr(self._requested[key], pin) if pin else self._requested[key]


def _uses(board):
    """The arguments of `Ports.request` for the clock, the link, each LED and the memory."""
    sdram = board.sdram.pins if has_sdram(board.config) and board.sdram.resource else ()
    link = {f"USB pin {pin}": (*board.usb, pin) for pin in board.usb_pins}
    return {
        "clock": (board.platform.default_clk, 0),
        **(link or {"serial port": ("uart", 0, "rx"), "transmitter": ("uart", 0, "tx")}),
        **{f"LED {led}": pin for led, pin in board.leds.items()},
        **{f"SDRAM pin {pin}": (*board.sdram.resource, pin) for pin in sdram},
    }


def resource_of(board: Board, pin: str) -> str:
    """The use of the package's ``pin`` on ``board``: ``pin rx of uart#0``."""
    ports = Ports(board.platform())
    for name, number, *part in _uses(board).values():
        port = ports.request(name, number, *part)
        ios = (port.p, port.n) if isinstance(port, DifferentialPort) else (port.io,)
        if pin in [bit.name for io in ios for bit in io.metadata]:
            return " ".join(["pin", *part, "of", f"{name}#{number}"])
    return "each pin"


def usb_pll(board: Board, source: float) -> pll.Pll:
    """The PLL of `Board.usb_clocks` from ``source`` MHz; its outputs are in their order.

    Raises PllError if the PLL cannot make them.
    """
    return (pll.ecp5_full_speed if board.usb_pins == FULL_SPEED else pll.ecp5_phy)(source)


def check_bridge(board: Board):
    """Raise BoardError if the board's baud rate exceeds the one of its USB bridge, if it is known.

    A simulation may have a faster serial port than the board, so this is no rule of `Board`.
    """
    chip = board.bridge.partition(",")[0]
    limit = BRIDGE_BAUD.get(chip, board.baud)
    if board.link == "serial" and board.baud > limit:
        raise BoardError(
            f"baud must be at most {limit}, the limit of the {chip} of {board.name}, not"
            f" {board.baud}"
        )


def check_pins(board: Board):
    """Raise BoardError unless the platform has the clock, the link and the LEDs of ``board``.

    USB needs LUNA.

    Does not check that the package of the FPGA has a pin of that name: nextpnr does, after the
    synthesis. Raises PllError if the PLL cannot make the clocks.
    """
    if board.link != "serial" and find_spec("luna") is None:
        raise BoardError(
            f"link {board.link} needs luna-usb 0.2.3 or newer; {to_install(extra='usb')}"
        )
    platform = board.platform()
    ports = Ports(platform)
    users: dict[tuple, str] = {}
    for use, pin in _uses(board).items():
        try:
            ports.request(*pin)
        except BoardError as error:
            raise BoardError(f"{use} of {board.name}: {error}") from error
        if users.setdefault(pin, use) != use:
            raise BoardError(
                f"{use} of {board.name} must have a pin of its own, not the pin of {users[pin]}"
            )
    clock = platform.lookup(platform.default_clk).clock
    if clock is None:
        raise BoardError(
            f"clock of {board.name}: {platform.default_clk}#0 must have a frequency:"
            " Clock(hertz) in its Resource"
        )
    settings = board.device.flow.pll(clock.frequency / 1e6, board.clock)
    if has_sdram(board.config):
        pll.shifted(board.device.flow.name, settings, board.sdram.phase)
    if board.usb_clocks:
        usb_pll(board, clock.frequency / 1e6)
