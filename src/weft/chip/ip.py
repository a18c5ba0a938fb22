"""`NetworkIp`: the ChipConfig of a core for networks with its bus, and the prefix of its names."""

from dataclasses import dataclass

from weft.buses import BUSES
from weft.buses.bus import DataPath
from weft.chip.config import ChipConfig
from weft.config import Config
from weft.ip import BusCore

__all__ = ["NetworkIp"]


@dataclass(frozen=True, kw_only=True)
class NetworkIp(BusCore):
    """A core for networks behind a register bus. Core and bus share a clock.

    Parameters
    ----------
    chip : ChipConfig
    bus : str
        One of `weft.buses.BUSES` whose data path are FIFO ports.
    pipelined, prefix
        As of `weft.ip.BusCore`.

    Raises
    ------
    ConfigError
        As of `weft.ip.BusCore`.
    """

    chip: ChipConfig

    @property
    def config(self) -> Config:
        """The Config of the array."""
        return self.chip.core

    @property
    def clocks(self) -> int:
        """Number of clocks."""
        return 1

    @property
    def name(self) -> str:
        """A short name for folders, files and modules."""
        return self._name("networks", self.config.name)

    def _problems(self):
        buses = [name for name, bus in BUSES.items() if bus.data_path is DataPath.FIFO_PORTS]
        if self.bus in buses:
            yield from super()._problems()
            return
        yield f"bus must be one of {', '.join(buses)} with a core for networks, not {self.bus!r}"
