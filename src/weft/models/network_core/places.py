"""Values of tensors as bytes of maps, and back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.models.ir import Tensor
from weft.models.network_core.jobs import PlacedMap
from weft.network_core.addresses import split
from weft.network_core.config import NetworkCoreConfig

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreInput

__all__ = ["input_writes", "map_values"]

_HALF = np.uint8(0x80)  # uint8 - 128 is int8: the same bits with the top bit inverted
_MAX_FIELD = 255  # of `run` and `pitch` of a WRITE frame


def input_writes(
    entry: "NetworkCoreInput", values: np.ndarray, dtype: np.dtype, config: NetworkCoreConfig,
    first: int,
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `NetworkCoreRunner.write` for an input.

    Parameters
    ----------
    values : int8 or uint8 array
        Of the tensor ``entry.form.tensor``.
    first : int
        First vector of the maps of the inference.
    """
    if dtype == np.uint8:
        values = (values ^ _HALF).view(np.int8)
    place, banks = entry.place, config.banks
    pitch, row_pitch = place.pitches.pitch, place.pitches.row_pitch
    whole = np.ascontiguousarray(entry.form.arrange(values))
    address = split(place.first + first, banks)
    if place.channels <= _MAX_FIELD and pitch <= _MAX_FIELD:
        step = split(row_pitch - (place.width - 1) * pitch, banks)
        yield dict(
            address=address, data=whole.tobytes(), run=place.channels, pitch=pitch,
            pixels=place.width, row_step=step,
        )
        return
    padding = -place.channels % config.array.depth
    whole = np.pad(whole, ((0, 0), (0, 0), (0, padding)))
    for y in range(place.height):
        for x in range(place.width):
            number = place.first + first + y * row_pitch + x * pitch
            yield dict(address=split(number, banks), data=whole[y, x].tobytes())


def map_values(data: bytes, place: PlacedMap, tensor: Tensor, depth: int) -> np.ndarray:
    """Return the values of a tensor from the bytes of its map, from its first vector on."""
    used = place.pitches.vectors * depth
    vectors = np.frombuffer(data.ljust(used, b"\0")[:used], np.int8).reshape(-1, depth)
    y, x, v = np.ogrid[: place.height, : place.width, : -(-place.channels // depth)]
    numbers = y * place.pitches.row_pitch + x * place.pitches.pitch + v
    whole = vectors[numbers].reshape(place.height, place.width, -1)[..., : place.channels]
    if tensor.dtype == np.uint8:
        whole = np.ascontiguousarray(whole).view(np.uint8) ^ _HALF
    return whole.reshape(tensor.shape)
