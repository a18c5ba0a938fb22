"""The hardware of each data type, besides its MAC cells."""

from weft.dtypes import DTYPES
from weft.hw.dtypes.bf16 import Bf16Hardware
from weft.hw.dtypes.hardware import DTypeHardware
from weft.hw.dtypes.int8 import Int8Hardware

__all__ = ["HARDWARE", "DTypeHardware"]

# Subclasses of `DTypeHardware`, by the name of the data type.
HARDWARE = DTYPES.layer("hardware", int8=Int8Hardware, bf16=Bf16Hardware)
