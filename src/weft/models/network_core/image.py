"""The bytes of a program in its memory: its lists, weights, parameters and ADD tables.

The **setup** parts have lists that load resident weights and parameters, and these. They share the
place of the maps, unless the core has a program memory: one is written and executed after the
other, and nothing reads them after the setup. A core with ``resident`` has no loads: the host
writes what the only setup part would load, and it takes no memory. The **run** parts have the lists
of an inference, and the weights, parameters and ADD tables that each loads.

With a program memory, all of this lies there. If its timing is known, the run parts lie behind the
maps on the chip, as far as there is room, and the **streams** are the rest: the data that each list
loads from the program memory.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.models.network_core.demands import BufferSchedule
from weft.models.network_core.jobs import PlacedMap, job_of, started_early
from weft.models.network_core.layers import NetworkCoreGraph
from weft.models.network_core.map_pitches import Panels
from weft.models.network_core.residence import (
    CHIP_PACE,
    LoadPace,
    TimedJob,
    TimedLoad,
    choose_kept,
    list_cycles,
)
from weft.models.network_core.resident import setup_bytes
from weft.models.network_core.weights import (
    LayerWords,
    lines_of,
    packed_words,
    table_of,
    words_of,
)
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    split,
)

__all__ = ["MemoryImage", "make_image"]

_ANY_SPACE = 1 << 32  # vectors: all loads are one part


@dataclass(frozen=True)
class MemoryImage:
    """The parts of a program in the memory.

    Attributes
    ----------
    setup : tuple of bytes
        Each from vector 0 on, its list first; empty if nothing is resident.
    runs : tuple of (int, bytes)
        For each list of an inference its first vector, and its bytes: the list, then its data.
    streams : tuple of (int, bytes)
        The same for the data of each list that stream; empty without a choice.
    end : int
        The vector after the last run part.
    cycles : int
        Of all lists, about; 0 without the pace of a program memory.
    kept : tuple of float
        For each layer, the part of its words of B that is on the chip; 0 without a choice.
    areas : dict of int
        Bytes of the lists, the weights, the parameters and the ADD tables of all parts. With a
        choice ``kept``, those of the run parts and of the log.
    """

    setup: tuple[bytes, ...]
    runs: tuple[tuple[int, bytes], ...]
    streams: tuple[tuple[int, bytes], ...]
    end: int
    cycles: int
    kept: tuple[float, ...]
    areas: dict[str, int]


class _Computed(NamedTuple):
    """Words of B in a map, from vector ``source`` on, and the first word of the buffer."""

    source: int
    first_word: int
    words: int


@dataclass(frozen=True)
class _Data:
    """Weights, parameters or table of a part of a layer; in a setup part or in a run part.

    In a program memory the vectors are whole beats: their number is a multiple of `_unit`. Parts of
    a list that load the same bytes have the same array of them, which the memory holds once. Words
    that layers ``computed`` have none. ``packed``: weights of int4, as `packed_words` has them.
    """

    part: int
    target: LoadTarget
    jobs: int
    resident: bool
    vectors: np.ndarray
    computed: _Computed | None = None
    packed: bool = False


def make_image(
    graph: NetworkCoreGraph, sizes: list[LayerWords], panels: list[Panels],
    schedule: BufferSchedule,
    maps: tuple[PlacedMap, ...], arena: int, batch: int, config: NetworkCoreConfig,
    ends: list[tuple[int, int]], log: int, pace: LoadPace | None = None,
) -> MemoryImage:
    """Return the image of a program with maps of ``arena`` vectors for each inference.

    ``ends`` has for each list the first vector and the bytes of the result that END names. The log
    has ``log`` vectors. With ``pace``, that of loads from the program memory, lists and data lie on
    the chip as far as there is room; if it has no room for the lists, nothing does.

    Raises ValueError if a value does not fit its field of a descriptor.
    """
    data = list(_shared(graph, schedule, _data(graph, sizes, schedule, maps, config)))
    kept = [entry for entry in data if entry.resident]
    streamed = [entry for entry in data if not entry.resident]
    depth = config.array.depth
    length = len(streamed) + len(schedule.parts) + len(graph.segments) * (1 + (batch > 1))
    stored = {id(entry.vectors): entry for entry in streamed}.values()
    used = length * DESCRIPTOR_BYTES // depth + sum(len(entry.vectors) for entry in stored)
    space = config.banks * (config.program_words or config.words) - used - log
    if config.resident:
        _check_tables(data)
        space = _ANY_SPACE
    setup = tuple(_setups(kept, space, graph, sizes, schedule, config))
    before = 0 if config.program_words else arena * batch  # maps
    first = max(before, setup_bytes(setup, config) // depth)
    lists = []
    for segment in graph.segments:
        parts = [n for n, part in enumerate(schedule.parts) if part.layer in segment.layers]
        own = [entry for entry in streamed if entry.part in parts]
        loads = [_load(entry, graph, sizes, schedule, config, parts[0]) for entry in own]
        lists.append((parts, own, loads))
    chosen, cycles = None, 0
    if pace:
        room = config.vectors - arena * batch - length * DESCRIPTOR_BYTES // depth - log
        # Numbers in the order of the loads, so that the choice is the same each time.
        numbers = {id(entry.vectors): n for n, entry in enumerate(stored)}
        timed = [_timed(*each, schedule, pace, config, numbers) for each in lists]
        kept = choose_kept(timed, room) if room >= 0 else set()
        cycles = sum(list_cycles(jobs, kept) for jobs in timed)
        if room >= 0:
            chosen = {place for place, number in numbers.items() if number in kept}
    runs, streams, stream = [], [], first
    if chosen is not None:
        first = arena * batch
    for (parts, own, loads), end in zip(lists, ends, strict=True):
        streaming = [
            entry.vectors for entry in own
            if chosen is not None and len(entry.vectors) and id(entry.vectors) not in chosen
        ]
        places, after = _places(streaming, stream)
        if chosen is not None:
            streams.append((stream, _bytes(streaming)))
        stream = after
        run = _run(
            parts, own, loads, graph, sizes, panels, schedule, maps, arena, batch, config, end,
            first, places, chosen is not None,
        )
        runs.append((first, run))
        first += len(run) // depth
    areas = {"list": length * DESCRIPTOR_BYTES}
    for name, target in zip(("weights", "parameters", "tables"), LoadTarget, strict=True):
        areas[name] = sum(entry.vectors.nbytes for entry in stored if entry.target == target)
    if chosen is not None:
        areas["kept"] = sum(len(run) for _, run in runs) + log * depth
    parts_kept = _kept(streamed, chosen or (), schedule, len(graph.layers))
    return MemoryImage(setup, tuple(runs), tuple(streams), first, cycles, parts_kept, areas)


def _check_tables(data):
    """Raise ValueError if a core without loads needs more than one ADD table."""
    tables = {entry.vectors.tobytes() for entry in data if entry.target == LoadTarget.ADD_TABLE}
    if len(tables) > 1:
        raise ValueError(
            f"its layers need {len(tables)} ADD tables, and a core with resident has no loads, and"
            " one: [network_core] resident must be false"
        )


def _kept(data, chosen, schedule, layers):
    """Return for each layer the part of its words of B that is among the ``chosen`` data."""
    kept, whole = [0] * layers, [0] * layers
    for entry in data:
        if entry.target == LoadTarget.B:
            layer, size = schedule.parts[entry.part].layer, len(entry.vectors)
            whole[layer] += size
            kept[layer] += size * (id(entry.vectors) in chosen)
    return tuple(part / max(1, size) for part, size in zip(kept, whole, strict=True))


def _timed(parts, data, loads, schedule, pace, config, numbers):
    """Return the jobs of a list, with the cycles of their loads; ``pace`` is that of streams.

    ``numbers`` are those of all data.
    """
    found, entries = [], list(zip(data, loads, strict=True))
    at = 0
    for number in parts:
        own = []
        while at < len(entries) and entries[at][0].part == number:
            entry, load = entries[at]
            at += 1
            fast = CHIP_PACE.cycles(load.reads(config) or load.words)
            streams = len(entry.vectors) > 0
            beats = -(-load.vectors(config) // config.read_vectors)
            slow = max(fast, pace.cycles(beats)) if streams else fast
            own.append(TimedLoad(
                numbers[id(entry.vectors)] if streams else None, len(entry.vectors), load.jobs,
                slow, fast,
            ))
        found.append(TimedJob(schedule.parts[number].cycles, own))
    return found


def _run(
    parts, data, loads, graph, sizes, panels, schedule, maps, arena, batch, config, end, first,
    streams, on_chip,
):
    """Return the bytes of one list of an inference, at vector ``first``, and of its ``data``.

    ``streams`` has the places of those that do not follow the list. ``on_chip``: the list lies in
    the memory on the chip, of a core with two.
    """
    length = len(data) + len(parts) + 1 + (batch > 1)
    here = [entry.vectors for entry in data if id(entry.vectors) not in streams]
    places, _ = _places(here, first + length * DESCRIPTOR_BYTES // config.array.depth)
    loads = [
        _with_source(load, entry.vectors, places | streams, config, id(entry.vectors) in places)
        if on_chip else _with_source(load, entry.vectors, places, config)
        for load, entry in zip(loads, data, strict=True)
    ]
    entries, done, before = [], 0, None
    for number in parts:
        part = schedule.parts[number]
        layer = graph.layers[part.layer]
        own = [load for load, entry in zip(loads, data, strict=True) if entry.part == number]
        done += len(own)
        entries += own
        job = job_of(
            layer, sizes[part.layer], panels[part.layer], part, maps[layer.x], maps[layer.y],
            maps[layer.read_as_added] if layer.read_as_added >= 0 else None, done if own else 0,
            config, maps[layer.cell] if layer.cell >= 0 else None,
        )
        if config.early and before:
            x = maps[layer.x].read_by(sizes[part.layer], config.array.depth)
            job = started_early(job, x, before, config)
        entries.append(job)
        before = job
    if batch > 1:
        if config.early:  # its job before is the last one of the inference before
            first_job = next(n for n, entry in enumerate(entries) if isinstance(entry, ListJob))
            x = maps[graph.layers[schedule.parts[parts[0]].layer].x]
            entries[first_job] = started_early(entries[first_job], x, before, config, apart=True)
        step = split(arena, config.banks)
        entries.append(ListLoop(
            times=batch, body=len(entries), body_loads=len(data), body_jobs=len(parts),
            input_step=step, output_step=step, add_step=step,
        ))
    result, result_bytes = end
    entries.append(ListEnd(result=split(result, config.banks), result_bytes=result_bytes))
    return _joined(entries, here)


def _data(graph, sizes, schedule, maps, config):
    """Yield weights, parameters and tables of all parts, in the order of their loads."""
    made: tuple = None, None, {}
    for number, part in enumerate(schedule.parts):
        layer, size = graph.layers[part.layer], sizes[part.layer]
        depth = config.array.depth
        if made[0] != part.layer and not layer.is_of_unit:
            words, pairs = words_of(layer, size, config)
            made = part.layer, (words, *lines_of(layer, size, pairs, config)), {}
        tiles = slice(part.first, part.first + part.tiles)
        if part.words and layer.b >= 0:
            for computed in _computed(layer, part, maps[layer.b], config):
                yield _Data(
                    number, LoadTarget.B, part.b_jobs, False, np.zeros((0, depth), np.int8),
                    computed,
                )
        elif part.words:
            words = made[1][0]
            first, each = part.piece.first_word, 1 if size.diagonal else config.array.cols
            if (part.first, first) not in made[2]:
                vectors = words[tiles, first * each : (first + part.piece.taps.words) * each]
                vectors = words[:0, 0] if size.filled else vectors.reshape(-1, depth)
                if size.packed:
                    vectors = packed_words(vectors, config)
                made[2][part.first, first] = _whole_beats(vectors, config)
            yield _Data(
                number, LoadTarget.B, part.b_jobs, schedule.b_resident, made[2][part.first, first],
                packed=size.packed,
            )
        if part.lines:
            _, columns, added = made[1]
            rows = slice(tiles.start * size.row_lines, tiles.stop * size.row_lines)
            lines = np.concatenate([columns[rows], added]).view(np.int8)
            yield _Data(
                number, LoadTarget.PARAMETERS, part.line_jobs,
                part.layer in schedule.resident_lines, lines.reshape(-1, depth),
            )
        if part.table_jobs is not None:
            table = table_of(layer.addition, config).view(np.int8)
            yield _Data(
                number, LoadTarget.ADD_TABLE, part.table_jobs, config.resident,
                table.reshape(-1, depth),
            )


def _computed(layer, part, stream, config):
    """Yield the loads of a part whose words are in a map: of words that follow each other there."""
    piece, each = part.piece, max(layer.b_order) + 1
    order = layer.b_order[piece.first_word : piece.first_word + piece.taps.words]
    places = [
        tile * each + place for tile in range(part.first, part.first + part.tiles)
        for place in order
    ]
    first = 0
    for after in range(1, len(places) + 1):
        if after == len(places) or places[after] != places[after - 1] + 1:
            source = stream.first + places[first] * config.array.cols
            yield _Computed(source, part.b_word + first, after - first)
            first = after


def _shared(graph, schedule, data):
    """Yield ``data``, with one array for the equal bytes of a list."""
    lists = {n: number for number, segment in enumerate(graph.segments) for n in segment.layers}
    arrays: dict[tuple, np.ndarray] = {}
    for entry in data:
        key = lists[schedule.parts[entry.part].layer], entry.vectors.tobytes()
        yield dataclasses.replace(entry, vectors=arrays.setdefault(key, entry.vectors))


def _unit(config):
    """Return the vectors of a beat of the program memory; 1 without it."""
    return config.read_vectors if config.program_words else 1


def _whole_beats(vectors, config):
    """Return ``vectors``, with zeros to a multiple of `_unit`; only diagonal words need them."""
    return np.pad(vectors, ((0, -len(vectors) % _unit(config)), (0, 0)))


def _load(entry, graph, sizes, schedule, config, before=0):
    """Return the load of data, without the source of its vectors.

    Lists with ``before`` jobs have ended.
    """
    part, jobs = schedule.parts[entry.part], max(0, entry.jobs - before)
    if entry.target == LoadTarget.PARAMETERS:
        return ListLoad(
            jobs=jobs, target=entry.target, first_word=part.line, words=part.lines
        )
    if entry.target == LoadTarget.ADD_TABLE:
        words = len(entry.vectors) // config.add_table_vectors
        return ListLoad(jobs=jobs, target=entry.target, words=words)
    if entry.computed:
        source, first, words = entry.computed
        return ListLoad(
            on_chip=bool(config.program_words), jobs=jobs, target=entry.target,
            source=split(source, config.banks), first_word=first, words=words,
        )
    size = sizes[part.layer]
    value = int(graph.layers[part.layer].weights.flat[0]) if size.filled else 0
    return ListLoad(
        jobs=jobs, target=entry.target, diagonal=size.diagonal, fill=size.filled,
        fill_value=value, packed=entry.packed, first_word=part.b_word, words=part.words,
    )


def _places(vectors, first):
    """Return the places of arrays that follow each other from ``first`` on, and their end."""
    places: dict[int, int] = {}
    for data in vectors:
        if id(data) not in places:
            places[id(data)] = first
            first += len(data)
    return places, first


def _with_source(load, data, places, config, on_chip=False):
    """Return the load of ``data``, which have one of the ``places``."""
    if not len(data):
        return load
    source = split(places[id(data)], config.banks)
    return dataclasses.replace(load, source=source, on_chip=int(on_chip))


def _setups(kept, space, graph, sizes, schedule, config):
    """Yield the bytes of the setup parts, each of at most ``space`` vectors, if that is possible.
    """
    descriptor = DESCRIPTOR_BYTES // config.array.depth
    loads, vectors, size = [], [], descriptor
    for entry in kept:
        load = _load(entry, graph, sizes, schedule, config)
        for piece, data in _pieces(load, entry.vectors, space - 2 * descriptor, config):
            if loads and size + descriptor + len(data) > space:
                yield _part(loads, vectors, config)
                loads, vectors, size = [], [], descriptor
            loads.append(piece)
            vectors.append(data)
            size += descriptor + len(data)
    if loads:
        yield _part(loads, vectors, config)


def _pieces(load, vectors, space, config):
    """Yield loads, and their vectors, that do together what ``load`` does."""
    if not len(vectors):
        yield load, vectors
        return
    unit = math.lcm(config.phases, _unit(config)) if load.diagonal else 1
    if load.packed:
        unit = config.scaled_words
    most = max(unit, space // dataclasses.replace(load, words=unit).vectors(config) * unit)
    for first in range(0, load.words, most):
        words = min(most, load.words - first)
        before = dataclasses.replace(load, words=first).vectors(config)
        piece = dataclasses.replace(load, first_word=load.first_word + first, words=words)
        yield piece, _whole_beats(vectors[before : before + piece.vectors(config)], config)


def _part(loads, vectors, config):
    """Return the bytes of a list of loads, and of the vectors that they load."""
    places, _ = _places(vectors, (len(loads) + 1) * DESCRIPTOR_BYTES // config.array.depth)
    loads = [
        _with_source(load, data, places, config)
        for load, data in zip(loads, vectors, strict=True)
    ]
    return _joined([*loads, ListEnd()], vectors)


def _joined(entries, vectors):
    """Return the bytes of a list and of the data after it."""
    return b"".join(entry.pack() for entry in entries) + _bytes(vectors)


def _bytes(vectors):
    """Return the bytes of arrays, of each one once."""
    return b"".join(data.tobytes() for data in {id(data): data for data in vectors}.values())
