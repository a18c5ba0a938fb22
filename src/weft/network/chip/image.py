"""The bytes of a program in the memory: its lists, weights and parameters.

The **setup** part has the list that loads resident weights and parameters, and these. It shares the
place of the maps: nothing reads it after the setup. The **run** part has the list of an inference,
and the weights and parameters that it loads.
"""

from dataclasses import dataclass

import numpy as np

from weft.chip.addresses import split
from weft.chip.config import ChipConfig
from weft.chip.descriptors import DESCRIPTOR_BYTES, ListEnd, ListLoad, ListLoop, LoadTarget
from weft.network.chip.jobs import PlacedMap, job_of
from weft.network.chip.layers import ChipGraph
from weft.network.chip.pitches import Panels
from weft.network.chip.schedule import BufferSchedule
from weft.network.chip.weights import LayerWords, lines_of, words_of

__all__ = ["MemoryImage", "make_image"]


@dataclass(frozen=True)
class MemoryImage:
    """The two parts of a program in the memory.

    Attributes
    ----------
    setup : bytes
        From vector 0 on, its list first; empty if nothing is resident.
    run : bytes
        From vector ``run_first`` on, its list first.
    run_first : int
    areas : dict of int
        Bytes of the list, the weights and the parameters of the run part.
    """

    setup: bytes
    run: bytes
    run_first: int
    areas: dict[str, int]


@dataclass(frozen=True)
class _Data:
    """Weights or parameters of a part of a layer; in the setup part or in the run part."""

    part: int
    target: LoadTarget
    jobs: int
    resident: bool
    vectors: np.ndarray


def make_image(
    graph: ChipGraph, sizes: list[LayerWords], panels: list[Panels], schedule: BufferSchedule,
    maps: tuple[PlacedMap, ...], arena: int, batch: int, chip: ChipConfig, result_bytes: int,
    result: int,
) -> MemoryImage:
    """Return the image of a program with maps of ``arena`` vectors for each inference.

    ``result`` is the first vector of the result that END names.

    Raises ValueError if a value does not fit its field of a descriptor.
    """
    data = list(_data(graph, sizes, schedule, chip))
    kept = [entry for entry in data if entry.resident]
    streamed = [entry for entry in data if not entry.resident]
    setup = b""
    if kept:
        loads = _placed(kept, 0, len(kept) + 1, graph, sizes, schedule, chip)
        setup = _joined([*loads, ListEnd()], kept)
    depth = chip.core.depth
    first = max(arena * batch, len(setup) // depth)
    length = len(streamed) + len(schedule.parts) + 1 + (batch > 1)
    loads = _placed(streamed, first, length, graph, sizes, schedule, chip)
    entries, done = [], 0
    for number, part in enumerate(schedule.parts):
        layer = graph.layers[part.layer]
        own = [load for load, entry in zip(loads, streamed, strict=True) if entry.part == number]
        done += len(own)
        entries += own
        entries.append(job_of(
            layer, sizes[part.layer], panels[part.layer], part, maps[layer.x], maps[layer.y],
            maps[layer.added] if layer.added >= 0 else None, done if own else 0, chip,
        ))
    if batch > 1:
        step = split(arena, chip.banks)
        entries.append(ListLoop(
            times=batch, body=len(entries), body_loads=len(streamed),
            body_jobs=len(schedule.parts), input_step=step, output_step=step, add_step=step,
        ))
    entries.append(ListEnd(result=split(result, chip.banks), result_bytes=result_bytes))
    areas = {"list": len(entries) * DESCRIPTOR_BYTES}
    for name, target in (("weights", LoadTarget.B), ("parameters", LoadTarget.PARAMETERS)):
        areas[name] = sum(entry.vectors.nbytes for entry in streamed if entry.target == target)
    return MemoryImage(setup, _joined(entries, streamed), first, areas)


def _data(graph, sizes, schedule, chip):
    """Yield weights and parameters of all parts, in the order of their loads."""
    made = None, None
    for number, part in enumerate(schedule.parts):
        layer, size = graph.layers[part.layer], sizes[part.layer]
        if made[0] != part.layer:
            words, pairs = words_of(layer, size, chip)
            made = part.layer, (words, *lines_of(layer, size, pairs, chip))
        words, columns, added = made[1]
        tiles = slice(part.first, part.first + part.tiles)
        rows = slice(tiles.start * size.row_lines, tiles.stop * size.row_lines)
        depth = chip.core.depth
        if part.words:
            yield _Data(
                number, LoadTarget.B, part.b_jobs, schedule.b_resident,
                words[:0, 0] if size.filled else words[tiles].reshape(-1, depth),
            )
        lines = np.concatenate([columns[rows], added]).view(np.int8)
        yield _Data(
            number, LoadTarget.PARAMETERS, part.line_jobs, schedule.lines_resident,
            lines.reshape(-1, depth),
        )


def _placed(data, first, length, graph, sizes, schedule, chip):
    """Return the loads of data that follow a list of ``length`` descriptors at vector ``first``."""
    place = first + length * DESCRIPTOR_BYTES // chip.core.depth
    loads = []
    for entry in data:
        part = schedule.parts[entry.part]
        size = sizes[part.layer]
        common = {"jobs": entry.jobs, "target": entry.target}
        if len(entry.vectors):
            common["source"] = split(place, chip.banks)
        if entry.target == LoadTarget.B:
            value = int(graph.layers[part.layer].weights.flat[0]) if size.filled else 0
            loads.append(ListLoad(
                **common, diagonal=size.diagonal, fill=size.filled, fill_value=value,
                first_word=part.b_word, words=part.words,
            ))
        else:
            loads.append(ListLoad(**common, first_word=part.line, words=part.lines))
        place += len(entry.vectors)
    return loads


def _joined(entries, data):
    """Return the bytes of a list and of the data after it."""
    return b"".join(entry.pack() for entry in entries) + b"".join(
        entry.vectors.tobytes() for entry in data
    )
