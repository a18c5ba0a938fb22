"""Writes a small network of each framework that is installed, as docs/export.md describes."""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

__all__ = ["EXPORTERS", "main", "missing"]

SIZE = 8  # of the images, in pixels


def export_torch(folder: Path) -> Path:
    """``torch.onnx``: a convolution, a ReLU, pooling and a linear layer of PyTorch."""
    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * (SIZE // 2) ** 2, 10),
    ).eval()
    path = folder / "torch.onnx"
    x = torch.zeros(1, 3, SIZE, SIZE)
    torch.onnx.export(model, (x,), path, dynamo=True, external_data=False, verbose=False)
    return path


def export_jax(folder: Path) -> Path:
    """``jax.onnx``: two layers of JAX, the first one with a bias and a ReLU."""
    import jax.numpy as jnp
    from jax2onnx import to_onnx

    rng = np.random.default_rng(1)
    first, second, bias = (
        jnp.asarray(rng.normal(0, 0.2, shape), jnp.float32) for shape in ((64, 32), (32, 10), 32)
    )

    def network(x):
        return jnp.maximum(x @ first + bias, 0) @ second

    path = folder / "jax.onnx"
    to_onnx(network, [(1, 64)], return_mode="file", output_path=str(path))
    return path


def export_tensorflow(folder: Path) -> Path:
    """``tensorflow.tflite``: a convolution and a dense layer of Keras, quantized to INT8."""
    import tensorflow as tf

    tf.random.set_seed(1)
    model = tf.keras.Sequential([
        tf.keras.Input((SIZE, SIZE, 3)), tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Flatten(), tf.keras.layers.Dense(10),
    ])
    samples = np.random.default_rng(1).normal(size=(16, 1, SIZE, SIZE, 3)).astype(np.float32)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x] for x in samples)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    path = folder / "tensorflow.tflite"
    path.write_bytes(converter.convert())
    return path


# The function and the packages of each framework.
EXPORTERS = {
    "torch": (export_torch, ("torch", "onnxscript")),
    "jax": (export_jax, ("jax", "jax2onnx")),
    "tensorflow": (export_tensorflow, ("tensorflow",)),
}


def missing(framework: str) -> list[str]:
    """The packages of a framework that are not installed."""
    return [name for name in EXPORTERS[framework][1] if importlib.util.find_spec(name) is None]


def main(argv=None) -> int:
    """Export all examples that can be; exit code 1 if none can."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write the files")
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for framework, (export, _) in EXPORTERS.items():
        if absent := missing(framework):
            print(f"{framework}: skipped, as {', '.join(absent)} is not installed")
            continue
        print(f"{framework}: {export(folder)}")
        written += 1
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
