"""`NetworkIp`: the ChipConfig of a core for networks with its bus, and the prefix of its names."""

from dataclasses import dataclass

from weft.buses import BUSES
from weft.buses.bus import Bus, DataPath
from weft.c_names import prefix_problems
from weft.chip.config import ChipConfig
from weft.config import Config, ConfigError

__all__ = ["NetworkIp"]


@dataclass(frozen=True, kw_only=True)
class NetworkIp:
    """A core for networks behind a register bus. Core and bus share a clock.

    Parameters
    ----------
    chip : ChipConfig
    bus : str
        One of `weft.buses.BUSES` whose data path are FIFO ports.
    pipelined : bool
        Bus ``wishbone`` only: pipelined cycles of B4 instead of classic ones.
    prefix : str
        As in `weft.ip.Ip`.

    Raises
    ------
    ConfigError
        All problems in one message, one line for each.
    """

    chip: ChipConfig
    bus: str
    pipelined: bool = False
    prefix: str = "weft"

    def __post_init__(self):
        if problems := [*self._problems()]:
            raise ConfigError("\n".join(problems))

    @property
    def protocol(self) -> Bus:
        """The bus that ``bus`` names."""
        return BUSES[self.bus]

    @property
    def config(self) -> Config:
        """The Config of the array."""
        return self.chip.core

    @property
    def clocks(self) -> int:
        """Number of clocks."""
        return 1

    @property
    def options(self) -> tuple[str, ...]:
        """The fields of `weft.ip.OPTIONS` that are set."""
        return ("pipelined",) * self.pipelined

    @property
    def name(self) -> str:
        """A short name for folders, files and modules."""
        kind = "".join(f"_{option}" for option in self.options)
        return f"{self.prefix}_{self.bus}{kind}_networks_{self.config.name}"

    def _problems(self):
        buses = [name for name, bus in BUSES.items() if bus.data_path is DataPath.FIFO_PORTS]
        if self.bus not in buses:
            yield (
                f"bus must be one of {', '.join(buses)} with a core for networks, not {self.bus!r}"
            )
            return
        yield from prefix_problems(self.prefix)
        for option in self.options:
            if option not in self.protocol.options:
                yield f"{option} must be False with bus {self.bus!r}, not True"
