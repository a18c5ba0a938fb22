"""The digits network of ``weft sim``: a file in int8, one in float32, and test images."""

from importlib import resources

import numpy as np

from weft.models.loading import NeuralNetwork, load

__all__ = ["digits_images", "digits_network"]

_FILES = resources.files("weft.demo")
_IMAGE_MAX = 16  # the pixel value that represents 1.0


def digits_network(kind: str) -> NeuralNetwork:
    """The network in ``int8`` or ``float32``: three fully connected layers, two with a ReLU.

    Its input is an image [1, 64] of values in 0..1, its output a score for each digit, [1, 10].
    """
    name = f"digits_mlp_{kind}"
    return load((_FILES / f"{name}.tflite").read_bytes(), name)


def digits_images() -> tuple[np.ndarray, np.ndarray]:
    """The test images, float32 [450, 64] of values in 0..1, and their digits, uint8 [450]."""
    with (_FILES / "digits.npz").open("rb") as file, np.load(file) as arrays:
        return arrays["images"] / np.float32(_IMAGE_MAX), arrays["labels"]
