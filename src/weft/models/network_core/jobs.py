"""The descriptor of a job from a layer, its maps and its place in the buffers."""

from dataclasses import dataclass, replace

import numpy as np

from weft.models.network_core.demands import Part, stores_pairs
from weft.models.network_core.layers import LOW_ZERO, PAIRS, NetworkLayer
from weft.models.network_core.map_pitches import MapPitches, Panels
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListJob, join, split

__all__ = ["PlacedMap", "job_of", "started_early"]

_BYTE = np.iinfo(np.int8)


@dataclass(frozen=True)
class PlacedMap:
    """A map in the memory.

    Attributes
    ----------
    first : int
        Its first vector.
    pitches : MapPitches
    height, width, channels : int
    """

    first: int
    pitches: MapPitches
    height: int
    width: int
    channels: int

    def end(self, depth: int) -> int:
        """Return the vector behind the last pixel."""
        rows, pitch = (self.height - 1) * self.pitches.row_pitch, self.pitches.pitch
        return self.first + rows + (self.width - 1) * pitch + -(-self.channels // depth)

    def read_by(self, sizes: LayerWords, depth: int) -> "PlacedMap":
        """Return the map with all channels that a layer reads.

        A diagonal word has the weights of several vectors if the array has more columns than its
        depth: the layer reads all of them, also those that its pixels do not have.
        """
        group = sizes.tap_vectors * depth if sizes.diagonal else 1
        return replace(self, channels=-(-self.channels // group) * group)


def job_of(
    layer: NetworkLayer, sizes: LayerWords, panels: Panels, part: Part, x: PlacedMap, y: PlacedMap,
    added: PlacedMap | None, loads: int, config: NetworkCoreConfig, cell: PlacedMap | None = None,
) -> ListJob:
    """Return the job that computes a part of a layer; it starts after ``loads`` loads.

    Steps lead from address to address: ``..._row_step`` from the last pixel of a row of the output
    map to the first one of the next row, ``tap_x_step`` from the last vector of a tap to the first
    one of the next tap, and ``tap_y_step`` to the first tap of the next row of the kernel.

    Parameters
    ----------
    layer : NetworkLayer
    sizes : LayerWords
    panels : Panels
    part : Part
        The tiles, pixels and taps of the job, and the place of its weights and parameters.
    x, y, added : PlacedMap
        Input, output, and the map that ADD adds.
    loads : int
    config : NetworkCoreConfig
    cell : PlacedMap, optional
        Of an LSTM.

    Raises ValueError if a value does not fit its field.
    """
    window, array, banks = layer.window, config.array, config.banks
    area, taps = part.piece.area, part.piece.taps
    top, _, left, _ = window.padding
    pixel, line = x.pitches.pitch, x.pitches.row_pitch
    stride = window.stride[1]
    # From output pixel to output pixel: in the input map, the output map, the added map.
    steps = [stride * pixel, y.pitches.pitch, 0]
    added_line = 0
    if added is not None:  # one row or one column is added to all
        steps[2] = added.pitches.pitch if added.width > 1 else 0
        added_line = added.pitches.row_pitch if added.height > 1 else 0
    if layer.parts > 1:
        stride = 0
        steps = [layer.columns // array.depth] * 3
    size = 4 if layer.sums else 1  # bytes of a value
    apart = steps[1] % banks != 0  # neighbours lie in different banks
    pairs = stores_pairs(layer, area.width, panels, config) and apart
    vector = part.first * array.cols * size // array.depth  # of the first column of the part
    groups = part.first // sizes.group_tiles
    tap_x = window.dilation[1] * pixel
    # Place of the first tap of the first pixel.
    first_y = area.y * window.stride[0] + taps.y * window.dilation[0] - top
    first_x = area.x * stride + taps.x * window.dilation[1] - left
    first = x.first + first_y * line + area.x * steps[0] + taps.x * tap_x - left * pixel
    first += taps.vector + groups * sizes.group_step

    def stored(place, step, line):
        """The first pixel of the area in a map, and the steps from pixel to pixel, row to row."""
        number = place.first + area.y * line + area.x * step + vector
        row_step = line - (area.width - 1) * step
        return tuple(split(value, banks) for value in (number, step, row_step))

    output, output_step, output_row_step = stored(y, steps[1], y.pitches.row_pitch)
    add_fields = {}
    if cell is not None:
        add_fields = dict(
            lstm=1, add_input=split(added.first, banks),
            add_pixel_step=split(cell.first - added.first, banks),
        )
    elif added is not None:
        addition = layer.addition
        add_input, add_step, add_row_step = stored(added, steps[2], added_line)
        add_fields = dict(
            add=1, multiply=int(addition.multiply),
            add_line=part.line + part.tiles * sizes.row_lines, add_input=add_input,
            add_pixel_step=add_step, add_row_step=add_row_step,
            sum_zero=addition.zero, sum_low=addition.low, sum_high=addition.high,
        )
    return ListJob(
        cross=panels.cross, partial=part.piece.partial, softmax=layer.is_softmax, sums=layer.sums,
        two_rows=pairs, loads=loads, panel_rows=panels.rows,
        out_height=area.height, out_width=area.width,
        columns=min(layer.columns - part.first * array.cols, part.tiles * array.cols),
        # A job of a unit has no words, but 0 is an error.
        tile_words=max(1, taps.words), kernel_height=taps.height, kernel_width=taps.width,
        tap_vectors=taps.vectors, group_tiles=min(sizes.group_tiles, part.tiles),
        group_step=split(sizes.group_step, banks), in_height=window.input[0],
        in_width=window.input[1], first_y=first_y, first_x=first_x, stride_y=window.stride[0],
        stride_x=stride, dilation_y=window.dilation[0], dilation_x=window.dilation[1],
        input=split(first, banks), input_pixel_step=split(steps[0], banks),
        input_row_step=split(window.stride[0] * line - (area.width - 1) * steps[0], banks),
        tap_x_step=split(tap_x - (taps.vectors - 1), banks),
        tap_y_step=split(
            window.dilation[0] * line - (taps.width - 1) * tap_x - (taps.vectors - 1), banks
        ),
        b_word=part.b_word, b_step=0 if sizes.filled else sizes.tile_words,
        parameter_line=part.line, output=output, output_pixel_step=output_step,
        output_row_step=output_row_step, outside=layer.x_zero, zero=layer.zero,
        **add_fields, **_result_fields(layer, config),
    )


def _result_fields(layer, config):
    """The limits of the results, and the fields of values of 16 bits."""
    fields = {layer.digits: 1} if layer.digits else {}
    if layer.digits in PAIRS:
        fields |= dict(
            pair_low=layer.low, pair_high=layer.high, low=_BYTE.min, high=_BYTE.max
        )
    else:
        fields |= dict(low=layer.low, high=layer.high)
    if config.int16:
        fields["outside_odd"] = LOW_ZERO if layer.reads_pairs else layer.x_zero
    return fields


def started_early(
    job: ListJob, x: PlacedMap, before: ListJob, config: NetworkCoreConfig, *, apart: bool = False
) -> ListJob:
    """Return a job that starts while the results of the job before are stored, if it can.

    A panel of it waits until its vectors are stored. For that both jobs must go through their maps
    from low addresses to high ones.

    Parameters
    ----------
    job : ListJob
    x : PlacedMap
        What it reads.
    before : ListJob
    config : NetworkCoreConfig
    apart : bool
        The job before belongs to another inference, so it stores nothing that the job reads.
    """
    if any(each.partial or each.softmax or each.lstm for each in (job, before)):
        return job
    steps = _Steps(job, "input", config)
    output = _Steps(before, "output", config)
    size = before.columns * (4 if before.sums else 1)
    end = output.last + -(-size // config.array.depth)
    if apart or x.end(config.array.depth) <= output.first or end <= x.first:
        span = -config.vectors
    elif steps.rise and output.rise:
        span = _largest_step(job, config)
    else:
        return job
    return job if span is None else replace(job, early=1, span=split(span, config.banks))


class _Steps:
    """The first and the last pixel of a map, and whether all steps between pixels rise."""

    def __init__(self, job, map_, config):
        self.first, pixel, row = (
            join(getattr(job, name), config.banks)
            for name in (map_, f"{map_}_pixel_step", f"{map_}_row_step")
        )
        across = (job.out_width - 1) * pixel
        self.last = self.first + across + (job.out_height - 1) * (row + across)
        self.rise = (pixel >= 0 or job.out_width == 1) and (row >= 0 or job.out_height == 1)


def _largest_step(job, config):
    """Return the step from an origin to the last vector of its pixel; None if a step falls."""
    tap_x, tap_y, group = (
        join(step, config.banks) for step in (job.tap_x_step, job.tap_y_step, job.group_step)
    )
    last, tiles = job.tap_vectors - 1, -(-job.columns // config.array.cols)
    groups = -(-tiles // job.group_tiles)
    largest, falls = last, False
    for step, turns in (
        (tap_x + last, job.kernel_width),
        (tap_y + (job.kernel_width - 1) * (tap_x + last) + last, job.kernel_height),
        (group, groups),
    ):
        falls |= turns > 1 and step < 0
        largest += (turns - 1) * step
    return None if falls else largest
