"""The pins of a board that a design uses: requests, and a check before any work."""

from amaranth.build import ResourceError, Subsignal
from amaranth.lib.io import DifferentialPort

from weft.boards.board import Board, BoardError

__all__ = ["Ports", "check_pins", "resource_of"]


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
    """The arguments of `Ports.request` for the clock, the serial port and each LED."""
    return {
        "clock": (board.platform.default_clk, 0), "serial port": ("uart", 0, "rx"),
        "transmitter": ("uart", 0, "tx"), **{f"LED {led}": pin for led, pin in board.leds.items()},
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


def check_pins(board: Board):
    """Raise BoardError unless the platform has the clock, serial port and LEDs of ``board``.

    Does not check that the package of the FPGA has a pin of that name: nextpnr does, after the
    synthesis. Raises PllError if the PLL cannot make the board's clock.
    """
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
    board.device.flow.pll(clock.frequency / 1e6, board.clock)
