"""Networks that run on an accelerator, in INT8 and in BF16: whole layers, or their matmuls."""

from weft.model.bf16 import Bf16Layer, Bf16Network
from weft.model.layer import Layer
from weft.model.network import Network, NetworkError
from weft.model.requantize import add_bias, requantize, scale
from weft.model.run import LayerRun

__all__ = [
    "Bf16Layer", "Bf16Network", "Layer", "LayerRun", "Network", "NetworkError", "add_bias",
    "requantize", "scale",
]
