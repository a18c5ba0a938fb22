"""Operators that move values: views of maps, copies, and layers with one weight of 1 a column.

The kernel of an operator moves the numbers of the values, too. So the places of all values are
known before any layer is: `grids_of` finds the pixels that one layer can compute.

A layer copies pixels if their channels stay in their places in a vector. Otherwise each column has
the weight 1 for one tap and channel, and 0 for all others: *one-hot* weights. A column of constants
has a bias. Pixels outside a map have the value that the job gives them, so a border costs nothing.
"""

import itertools
import math

import numpy as np

from weft.models import kernels
from weft.models.ir import Window
from weft.models.network_core.layers import Refusal, WeightLayout, WrongMap
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.operators.grids import (
    Grid,
    MixedSources,
    Origins,
    TooManyGrids,
    grids_of,
)
from weft.models.network_core.wide_maps import INT16, moved_bytes, pair_constants

__all__ = ["LOWERINGS", "MOST_JOBS", "MOST_WEIGHTS", "move", "moved"]

MOST_JOBS = 64  # of a map that an operator moves
MOST_WEIGHTS = 1 << 16  # one-hot weights of all these jobs
_JOB = 60  # cycles of a job without its steps, about


def move(builder: OperatorBuilder) -> tuple[int, ...]:
    """Return the maps of the outputs of an operator that only moves values."""
    inputs, sources, whole = [], [], 0
    attributes = dict(builder.node.attributes)
    for operand, number in enumerate(builder.node.inputs):
        tensor = builder.tensor(operand)
        if tensor.data is not None:
            is_values = tensor.dtype == INT16 if builder.is_wide else tensor.dtype.itemsize == 1
            inputs.append(_constants(builder, tensor.data, tensor) if is_values else tensor.data)
            continue
        if number in builder.node.inputs[:operand]:
            inputs.append(inputs[builder.node.inputs.index(number)])
            continue
        sources.append(builder.stored(operand))
        shape = tensor.shape
        if builder.is_wide:
            shape = (*shape[:-1], shape[-1] // 2)
        size = math.prod(shape)
        inputs.append(np.arange(whole, whole + size).reshape(shape))
        whole += size
    if "value" in attributes:
        attributes["value"] = _constants(builder, attributes["value"], builder.tensor(0))
    if not sources:
        raise Refusal("its inputs must be maps, and all of them are constants")
    results = kernels.run(builder.node.kernel, inputs, attributes)
    if builder.is_wide:
        results = [moved_bytes(index) for index in results]
    return tuple(moved(builder, index, _size(builder, index.shape), sources) for index in results)


def _constants(builder, values, tensor):
    """Return numbers for constants that `moved` tells from those of values: -1 .. -256.

    Those of int16 are for `moved_bytes`.
    """
    if builder.is_wide:
        return pair_constants(values)
    return -129 - builder.zero(np.asarray(values, np.int64), tensor)


def _size(builder, shape):
    """Return a map for a shape; the last axes of more than three are the channels."""
    if not math.prod(shape):
        raise Refusal(f"its results must have values, and one has the shape {shape}")
    axes = list(shape)
    while len(axes) > 3 and axes[0] == 1:
        del axes[0]
    if len(axes) > 3 and shape[0] == 1:
        return (*axes[:2], math.prod(axes[2:]))
    return builder.map_size(shape)


def moved(
    builder: OperatorBuilder, index: np.ndarray, size: tuple[int, int, int],
    sources: list[tuple[int, bool]],
) -> int:
    """Return a map of ``size`` with the values that an index names.

    Parameters
    ----------
    index : integers
        Numbers of values of all sources, one source after the other; -129 - v is a constant v.
    sources : list of (int, bool)
        Maps, and whether the core computes them.
    """
    index, numbers = index.reshape(size), [number for number, _ in sources]
    try:
        maps, plan = _planned(builder, index, numbers)
    except Refusal:  # the pixels of all rows, beside each other, may have a pattern
        flat = [builder.flat(number) for number in numbers]
        if flat == numbers:
            raise
        numbers = flat
        maps, plan = _planned(builder, index, numbers)
    if maps == numbers:
        sources = [(number, stored) for number, (_, stored) in zip(maps, sources, strict=True)]
    else:
        sources = [(maps[0], True)]
    if len(plan) == 1 and plan[0][1].source >= 0 and sources[plan[0][1].source][1]:
        [(_, grid)] = plan
        place = _as_view(grid, size, builder.depth)
        if place is not None:
            return builder.view(maps[grid.source], size, **place)
    target = builder.map(size)
    for first, grid in plan:
        _append(builder, grid, first, maps, target)
    return target


def _planned(builder, index, maps):
    """Return the maps that jobs read for the values of an index, and the jobs' plan."""
    origins = Origins.of(index, -129 - index, [builder.size(number) for number in maps])
    try:
        return maps, _plan(builder, origins)[1]
    except MixedSources:
        origins, maps = _staged(builder, origins, maps)
        return maps, _plan(builder, origins)[1]


def _plan(builder, origins):
    """Return approximate cycles, and the first channel and the grid of each job: the best way.

    Raises MixedSources if each way has pixels with values of several maps.
    """
    channels, depth = origins.source.shape[2], builder.depth
    # Vectors that follow each other in one source are a range, and a vector with a boundary is one.
    cuts = {n // depth * depth for n in origins.boundaries()}
    cuts |= {-(-n // depth) * depth for n in origins.boundaries()}
    ranges = sorted({0, *cuts} - {-(-channels // depth) * depth})
    found, mixed = [], False
    for starts in ([0], ranges) if len(ranges) > 1 else [ranges]:
        try:
            plan = []
            for first, last in itertools.pairwise([*starts, channels]):
                plan += _best(builder, origins, first, last, MOST_JOBS - len(plan))
        except TooManyGrids:
            continue
        except MixedSources:
            mixed = True
            continue
        if sum(_weights(builder, grid) for _, grid in plan) <= MOST_WEIGHTS:
            found.append((_cost(builder, plan, origins.sizes), plan))
    if found:
        return min(found, key=lambda entry: entry[0])
    if mixed:
        raise MixedSources
    raise Refusal(
        f"its values move in ways that need more than {MOST_JOBS} jobs or {MOST_WEIGHTS:,} weights"
    )


def _best(builder, origins, first, last, most):
    """Return the first channel and the grid of at most ``most`` jobs of a range of channels.

    They compute all channels, or those of one vector, whatever takes fewer cycles.
    """
    found, errors = [], []
    for starts in ([first], range(first, last, builder.depth)):
        try:
            plan = []
            for start, end in itertools.pairwise([*starts, last]):
                grids = grids_of(origins.channels(start, end), most - len(plan))
                plan += [(start, grid) for grid in grids]
        except (TooManyGrids, MixedSources) as error:
            errors.append(error)
            continue
        weights = sum(_weights(builder, grid) for _, grid in plan)
        if weights <= MOST_WEIGHTS:
            found.append((_cost(builder, plan, origins.sizes), plan))
        if not weights:
            break  # copies of all channels: each division takes more jobs
    if not found:
        raise errors[-1] if errors else TooManyGrids
    return min(found, key=lambda entry: entry[0])[1]


def _staged(builder, origins, maps):
    """Return the origins in one map that has all maps beside each other, and this map."""
    sizes = origins.sizes
    if any(size[:2] != sizes[0][:2] for size in sizes):
        raise WrongMap("its pixels have channels of maps with other heights or widths")
    depth = builder.depth
    wide = [-(-channels // depth) * depth for _, _, channels in sizes]
    *offsets, channels = itertools.accumulate(wide, initial=0)
    whole = builder.map((*sizes[0][:2], channels))
    for number, offset in zip(maps, offsets, strict=True):
        builder.into(number, whole, channel=offset)
    return origins.staged(offsets, channels), [whole]


def _is_copy(grid, depth):
    """Whether channels are the ones of one tap, from the first one of a vector on."""
    first = int(grid.channels[0])
    return (
        first >= 0 and not first % depth and not grid.rows.any() and not grid.columns.any()
        and np.array_equal(grid.channels, first + np.arange(len(grid.channels)))
    )


def _as_view(grid: Grid, size, depth):
    """Return the fields of a view with all pixels of a map, in rising order; None without."""
    whole = grid.count == size[:2] and len(grid.channels) == size[2]
    if not whole or grid.outside is not None or not _is_copy(grid, depth):
        return None
    moves = [
        move if count > 1 else default
        for move, count, default in (
            (grid.line, grid.count[0], (1, 0)), (grid.pixel, grid.count[1], (0, 1)),
        )
    ]
    if any(min(step) < 0 or not any(step) for step in moves):
        return None  # the pixels of a result lie apart, one after the other
    return dict(
        channel=int(grid.channels[0]), row=grid.start[0], column=grid.start[1], line=moves[0],
        pixel=moves[1],
    )


def _is_whole(grid: Grid, size):
    """Whether a grid is a whole map, and the source that it has."""
    full = len(grid.channels) == size[2] and grid.count == size[:2]
    in_order = grid.start == (0, 0) and all(
        count == 1 or step == expected for count, step, expected in zip(
            grid.count, (grid.line, grid.pixel), ((1, 0), (0, 1)), strict=True
        )
    )
    return full and in_order and grid.outside is None


def _range(grid, depth):
    """Return the first channel of a range of vectors with all channels, and their number."""
    used = grid.channels[grid.channels >= 0]
    first = int(used.min()) // depth * depth
    return first, int(used.max()) + 1 - first


def _kernel(grid):
    """Return the kernel and the dilation of the taps of a grid."""
    shape = []
    for taps in (grid.rows, grid.columns):
        dilation = int(np.gcd.reduce(taps)) or 1
        shape.append((int(taps.max()) // dilation + 1, dilation))
    return tuple(zip(*shape, strict=True))


def _weights(builder, grid):
    """Return the one-hot weights of a grid."""
    if grid.source < 0 or _is_copy(grid, builder.depth):
        return 0
    return math.prod(_kernel(grid)[0]) * _range(grid, builder.depth)[1] * len(grid.channels)


def _cost(builder, plan, sizes):
    """Return the approximate cycles of jobs; the first copy of a whole map needs none."""
    cycles, written = 0, set()
    for _, grid in plan:
        words = 1
        if grid.source >= 0 and _is_copy(grid, builder.depth):
            if _is_whole(grid, sizes[grid.source]) and grid.source not in written:
                written.add(grid.source)
                continue
        elif grid.source >= 0:
            vectors = -(-_range(grid, builder.depth)[1] // builder.depth)
            words = math.prod(_kernel(grid)[0]) * vectors
        tiles = -(-len(grid.channels) // builder.cols)
        cycles += _JOB + (math.prod(grid.count) // 8 + 1) * tiles * words
    return cycles


def _append(builder, grid: Grid, first, maps, target):
    """Append the layer of a grid, which writes the channels from ``first`` on of a map."""
    place = dict(
        channel=first, row=grid.first[0], column=grid.first[1], line=(grid.step[0], 0),
        pixel=(0, grid.step[1]),
    )
    copied = grid.source >= 0 and _is_copy(grid, builder.depth)
    if copied and _is_whole(grid, builder.size(maps[grid.source])):
        builder.into(maps[grid.source], target, **place)
        return
    size = (*grid.count, len(grid.channels))
    y = target if size == builder.size(target) else builder.view(target, size, **place)
    if grid.source < 0:
        _constant(builder, grid, maps[0], y)
        return
    x, window = _read(builder, grid, maps[grid.source])
    outside = grid.outside or 0
    if copied:
        builder.copy(x, window, y=y, x_zero=outside)
        return
    weights = np.zeros((*window.kernel, builder.size(x)[2], size[2]), np.int8)
    columns = np.flatnonzero(grid.channels >= 0)
    low, _ = _range(grid, builder.depth)
    rows, across = _taps(grid)
    weights[rows[columns], across[columns], grid.channels[columns] - low, columns] = 1
    builder.layer(
        x, window, weights.reshape(-1, *weights.shape[2:]), y=y, layout=WeightLayout.DENSE,
        bias=grid.values, x_zero=outside,
    )


def _constant(builder, grid, x, y):
    """Append a layer of constants: its window lies above the map that it reads."""
    height, width, _ = builder.size(x)
    window = Window((1, 1), (1, 1), (1, 1), (grid.count[0], 0, 0, 0), (height, width), grid.count)
    weights = np.zeros((1, builder.size(x)[2], len(grid.values)))
    builder.layer(x, window, weights, y=y, layout=WeightLayout.DENSE, bias=grid.values)


def _orientation(grid):
    """Whether rows and columns change places, and which of them the grid reads backwards."""
    swapped = bool(grid.line[1] or grid.pixel[0])
    axes = (1, 0) if swapped else (0, 1)
    steps = grid.line[axes[0]], grid.pixel[axes[1]]
    return axes, steps, tuple(step < 0 for step in steps)


def _taps(grid):
    """Return the row and the column of the tap of each channel, as the layer reads them."""
    axes, _, backwards = _orientation(grid)
    kernel, dilation = _kernel(grid)
    given = grid.rows, grid.columns
    taps = []
    for axis, back in zip(axes, backwards, strict=True):
        tap = given[axis] // dilation[axis]
        taps.append(kernel[axis] - 1 - tap if back else tap)
    return taps


def _read(builder, grid, source):
    """Return the map that the layer of a grid reads, and its window."""
    axes, steps, backwards = _orientation(grid)
    kernel, dilation = ([pair[axis] for axis in axes] for pair in _kernel(grid))
    size = builder.size(source)
    sides = [size[axis] for axis in axes]
    first, channels = _range(grid, builder.depth)
    starts, corner, ways = [], [0, 0], []
    for n, (axis, back) in enumerate(zip(axes, backwards, strict=True)):
        way, start = [0, 0], grid.start[axis]
        way[axis] = -1 if back else 1
        if back:
            corner[axis] = sides[n] - 1
            start = sides[n] - 1 - (start + (kernel[n] - 1) * dilation[n])
        starts.append(start)
        ways.append(tuple(way))
    x = source
    if (*sides, channels) != size or axes != (0, 1) or any(backwards):
        x = builder.view(
            source, (*sides, channels), channel=first, row=corner[0], column=corner[1],
            line=ways[0], pixel=ways[1],
        )
    stride = tuple(abs(step) if count > 1 else 1 for step, count in zip(
        steps, grid.count, strict=True
    ))
    window = Window(
        tuple(kernel), stride, tuple(dilation), (-starts[0], 0, -starts[1], 0), tuple(sides),
        grid.count,
    )
    return x, window


def _nearest(builder):
    """RESIZE_NEAREST_NEIGHBOR: in one step, or rows first and then columns if that is faster."""
    given, source = builder.node.attributes, builder.stored()
    size = builder.map_size(builder.tensor(0).shape)
    steps = []
    for between in (given["size"], (given["size"][0], size[1])):
        values = np.arange(math.prod(size)).reshape(1, *size)
        [index] = kernels.run(builder.node.kernel, [values], {**given, "size": between})
        steps.append((index, _cycles(builder, index, size)))
    (whole, direct), (rows, first) = steps
    height, width, channels = rows.shape[1:]
    values = np.arange(rows.size).reshape(rows.shape)
    [columns] = kernels.run(builder.node.kernel, [values], given)
    if first + _cycles(builder, columns, (height, width, channels)) < direct:
        middle = moved(builder, rows, rows.shape[1:], [source])
        return moved(builder, columns, columns.shape[1:], [(middle, True)])
    return moved(builder, whole, whole.shape[1:], [source])


def _cycles(builder, index, size):
    """Return the approximate cycles of the values of an index, from a map of ``size``."""
    index = index.reshape(index.shape[1:])
    try:
        return _plan(builder, Origins.of(index, -129 - index, [size]))[0]
    except Refusal:
        return math.inf


LOWERINGS = {
    **dict.fromkeys([
        "slice", "split", "unstack", "pad", "mirror_pad", "concatenation", "stack", "tile",
        "broadcast", "gather", "rearrange", "reverse",
    ], move),
    "tflite.resize_nearest": _nearest,
}
