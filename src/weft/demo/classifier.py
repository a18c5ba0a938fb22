"""`Classifier`, the base class of the networks: layers, test images, and accuracy."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Classifier"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """A chain of layers, with test images and the accuracy that was measured in training.

    Subclasses define `encode`, which converts images to inputs of the first layer.

    Attributes
    ----------
    layers : tuple of Layer or Bf16Layer
        Each layer takes the output of the one before; ReLU after each layer except the last.
    images : uint8 [T, K]
        Test images, one per row; each value is in 0..image_max.
    labels : uint8 [T]
        The class of each image: a column of the last layer's output.
    image_max : int
        The pixel value that represents 1.0.
    float_accuracy : float
        The share of `images` that the float32 network classified correctly, measured in training.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit together.
    """

    layers: tuple
    images: np.ndarray
    labels: np.ndarray
    image_max: int
    float_accuracy: float

    def __post_init__(self):
        if not self.layers:
            raise ValueError("layers must not be empty")
        for before, after in pairwise(self.layers):
            if before.n != after.k:
                raise ValueError(
                    f"{after.name} must take the {before.n} values of {before.name}, not {after.k}"
                )
        if not 1 <= self.image_max <= 255:
            raise ValueError(f"image_max must be in 1..255, not {self.image_max}")
        self._check(self.images)
        if self.labels.dtype != np.uint8 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"labels must be uint8 of shape {self.images.shape[:1]}, "
                f"not {self.labels.dtype} of shape {self.labels.shape}"
            )
        if self.labels.max() >= self.layers[-1].n:
            raise ValueError(f"labels must be under {self.layers[-1].n}, not {self.labels.max()}")
        self._check_share("float_accuracy")

    def encode(self, images) -> np.ndarray:
        """The input [M, K] of the first layer for ``images``.

        Raises TypeError or ValueError if ``images`` is not uint8 [M, K] with values in
        0..image_max.
        """
        raise NotImplementedError

    def run(self, images, accelerator, on_layer=None):
        """Classify ``images``, with every layer on ``accelerator``.

        Parameters
        ----------
        images : uint8 [M, K]
        accelerator : `weft.Accelerator`
            It computes whole layers if its Config can finish the results; otherwise only the
            matrix products.
        on_layer : callable, optional
            Called with the `LayerRun` of each layer when the layer is done.

        Returns
        -------
        predictions : int64 [M]
        layers : list of LayerRun

        Raises
        ------
        TypeError, ValueError
            As `encode`.
        """
        x, runs = self.encode(images), []
        for layer in self.layers:
            run = layer.run(x, accelerator)
            x = run.y
            runs.append(run)
            if on_layer:
                on_layer(run)
        return np.argmax(x, axis=1), runs

    def accuracy(self, predictions) -> float:
        """The share of correct ``predictions``, which has one value for each of `images`.

        Raises ValueError if the number of predictions is another one.
        """
        if np.shape(predictions) != self.labels.shape:
            raise ValueError(
                f"predictions must be of shape {self.labels.shape}, not {np.shape(predictions)}"
            )
        return float(np.mean(predictions == self.labels))

    def scaled(self, images) -> np.ndarray:
        """``images / image_max``, float32 [M, K]. Raises as `encode`."""
        self._check(images)
        return images.astype(np.float32) / np.float32(self.image_max)

    def _check(self, images):
        """Raise TypeError or ValueError if ``images`` are not images of this network."""
        k = self.layers[0].k
        if not isinstance(images, np.ndarray):
            raise TypeError(f"images must be a numpy array, not {type(images).__name__}")
        if images.dtype != np.uint8 or images.shape[1:] != (k,) or not images.size:
            raise ValueError(
                f"images must be uint8 of shape [M, {k}], "
                f"not {images.dtype} of shape {images.shape}"
            )
        if images.max() > self.image_max:
            raise ValueError(f"images must be in 0..{self.image_max}, not {images.max()}")

    def _check_share(self, name):
        if not 0 <= getattr(self, name) <= 1:
            raise ValueError(f"{name} must be in 0..1, not {getattr(self, name)}")
