"""A layer of a network for handwritten digits: python examples/network_layer.py

The layer is fully connected and quantized as TensorFlow Lite does it. The core adds the bias,
scales the sums to int8 and clamps them, so that only bytes leave it.
"""

import numpy as np

from weft import Accelerator, Config
from weft.demo import Network
from weft.golden import add_bias, matmul, requantize
from weft.host import GoldenTransport

network = Network.load()
layer, images = network.layers[0], network.encode(network.images)

with Accelerator(GoldenTransport(Config(requantize="tflite"))) as acc:
    y, stats = acc.matmul(
        images, layer.weights.T, a_zero_point=layer.x_zero_point, bias=layer.bias,
        multiplier=layer.multiplier, shift=layer.shift, zero_point=layer.y_zero_point,
        low=layer.low, high=layer.high, record=True,
    )

# The same layer step by step, in NumPy.
sums = add_bias(matmul(images, layer.weights.T, a_zero_point=layer.x_zero_point), layer.bias)
expected = requantize(
    sums, layer.multiplier, layer.shift, mode="tflite", zero_point=layer.y_zero_point,
    low=layer.low, high=layer.high,
)
assert y.dtype == np.int8 and np.array_equal(y, expected)
print(f"{len(images)} images, {layer.weights.shape[0]} outputs each: {stats.cycles} cycles")
