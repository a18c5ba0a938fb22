"""Trains a small CNN that spots spoken words, and writes an int8 TFLite file.

    python -m tools.train_words [--out FOLDER]

Writes ``words.tflite``. The words are those of `weft.demo.words`, which speaks them itself: so the
file has no other source, and the licence of Weft. The same machine and the same versions give the
same bytes.
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tools.int8_files import RELU, accuracy, calibrate, operator, weights_and_bias
from tools.tflite_writer import TensorSpec, tflite_file
from weft.demo.words import BANDS, FRAMES, HOP, RATE, WORDS, log_bands, sentence, windows

__all__ = ["examples", "main", "train"]

OUT = Path(__file__).resolve().parent.parent / "src" / "weft" / "demo"
CLASSES = 1 + len(WORDS)  # the first: no word
STEM, CHANNELS = 12, 24
MAPS = {  # height, width and channels after each layer
    "stem": (FRAMES // 2, BANDS // 2, STEM), "narrow": (FRAMES // 4, BANDS // 4, STEM),
    "wide": (FRAMES // 4, BANDS // 4, CHANNELS), "depthwise": (FRAMES // 4, BANDS // 4, CHANNELS),
    "pointwise": (FRAMES // 4, BANDS // 4, CHANNELS), "add": (FRAMES // 4, BANDS // 4, CHANNELS),
}
SENTENCES, WORDS_EACH = 500, 5
STEPS, BATCH, STEP_SIZE, SEED = 1500, 64, 0.003, 0
CLEAR = 0.4  # a window with at most this share of a word has no word


def examples(count, seed):
    """Inputs [n, FRAMES, BANDS, 1] and their classes, from ``count`` sentences.

    A window that has a word whole is of its class. Windows with a part of a word are left out.
    Each sentence comes with half a second of noise, which has no word.
    """
    rng = np.random.default_rng(seed)
    names, found, classes = list(WORDS), [], []
    for _ in range(count):
        words = [names[n] for n in rng.integers(len(names), size=WORDS_EACH)]
        samples, times = sentence(
            words, rng, pause=rng.uniform(0.25, 0.6), noise=10 ** rng.uniform(-3.5, -1.5)
        )
        samples *= rng.uniform(0.3, 1)
        for n, window in enumerate(windows(log_bands(samples), 2)):
            start = 2 * n * HOP / RATE
            end = start + FRAMES * HOP / RATE
            inside = [min(last, end) - max(first, start) for first, last in times]
            share = [x / (last - first) for x, (first, last) in zip(inside, times, strict=True)]
            if max(share) >= 1:
                classes.append(1 + names.index(words[int(np.argmax(share))]))
                found.append(window[0])
            elif max(share) <= CLEAR:
                classes.append(0)
                found.append(window[0])
        noise = 10 ** rng.uniform(-4, -0.5) * rng.standard_normal(FRAMES * HOP + RATE // 5)
        for window in windows(log_bands(noise), 2):
            classes.append(0)
            found.append(window[0])
    return np.stack(found), np.array(classes)


def forward(w, x):
    """All feature maps of a batch, by name."""
    def conv(x, name, stride, groups=1):
        y = jax.lax.conv_general_dilated(
            x, w[name], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return y + w[name + "_bias"]

    maps = {"sound": x, "stem": jax.nn.relu(conv(x, "stem", 2))}
    maps["narrow"] = jax.nn.relu(conv(maps["stem"], "narrow", 2, STEM))
    maps["wide"] = jax.nn.relu(conv(maps["narrow"], "wide", 1))
    maps["depthwise"] = jax.nn.relu(conv(maps["wide"], "depthwise", 1, CHANNELS))
    maps["pointwise"] = conv(maps["depthwise"], "pointwise", 1)
    maps["add"] = jax.nn.relu(maps["wide"] + maps["pointwise"])
    maps["logits"] = maps["add"].mean((1, 2)) @ w["dense"] + w["dense_bias"]
    return maps


def train(x, classes):
    """The float32 weights and biases, by name, after training with Adam."""
    rng = np.random.default_rng(SEED)
    shapes = {
        "stem": (5, 5, 1, STEM), "narrow": (3, 3, 1, STEM), "wide": (1, 1, STEM, CHANNELS),
        "depthwise": (3, 3, 1, CHANNELS), "pointwise": (1, 1, CHANNELS, CHANNELS),
        "dense": (CHANNELS, CLASSES),
    }
    w = {}
    for name, shape in shapes.items():
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        w[name] = jnp.float32(rng.normal(0, deviation, shape))
        w[name + "_bias"] = jnp.zeros(shape[-1])

    def loss(w, x, classes):
        logits = forward(w, x)["logits"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), classes[:, None], 1).mean()

    @jax.jit
    def step(w, mean, square, n, x, classes):
        rate = STEP_SIZE * 0.5 * (1 + jnp.cos(jnp.pi * n / STEPS))
        g = jax.grad(loss)(w, x, classes)
        mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), mean, g)
        square = jax.tree.map(lambda s, g: s + 0.001 * (g**2 - s), square, g)
        scaled = jax.tree.map(
            lambda m, s: m / (1 - 0.9**n) / (jnp.sqrt(s / (1 - 0.999**n)) + 1e-8), mean, square
        )
        return jax.tree.map(lambda w, change: w - rate * change, w, scaled), mean, square

    mean = square = jax.tree.map(jnp.zeros_like, w)
    for n in range(1, STEPS + 1):
        batch = rng.integers(len(x), size=BATCH)
        w, mean, square = step(w, mean, square, float(n), x[batch], classes[batch])
    return {name: np.asarray(value) for name, value in w.items()}


def network_file(w, x) -> bytes:
    """The quantized network, calibrated on the inputs ``x``."""
    maps = {name: np.asarray(value) for name, value in forward(w, x).items()}
    maps["mean"] = maps["add"]  # a pool keeps the scale of its input
    quantized = {name: calibrate(value) for name, value in maps.items()}
    shapes = {
        "sound": (1, FRAMES, BANDS, 1), "mean": (1, 1, 1, CHANNELS), "logits": (1, CLASSES),
        **{name: (1, *shape) for name, shape in MAPS.items()},
    }
    tensors = {
        name: TensorSpec(shape, "int8", *quantized[name]) for name, shape in shapes.items()
    }
    layers = (
        ("stem", "sound", 0, (STEM, 5, 5, 1)), ("narrow", "stem", 3, (1, 3, 3, STEM)),
        ("wide", "narrow", 0, (CHANNELS, 1, 1, STEM)),
        ("depthwise", "wide", 3, (1, 3, 3, CHANNELS)),
        ("pointwise", "depthwise", 0, (CHANNELS, 1, 1, CHANNELS)),
        ("dense", "mean", 0, (CLASSES, CHANNELS)),
    )
    for name, source, axis, shape in layers:
        columns = w[name].reshape(-1, w[name].shape[-1])
        tensors |= weights_and_bias(
            name, columns, w[name + "_bias"], quantized[source][0], axis, shape
        )
    conv, depthwise = ("CONV_2D", "Conv2DOptions", 3), (
        "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", 3,
    )
    each = {"relu": RELU, "depthMultiplier": 1}
    operators = [
        operator(*conv, "sound", "stem", "stem", stride=2, relu=RELU),
        operator(*depthwise, "stem", "narrow", "narrow", stride=2, **each),
        operator(*conv, "narrow", "wide", "wide", stride=1, relu=RELU),
        operator(*depthwise, "wide", "depthwise", "depthwise", stride=1, **each),
        operator(*conv, "depthwise", "pointwise", "pointwise", stride=1),
        operator("ADD", "AddOptions", 2, "wide", "add", other="pointwise", relu=RELU),
        operator(
            "AVERAGE_POOL_2D", "Pool2DOptions", 2, "add", "mean", stride=FRAMES // 4,
            filterHeight=FRAMES // 4, filterWidth=BANDS // 4,
        ),
        operator("FULLY_CONNECTED", "FullyConnectedOptions", 5, "mean", "logits", "dense"),
    ]
    return tflite_file(
        tensors, operators, ["sound"], ["logits"],
        description=f"spots {', '.join(WORDS)}; trained on sounds of weft.demo.words",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder; default src/weft/demo")
    folder = parser.parse_args().out
    x, classes = examples(SENTENCES, SEED)
    test_x, test_classes = examples(SENTENCES // 10, SEED + 1)
    w = train(x, classes)
    correct = np.mean(np.argmax(forward(w, test_x)["logits"], 1) == test_classes)
    print(f"{len(x)} inputs; float CNN: {correct:.2%} of {len(test_x)} others")
    data = network_file(w, x[:: len(x) // 500])
    path = folder / "words.tflite"
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes, {accuracy(data, test_x, test_classes):.2%} int8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
