"""Space to depth: a convolution of few channels reads blocks of pixels as one pixel."""

import dataclasses
import math

import numpy as np

from weft.network.chip.layers import InputForm
from weft.network.ir import Window

__all__ = ["space_to_depth"]


def space_to_depth(
    window: Window, form: InputForm, weights: np.ndarray, fill: int
) -> tuple[Window, InputForm, np.ndarray]:
    """Return window, input and weights with blocks of ``stride`` pixels, and the stride 1.

    With e = padding mod stride, block Y holds rows ``Y * stride - e`` and following. The kernel is
    ``ceil(kernel / stride)`` blocks, the map ``ceil((input + e) / stride)`` blocks. Weights that no
    tap of the kernel has are 0.

    Parameters
    ----------
    window : Window
        Without dilation and spread.
    form : InputForm
        Of single pixels.
    weights : int8 [taps, channels, columns]
    fill : int
        Value of the pixels of blocks that lie outside the map.
    """
    (sy, sx), (top, _, left, _) = window.stride, window.padding
    (ky, kx), (_, channels, columns) = window.kernel, weights.shape
    kernel = -(-ky // sy), -(-kx // sx)
    form = dataclasses.replace(form, block=(sy, sx), offset=(top % sy, left % sx), fill=fill)
    height, width, _ = form.map_size
    blocks = dataclasses.replace(
        window, stride=(1, 1), padding=(top // sy, 0, left // sx, 0), kernel=kernel,
        input=(height, width),
    )
    whole = np.zeros((kernel[0] * sy, kernel[1] * sx, channels, columns), np.int8)
    whole[:ky, :kx] = weights.reshape(ky, kx, channels, columns)
    whole = whole.reshape(kernel[0], sy, kernel[1], sx, channels, columns)
    whole = whole.transpose(0, 2, 1, 3, 4, 5)
    return blocks, form, whole.reshape(math.prod(kernel), sy * sx * channels, columns)
