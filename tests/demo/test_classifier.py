"""`Classifier`, with fake layers that log their calls."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from rejects import rejects

from weft.demo.classifier import Classifier
from weft.demo.run import LayerRun


class Columns:
    """A fake layer that returns some columns of its input, and logs the accelerator."""

    def __init__(self, name, k, columns):
        self.name, self.k, self.n, self.columns = name, k, len(columns), columns

    def run(self, x, accelerator):
        accelerator.append(self.name)
        return LayerRun(self.name, x, None, x[:, self.columns])


class Plain(Classifier):
    """A classifier whose first layer takes scaled images."""

    def encode(self, images):
        return self.scaled(images)


def network(**changes):
    return Plain(**{
        "layers": (Columns("first", 3, [2, 1]), Columns("second", 2, [0, 1])),
        "images": np.array([[0, 1, 2], [4, 3, 1], [0, 4, 2]], np.uint8),
        "labels": np.array([0, 1, 0], np.uint8), "image_max": 4, "float_accuracy": 0.5,
    } | changes)


def test_run_passes_results_to_the_next_layer():
    seen, accelerator = [], []
    predictions, runs = network().run(network().images, accelerator, on_layer=seen.append)
    assert predictions.tolist() == [0, 1, 1]
    assert accelerator == ["first", "second"]
    assert seen == runs
    assert runs[0].x.dtype == np.float32
    assert runs[0].x.tolist() == [[0, 0.25, 0.5], [1, 0.75, 0.25], [0, 1, 0.5]]
    assert runs[1].x is runs[0].y
    assert network().accuracy(predictions) == 2 / 3


def test_run_needs_no_callback():
    assert network().run(network().images[1:2], [])[0].tolist() == [1]


@pytest.mark.parametrize("changes, message", [
    ({"layers": ()}, "layers must not be empty"),
    ({"layers": (Columns("x", 3, [0]), Columns("y", 2, [0]))},
     "y must take the 1 values of x, not 2"),
    ({"image_max": 0}, "image_max must be in 1..255, not 0"),
    ({"image_max": 3}, "images must be in 0..3, not 4"),
    ({"images": np.zeros((3, 2), np.uint8)},
     "images must be uint8 of shape [M, 3], not uint8 of shape (3, 2)"),
    ({"labels": np.zeros(2, np.uint8)},
     "labels must be uint8 of shape (3,), not uint8 of shape (2,)"),
    ({"labels": np.array([0, 1, 2], np.uint8)}, "labels must be under 2, not 2"),
    ({"float_accuracy": 1.5}, "float_accuracy must be in 0..1, not 1.5"),
])
def test_rejects_parts_that_do_not_fit(changes, message):
    with rejects(ValueError, message):
        network(**changes)


def test_rejects_predictions_of_other_images():
    with pytest.raises(ValueError, match=r"^predictions must be of shape \(3,\), not \(2,\)$"):
        network().accuracy(np.zeros(2))


def test_the_base_class_has_no_encode():
    shared = {f.name: getattr(network(), f.name) for f in dataclasses.fields(Classifier)}
    with pytest.raises(NotImplementedError):
        Classifier(**shared).run(network().images, SimpleNamespace())
