"""From training to the chip: a network for digits in JAX, with its products on a core.

    python examples/train_jax.py            every core is its golden model
    python examples/train_jax.py sim        the program runs on a simulated board
    python examples/train_jax.py tcp://10.0.0.5:7001    on a board that `weft serve` shares

It trains a convolution network in BF16 on a golden core, forward and backward, with weights of
float32. Then it quantizes the network, compiles it for a network core, and runs it there.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from weft import Accelerator, Config
from weft.demo import digits_images
from weft.host import GoldenTransport
from weft.jax import export, offload
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.config import NetworkCoreConfig

TRAINING = Config(dtype="bf16", rows=8, cols=8, lanes=4)
CHIP = NetworkCoreConfig(
    array=Config(rows=4, cols=4, depth=4, requantize="onnx", activation="none"), words=2048
)
STEPS, BATCH, RATE = 100, 50, 0.2


def conv(x, w, stride):
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def network(params, x):
    with jax.named_scope("conv1"):
        x = jax.nn.relu(conv(x, params["conv1"], 1) + params["bias1"])
    with jax.named_scope("conv2"):
        x = jax.nn.relu(conv(x, params["conv2"], 2) + params["bias2"])
    with jax.named_scope("dense"):
        return x.reshape(len(x), -1) @ params["dense"] + params["bias3"]


def loss(params, x, labels):
    scores = jax.nn.log_softmax(network(params, x))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))


def train_step(params, x, labels):
    """The weights of the next step, in float32, and the loss."""
    value, gradients = jax.value_and_grad(loss)(params, x, labels)
    return jax.tree.map(lambda w, g: w - RATE * g, params, gradients), value


def start(rng):
    """Random weights."""
    shapes = {"conv1": (3, 3, 1, 8), "conv2": (3, 3, 8, 16), "dense": (256, 10)}
    params = {
        name: jnp.asarray(rng.normal(0, np.prod(shape[:-1]) ** -0.5, shape), jnp.float32)
        for name, shape in shapes.items()
    }
    return params | {f"bias{n}": jnp.zeros(size) for n, size in ((1, 8), (2, 16), (3, 10))}


def digits():
    """Images [450, 8, 8, 1] of 0 to 1, and their labels; the last 50 are for the test."""
    images, labels = digits_images()
    return images.reshape(-1, 8, 8, 1), np.asarray(labels, np.int32)


def connection(place):
    """What runs the program: the golden model, a simulated board, or a board."""
    if place == "golden":
        return GoldenRunner(CHIP)
    from weft.host.network_driver import NetworkDriver

    if place == "sim":
        from weft.sim.transport import SimBoardTransport

        return NetworkDriver(SimBoardTransport(CHIP, say=print), CHIP)
    return NetworkDriver(place, CHIP)


def main(place="golden"):
    images, labels = digits()
    rng = np.random.default_rng(1)
    params, order = start(rng), rng.permutation(400)

    step = offload(train_step, Accelerator(GoldenTransport(TRAINING)))
    for number in range(STEPS):
        batch = order[number * BATCH % 400 :][:BATCH]
        params, value = step(params, images[batch], labels[batch])
        if number % 20 == 0:
            print(f"step {number}: loss {value:.2f}")
    print(step.report())

    program = export(network, params, images[:400], CHIP, name="digits")
    with program.open(connection(place)) as session:
        scores = np.concatenate([session(image[None]) for image in images[400:]])
    float32 = np.asarray(network(params, images[400:])).argmax(1)
    for name, found in (("float32", float32), ("the chip, int8", scores.argmax(1))):
        print(f"{name}: {np.mean(found == labels[400:]):.0%} of 50 new images are correct")
    print(f"the chip takes {program.cycles:,} cycles an image")
    return params, program, scores


if __name__ == "__main__":
    main(*sys.argv[1:])
