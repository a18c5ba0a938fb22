"""Space to depth: a convolution of few channels reads blocks of pixels as one pixel."""

import dataclasses
import itertools
import math

import numpy as np

from weft.models.ir import Window
from weft.models.network_core.layers import InputForm

__all__ = ["best_block", "space_to_depth"]


def best_block(window: Window, channels: int, depth: int) -> tuple[int, int]:
    """Return the block, height and width, with the fewest array steps; (1, 1) is no block.

    Height and width divide the stride. A step multiplies ``depth`` channels of a block.
    """
    def steps(block):
        taps = math.prod(-(-k // b) for k, b in zip(window.kernel, block, strict=True))
        return taps * -(-math.prod(block) * channels // depth), math.prod(block)

    divisors = ([b for b in range(1, s + 1) if s % b == 0] for s in window.stride)
    return min(itertools.product(*divisors), key=steps)


def space_to_depth(
    window: Window, form: InputForm, weights: np.ndarray, fill: int, block: tuple[int, int]
) -> tuple[Window, InputForm, np.ndarray]:
    """Return window, input and weights with blocks of pixels as pixels.

    With e = padding mod block, block Y holds rows ``Y * block - e`` and following. The kernel is
    ``ceil(kernel / block)`` blocks, the map ``ceil((input + e) / block)`` blocks, the stride
    ``stride / block`` blocks. Weights that no tap of the kernel has are 0.

    Parameters
    ----------
    window : Window
        Without dilation and spread.
    form : InputForm
        Of single pixels.
    weights : int8 [taps, channels, columns]
    fill : int
        Value of the pixels of blocks that lie outside the map.
    block : (int, int)
        Height and width, which divide the stride.
    """
    (by, bx), (top, _, left, _) = block, window.padding
    (ky, kx), (_, channels, columns) = window.kernel, weights.shape
    kernel = -(-ky // by), -(-kx // bx)
    form = dataclasses.replace(form, block=block, offset=(top % by, left % bx), fill=fill)
    height, width, _ = form.map_size
    blocks = dataclasses.replace(
        window, stride=(window.stride[0] // by, window.stride[1] // bx),
        padding=(top // by, 0, left // bx, 0), kernel=kernel, input=(height, width),
    )
    whole = np.zeros((kernel[0] * by, kernel[1] * bx, channels, columns), np.int8)
    whole[:ky, :kx] = weights.reshape(ky, kx, channels, columns)
    whole = whole.reshape(kernel[0], by, kernel[1], bx, channels, columns)
    whole = whole.transpose(0, 2, 1, 3, 4, 5)
    return blocks, form, whole.reshape(math.prod(kernel), by * bx * channels, columns)
