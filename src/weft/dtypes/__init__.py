"""The data types of A and B, by the ``dtype`` of a Config."""

from weft.dtypes.bf16 import Bf16
from weft.dtypes.dtype import DType
from weft.dtypes.int8 import Int8
from weft.registry import Registry

__all__ = ["DTYPES", "DType"]

# A program can add its own data type, with an object for each layer:
# DTYPES.register(MyType(), hardware=..., golden=..., driver=..., checks=..., network=...).
DTYPES = Registry[DType]("data type", Int8(), Bf16())
