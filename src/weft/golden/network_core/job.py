"""A job: one layer, SOFTMAX or LSTM, from the vectors of its input map to the bytes of its output.

`write_pixels` gives the bytes of a WRITE frame to the memory.
"""

import numpy as np

from weft.checks import require
from weft.golden.matmul import matmul
from weft.golden.network_core.digits import (
    DIGITS,
    check_digits,
    joined,
    split_values,
    split_words,
)
from weft.golden.network_core.lstm import lstm_step
from weft.golden.requantize import add_bias, requantize, scaled
from weft.network_core.config import has_single_port
from weft.network_core.descriptors import ListJob, join

__all__ = ["run_job", "softmax", "write_pixels"]

_ONE = (1 << 31) - 1  # the largest number below 1, with 31 fractional bits


def softmax(x, exponentials) -> np.ndarray:
    """``256 * exp(x[i]) / sum(exp(x)) - 128`` of each row, in fixed-point numbers::

        e[i]  = exponentials[max(x) - x[i]]
        total = sum of e[i], each rounded to 19 fractional bits
        z     = 31 - floor(log2(total)), so total * 2^z lies in 2^31..2^32
        scale = 2^62 / (total * 2^z), by three steps of Newton
        y[i]  = min(round(scale * e[i] * 2^(z - 66)), 255) - 128

    A number of Newton's steps has 29 fractional bits. Each product is rounded to as many bits as
    its second factor has.

    Parameters
    ----------
    x : int8 [M, N]
    exponentials : int [256]
        ``exp(-d)`` for each difference ``d``, with 31 fractional bits; the first one is the largest
        number below 1.

    Returns
    -------
    int8 [M, N]

    Raises
    ------
    ValueError
        If ``exponentials`` has other values.
    """
    table = np.asarray(exponentials, np.int64)
    require("exponentials[0]", f"{_ONE}", table[0], table[0] == _ONE)
    require("exponentials", "0 or more", table, table >= 0)
    rows = np.asarray(x, np.int64)
    terms = table[rows.max(1, keepdims=True) - rows]
    y = np.empty(rows.shape, np.int64)
    for row, own in enumerate(terms):
        total = int(((own + (1 << 11)) >> 12).sum())
        zeros = 32 - total.bit_length()
        scale = _reciprocal(total << zeros)
        last = 34 - zeros  # the bit that rounds
        y[row] = ((_product(own, scale) >> last) + 1) >> 1
    return (np.minimum(y, 255) - 128).astype(np.int8)


def _product(a, b):
    """``a * b / 2^31``, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def _reciprocal(total):
    """``2^62 / total`` for 2^31 <= total < 2^32: less than 1, with 31 fractional bits."""
    half = total >> 1  # from 1/2 on, with 31 fractional bits
    # The first estimate is 48/17 - 32/17 * half.
    estimate = 1515870810 + _product(-1010580540, half)
    for _ in range(3):
        error = (1 << 29) - _product(half, estimate)
        estimate += 4 * _product(estimate, error)
    return min(2 * estimate, _ONE)


POSITION_LIMIT = (1 << 16) - 1  # of y and x of a tap
_LEAST_SCALE = np.finfo(np.float32).smallest_normal


def run_job(
    config, memory, buffers, job, start=None, before: ListJob | None = None
) -> np.ndarray | None:
    """Compute the layer of a `weft.network_core.descriptors.ListJob`, and store it.

    All values are read before the first one is stored. The maps that are read and the output map
    must be disjoint, except that the output map may be the added map.

    Returns the sums of a partial job, which stores nothing; None for other jobs.

    Parameters
    ----------
    config : NetworkCoreConfig
    memory : MemoryArea
    buffers : NetworkCoreBuffers
    job : ListJob
    start : int32 [pixels, columns], optional
        The sums of the partial job before this one.
    before : ListJob, optional
        The job before, whose results may still be stored while this one reads, if it is ``early``.

    Raises
    ------
    ListFault
        ADDRESS, if a vector may not be read or written; then nothing is stored.
    ValueError
        If the descriptor has a field that the hardware does not check, and whose effect is
        undefined. So is a job with ``early`` that may read a vector before it is stored.
    """
    if job.softmax:
        _run_softmax(config, memory, buffers, job)
        return
    if job.lstm:
        _run_lstm(config, memory, buffers, job)
        return
    _check(config, job)
    sums = _sums(config, memory, buffers, job)
    if job.early and before and not (
        before.partial or before.softmax or before.lstm
    ):
        _check_early(config, memory, before, job)
    if start is not None or job.partial:
        _check_part(config, job, sums.shape if start is None else start.shape)
    if start is not None:
        sums = (start.astype(np.int64) + sums).astype(np.int32)  # modulo 2^32
    if job.partial:
        return sums
    y = _layer(config, buffers, job, sums)
    if job.add:
        places = _pixels(job, config.banks, "add")
        x = memory.read_columns(places, job.columns)
        y = _added(config, buffers, job, x, y)
    memory.write_columns(_pixels(job, config.banks, "output"), y)
    return None


def _check_part(config, job, before):
    """Raise ValueError if the sums of a job that has parts are not defined.

    ``before`` are the pixels and columns of the part before.
    """
    pixels = job.out_height * job.out_width
    rows, width = (1, pixels) if job.cross else (job.out_height, job.out_width)
    panels = rows * -(-width // job.panel_rows)
    for name, value, rule, holds in (
        ("pixels", pixels, f"those of the part before ({before[0]})", pixels == before[0]),
        ("columns", job.columns, f"those of the part before ({before[1]})",
         job.columns == before[1]),
        ("panels", panels, "1", panels == 1),
        ("tiles", _tiles(config, job), "1", _tiles(config, job) == 1),
    ):
        if not holds:
            raise ValueError(f"{name} of a job with parts must be {rule}, not {value}")


def _check_early(config, memory, before, job):
    """Raise ValueError if a panel of ``job`` may pass before ``before`` stores what it reads.

    A panel passes if ``origin + span < frontier``: its origin is of its last pixel, and the
    frontier is the first vector of the panel that ``before`` stores next.
    """
    banks, depth = config.banks, config.array.depth
    panels, pixels = _panels(before), _pixels(before, banks, "output").reshape(-1)
    size = before.columns * (4 if before.sums else 1)
    stored_by = np.full(memory.vectors, -1)  # the last panel that stores a vector
    places = memory.places(pixels[:, None] + np.arange(-(-size // depth)))
    np.maximum.at(stored_by, places, panels[:, None])
    frontiers = memory.origins(pixels[np.unique(panels, return_index=True)[1]])

    firsts, offsets, inside = _taps(memory, job, banks)
    panels = _panels(job).reshape(inside.shape[:2])
    needed = np.full(panels.max() + 1, -1)  # the last panel whose results each panel reads
    panel_of_tap = np.broadcast_to(panels[:, :, None, None], inside.shape)[inside]
    vectors = offsets[inside][:, None] + np.arange(job.tap_vectors)
    group_step = memory.signed(join(job.group_step, banks))
    for group in range(-(-_tiles(config, job) // job.group_tiles)):
        places = memory.tap_places(firsts[inside][:, None], vectors + group * group_step)
        np.maximum.at(needed, panel_of_tap, stored_by[places].max(1, initial=-1))

    ends = np.append(np.flatnonzero(np.diff(panels.reshape(-1))), panels.size - 1)
    origins = memory.origins(_pixels(job, banks, "input").reshape(-1)[ends])
    passes = origins[:, None] < frontiers - memory.signed(join(job.span, banks))
    # Frontier k: the panels before k are stored.
    early = (passes & (np.arange(len(frontiers)) <= needed[:, None])).any(1)
    if early.any():
        panel = int(early.argmax())
        raise ValueError(
            f"span of a job with early must be the largest step from an origin to a vector that"
            f" its pixel reads, not {memory.signed(join(job.span, banks))}: its panel {panel} may"
            f" pass before panel {needed[panel]} of the job before is stored"
        )


def _panels(job):
    """The panel of each pixel of the output map, in their order."""
    if job.cross:
        return np.arange(job.out_height * job.out_width) // job.panel_rows
    row = np.arange(job.out_width) // job.panel_rows
    return (np.arange(job.out_height)[:, None] * (row[-1] + 1) + row).reshape(-1)


def _check(config, job):
    """Raise ValueError for fields that the hardware does not check."""
    taps = job.kernel_height * job.kernel_width * job.tap_vectors
    last = job.b_word + (_tiles(config, job) - 1) * job.b_step + job.tile_words
    for name, value, rule, holds in (
        ("tile_words", job.tile_words, f"all steps of a tile ({taps})", job.tile_words == taps),
        ("words of B", last, f"at most {config.b_words}", last <= config.b_words),
        ("low", job.low, f"at most high ({job.high})", job.low <= job.high),
        ("sum_low", job.sum_low, f"at most sum_high ({job.sum_high})",
         not job.add or job.sum_low <= job.sum_high),
        *(_extent(job, side, axis) for side, axis in (("height", "y"), ("width", "x"))),
        *(_side(config, job, side) for side in ("in_height", "in_width")),
    ):
        if not holds:
            raise ValueError(f"{name} of a job must be {rule}, not {value}")
    check_digits(job)


def _side(config, job, side):
    """The rule for the height or the width of the input map, as `_check` has it."""
    value = getattr(job, side)
    most = POSITION_LIMIT // 2 + 1 if has_single_port(config.array) else POSITION_LIMIT
    return side, value, f"at most {most}", value <= most


def _extent(job, side, axis):
    """The rule for y or x of all taps, as `_check` has it."""
    first = getattr(job, f"first_{axis}")
    pixels = (getattr(job, f"out_{side}") - 1) * getattr(job, f"stride_{axis}")
    taps = (getattr(job, f"kernel_{side}") - 1) * getattr(job, f"dilation_{axis}")
    last = first + pixels + taps
    return f"the largest {axis}", last, f"at most {POSITION_LIMIT}", last <= POSITION_LIMIT


def _tiles(config, job):
    """Tiles of N."""
    return -(-job.columns // config.array.cols)


def _pixels(job, banks, map_):
    """The number of the first vector of each pixel of a map; [out_height, out_width].

    ``map_`` is "input", "output" or "add".
    """
    first = getattr(job, "add_input" if map_ == "add" else map_)
    pixel = join(getattr(job, f"{map_}_pixel_step"), banks)
    row = join(getattr(job, f"{map_}_row_step"), banks) + (job.out_width - 1) * pixel
    oy, ox = np.ogrid[: job.out_height, : job.out_width]
    return join(first, banks) + oy * row + ox * pixel


def _taps(memory, job, banks):
    """For each tap of each pixel: the number of the first tap, the offset from it, and whether the
    tap is in the map.

    All have the shape [out_height, out_width, kernel_height, kernel_width].
    """
    oy, ox, ky, kx = np.ogrid[
        : job.out_height, : job.out_width, : job.kernel_height, : job.kernel_width
    ]
    y = job.first_y + oy * job.stride_y + ky * job.dilation_y
    x = job.first_x + ox * job.stride_x + kx * job.dilation_x
    x_step, y_step = (
        memory.signed(join(step, banks)) for step in (job.tap_x_step, job.tap_y_step)
    )
    tap_x = x_step + job.tap_vectors - 1
    tap_y = y_step + (job.kernel_width - 1) * tap_x + job.tap_vectors - 1
    inside = (y >= 0) & (y < job.in_height) & (x >= 0) & (x < job.in_width)
    firsts = _pixels(job, banks, "input")[:, :, None, None]
    return np.broadcast_arrays(firsts, kx * tap_x + ky * tap_y, inside)


def _sums(config, memory, buffers, job):
    """The sums of the array, without the pair sums of A; int32 [pixels, N]."""
    cols, depth = config.array.cols, config.array.depth
    firsts, offsets, inside = _taps(memory, job, config.banks)
    # Rows of vectors: one for each tap inside the map, in the order of the array's steps.
    vectors = offsets[inside][:, None] + np.arange(job.tap_vectors)
    group_step = memory.signed(join(job.group_step, config.banks))
    tiles = _tiles(config, job)
    sums = np.empty((job.out_height * job.out_width, tiles * cols), np.int32)
    for group, first in enumerate(range(0, tiles, job.group_tiles)):
        a = np.full((*inside.shape, job.tap_vectors, depth), job.outside, np.int8)
        if config.int16:
            a[..., 1::2] = job.outside_odd
        a[inside] = memory.read_taps(firsts[inside][:, None], vectors + group * group_step)
        tile = np.arange(first, min(first + job.group_tiles, tiles))
        words = job.b_word + tile[:, None] * job.b_step + np.arange(job.tile_words)
        b = buffers.b[words]  # [tiles, words, cols, depth]
        b = b.transpose(1, 3, 0, 2).reshape(job.tile_words * depth, -1)
        start = _pair_sums(b) if config.array.cell.corrected else None
        sums[:, first * cols : first * cols + b.shape[1]] = matmul(
            a.reshape(len(sums), -1), b, start=start
        )
    return sums[:, : job.columns]


def _pair_sums(b):
    """``sum(b[2i] * b[2i + 1])`` of each column: the term of B in a fast inner product."""
    wide = b.astype(np.int64)
    return (wide[0::2] * wide[1::2]).sum(0)


def _layer(config, buffers, job, sums):
    """The results of the layer itself, int8 [out_height, out_width, N]; with sums [..., 4 * N]."""
    column = np.arange(job.columns)
    lines = job.parameter_line + column // config.array.lanes
    bias, multiplier, shift = buffers.parameters(lines, column % config.array.lanes)
    total = add_bias(sums, bias)
    if job.quad_pairs:  # of other columns pairs
        first = np.arange(job.columns) % 4 < 2
        total = np.where(first, joined(total, 2), joined(total, 4))
    for flag in ("pairs", "quads", "words"):
        if getattr(job, flag):
            total = joined(total, DIGITS[flag])
    if job.sums:
        y = np.ascontiguousarray(total.astype("<i4")).view(np.int8)
    elif job.pairs or job.quad_pairs:
        y = split_values(scaled(
            total[:, 1::2], **_scaling(config, multiplier[1::2], shift[1::2])
        ), job.pair_low, job.pair_high)
    elif job.words:
        y = split_words(scaled(total[:, 3::4], **_scaling(config, multiplier[3::4], shift[3::4])))
    else:
        y = requantize(
            total, **_scaling(config, multiplier, shift), zero_point=job.zero, low=job.low,
            high=job.high,
        )
    return y.reshape(job.out_height, job.out_width, -1)


def _run_softmax(config, memory, buffers, job):
    """Compute the SOFTMAX of each pixel of the input map, and store them."""
    x = memory.read_columns(_pixels(job, config.banks, "input"), job.columns)
    y = softmax(x.reshape(-1, job.columns), buffers.exponentials())
    memory.write_columns(_pixels(job, config.banks, "output"), y.reshape(x.shape))


def _run_lstm(config, memory, buffers, job):
    """Compute a step in time of an LSTM, and store the cell and the hidden values."""
    for name in ("out_height", "out_width"):
        require(name, "1 in a job with lstm", getattr(job, name), getattr(job, name) == 1)
    units, added = job.columns, join(job.add_input, config.banks)
    fed, own = (
        memory.read_columns(first, 16 * units).view("<i4").reshape(units, 4)
        for first in (join(job.input, config.banks), added)
    )
    place = added + join(job.add_pixel_step, config.banks)
    cell = memory.read_columns(place, 2 * units).view("<i2")
    output = join(job.output, config.banks)
    memory.read_columns(output, units)  # nothing is stored if a place may not be written
    hidden, cell = lstm_step(fed, own, cell, buffers.words(), job.zero)
    memory.write_columns(place, cell.astype("<i2").view(np.int8))
    memory.write_columns(output, hidden)


def _added(config, buffers, job, x, y):
    """The rescaled total of the added map ``x`` and the result ``y``, both int8 [..., N]."""
    lane = np.arange(job.columns) % config.array.lanes
    _, multiplier, shift = buffers.parameters(job.add_line, lane)
    total = (buffers.multiplied if job.multiply else buffers.added)(x, y)
    return requantize(
        total, **_scaling(config, multiplier, shift), zero_point=job.sum_zero,
        low=job.sum_low, high=job.sum_high,
    )


def _scaling(config, multiplier, shift):
    """The mode of a core, and its arguments: in ``onnx`` a multiplier has the bits of a scale.

    A scale of 0 counts as the smallest normal number: all results are 0, too.
    """
    mode = config.array.requantize
    if mode == "onnx":
        scale = multiplier.astype(np.int32).view(np.float32)
        return {"mode": mode, "scale": np.where(scale == 0, _LEAST_SCALE, scale)}
    return {"mode": mode, "multiplier": multiplier, "shift": shift}


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
