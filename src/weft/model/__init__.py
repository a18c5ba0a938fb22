"""Quantized networks that run on an accelerator: whole layers, or their matmuls, on the core."""

from weft.model.layer import Layer, LayerRun
from weft.model.network import Network, NetworkError
from weft.model.requantize import add_bias, requantize, scale

__all__ = ["Layer", "LayerRun", "Network", "NetworkError", "add_bias", "requantize", "scale"]
