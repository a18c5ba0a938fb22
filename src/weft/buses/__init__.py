"""The buses of an IP core, by name."""

from weft.buses.apb import ApbBus
from weft.buses.axi_lite import AxiLiteBus
from weft.buses.bus import Bus
from weft.buses.dma import DmaBus
from weft.buses.stream import StreamBus
from weft.buses.wishbone import WishboneBus
from weft.registry import Registry

__all__ = ["BUSES"]

BUSES: Registry[Bus] = Registry(
    "bus", AxiLiteBus(), WishboneBus(), ApbBus(), StreamBus(), DmaBus()
)
