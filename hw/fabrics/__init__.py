"""The building blocks of each FPGA family: memories, multipliers, adders."""

from weft.hw.fabrics.ecp5 import Ecp5Fabric
from weft.hw.fabrics.fabric import Fabric
from weft.hw.fabrics.gowin import GowinFabric
from weft.hw.fabrics.ice40 import Ice40Fabric, Ice40UpFabric
from weft.targets import TARGETS

__all__ = ["FABRICS", "Fabric"]

# Instances of `Fabric`, by the name of the family.
FABRICS = TARGETS.layer(
    "hardware",
    generic=Fabric(), ecp5=Ecp5Fabric(), ice40hx=Ice40Fabric(), ice40up=Ice40UpFabric(),
    gowin=GowinFabric(),
)
