"""`NetworkIp`: the ChipConfig of a core for networks with its bus, and the prefix of its names."""

from dataclasses import dataclass

from weft.buses import BUSES
from weft.buses.bus import DataPath, Interface
from weft.buses.dma import MASTER_PORTS
from weft.config import Config
from weft.ip import BusCore
from weft.network_core.config import ChipConfig

__all__ = ["NetworkIp"]

PROGRAM_MASTER = Interface(
    "m_axi_", "AXI4 master: lists, weights and parameters in the program memory", MASTER_PORTS
)


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
    def peak(self) -> int:
        """MAC/cycle when every PE is active."""
        return self.chip.peak

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The interfaces of the bus, and the master of the program memory."""
        bus = super().interfaces
        return (*bus, PROGRAM_MASTER) if self.chip.program_words else bus

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
        if self.chip.program_words:
            buses = ["axi"]  # the clock and the reset of its master
        if self.bus in buses:
            yield from super()._problems()
            return
        kind = "a program memory" if self.chip.program_words else "a core for networks"
        yield f"bus must be one of {', '.join(buses)} with {kind}, not {self.bus!r}"
