"""The golden core of each data type."""

from weft.dtypes import DTYPES
from weft.host.golden_bf16 import FloatCore
from weft.host.golden_int8 import IntegerCore

__all__ = ["CORES"]

# Subclasses of `weft.host.golden_core.GoldenCore`, by the name of the data type.
CORES = DTYPES.layer("golden", int8=IntegerCore, bf16=FloatCore)
