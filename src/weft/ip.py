"""`Ip`: a core's Config with its bus, its clocks and the prefix of its names; names in C."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from weft.buses import BUSES, Bus, DataPath, Interface
from weft.config import Config, ConfigError
from weft.design import Design

__all__ = ["BusCore", "Ip", "OPTIONS", "identifier", "prefix_problems", "renamed"]

_PREFIX_MAX = 24  # characters
_PREFIX = re.compile(rf"(?=.{{1,{_PREFIX_MAX}}}$)[a-z][a-z0-9]*(_[a-z0-9]+)*")


def prefix_problems(prefix) -> Iterator[str]:
    """The rule that the prefix of a kit's names breaks, if it breaks it."""
    if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
        yield (
            f"prefix must be 1 to {_PREFIX_MAX} lower-case letters, digits and _, a letter"
            f" first, no _ last and no two side by side, not {prefix!r}"
        )


def renamed(source: str, prefix: str) -> str:
    """C source whose names start with ``prefix``, and whose macros start with it in capitals.

    >>> renamed("#if WEFT_DMA /* of Weft */ weft_init(weft_core)", "mm")
    '#if MM_DMA /* of Weft */ mm_init(mm_core)'
    """
    for name in ("weft", "WEFT"):
        new = prefix if name.islower() else prefix.upper()
        source = re.sub(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9])", new, source)
    return source


def identifier(name: str) -> str:
    """A C identifier of ASCII letters, digits and _ that starts with a letter.

    >>> identifier("kws (2).int8"), identifier("8bit"), identifier("...")
    ('kws_2_int8', 'net_8bit', 'net')
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return words if words[:1].isalpha() else f"net_{words}".rstrip("_")


# Fields of a BusCore that only some buses allow, with their meanings.
OPTIONS = {
    "pipelined": "the pipelined mode of Wishbone B4",
    "window": "registers that restrict the bus master to a window of memory",
}


@dataclass(frozen=True, kw_only=True)
class BusCore:
    """A core of any kind behind a bus; a subclass adds the core.

    Parameters
    ----------
    config : Design
        The core; a subclass says of which kind.
    bus : str
        One of `weft.buses.BUSES`.
    pipelined : bool
        Bus ``wishbone`` only: pipelined cycles of B4 instead of classic ones.
    prefix : str
        Prefix of all names of the core and its driver: modules, files, C functions, and in capitals
        C macros. Cores with different prefixes can be used in one design and one firmware.

    Raises
    ------
    ConfigError
        All problems in one message, one line for each.
    """

    config: Design
    bus: str
    pipelined: bool = False
    prefix: str = "weft"

    def __post_init__(self):
        if problems := [*self._problems()]:
            raise ConfigError("\n".join(problems))

    @property
    def kind(self) -> str:
        """The kind of the core: `weft.design.PRODUCT` or `weft.design.NETWORK`."""
        return self.config.kind

    @property
    def array(self) -> Config:
        """The Config of the array."""
        return self.config.array

    @property
    def peak(self) -> int:
        """MAC/cycle when every PE is active."""
        return self.config.peak

    @property
    def protocol(self) -> Bus:
        """The bus that ``bus`` names."""
        return BUSES[self.bus]

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The interfaces, without clocks, resets and the interrupt."""
        return self.protocol.interfaces

    @property
    def options(self) -> tuple[str, ...]:
        """The fields of `OPTIONS` that are set."""
        return tuple(name for name in OPTIONS if getattr(self, name, False))

    @property
    def has_fifo_ports(self) -> bool:
        """Whether the data of the core pass through the register space."""
        return self.protocol.data_path is DataPath.FIFO_PORTS

    def _name(self, *parts: str) -> str:
        """A short name for folders, files and modules, with ``parts`` at its end."""
        return "_".join((self.prefix, self.bus, *self.options, *parts))

    def _problems(self) -> Iterator[str]:
        """A line for each problem, if the bus is allowed."""
        yield from prefix_problems(self.prefix)
        for option in self.options:
            if option not in self.protocol.options:
                value = getattr(self, option)
                yield f"{option} must be False with bus {self.bus!r}, not {value!r}"


@dataclass(frozen=True, kw_only=True)
class Ip(BusCore):
    """An IP product core: a Config, and the bus in front of it.

    Parameters
    ----------
    config : Config
    clocks : int
        1: bus and core share a clock; 2: the core has its own clock, ``core_clk``.
    window : bool
        Bus ``dma`` only: registers that limit the bus master to a window of memory.
    bus, pipelined, prefix
        As of `BusCore`.

    Raises
    ------
    ConfigError
        As of `BusCore`.
    """

    config: Config
    clocks: int = 1
    window: bool = False

    @property
    def has_streams(self) -> bool:
        """Whether commands and results pass through streams of their own."""
        return self.protocol.data_path is DataPath.STREAMS

    @property
    def has_dma(self) -> bool:
        """Whether the core accesses operands and results in memory."""
        return self.protocol.data_path is DataPath.DMA

    @property
    def name(self) -> str:
        """A short name for folders, files and modules."""
        return self._name(*["two_clocks"] * (self.clocks == 2), self.config.name)

    def _problems(self):
        if self.bus not in BUSES:
            yield f"bus must be one of {', '.join(BUSES)}, not {self.bus!r}"
            return
        if self.clocks not in (1, 2):
            yield f"clocks must be 1 or 2, not {self.clocks!r}"
        yield from super()._problems()
        yield from self.protocol.problems(self.config)
