"""A layer of a quantized network, from floats to bytes: python examples/layer.py

The core adds the bias to each sum, scales it, rounds it and clamps it to a byte. The program
compares the bytes with the layer in floating point.
"""

import numpy as np

from weft import Accelerator, Config
from weft.host import GoldenTransport

rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, (50, 64))
w = rng.normal(0, 0.2, (64, 8))
bias = rng.uniform(-1, 1, 8)
wanted = np.maximum(x @ w + bias, 0)  # the layer: a product, a bias and a ReLU

# A byte n of x is the number n * x_scale. The bytes of y start at -128, which is the number 0.
x_scale, w_scale = 1 / 127, np.abs(w).max() / 127
y_scale, zero_point = wanted.max() / 255, -128
bytes_x, bytes_w = (np.rint(v).astype(np.int8) for v in (x / x_scale, w / w_scale))
whole_bias = np.rint(bias / (x_scale * w_scale)).astype(np.int32)

with Accelerator(GoldenTransport(Config(rows=4, cols=4, requantize="tflite"))) as acc:
    sums = acc.matmul(bytes_x, bytes_w)
    y = acc.matmul(
        bytes_x, bytes_w, bias=whole_bias, scale=x_scale * w_scale / y_scale,
        zero_point=zero_point, low=zero_point,
    )

error = np.abs((y - float(zero_point)) * y_scale - wanted).max() / wanted.max()
print(f"sums:    {sums.nbytes:,} bytes, from {sums.min():,} to {sums.max():,}")
print(f"results: {y.nbytes:,} bytes, from {y.min()} to {y.max()}")
print(f"results at {zero_point}, the number 0: {(y == zero_point).sum()} of {y.size}")
print(f"results at 127, the largest byte: {(y == 127).sum()} of {y.size}")
print(f"largest error: {error:.1%} of the largest number")
