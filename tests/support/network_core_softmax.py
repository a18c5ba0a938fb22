"""Random SOFTMAX jobs of a network core, and their results by the kernel of TFLite Micro."""

from dataclasses import dataclass

import numpy as np

from weft.models import kernels
from weft.models.kernels.fixed_point import multiplier_of
from weft.models.kernels.tflite import exponentials
from weft.network_core.descriptors import BANK_BITS, ListJob, split

__all__ = ["SoftmaxRows", "random_softmax", "softmax_job", "softmax_rows"]

SCALES = 0.004, 0.03, 0.1, 0.5, 3.0


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """A map and its SOFTMAX, both int8 [H, W, C], and the exponentials, int64 [256]."""

    x: np.ndarray
    y: np.ndarray
    table: np.ndarray

    def words(self, config) -> np.ndarray:
        """The words of the ADD table, uint8 [256, bytes]."""
        words = np.zeros((256, config.add_table_vectors * config.array.depth), np.uint8)
        words[:, :4] = self.table.astype("<i4").reshape(-1, 1).view(np.uint8)
        return words


def softmax_rows(x, scale) -> SoftmaxRows:
    """The SOFTMAX of int8 [H, W, C] of this scale."""
    multiplier, left_shift = multiplier_of(min(scale * (1 << 26), (1 << 31) - 1.0))
    given = {
        "multiplier": multiplier, "left_shift": left_shift, "dtype": "int8",
        "least": -int(31.0 * (1 << 26) / 2.0**left_shift),
    }
    [y] = kernels.run("tflite.softmax", [x], given)
    return SoftmaxRows(x, y, exponentials(given))


def random_softmax(rng, x) -> SoftmaxRows:
    """The SOFTMAX of a map, of a random scale."""
    return softmax_rows(x, float(rng.choice(SCALES)))


def softmax_job(config, rows, source, output, loads=0) -> ListJob:
    """The job of the SOFTMAX of a map at a `MapPlace`."""
    (height, width, columns), banks = rows.x.shape, config.banks
    steps = {}
    for name, place in (("input", source), ("output", output)):
        steps[f"{name}_pixel_step"] = split(place.pitch, banks)
        steps[f"{name}_row_step"] = split(place.row_pitch - (width - 1) * place.pitch, banks)
    # Fields without an effect: a convolution with them would read beyond the memory.
    beyond = config.words << BANK_BITS
    return ListJob(
        softmax=1, loads=loads, panel_rows=1, out_height=height, out_width=width, columns=columns,
        tile_words=9999, kernel_height=2, kernel_width=2, tap_vectors=99, group_tiles=1,
        in_height=2, in_width=2, dilation_y=1, dilation_x=1, tap_x_step=beyond, tap_y_step=beyond,
        group_step=beyond, add_input=beyond, low=3, high=-3,
        input=split(source.number, banks), output=split(output.number, banks), **steps,
    )
