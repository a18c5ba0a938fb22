"""The tools and clock hardware of each FPGA family."""

from weft.boards.flows.ecp5 import Ecp5Flow
from weft.boards.flows.flow import Flow
from weft.boards.flows.gowin import GowinFlow
from weft.boards.flows.ice40 import Ice40HxFlow, Ice40UpFlow
from weft.targets import TARGETS

__all__ = ["FLOWS", "Flow"]

# Instances of `Flow`, by the name of the family.
FLOWS = TARGETS.layer(
    "boards",
    ecp5=Ecp5Flow(), ice40hx=Ice40HxFlow(), ice40up=Ice40UpFlow(), gowin=GowinFlow(),
)
