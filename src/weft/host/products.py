"""The product class of each data type."""

from weft.dtypes import DTYPES
from weft.host.floats import FloatProduct
from weft.host.integers import IntegerProduct

__all__ = ["PRODUCTS"]

# Subclasses of `weft.host.product.Product`, by the name of the data type.
PRODUCTS = DTYPES.layer("driver", int8=IntegerProduct, bf16=FloatProduct)
