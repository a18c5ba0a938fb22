"""Trains a network on scikit-learn's handwritten digits, quantizes it to INT8, writes digits.npz.

    python -m tools.train_digits [--out FILE]

Needs scikit-learn in addition to Weft. Data: Optical Recognition of Handwritten Digits, E. Alpaydin
and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0. The same machine and the same versions
give the same bytes.
"""

import argparse
import io
import os
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from weft.demo import Network
from weft.demo.network import FORMAT
from weft.golden import requantize

__all__ = ["calibrate", "main", "multiplier_and_shift", "quantize_layers", "train", "write_npz"]

OUT = Path(__file__).resolve().parent.parent / "src" / "weft" / "demo" / "digits.npz"
IMAGE_MAX = 16
HIDDEN = (64, 32)
SEED = 0


def train():
    """Train the float network.

    Returns weights ([N, K] float32 for each layer), biases ([N] float32 for each layer), train
    images, test images and test labels (uint8).
    """
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images.astype(np.uint8),
        labels.astype(np.uint8),
        test_size=0.25,
        stratify=labels,
        random_state=SEED,
    )
    model = MLPClassifier(hidden_layer_sizes=HIDDEN, max_iter=400, random_state=SEED)
    with threadpool_limits(1):  # several threads would sum in another order
        model.fit(train_x / IMAGE_MAX, train_y)
    weights = [np.ascontiguousarray(w.T, dtype=np.float32) for w in model.coefs_]
    return weights, [b.astype(np.float32) for b in model.intercepts_], train_x, test_x, test_y


def calibrate(values):
    """Scale (float32) and zero point so that int8 covers ``values`` and 0, as in TFLite."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = np.float32((high - low) / 255)
    return scale, int(np.clip(np.rint(-128 - low / float(scale)), -128, 127))


def multiplier_and_shift(real):
    """``real`` as ``multiplier / 2**31 * 2**shift``, the multiplier in 2**30..2**31-1."""
    fraction, shift = np.frexp(real)
    multiplier = int(np.floor(fraction * 2.0**31 + 0.5))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier >> 1, shift + 1
    return multiplier, int(shift)


def quantize_layers(weights, biases, images):
    """The arrays of all layers, by their names in the file, calibrated on ``images``."""
    arrays = {"n_layers": np.int64(len(weights))}
    x = images.astype(np.float32) / np.float32(IMAGE_MAX)
    x_scale, x_zero_point = calibrate(x)
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        last = i + 1 == len(weights)
        x = x @ w.T + b
        x = x if last else np.maximum(x, 0)
        y_scale, y_zero_point = calibrate(x)
        maximum = np.abs(w).max(axis=1)  # almost 0 for a unit that died in training
        w_scale = (np.maximum(maximum, maximum.max() / 1024) / 127).astype(np.float32)
        sum_scale = np.float64(x_scale) * w_scale.astype(np.float64)
        factors = [multiplier_and_shift(real) for real in sum_scale / np.float64(y_scale)]
        layer = {
            "weights": np.clip(np.rint(w / w_scale[:, None]), -127, 127).astype(np.int8),
            "bias": np.rint(b / sum_scale).astype(np.int32),
            "multiplier": np.array([m for m, _ in factors], np.int32),
            "shift": np.array([s for _, s in factors], np.int32),
            "x_zero_point": np.int32(x_zero_point),
            "y_zero_point": np.int32(y_zero_point),
            "low": np.int32(-128 if last else y_zero_point),
            "high": np.int32(127),
            "x_scale": np.float32(x_scale),
            "y_scale": np.float32(y_scale),
            "w_scale": w_scale,
            "float_weights": w,
            "float_bias": b,
        }
        arrays |= {f"L{i}_{name}": value for name, value in layer.items()}
        x_scale, x_zero_point = y_scale, y_zero_point
    return arrays


def int8_predictions(network):
    """The predictions of the quantized network for its own images, in numpy integers."""
    x = network.encode(network.images)
    for layer in network.layers:
        acc = (x.astype(np.int64) - layer.x_zero_point) @ layer.weights.T.astype(
            np.int64
        ) + layer.bias
        x = requantize(
            acc, layer.multiplier, layer.shift, zero_point=layer.y_zero_point, low=layer.low,
            high=layer.high,
        )
    return np.argmax(x, axis=1)


def write_npz(path, arrays):
    """Write ``arrays`` as npz, completely or not at all, and without a time stamp."""
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
            info = zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue())
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=OUT, help="the file to write; default the one in the package"
    )
    out = parser.parse_args().out
    weights, biases, train_x, test_x, test_y = train()
    arrays = {
        "format": np.int64(FORMAT),
        "images": test_x,
        "labels": test_y,
        "image_max": np.int64(IMAGE_MAX),
        "float_accuracy": np.float64(0),
        "int8_accuracy": np.float64(0),
        **quantize_layers(weights, biases, train_x),
    }
    network = Network.from_arrays(arrays)
    arrays["float_accuracy"] = np.float64(network.accuracy(network.run_float(test_x)))
    arrays["int8_accuracy"] = np.float64(network.accuracy(int8_predictions(network)))
    write_npz(out, arrays)
    print(f"{out}: {out.stat().st_size} bytes, {len(test_y)} test images")
    print(f"accuracy {arrays['float_accuracy']:.2%} float, {arrays['int8_accuracy']:.2%} int8")


if __name__ == "__main__":
    main()
