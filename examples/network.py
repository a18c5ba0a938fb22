"""A network for handwritten digits on a core: python examples/network.py

The network is quantized as TensorFlow Lite does it. The core adds the bias of each layer, scales
the sums to int8 and clamps them, so that only bytes leave it.
"""

from weft import Config
from weft.demo import digits_images, digits_network

images, digits = digits_images()
network = digits_network("int8")  # or weft.load("your.tflite")
program = network.compile(Config(requantize="tflite"))
with program.open("golden") as session:  # or the serial port of a board
    scores, layers = session(images, stats=True)

for layer in layers:
    print(f"layer {layer.step.name}: {layer.stats.cycles:,} cycles, {layer.stats.utilization:.1%}")
print(f"{(scores.argmax(axis=1) == digits).mean():.1%} of {len(images)} images are correct")
