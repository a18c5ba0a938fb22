"""A quantized network with its test images: loaded from a file, checked, and run layer by layer."""

import dataclasses
import io
import zipfile
import zlib
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np

from weft.model.layer import Layer

__all__ = ["FORMAT", "Network", "NetworkError"]

FORMAT = 1
_SCALARS = {
    "x_zero_point": int,
    "y_zero_point": int,
    "low": int,
    "high": int,
    "x_scale": float,
    "y_scale": float,
}
# What numpy and zipfile raise, between them, for damaged archives.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
_LAYER_KEYS = [f.name for f in dataclasses.fields(Layer) if f.name != "name"]


class NetworkError(ValueError):
    """A file that holds no network; the message names the file, the key and the rule."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Layers one behind the other, images to try them on, and the accuracies known for these.

    Attributes
    ----------
    layers : tuple of Layer
        Each takes what the one before gives; ReLU between them, none behind the last.
    images : uint8 [T, K]
        Test images, one a row, each value in 0..image_max.
    labels : uint8 [T]
        What each image shows: a column of the last layer's output.
    image_max : int
        The value that stands for 1.0.
    float_accuracy, int8_accuracy : float
        Shares of `images` told right before and after quantization, as measured in training.

    Raises
    ------
    TypeError, ValueError
        For parts that do not fit together, by name.
    """

    layers: tuple[Layer, ...]
    images: np.ndarray
    labels: np.ndarray
    image_max: int
    float_accuracy: float
    int8_accuracy: float

    def __post_init__(self):
        if not self.layers:
            raise ValueError("layers must be one or more, not none")
        for before, after in pairwise(self.layers):
            if before.n != after.k:
                raise ValueError(
                    f"{after.name} must take the {before.n} values of {before.name}, not {after.k}"
                )
            if (before.y_zero_point, before.y_scale) != (after.x_zero_point, after.x_scale):
                raise ValueError(
                    f"{after.name} must have the zero point and scale that {before.name} gives, "
                    f"{before.y_zero_point} and {before.y_scale}, "
                    f"not {after.x_zero_point} and {after.x_scale}"
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
        for name in ("float_accuracy", "int8_accuracy"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in 0..1, not {getattr(self, name)}")

    @classmethod
    def load(cls, path=None) -> "Network":
        """The network of an npz file; without ``path`` the handwritten digits that come with Weft.

        Raises
        ------
        NetworkError
            For a file that is not there, is damaged, lacks a key, or describes no network.
        """
        if path is None:
            source = resources.files("weft.model") / "digits.npz"
        else:
            source = Path(path)
        try:
            content = io.BytesIO(source.read_bytes())
            if not zipfile.is_zipfile(content):
                raise zipfile.BadZipFile("it is no zip archive")
            with np.load(content, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
        except _UNREADABLE as error:
            raise NetworkError(f"{source} must be a readable npz file: {error}") from error
        try:
            return cls.from_arrays(arrays)
        except NetworkError as error:
            raise NetworkError(f"{source}: {error}") from error

    @classmethod
    def from_arrays(cls, arrays: dict) -> "Network":
        """The network of named arrays as in the file: ``images``, ``L0_weights``, ``L0_bias``...

        Raises
        ------
        NetworkError
            For a key that is missing or an array that breaks its rule.
        """
        try:
            version = _scalar(arrays, "format", int)
            if version != FORMAT:
                raise ValueError(f"format must be {FORMAT}, not {version}")
            layers = tuple(_layer(arrays, i) for i in range(_scalar(arrays, "n_layers", int)))
            return cls(
                layers=layers,
                images=_take(arrays, "images"),
                labels=_take(arrays, "labels"),
                image_max=_scalar(arrays, "image_max", int),
                float_accuracy=_scalar(arrays, "float_accuracy", float),
                int8_accuracy=_scalar(arrays, "int8_accuracy", float),
            )
        except NetworkError:
            raise
        except (TypeError, ValueError) as error:
            raise NetworkError(str(error)) from error

    def quantize(self, images) -> np.ndarray:
        """``rint(images / image_max / x_scale) + x_zero_point`` of the first layer, int8 [M, K].

        Raises TypeError or ValueError for what is not uint8 [M, K] with values in 0..image_max.
        """
        self._check(images)
        first = self.layers[0]
        steps = np.rint(images / self.image_max / first.x_scale).astype(np.int64)
        return np.clip(steps + first.x_zero_point, -128, 127).astype(np.int8)

    def run(self, images, accelerator, after=None):
        """What the network sees in each of ``images``, with every layer on ``accelerator``.

        Parameters
        ----------
        images : uint8 [M, K]
        accelerator : `weft.Accelerator`
            Of a Config that requantizes as ``tflite`` it does whole layers, else their matmuls.
        after : callable, optional
            Called with the `LayerRun` of each layer as it ends.

        Returns
        -------
        predictions : int64 [M]
        layers : list of LayerRun

        Raises
        ------
        TypeError, ValueError
            As `quantize`.
        """
        x, runs = self.quantize(images), []
        for layer in self.layers:
            done = layer.run(x, accelerator)
            x = done.y
            runs.append(done)
            if after:
                after(done)
        return np.argmax(x, axis=1), runs

    def run_float(self, images) -> np.ndarray:
        """What the float network sees in each of ``images``, int64 [M]. Raises as `quantize`."""
        self._check(images)
        x = images.astype(np.float32) / np.float32(self.image_max)
        for layer in self.layers:
            x = layer.run_float(x, relu=layer is not self.layers[-1])
        return np.argmax(x, axis=1)

    def accuracy(self, predictions) -> float:
        """The share of ``predictions``, one for each of `images`, that are right.

        Raises ValueError for any other number of them.
        """
        if np.shape(predictions) != self.labels.shape:
            raise ValueError(
                f"predictions must be of shape {self.labels.shape}, not {np.shape(predictions)}"
            )
        return float(np.mean(predictions == self.labels))

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


def _take(arrays, key):
    if key not in arrays:
        raise NetworkError(f"key {key} must be there, and is missing")
    return arrays[key]


def _scalar(arrays, key, kind):
    """One number, an integer where ``kind`` is int."""
    value = _take(arrays, key)
    if value.ndim or value.dtype.kind not in ("iu" if kind is int else "f"):
        word = "an integer" if kind is int else "a floating-point number"
        raise NetworkError(f"{key} must be {word}, not {value.dtype} of shape {value.shape}")
    return kind(value)


def _layer(arrays, index):
    """Layer ``index``, whose keys start with ``L<index>_``."""
    values = {}
    for name in _LAYER_KEYS:
        key = f"L{index}_{name}"
        kind = _SCALARS.get(name)
        values[name] = _scalar(arrays, key, kind) if kind else _take(arrays, key)
    try:
        return Layer(name=f"layer {index + 1}", **values)
    except (TypeError, ValueError) as error:
        raise NetworkError(f"L{index}_{error}") from error
