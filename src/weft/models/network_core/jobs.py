"""The descriptor of a job from a layer, its maps and its place in the buffers."""

from dataclasses import dataclass

from weft.models.network_core.layers import MapPitches, NetworkLayer, Panels
from weft.models.network_core.schedule import Part
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListJob, split

__all__ = ["PlacedMap", "job_of"]


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


def job_of(
    layer: NetworkLayer, sizes: LayerWords, panels: Panels, part: Part, x: PlacedMap, y: PlacedMap,
    added: PlacedMap | None, loads: int, config: NetworkCoreConfig,
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
        The tiles that the job computes, and the place of their weights and parameters.
    x, y, added : PlacedMap
        Input, output, and the map that ADD adds.
    loads : int
    config : NetworkCoreConfig

    Raises ValueError if a value does not fit its field.
    """
    window, array, banks = layer.window, config.array, config.banks
    top, _, left, _ = window.padding
    pixel, line = x.pitches.pitch, x.pitches.row_pitch
    width, stride = window.output[1], window.stride[1]
    # From output pixel to output pixel: in the input map, the output map, the added map.
    steps = [stride * pixel, y.pitches.pitch, 0]
    added_line = 0
    if added is not None:  # one row or one column is added to all
        steps[2] = added.pitches.pitch if added.width > 1 else 0
        added_line = added.pitches.row_pitch if added.height > 1 else 0
    if layer.parts > 1:
        width, stride = layer.parts, 0
        steps = [layer.columns // array.depth] * 3
    vector = part.first * array.cols // array.depth  # of the first column of the part
    groups = part.first // sizes.group_tiles
    first = x.first - top * line - left * pixel + groups * sizes.group_step
    tap_x = window.dilation[1] * pixel
    add_fields = {}
    if added is not None:
        addition = layer.addition
        add_fields = dict(
            add=1, add_line=part.line + part.tiles * sizes.row_lines,
            add_input=split(added.first + vector, banks),
            add_pixel_step=split(steps[2], banks),
            add_row_step=split(added_line - (width - 1) * steps[2], banks),
            sum_zero=addition.zero, sum_low=addition.low, sum_high=addition.high,
        )
    return ListJob(
        cross=panels.cross, loads=loads, panel_rows=panels.rows, out_height=window.output[0],
        out_width=width,
        columns=min(layer.columns - part.first * array.cols, part.tiles * array.cols),
        tile_words=sizes.tile_words, kernel_height=window.kernel[0],
        kernel_width=window.kernel[1], tap_vectors=sizes.tap_vectors,
        group_tiles=min(sizes.group_tiles, part.tiles),
        group_step=split(sizes.group_step, banks), in_height=window.input[0],
        in_width=window.input[1], first_y=-top, first_x=-left, stride_y=window.stride[0],
        stride_x=stride, dilation_y=window.dilation[0], dilation_x=window.dilation[1],
        input=split(first, banks), input_pixel_step=split(steps[0], banks),
        input_row_step=split(window.stride[0] * line - (width - 1) * steps[0], banks),
        tap_x_step=split(tap_x - (sizes.tap_vectors - 1), banks),
        tap_y_step=split(
            window.dilation[0] * line - (window.kernel[1] - 1) * tap_x - (sizes.tap_vectors - 1),
            banks,
        ),
        b_word=part.b_word, b_step=0 if sizes.filled else sizes.tile_words,
        parameter_line=part.line, output=split(y.first + vector, banks),
        output_pixel_step=split(steps[1], banks),
        output_row_step=split(y.pitches.row_pitch - (width - 1) * steps[1], banks),
        outside=layer.x_zero, zero=layer.zero, low=layer.low, high=layer.high, **add_fields,
    )
