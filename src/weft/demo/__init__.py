"""Demonstration: a network for handwritten digits that runs on an accelerator, in INT8 and BF16."""

from weft.demo.bf16 import Bf16Layer, Bf16Network
from weft.demo.layer import Layer
from weft.demo.network import Network, NetworkError
from weft.demo.run import LayerRun

__all__ = ["Bf16Layer", "Bf16Network", "Layer", "LayerRun", "Network", "NetworkError"]
