"""Trains an MLP on scikit-learn's handwritten digits, and writes TFLite files and test images.

    python -m tools.train_digits [--out FOLDER]

Writes ``digits_mlp_float32.tflite``, ``digits_mlp_int8.tflite`` (the same network quantized), and
``digits.npz``, the test images. Needs scikit-learn and tflite-micro in addition to Weft. Data:
Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning
Repository, CC BY 4.0. The same machine and the same versions give the same bytes.
"""

import argparse
import io
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from tools.int8_files import NONE, RELU, calibrate
from tools.tflite_writer import fully_connected_file
from weft.config import Config
from weft.models.loading import load

__all__ = ["main", "train"]

OUT = Path(__file__).resolve().parent.parent / "src" / "weft" / "demo"
DATA = "Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0"
ACTIVATIONS = (RELU, RELU, NONE)
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


def float_layers(weights, biases):
    """The layers in float32, for `tools.tflite_writer.fully_connected_file`."""
    return [
        SimpleNamespace(
            weights=w, bias=b, x_scale=None, w_scale=None, y_scale=None, x_zero_point=0,
            y_zero_point=0,
        )
        for w, b in zip(weights, biases, strict=True)
    ]


def quantized_layers(weights, biases, images):
    """The layers in int8, calibrated on ``images``."""
    layers = []
    x = images.astype(np.float32) / np.float32(IMAGE_MAX)
    x_scale, x_zero_point = calibrate(x)
    for w, b, activation in zip(weights, biases, ACTIVATIONS, strict=True):
        x = x @ w.T + b
        x = np.maximum(x, 0) if activation == RELU else x
        y_scale, y_zero_point = calibrate(x)
        maximum = np.abs(w).max(axis=1)  # almost 0 for a unit that died in training
        w_scale = (np.maximum(maximum, maximum.max() / 1024) / 127).astype(np.float32)
        sum_scale = np.float64(x_scale) * w_scale.astype(np.float64)
        layers.append(SimpleNamespace(
            weights=np.clip(np.rint(w / w_scale[:, None]), -127, 127).astype(np.int8),
            bias=np.rint(b / sum_scale).astype(np.int32),
            x_scale=float(x_scale), w_scale=w_scale, y_scale=float(y_scale),
            x_zero_point=x_zero_point, y_zero_point=y_zero_point,
        ))
        x_scale, x_zero_point = y_scale, y_zero_point
    return layers


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
        "--out", type=Path, default=OUT, help="folder; default the one of the package"
    )
    out = parser.parse_args().out
    weights, biases, train_x, test_x, test_y = train()
    write_npz(out / "digits.npz", {"images": test_x, "labels": test_y})
    for kind, layers in (
        ("int8", quantized_layers(weights, biases, train_x)),
        ("float32", float_layers(weights, biases)),
    ):
        path = out / f"digits_mlp_{kind}.tflite"
        path.write_bytes(fully_connected_file(
            layers, ACTIVATIONS, description=f"digits MLP; data: {DATA}"
        ))
        with load(path).compile(Config()).open("golden") as session:
            scores = session(test_x / np.float32(IMAGE_MAX))
        correct = np.mean(scores.argmax(axis=1) == test_y)
        print(f"{path}: {path.stat().st_size} bytes, {correct:.2%} of {len(test_y)} test images")


if __name__ == "__main__":
    main()
