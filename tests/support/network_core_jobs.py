"""Random jobs of a network core, with their maps in a memory and their buffers loaded."""

from collections import Counter
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from network_core_layers import NetworkCoreLayer, random_layer
from network_core_packing import PackedLayer, pack_layer

from weft.golden.network_core import NetworkCoreBuffers
from weft.network_core.descriptors import ListJob, join, split

__all__ = [
    "NetworkCoreImage", "JobCase", "MapPlace", "MapPlan", "bank_conflicts", "case_of", "job_of",
    "panels", "parts_of", "plan_map", "random_job",
]


@dataclass(frozen=True)
class MapPlace:
    """Where a map lies, in vectors: its first pixel, and distances of pixels and of rows."""

    number: int
    pitch: int
    row_pitch: int


@dataclass(frozen=True)
class MapPlan:
    """Pitches of an input map, and how a job may read it without a bank conflict."""

    pitch: int
    row_pitch: int
    panel_rows: int
    cross: int


class NetworkCoreImage:
    """A memory of random bytes, in which vectors are taken one after the other.

    Parameters
    ----------
    rng : numpy Generator
    config : NetworkCoreConfig
    base, limit : int
        As of `weft.golden.network_core.run_list`.

    Attributes
    ----------
    memory : uint8 [memory_bytes]
    """

    def __init__(self, rng, config, base=0, limit=None):
        self.config = config
        self.memory = rng.integers(0, 256, config.memory_bytes).astype(np.uint8)
        self._first = base * config.banks
        self._end = (config.words if limit is None else limit) * config.banks
        self._next = self._first

    def take(self, vectors: int) -> int:
        """The number of the first of so many free vectors, relative to the base."""
        number = self._next - self._first
        self._next += vectors
        if self._next > self._end:
            raise MemoryError(f"the memory of the core must have {self._next} vectors or more")
        return number

    def vectors(self) -> np.ndarray:
        """The vectors from the base on; int8 [vectors, depth]."""
        return self.memory.view(np.int8).reshape(-1, self.config.array.depth)[self._first :]

    def store(self, values) -> int:
        """Take vectors for bytes, store these, and return the number of the first vector."""
        depth = self.config.array.depth
        values = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.int8)
        padded = np.zeros(-(-len(values) // depth) * depth, np.int8)
        padded[: len(values)] = values
        number = self.take(len(padded) // depth)
        self.vectors()[number : number + len(padded) // depth] = padded.reshape(-1, depth)
        return number

    def take_map(self, plan, height) -> MapPlace:
        """Take the vectors of a map with the pitches of ``plan``, of `MapPlan` or `MapPlace`."""
        return MapPlace(self.take(height * plan.row_pitch), plan.pitch, plan.row_pitch)

    def map_index(self, place, shape):
        """Index of the bytes of a map of ``shape`` [H, W, C] in `vectors`."""
        y, x, c = np.ogrid[: shape[0], : shape[1], : shape[2]]
        depth = self.config.array.depth
        return place.number + y * place.row_pitch + x * place.pitch + c // depth, c % depth

    def store_map(self, place, values):
        """Store int8 [H, W, C]; the other bytes of its vectors stay random."""
        self.vectors()[self.map_index(place, values.shape)] = values

    def read_map(self, place, shape) -> np.ndarray:
        """The map int8 [H, W, C] at a place."""
        return self.vectors()[self.map_index(place, shape)]


@dataclass(frozen=True, kw_only=True)
class JobCase:
    """A job that a core may execute at once.

    Attributes
    ----------
    layer : NetworkCoreLayer
    packed : PackedLayer
    job : ListJob
    image : NetworkCoreImage
        The memory, with the input map and the added map.
    buffers : NetworkCoreBuffers
        The buffers, with the words and lines of the job.
    output : MapPlace
    """

    layer: NetworkCoreLayer
    packed: PackedLayer
    job: ListJob
    image: NetworkCoreImage
    buffers: NetworkCoreBuffers
    output: MapPlace


def plan_map(rng, config, layer: NetworkCoreLayer, vectors: int) -> MapPlan:
    """Random legal pitches of the input map of ``layer``, whose pixels have ``vectors``."""
    banks, width = config.banks, layer.x.shape[1]
    (stride_y, stride_x), out_width = layer.stride, layer.out[1]
    pitches = range(vectors, vectors + banks)
    full = [p for p in pitches if banks // gcd(p * stride_x, banks) >= config.array.rows]
    pitch = int(rng.choice(full if full and rng.integers(5) else pitches))
    step = pitch * stride_x
    most = min(config.array.rows, banks // gcd(step, banks))
    panel_rows = most if rng.integers(4) else int(rng.integers(1, most + 1))
    rows = range(width * pitch, width * pitch + banks)
    crossing = [r for r in rows if (stride_y * r - out_width * step) % banks == 0]
    cross = int(bool(crossing) and rng.integers(4) > 0)
    return MapPlan(pitch, int(rng.choice(crossing if cross else rows)), panel_rows, cross)


def job_of(config, layer, packed, plan, source, output, *, added=None, b_word=0, line=0, loads=0):
    """The job of a layer.

    Parameters
    ----------
    config : NetworkCoreConfig
    layer : NetworkCoreLayer
    packed : PackedLayer
    plan : MapPlan
        Of the input map.
    source, output : MapPlace
    added : MapPlace, optional
        The map that ADD adds.
    b_word, line : int
        First word of B, and first parameter line.
    loads : int
    """
    banks, pitch, row_pitch = config.banks, source.pitch, source.row_pitch
    (stride_y, stride_x), (dilation_y, dilation_x) = layer.stride, layer.dilation
    height, width = layer.out
    rest = packed.tap_vectors - 1

    def steps(name, place):
        step = place.row_pitch - (width - 1) * place.pitch
        return {
            f"{name}_pixel_step": split(place.pitch, banks), f"{name}_row_step": split(step, banks)
        }

    first = source.number + layer.first[0] * row_pitch + layer.first[1] * pitch
    tall = dilation_y * row_pitch + dilation_x * pitch * layer.kernel[1]
    if max(-first, tall) > config.words * banks:
        raise MemoryError(f"a window must have at most {config.words * banks} vectors, not {tall}")
    fields = steps("output", output)
    if add := layer.addition:
        fields |= steps("add", added) | dict(
            add=1, multiply=int(add.multiply), add_line=line + len(packed.lines) - 1,
            add_input=split(added.number, banks), sum_zero=add.sum_zero, sum_low=add.low,
            sum_high=add.high,
        )
    return ListJob(
        cross=plan.cross, sums=int(layer.stores_sums), loads=loads,
        panel_rows=plan.panel_rows, out_height=height, out_width=width, columns=layer.columns,
        tile_words=packed.tile_words, kernel_height=layer.kernel[0], kernel_width=layer.kernel[1],
        tap_vectors=packed.tap_vectors, group_tiles=packed.group_tiles,
        group_step=split(packed.group_step, banks), in_height=layer.x.shape[0],
        in_width=layer.x.shape[1], first_y=layer.first[0], first_x=layer.first[1],
        stride_y=stride_y, stride_x=stride_x, dilation_y=dilation_y, dilation_x=dilation_x,
        input=split(first, banks), input_pixel_step=split(stride_x * pitch, banks),
        input_row_step=split(stride_y * row_pitch - (width - 1) * stride_x * pitch, banks),
        tap_x_step=split(dilation_x * pitch - rest, banks),
        tap_y_step=split(
            dilation_y * row_pitch - (layer.kernel[1] - 1) * dilation_x * pitch - rest, banks
        ),
        b_word=b_word, b_step=packed.b_step, parameter_line=line,
        output=split(output.number, banks), outside=layer.outside, zero=layer.zero,
        low=layer.low, high=layer.high, **fields,
    )


def random_job(rng, config, *, base=0, limit=None, **sizes) -> JobCase:
    """A random legal job; ``sizes`` are arguments of `network_core_layers.random_layer`."""
    for _ in range(100):
        try:
            layer = random_layer(rng, multiplies=config.multiply_maps, **sizes)
            return case_of(rng, config, layer, base=base, limit=limit)
        except MemoryError as error:
            found = error
    raise found


def case_of(rng, config, layer, *, base=0, limit=None) -> JobCase:
    """A layer with its maps, words and lines at random places."""
    packed = pack_layer(config, layer)
    image = NetworkCoreImage(rng, config, base, limit)
    image.take(int(rng.integers(2 * config.banks)))
    plan = plan_map(rng, config, layer, packed.map_vectors)
    source = image.take_map(plan, layer.x.shape[0])
    image.store_map(source, layer.x)
    pitch = -(-layer.channels // config.array.depth) + int(rng.integers(3))
    result = MapPlace(0, pitch, pitch * layer.out[1] + int(rng.integers(3)))
    places = [
        image.take_map(result, layer.out[0]) for _ in range(1 + bool(layer.addition))
    ]
    output, added = places[0], places[-1]
    if layer.addition:
        output = added if rng.integers(2) else output  # in place
        image.store_map(added, layer.addition.x)
    buffers = NetworkCoreBuffers(config)
    b_word = int(rng.integers(config.b_words - len(packed.words) + 1))
    line = int(rng.integers(config.lines - len(packed.lines) + 1))
    buffers.b[b_word : b_word + len(packed.words)] = packed.words
    buffers.lines[line : line + len(packed.lines)] = packed.lines
    if packed.table is not None:
        buffers.table[:] = packed.table
    job = job_of(
        config, layer, packed, plan, source, output, added=added, b_word=b_word, line=line
    )
    return JobCase(
        layer=layer, packed=packed, job=job, image=image, buffers=buffers, output=output
    )


def panels(job):
    """Yield the panels of a job: lists of at most ``panel_rows`` pixels (oy, ox)."""
    pixels = [(oy, ox) for oy in range(job.out_height) for ox in range(job.out_width)]
    rows = [pixels] if job.cross else [
        pixels[at : at + job.out_width] for at in range(0, len(pixels), job.out_width)
    ]
    for row in rows:
        for at in range(0, len(row), job.panel_rows):
            yield row[at : at + job.panel_rows]


def parts_of(rng, config, job) -> list:
    """Random jobs that do together what a job of a dense layer does: parts of each tile.

    Returns
    -------
    list of (int, ListJob)
        For each job the first of its words, among those of the layer. Empty if a tile of the layer
        ends within a vector of the output map.
    """
    cols, banks, size = config.array.cols, config.banks, 4 if job.sums else 1
    if job.columns > cols and cols * size % config.array.depth:
        return []
    pixels, rows = {}, {}
    for name in ("input", "output", "add"):
        pixels[name] = join(getattr(job, f"{name}_pixel_step"), banks)
        row = join(getattr(job, f"{name}_row_step"), banks)
        rows[name] = row + (job.out_width - 1) * pixels[name]
    last = job.tap_vectors - 1
    tap_x = join(job.tap_x_step, banks) + last
    tap_y = join(job.tap_y_step, banks) + (job.kernel_width - 1) * tap_x + last

    def moved(name, by):
        return split(join(getattr(job, name), banks) + by, banks)

    found = []
    for tile in range(-(-job.columns // cols)):
        for oy, ox, height, width in _panels_of_parts(rng, job):
            steps = {
                f"{name}_row_step": split(rows[name] - (width - 1) * pixels[name], banks)
                for name in rows
            }
            vector = tile * cols * size // config.array.depth
            first = {name: oy * rows[name] + ox * pixels[name] for name in rows}
            blocks = _blocks(
                rng, (0, job.kernel_height), (0, job.kernel_width), (0, job.tap_vectors)
            )
            for number, ((ky, kh), (kx, kw), (c, vectors)) in enumerate(blocks):
                word = (ky * job.kernel_width + kx) * job.tap_vectors + c
                found.append((tile * job.tile_words + word, replace(
                    job, **steps, partial=int(number < len(blocks) - 1), out_height=height,
                    out_width=width, columns=min(cols, job.columns - tile * cols),
                    tile_words=kh * kw * vectors, kernel_height=kh, kernel_width=kw,
                    tap_vectors=vectors,
                    first_y=job.first_y + oy * job.stride_y + ky * job.dilation_y,
                    first_x=job.first_x + ox * job.stride_x + kx * job.dilation_x,
                    input=moved("input", first["input"] + ky * tap_y + kx * tap_x + c),
                    tap_x_step=split(tap_x - (vectors - 1), banks),
                    tap_y_step=split(tap_y - (kw - 1) * tap_x - (vectors - 1), banks),
                    b_word=job.b_word + tile * job.b_step + word,
                    parameter_line=job.parameter_line + tile * config.row_chunks,
                    output=moved("output", first["output"] + vector),
                    add_input=moved("add_input", first["add"] + vector),
                )))
    return found


def _panels_of_parts(rng, job):
    """Yield areas of the output map that are a panel each: oy, ox, height, width."""
    most = job.panel_rows // job.out_width if job.cross else 0
    if most > 1:
        for oy in range(0, job.out_height, most):
            yield oy, 0, min(most, job.out_height - oy), job.out_width
        return
    for oy in range(job.out_height):
        ox = 0
        while ox < job.out_width:
            width = min(int(rng.integers(1, job.panel_rows + 1)), job.out_width - ox)
            yield oy, ox, 1, width
            ox += width


def _blocks(rng, rows, taps, vectors):
    """Divide the taps of a tile at random into blocks whose words follow each other.

    Each block is its kernel rows, its taps in a row, and its vectors in a tap: first and count.
    """
    ranges = [rows, taps, vectors]
    axis = next((n for n, (_, count) in enumerate(ranges) if count > 1), None)
    if axis is None or rng.integers(3) == 0:
        return [tuple(ranges)]
    first, count = ranges[axis]
    cut = int(rng.integers(1, count))
    found = []
    for part in ((first, cut), (first + cut, count - cut)):
        found += _blocks(rng, *ranges[:axis], part, *ranges[axis + 1 :])
    return found


def bank_conflicts(config, job) -> list:
    """The steps in which two rows of the array read the same bank; found one by one.

    Returns
    -------
    list of (panel, ky, kx)
        All vectors of a tap, and all groups, have the same conflicts.
    """
    banks, found = config.banks, []
    pixel = join(job.input_pixel_step, banks)
    row = join(job.input_row_step, banks) + (job.out_width - 1) * pixel
    for number, panel in enumerate(panels(job)):
        for ky, kx in np.ndindex(job.kernel_height, job.kernel_width):
            read = Counter(
                (ox * pixel + oy * row) % banks for oy, ox in panel
                if 0 <= job.first_y + oy * job.stride_y + ky * job.dilation_y < job.in_height
                and 0 <= job.first_x + ox * job.stride_x + kx * job.dilation_x < job.in_width
            )
            if max(read.values(), default=0) > 1:
                found.append((number, ky, kx))
    return found
