"""Products of a framework's function on an accelerator: what JAX and PyTorch share.

====================  ===========================================================================
module                content
====================  ===========================================================================
`products`            batched matrix products and convolutions: BF16, or INT8 with scales
`windows`             convolutions as matrix products
`quantization`        float arrays as int8 values with a scale
`subnormals`          arithmetic with subnormal numbers in threads of a framework
`record`              which operator ran where, and why
`report`              the same with MAC, cycles, bytes and times
====================  ===========================================================================

Nothing here imports a framework: operands and results are numpy arrays.
"""

from weft.offload.products import OffloadError, Products
from weft.offload.quantization import Quantized, StaticWeights
from weft.offload.record import NO_PRODUCT, Operator, Record
from weft.offload.report import OffloadReport
from weft.offload.windows import Window

__all__ = [
    "NO_PRODUCT", "OffloadError", "OffloadReport", "Operator", "Products", "Quantized", "Record",
    "StaticWeights", "Window",
]
