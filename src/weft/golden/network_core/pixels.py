"""The bytes of a WRITE frame in the memory of a network core."""

import numpy as np

__all__ = ["write_pixels"]


def write_pixels(
    memory, first: int, data: bytes, *, run: int = 0, pitch: int = 0, pixels: int = 0,
    row_step: int = 0,
) -> None:
    """Write pixels of ``run`` bytes; zeros follow each to the end of its last vector.

    Pixel ``x`` of row ``y`` starts at vector ``first + y * ((pixels - 1) * pitch + row_step) +
    x * pitch``. The last pixel may be shorter. If ``run`` is 0, the data is one pixel.

    Parameters
    ----------
    memory : uint8 [vectors, depth]
    first, run, pitch, pixels, row_step : int
        Fields of the frame, in vectors, bytes, vectors, pixels and vectors.
    data : bytes
    """
    depth = memory.shape[1]
    run, pixels = run or len(data) or 1, pixels or 1
    for start in range(0, len(data), run):
        y, x = divmod(start // run, pixels)
        pixel = data[start : start + run]
        vectors = -(-len(pixel) // depth)
        place = first + y * ((pixels - 1) * pitch + row_step) + x * pitch
        padded = np.frombuffer(pixel.ljust(vectors * depth, b"\0"), np.uint8)
        memory[place : place + vectors] = padded.reshape(vectors, depth)
