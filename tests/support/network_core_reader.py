"""What the map reader must read: the steps of a job, with addresses by multiplication."""

from dataclasses import dataclass

import numpy as np
from network_core_jobs import panels

from weft.network_core.descriptors import join

__all__ = ["ReadStep", "steps_of"]


@dataclass(frozen=True)
class ReadStep:
    """A step of a job.

    Attributes
    ----------
    numbers : list of int or None
        The vector that each row of the panel reads; None if its tap lies outside the map.
    tile, word : int
        The tile of the panel, and the step of the tile.
    rows : int
        Rows of the panel.
    tile_end, panel_end, job_end : bool
    """

    numbers: list
    tile: int
    word: int
    rows: int
    tile_end: bool
    panel_end: bool
    job_end: bool


def steps_of(config, job):
    """Yield the `ReadStep` of a job in their order; numbers are relative to the base."""
    steps = {
        name: join(getattr(job, name), config.banks) for name in (
            "input", "input_pixel_step", "input_row_step", "tap_x_step", "tap_y_step", "group_step",
        )
    }
    pixel, rest = steps["input_pixel_step"], job.tap_vectors - 1
    row = steps["input_row_step"] + (job.out_width - 1) * pixel
    tap_x = steps["tap_x_step"] + rest
    tap_y = steps["tap_y_step"] + (job.kernel_width - 1) * tap_x + rest
    tiles = -(-job.columns // config.array.cols)
    taps = list(np.ndindex(job.kernel_height, job.kernel_width, job.tap_vectors))
    all_panels = list(panels(job))
    for panel_number, panel in enumerate(all_panels):
        for tile in range(tiles):
            group = tile // job.group_tiles
            for word, (ky, kx, c) in enumerate(taps):
                numbers = []
                for oy, ox in panel:
                    y = job.first_y + oy * job.stride_y + ky * job.dilation_y
                    x = job.first_x + ox * job.stride_x + kx * job.dilation_x
                    inside = 0 <= y < job.in_height and 0 <= x < job.in_width
                    number = (
                        steps["input"] + ox * pixel + oy * row + kx * tap_x + ky * tap_y + c
                        + group * steps["group_step"]
                    )
                    numbers.append(number if inside else None)
                tile_end = word == len(taps) - 1
                panel_end = tile_end and tile == tiles - 1
                yield ReadStep(
                    numbers, tile, word, len(panel), tile_end, panel_end,
                    panel_end and panel_number == len(all_panels) - 1,
                )
