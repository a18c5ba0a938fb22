"""The image of a program: its lists, weights and parameters, and their addresses."""

from dataclasses import dataclass

import numpy as np

from weft.chip.addresses import split
from weft.chip.config import ChipConfig
from weft.chip.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListLoad,
    ListLoop,
    LoadTarget,
)
from weft.network.chip.jobs import PlacedMap, job_of
from weft.network.chip.layers import ChipGraph
from weft.network.chip.pitches import Panels
from weft.network.chip.schedule import BufferSchedule
from weft.network.chip.weights import LayerWords, lines_of, words_of

__all__ = ["Image", "make_image"]


@dataclass(frozen=True)
class Image:
    """Lists, weights and parameters in the memory.

    Attributes
    ----------
    data : bytes
    setup_list, run_list : int
        First vectors; ``setup_list`` is -1 if nothing is resident.
    areas : dict of int
        Bytes of lists, weights and parameters.
    """

    data: bytes
    setup_list: int
    run_list: int
    areas: dict[str, int]


class _Vectors:
    """A part of the image that grows, in whole vectors."""

    def __init__(self, depth):
        self._depth = depth
        self._parts: list[bytes] = []
        self.vectors = 0

    def append(self, data: np.ndarray) -> int:
        """Append bytes; return the first vector, counted from the start of the part."""
        first, raw = self.vectors, data.tobytes()
        raw += bytes(-len(raw) % self._depth)
        self._parts.append(raw)
        self.vectors += len(raw) // self._depth
        return first

    def bytes(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._parts)


@dataclass(frozen=True)
class _Source:
    """Where the weights and the lines of a part lie: vectors from the start of their areas."""

    b: int
    line: int


def make_image(
    graph: ChipGraph, sizes: list[LayerWords], panels: list[Panels], schedule: BufferSchedule,
    maps: tuple[PlacedMap, ...], arena: int, batch: int, chip: ChipConfig, result_bytes: int,
    result: int,
) -> Image:
    """Make the image that follows the maps of ``batch`` inferences.

    ``result`` is the first vector of the result that END names.

    Raises ValueError if a value does not fit its field of a descriptor.
    """
    weights, lines, sources = _data(graph, sizes, schedule, chip)
    descriptor = DESCRIPTOR_BYTES // chip.core.depth
    setup_loads, run_loads = _loads(schedule, sizes)
    setup = len(setup_loads) + 1 if setup_loads else 0
    run = len(run_loads) + len(schedule.parts) + (2 if batch > 1 else 1)
    first = arena * batch
    weights_first = first + (setup + run) * descriptor
    lines_first = weights_first + weights.vectors

    def load(part_number, target, jobs):
        part, source = schedule.parts[part_number], sources[part_number]
        layer = sizes[part.layer]
        if target == LoadTarget.PARAMETERS:
            return ListLoad(
                jobs=jobs, target=target, source=split(lines_first + source.line, chip.banks),
                first_word=part.line, words=part.lines,
            )
        value = int(graph.layers[part.layer].weights.flat[0]) if layer.filled else 0
        return ListLoad(
            jobs=jobs, target=target, diagonal=layer.diagonal, fill=layer.filled,
            fill_value=value, first_word=part.b_word, words=part.words,
            source=0 if layer.filled else split(weights_first + source.b, chip.banks),
        )

    run_list, loads = [], 0
    for number, part in enumerate(schedule.parts):
        layer = graph.layers[part.layer]
        own = [entry for entry in run_loads if entry[0] == number]
        loads += len(own)
        run_list += [load(*entry) for entry in own]
        run_list.append(job_of(
            layer, sizes[part.layer], panels[part.layer], part, maps[layer.x], maps[layer.y],
            maps[layer.added] if layer.added >= 0 else None, loads if own else 0, chip,
        ))
    if batch > 1:
        step = split(arena, chip.banks)
        run_list.append(ListLoop(
            times=batch, body=len(run_list), body_loads=len(run_loads),
            body_jobs=len(schedule.parts), input_step=step, output_step=step, add_step=step,
        ))
    run_list.append(ListEnd(result=split(result, chip.banks), result_bytes=result_bytes))
    setup_list = [load(*entry) for entry in setup_loads]
    if setup_list:
        setup_list.append(ListEnd())
    data = b"".join(entry.pack() for entry in (*setup_list, *run_list))
    parts = data, weights.bytes(), lines.bytes()
    return Image(
        b"".join(parts), first if setup else -1, first + setup * descriptor,
        dict(zip(("lists", "weights", "parameters"), map(len, parts), strict=True)),
    )


def _data(graph, sizes, schedule, chip):
    """Return the weights and the lines of all parts, and where each part's are."""
    weights, lines = _Vectors(chip.core.depth), _Vectors(chip.core.depth)
    made, sources = {}, []
    for part in schedule.parts:
        layer, size = graph.layers[part.layer], sizes[part.layer]
        if part.layer not in made:
            words, pairs = words_of(layer, size, chip)
            made = {part.layer: (words, *lines_of(layer, size, pairs, chip))}
        words, columns, added = made[part.layer]
        tiles = slice(part.first, part.first + part.tiles)
        rows = slice(tiles.start * size.row_lines, tiles.stop * size.row_lines)
        b = 0 if size.filled else weights.append(words[tiles])
        line = lines.append(columns[rows])
        lines.append(added)
        sources.append(_Source(b, line))
    return weights, lines, sources


def _loads(schedule, sizes):
    """Return the loads of the setup list and of the run list: part, target, jobs."""
    setup, run = [], []
    for number, part in enumerate(schedule.parts):
        for target, resident, jobs in (
            (LoadTarget.B, schedule.b_resident, part.b_jobs),
            (LoadTarget.PARAMETERS, schedule.lines_resident, part.line_jobs),
        ):
            (setup if resident else run).append((number, target, jobs))
    return setup, run
