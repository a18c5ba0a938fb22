"""Trains a small CNN on scikit-learn's handwritten digits, and writes an int8 TFLite file.

    python -m tools.train_digits_cnn [--out FOLDER]

Writes ``digits_cnn.tflite``: a convolution, a depthwise and a pointwise one, a residual addition,
an average pool, and a fully connected layer.
Needs scikit-learn and tflite-micro in addition to Weft. The same machine and the same versions give
the same bytes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from tools.int8_files import RELU, accuracy, calibrate, operator, weights_and_bias
from tools.tflite_writer import TensorSpec, tflite_file
from tools.train_digits import DATA, IMAGE_MAX, SEED

__all__ = ["cnn_file", "main", "train"]

OUT = Path(__file__).resolve().parent.parent / "examples"
CHANNELS, CLASSES, SIZE, KERNEL = 12, 10, 8, 3
EPOCHS, BATCH, RATE = 60, 32, 0.004


def images():
    """Train images, test images ([n, 8, 8, 1] of 0..1) and their labels: train, test."""
    values, labels = load_digits(return_X_y=True)
    values = np.float32(values / IMAGE_MAX).reshape(-1, SIZE, SIZE, 1)
    return train_test_split(
        values, labels, test_size=0.25, stratify=labels, random_state=SEED
    )


def windows(x):
    """The inputs of each 3 x 3 window, padded to the same size: [n, 8, 8, 9, channels]."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [(ky, kx) for ky in range(KERNEL) for kx in range(KERNEL)]
    return np.stack([padded[:, y : y + SIZE, x : x + SIZE] for y, x in shifts], axis=3)


def windows_gradient(gradient):
    """The gradient of the input of `windows`."""
    padded = np.zeros((len(gradient), SIZE + 2, SIZE + 2, gradient.shape[-1]), np.float32)
    for n in range(KERNEL**2):
        y, x = divmod(n, KERNEL)
        padded[:, y : y + SIZE, x : x + SIZE] += gradient[:, :, :, n]
    return padded[:, 1:-1, 1:-1]


def forward(w, x):
    """All feature maps of a batch, by name."""
    maps = {"image": x, "image_windows": windows(x)[..., 0]}
    maps["conv"] = np.maximum(maps["image_windows"] @ w["conv"] + w["conv_bias"], 0)
    maps["conv_windows"] = windows(maps["conv"])
    maps["depthwise"] = np.maximum(
        (maps["conv_windows"] * w["depthwise"]).sum(3) + w["depthwise_bias"], 0
    )
    maps["pointwise"] = maps["depthwise"] @ w["pointwise"] + w["pointwise_bias"]
    maps["add"] = np.maximum(maps["conv"] + maps["pointwise"], 0)
    halves = maps["add"].reshape(-1, SIZE // 2, 2, SIZE // 2, 2, CHANNELS)
    maps["pool"] = halves.mean((2, 4))
    maps["logits"] = maps["pool"].reshape(len(x), -1) @ w["dense"] + w["dense_bias"]
    return maps


def gradients(w, maps, labels):
    """Gradients of the mean cross entropy, by the names of the weights."""
    x = maps["logits"] - maps["logits"].max(1, keepdims=True)
    share = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    share[np.arange(len(labels)), labels] -= 1
    share /= len(labels)
    flat = maps["pool"].reshape(len(labels), -1)
    g = {"dense": flat.T @ share, "dense_bias": share.sum(0)}
    pool = (share @ w["dense"].T).reshape(maps["pool"].shape) / 4
    add = np.repeat(np.repeat(pool, 2, 1), 2, 2) * (maps["add"] > 0)
    axes = ([0, 1, 2], [0, 1, 2])
    g["pointwise"] = np.tensordot(maps["depthwise"], add, axes)
    g["pointwise_bias"] = add.sum((0, 1, 2))
    depthwise = (add @ w["pointwise"].T) * (maps["depthwise"] > 0)
    g["depthwise"] = (maps["conv_windows"] * depthwise[:, :, :, None]).sum((0, 1, 2))
    g["depthwise_bias"] = depthwise.sum((0, 1, 2))
    conv = add + windows_gradient(depthwise[:, :, :, None] * w["depthwise"])
    conv *= maps["conv"] > 0
    g["conv"] = np.tensordot(maps["image_windows"], conv, axes)
    g["conv_bias"] = conv.sum((0, 1, 2))
    return g


def train(x, labels):
    """The float32 weights and biases, by name, after training with Adam."""
    rng = np.random.default_rng(SEED)
    shapes = {
        "conv": (KERNEL**2, CHANNELS), "depthwise": (KERNEL**2, CHANNELS),
        "pointwise": (CHANNELS, CHANNELS), "dense": (SIZE**2 // 4 * CHANNELS, CLASSES),
    }
    w = {}
    for name, shape in shapes.items():
        w[name] = np.float32(rng.normal(0, np.sqrt(2 / shape[0]), shape))
        w[name + "_bias"] = np.zeros(shape[1], np.float32)
    mean = {name: np.zeros_like(value) for name, value in w.items()}
    square = {name: np.zeros_like(value) for name, value in w.items()}
    steps = EPOCHS * (len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for batch in np.split(order[: len(x) // BATCH * BATCH], len(x) // BATCH):
            step += 1
            found = gradients(w, forward(w, x[batch]), labels[batch])
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, gradient in found.items():
                mean[name] += 0.1 * (gradient - mean[name])
                square[name] += 0.001 * (gradient**2 - square[name])
                scaled = mean[name] / (1 - 0.9**step)
                w[name] -= np.float32(
                    rate * scaled / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
                )
    return w


def cnn_file(w, x) -> bytes:
    """The quantized network, calibrated on the images ``x``."""
    maps = forward(w, x)
    maps["pool"] = maps["add"]  # a pool keeps the scale of its input
    quantized = {name: calibrate(value) for name, value in maps.items()}
    square = (1, SIZE, SIZE)
    shapes = {
        "image": (*square, 1), "conv": (*square, CHANNELS), "depthwise": (*square, CHANNELS),
        "pointwise": (*square, CHANNELS), "add": (*square, CHANNELS),
        "pool": (1, SIZE // 2, SIZE // 2, CHANNELS), "logits": (1, CLASSES),
    }
    tensors = {
        name: TensorSpec(shape, "int8", *quantized[name]) for name, shape in shapes.items()
    }
    scale = {name: found[0] for name, found in quantized.items()}
    for name, source, axis, shape in (
        ("conv", "image", 0, (CHANNELS, KERNEL, KERNEL, 1)),
        ("depthwise", "conv", 3, (1, KERNEL, KERNEL, CHANNELS)),
        ("pointwise", "depthwise", 0, (CHANNELS, 1, 1, CHANNELS)),
        ("dense", "pool", 0, (CLASSES, w["dense"].shape[0])),
    ):
        tensors |= weights_and_bias(
            name, w[name], w[name + "_bias"], scale[source], axis, shape
        )
    operators = [
        operator("CONV_2D", "Conv2DOptions", 3, "image", "conv", "conv", stride=1, relu=RELU),
        operator(
            "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", 3, "conv", "depthwise", "depthwise",
            stride=1, relu=RELU, depthMultiplier=1,
        ),
        operator(
            "CONV_2D", "Conv2DOptions", 3, "depthwise", "pointwise", "pointwise", stride=1,
        ),
        operator("ADD", "AddOptions", 2, "conv", "add", other="pointwise", relu=RELU),
        operator(
            "AVERAGE_POOL_2D", "Pool2DOptions", 2, "add", "pool", stride=2, filterWidth=2,
            filterHeight=2,
        ),
        operator("FULLY_CONNECTED", "FullyConnectedOptions", 5, "pool", "logits", "dense"),
    ]
    return tflite_file(
        tensors, operators, ["image"], ["logits"], description=f"digits CNN; data: {DATA}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder; default examples")
    folder = parser.parse_args().out
    train_x, test_x, train_y, test_y = images()
    with threadpool_limits(1):  # several threads would sum in another order
        w = train(train_x, train_y)
    correct = np.mean(forward(w, test_x)["logits"].argmax(1) == test_y)
    print(f"float CNN: {correct:.2%}")
    data = cnn_file(w, train_x)
    path = folder / "digits_cnn.tflite"
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes, {accuracy(data, test_x, test_y):.2%} int8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
