"""`NetworkIp`: a NetworkCoreConfig with its bus, and the prefix of its names."""

from dataclasses import dataclass

from weft.buses import BUSES, MASTER_PORTS, DataPath, Interface
from weft.ip import BusCore
from weft.network_core.config import NetworkCoreConfig

__all__ = ["NetworkIp"]

PROGRAM_MASTER = Interface(
    "m_axi_", "AXI4 master: lists, weights and parameters in the program memory", MASTER_PORTS
)


@dataclass(frozen=True, kw_only=True)
class NetworkIp(BusCore):
    """A network core behind a register bus. Core and bus share a clock.

    Parameters
    ----------
    config : NetworkCoreConfig
    bus : str
        One of `weft.buses.BUSES` whose data path are FIFO ports.
    pipelined, prefix
        As of `weft.ip.BusCore`.

    Raises
    ------
    ConfigError
        As of `weft.ip.BusCore`.
    """

    config: NetworkCoreConfig

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The interfaces of the bus, and the master of the program memory."""
        bus = super().interfaces
        return (*bus, PROGRAM_MASTER) if self.config.program_words else bus

    @property
    def clocks(self) -> int:
        """Number of clocks."""
        return 1

    @property
    def name(self) -> str:
        """A short name for folders, files and modules."""
        return self._name("networks", self.array.name)

    def _problems(self):
        buses = [name for name, bus in BUSES.items() if bus.data_path is DataPath.FIFO_PORTS]
        if self.config.program_words:
            buses = ["axi"]  # the clock and the reset of its master
        if self.bus in buses:
            yield from super()._problems()
            return
        kind = "a program memory" if self.config.program_words else "a network core"
        yield f"bus must be one of {', '.join(buses)} with {kind}, not {self.bus!r}"
