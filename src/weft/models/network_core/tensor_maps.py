"""Between tensors and maps: what the host writes for an input, and the values of a map it reads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.host.packing import HALF, signed
from weft.models.ir import Tensor
from weft.models.network_core.jobs import PlacedMap
from weft.models.network_core.wide_maps import INT16, bytes_of, values_of
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import split

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreInput

__all__ = ["input_writes", "map_values"]

_MAX_FIELD = 255  # of `run` and `pitch` of a WRITE frame


def input_writes(
    entry: "NetworkCoreInput", values: np.ndarray, dtype: np.dtype, config: NetworkCoreConfig,
    first: int,
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `NetworkCoreRunner.write` for an input.

    Parameters
    ----------
    values : int8, uint8 or int16 array
        Of the tensor ``entry.form.tensor``.
    first : int
        First vector of the maps of the inference.
    """
    if dtype == np.uint8:
        values = signed(values)
    elif dtype == INT16:
        values = bytes_of(values)
    placed, banks = entry.place, config.banks
    pitch, row_pitch = placed.pitches.pitch, placed.pitches.row_pitch
    pixels = np.ascontiguousarray(entry.form.arrange(values))  # [height, width, channels]
    address = split(placed.first + first, banks)
    if placed.channels <= _MAX_FIELD and pitch <= _MAX_FIELD:
        step = split(row_pitch - (placed.width - 1) * pitch, banks)
        yield dict(
            address=address, data=pixels.tobytes(), run=placed.channels, pitch=pitch,
            pixels=placed.width, row_step=step,
        )
        return
    padding = -placed.channels % config.array.depth
    pixels = np.pad(pixels, ((0, 0), (0, 0), (0, padding)))
    for y in range(placed.height):
        for x in range(placed.width):
            vector = placed.first + first + y * row_pitch + x * pitch
            yield dict(address=split(vector, banks), data=pixels[y, x].tobytes())


def map_values(data: bytes, placed: PlacedMap, tensor: Tensor, depth: int) -> np.ndarray:
    """Return the values of a tensor from the bytes of its map, from its first vector on."""
    # A result of a list ends with its last value, in the middle of a vector: it may be too short.
    used = placed.pitches.vectors * depth
    vectors = np.frombuffer(data.ljust(used, b"\0")[:used], np.int8).reshape(-1, depth)
    y, x, v = np.ogrid[: placed.height, : placed.width, : -(-placed.channels // depth)]
    indices = y * placed.pitches.row_pitch + x * placed.pitches.pitch + v
    pixels = vectors[indices].reshape(placed.height, placed.width, -1)[..., : placed.channels]
    if tensor.dtype == np.uint8:
        pixels = np.ascontiguousarray(pixels).view(np.uint8) ^ np.uint8(HALF)
    elif tensor.dtype == INT16:
        pixels = values_of(pixels)
    if tensor.channels_first:
        pixels = pixels.transpose(2, 0, 1)
    return pixels.reshape(tensor.shape)
