"""What networks of any type share: layers in a row, images to try, and how many are right."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Classifier"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """Layers one behind the other, images to try them on, and the accuracy known for these.

    A network of a type says what its first layer takes for an image.

    Attributes
    ----------
    layers : tuple of Layer or Bf16Layer
        Each takes what the one before gives; ReLU between them, none behind the last.
    images : uint8 [T, K]
        Test images, one a row, each value in 0..image_max.
    labels : uint8 [T]
        What each image shows: a column of the last layer's output.
    image_max : int
        The value that stands for 1.0.
    float_accuracy : float
        The share of `images` that the network told right in float32, as measured in training.

    Raises
    ------
    TypeError, ValueError
        For parts that do not fit together, by name.
    """

    layers: tuple
    images: np.ndarray
    labels: np.ndarray
    image_max: int
    float_accuracy: float

    def __post_init__(self):
        if not self.layers:
            raise ValueError("layers must be one or more, not none")
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
        """What the first layer takes for ``images``: [M, K].

        Raises TypeError or ValueError for what is not uint8 [M, K] with values in 0..image_max.
        """
        raise NotImplementedError

    def run(self, images, accelerator, after=None):
        """What the network sees in each of ``images``, with every layer on ``accelerator``.

        Parameters
        ----------
        images : uint8 [M, K]
        accelerator : `weft.Accelerator`
            Of a Config that finishes results as the layers want it does whole layers, else their
            matmuls.
        after : callable, optional
            Called with the `LayerRun` of each layer as it ends.

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
            done = layer.run(x, accelerator)
            x = done.y
            runs.append(done)
            if after:
                after(done)
        return np.argmax(x, axis=1), runs

    def accuracy(self, predictions) -> float:
        """The share of ``predictions``, one for each of `images`, that are right.

        Raises ValueError for any other number of them.
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
        """Refuses what are no images of this network."""
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
