"""Pictures and sounds as inputs of a network: ``.png``, ``.jpg``, ``.wav``, folders, CSV lists."""

import csv
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.ir import Tensor

__all__ = ["MEDIA", "LabelledFiles", "Normalization", "read_list", "read_media"]

IMAGES = (".bmp", ".jpeg", ".jpg", ".png")
SOUNDS = (".wav",)
MEDIA = (*IMAGES, *SOUNDS)
_LARGEST = 1 << 26  # samples of a sound, and pixels of a picture


@dataclass(frozen=True)
class Normalization:
    """``(value - mean) / std``, for each channel or for all; values of pixels are 0..255.

    Attributes
    ----------
    mean, std : tuple of float
        One number, or one for each channel.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class LabelledFiles:
    """The rows of a CSV list.

    Attributes
    ----------
    files : tuple of Path
    labels : tuple of str
        A name or a number of a class for each file.
    """

    files: tuple[Path, ...]
    labels: tuple[str, ...]


def read_list(path) -> LabelledFiles:
    """Read a CSV file of rows ``file,label``; a first row with these two words is skipped.

    Files are relative to the folder of the list. Raises ModelError for another form.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{path}: must be a CSV file of UTF-8: {error}") from error
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise ModelError(f"{path}: row {number} must be file,label, not {len(row)} columns")
    if rows and rows[0] == ["file", "label"]:
        rows = rows[1:]
    if not rows:
        raise ModelError(f"{path}: must have a row file,label for each sample, not 0 rows")
    files, labels = zip(*((name.strip(), label.strip()) for name, label in rows), strict=True)
    return LabelledFiles(tuple(path.parent / name for name in files), labels)


def read_media(
    path, tensor: Tensor, layout: str, normalization: Normalization | None = None
) -> np.ndarray:
    """Return a picture or a sound as the value of an input.

    A picture is scaled to the size of the input, in its channels: 1 (grey), 3 (RGB) or 4 (RGBA). A
    sound has one sample for each element; a shorter one ends with silence.

    Parameters
    ----------
    path : str or Path
    tensor : Tensor
        The input.
    layout : str
        ``NHWC`` or ``NCHW``: the order of the axes of a picture.
    normalization : Normalization, optional
        By default the values of pixels cover the range of an input of 8 bits (0 becomes the lowest
        value), or 0..1 of a float32 input. Samples of a sound are -1..1.

    Returns
    -------
    array of the shape of the input
        float32, or the type of the input if it has 8 bits and nothing else is said.

    Raises
    ------
    ModelError
        If the file cannot be read as such, or does not fit the input.
    """
    path = Path(path)
    read = _sound if path.suffix.lower() in SOUNDS else _picture
    return read(path, tensor, layout, normalization)


def _picture(path, tensor, layout, normalization):
    shape = tensor.shape
    if len(shape) != 4 or shape[0] != 1:
        raise ModelError(f"{path}: input {tensor.name} must be one map for a picture, not {shape}")
    height, width, channels = shape[1:] if layout == "NHWC" else (*shape[2:], shape[1])
    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise ModelError(
            f"{path}: input {tensor.name} must have 1, 3 or 4 channels for a picture,"
            f" not {channels}"
        )
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ModelError(
            f"{path}: a picture needs the package pillow; {to_install(extra='images')}"
        ) from error
    try:
        with Image.open(path) as image:
            if image.width * image.height > _LARGEST:
                raise ModelError(
                    f"{path}: must have at most {_LARGEST:,} pixels, not"
                    f" {image.width:,} x {image.height:,}"
                )
            pixels = image.convert(modes[channels]).resize(
                (width, height), Image.Resampling.BILINEAR
            )
    except (UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise ModelError(f"{path}: must be a picture: {error}") from error
    values = np.asarray(pixels, np.uint8).reshape(1, height, width, channels)
    found = _normalized(values, tensor, normalization, path)
    return found if layout == "NHWC" else np.ascontiguousarray(found.transpose(0, 3, 1, 2))


def _normalized(values, tensor, normalization, path):
    """Values 0..255 [..., channels] as values of the input."""
    if normalization is not None:
        for what, numbers in (("mean", normalization.mean), ("std", normalization.std)):
            if len(numbers) not in (1, values.shape[-1]):
                raise ModelError(
                    f"{path}: {what} must be one number, or one for each of"
                    f" {values.shape[-1]} channels, not {len(numbers)}"
                )
        mean, std = (np.float32(numbers) for numbers in (normalization.mean, normalization.std))
        return ((values.astype(np.float32) - mean) / std).astype(np.float32)
    if tensor.dtype in (np.int8, np.uint8):
        return (values.astype(np.int16) + np.iinfo(tensor.dtype).min).astype(tensor.dtype)
    if tensor.dtype != np.float32:
        raise ModelError(
            f"{path}: input {tensor.name} must be int8, uint8 or float32 for a picture, not"
            f" {tensor.dtype}"
        )
    return values.astype(np.float32) / np.float32(255)


def _sound(path, tensor, layout, normalization):
    size = int(np.prod(tensor.shape))
    if sorted(tensor.shape)[:-1] != [1] * (len(tensor.shape) - 1):
        raise ModelError(
            f"{path}: input {tensor.name} must be a row of samples for a sound, not {tensor.shape}:"
            " compute its features first, and give them as a .npy file"
        )
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, count = file.getnchannels(), file.getsampwidth(), file.getnframes()
            if count > _LARGEST:
                raise ModelError(f"{path}: must have at most {_LARGEST:,} samples, not {count:,}")
            data = file.readframes(count)
    except (EOFError, wave.Error) as error:
        raise ModelError(f"{path}: must be a .wav file of PCM samples: {error}") from error
    values = _samples(data, width, channels, path)
    if len(values) > size:
        raise ModelError(
            f"{path}: must have at most {size:,} samples, as input {tensor.name} has, not"
            f" {len(values):,}"
        )
    values = np.pad(values, (0, size - len(values))).reshape(tensor.shape)
    if normalization is not None:
        [mean], [std] = normalization.mean, normalization.std
        values = (values - np.float32(mean)) / np.float32(std)
    return values.astype(np.float32)


def _samples(data, width, channels, path):
    """PCM data as float32 -1..1, the mean of all channels."""
    kinds = {1: "u1", 2: "<i2", 4: "<i4"}
    if width not in kinds:
        raise ModelError(f"{path}: samples must have 8, 16 or 32 bits, not {8 * width}")
    whole = len(data) // (width * channels) * width * channels
    values = np.frombuffer(data[:whole], kinds[width]).astype(np.float64).reshape(-1, channels)
    if width == 1:
        values -= 128
    return (values.mean(axis=1) / 2.0 ** (8 * width - 1)).astype(np.float32)
