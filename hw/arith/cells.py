"""The class of each MAC cell."""

from weft.hw.arith.bf16 import (
    Bf16Mac,
    Ecp5Bf16Mac,
    Ecp5FlushingBf16Mac,
    FlushingBf16Mac,
)
from weft.hw.arith.ecp5 import Ecp5FastInnerProductMac, Ecp5PlainMac
from weft.hw.arith.gowin import GowinFastInnerProductMac, GowinPlainMac
from weft.hw.arith.ice40 import (
    Ice40FastInnerProductMac,
    Ice40LogicFastInnerProductMac,
    Ice40LogicPlainMac,
    Ice40PlainMac,
)
from weft.hw.arith.mac import FastInnerProductMac, PlainMac
from weft.mac_cells import MAC_CELLS

__all__ = ["MACS"]

# Subclasses of `weft.hw.arith.mac.Mac`, by the name of the cell.
MACS = MAC_CELLS.layer(
    "hardware",
    plain=PlainMac, fip=FastInnerProductMac, bf16=Bf16Mac, bf16_ftz=FlushingBf16Mac,
    bf16_ecp5=Ecp5Bf16Mac, bf16_ftz_ecp5=Ecp5FlushingBf16Mac,
    plain_ecp5=Ecp5PlainMac, fip_ecp5=Ecp5FastInnerProductMac,
    plain_ice40hx=Ice40LogicPlainMac, fip_ice40hx=Ice40LogicFastInnerProductMac,
    plain_ice40up=Ice40PlainMac, fip_ice40up=Ice40FastInnerProductMac,
    plain_gowin=GowinPlainMac, fip_gowin=GowinFastInnerProductMac,
)
