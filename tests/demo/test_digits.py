"""The digits network and its images: shapes, size, and the accuracy of both files."""

from importlib import resources

import numpy as np
import pytest

from weft.config import Config
from weft.demo import digits_images, digits_network

pytest.importorskip("tflite")


def scores(kind, images):
    with digits_network(kind).compile(Config()).open("golden") as session:
        return session(images)


def test_files_are_small():
    files = [file.name for file in resources.files("weft.demo").iterdir()]
    assert {"digits.npz", "digits_mlp_float32.tflite", "digits_mlp_int8.tflite"} <= set(files)
    for name in files:
        if not name.startswith("__"):
            limit = 400_000 if name == "stories.weft" else 100_000
            assert len((resources.files("weft.demo") / name).read_bytes()) < limit


def test_images():
    images, labels = digits_images()
    assert images.dtype == np.float32 and images.shape == (450, 64)
    assert (images.min(), images.max()) == (0, 1)
    assert labels.dtype == np.uint8 and set(labels.tolist()) == set(range(10))


@pytest.mark.parametrize("kind, correct", [("float32", 439), ("int8", 438)])
def test_accuracy(kind, correct):
    images, labels = digits_images()
    assert np.sum(scores(kind, images).argmax(axis=1) == labels) == correct


def test_int8_is_near_float32_in_every_output():
    """Each score is within 5 % of their span, so that a wrong layer cannot hide."""
    images, _ = digits_images()
    wanted = scores("float32", images)
    assert np.abs(scores("int8", images) - wanted).max() <= 0.05 * np.ptp(wanted)


def test_weights_of_int8_are_the_rounded_weights_of_float32():
    files = [digits_network(kind).graph.nodes for kind in ("int8", "float32")]
    for ours, theirs in zip(*files, strict=True):
        scale = ours.requantization.w_scale
        assert np.abs(ours.weights * scale - theirs.weights).max() <= 0.501 * scale.max()
