"""`Network`, the network in INT8, with its float weights and test images; read from a file."""

import dataclasses
import io
import zipfile
import zlib
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np

from weft.demo.classifier import Classifier
from weft.demo.layer import Layer

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
# The exceptions that numpy and zipfile raise for damaged archives.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
_LAYER_KEYS = [f.name for f in dataclasses.fields(Layer) if f.name != "name"]


class NetworkError(ValueError):
    """A file does not contain a valid network; the message names the file, the key and the rule."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network(Classifier):
    """A network in INT8; its layers also hold the float weights.

    Attributes
    ----------
    int8_accuracy : float
        The share of `images` that the quantized network classified correctly, measured in training.
    """

    layers: tuple[Layer, ...]
    int8_accuracy: float

    def __post_init__(self):
        super().__post_init__()
        for before, after in pairwise(self.layers):
            if (before.y_zero_point, before.y_scale) != (after.x_zero_point, after.x_scale):
                raise ValueError(
                    f"{after.name} must have the zero point and scale that {before.name} gives, "
                    f"{before.y_zero_point} and {before.y_scale}, "
                    f"not {after.x_zero_point} and {after.x_scale}"
                )
        self._check_share("int8_accuracy")

    @classmethod
    def load(cls, path=None) -> "Network":
        """The network of an npz file; by default, the digits network that comes with Weft.

        Raises
        ------
        NetworkError
            If the file is missing or damaged, lacks a key, or contains no valid network.
        """
        if path is None:
            source = resources.files("weft.demo") / "digits.npz"
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
        """The network of the arrays of a file, by name: ``images``, ``L0_weights``, ``L0_bias``...

        Raises
        ------
        NetworkError
            If a key is missing, or an array has a wrong type, shape or value.
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

    def encode(self, images) -> np.ndarray:
        """``rint(images / image_max / x_scale) + x_zero_point`` of the first layer, int8 [M, K]."""
        self._check(images)
        first = self.layers[0]
        steps = np.rint(images / self.image_max / first.x_scale).astype(np.int64)
        return np.clip(steps + first.x_zero_point, -128, 127).astype(np.int8)

    def run_float(self, images) -> np.ndarray:
        """Classify ``images`` with the float network: int64 [M]. Raises as `encode`."""
        x = self.scaled(images)
        for layer in self.layers:
            x = layer.run_float(x, relu=layer is not self.layers[-1])
        return np.argmax(x, axis=1)


def _take(arrays, key):
    if key not in arrays:
        raise NetworkError(f"key {key} is missing")
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
