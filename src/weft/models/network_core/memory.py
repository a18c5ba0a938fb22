"""The memory of a network: its maps by their lives, and the areas of all else."""

import random
from bisect import insort
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter

from weft.models.network_core.jobs import PlacedMap
from weft.models.network_core.layers import NetworkCoreGraph, NetworkLayer
from weft.models.network_core.map_pitches import MapPitches, MapReading, choose_pitches
from weft.models.network_core.weights import LayerWords
from weft.network_core.config import NetworkCoreConfig

__all__ = ["Block", "MapPlacement", "lives", "place", "plan_maps"]


_ORDERS = 300  # tried at most


@dataclass(frozen=True)
class Block:
    """Consecutive vectors that are used from layer ``first`` to layer ``last``.

    Attributes
    ----------
    size : int
        Vectors.
    first, last : int
    """

    size: int
    first: int
    last: int


def place(blocks: list[Block]) -> tuple[list[int], int]:
    """Return the first vector of each block, and the vectors of all of them together.

    Blocks are placed one after the other, each at the lowest place that is free from its first to
    its last layer. The largest block comes first; then up to 300 random orders are tried. The
    search ends early if a result cannot be smaller: the blocks of some layer need all its vectors.
    """
    if not blocks:
        return [], 0
    least = max(
        sum(block.size for block in blocks if block.first <= layer <= block.last)
        for layer in range(max(block.last for block in blocks) + 1)
    )
    order = sorted(range(len(blocks)), key=lambda n: (-blocks[n].size, blocks[n].first))
    best, rng = _placed(order, blocks), random.Random(1)
    for _ in range(_ORDERS):
        if best[1] == least:
            break
        rng.shuffle(order)
        best = min(best, _placed(order, blocks), key=lambda result: result[1])
    return best


def _placed(order, blocks):
    """Return places and end of the blocks in an order."""
    places, top = [0] * len(blocks), 0
    done: list[tuple[int, int, Block]] = []  # start, end and block of each, by their starts
    for number in order:
        block, start = blocks[number], 0
        for begin, end, against in done:
            if begin >= start + block.size:
                break
            together = block.first <= against.last and against.first <= block.last
            if together and start < end:
                start = end
        places[number] = start
        top = max(top, start + block.size)
        insort(done, (start, start + block.size, block), key=itemgetter(0))
    return places, top


@dataclass(frozen=True)
class MapPlacement:
    """The places of all maps.

    Attributes
    ----------
    maps : tuple of PlacedMap
        In the order of `NetworkCoreGraph.maps`.
    vectors : int
        Vectors of all maps together.
    peak : int
        The layer at which most vectors are in use.
    live : tuple of (int, int)
        The maps that are in use then, and their vectors, the largest one first. A map that lies in
        another one is not among them.
    """

    maps: tuple[PlacedMap, ...]
    vectors: int
    peak: int = 0
    live: tuple[tuple[int, int], ...] = ()


def plan_maps(
    graph: NetworkCoreGraph, sizes: list[LayerWords], config: NetworkCoreConfig, *,
    keep: bool = False,
    dense: bool = False,
) -> MapPlacement:
    """Choose the pitches of all maps, and place them.

    ``keep``: no map overwrites another one. ``dense``: the pixels of a map follow each other.
    """
    owners, depth = _owners(graph, keep), config.array.depth
    views = [graph.view(number) for number in range(len(graph.maps))]
    last = max(0, len(graph.layers) - 1)
    first_use, last_use = lives(graph)
    readings: dict[int, list[MapReading]] = {}
    for layer, size in zip(graph.layers, sizes, strict=True):
        if layer.parts > 1:
            continue  # the vectors of a pixel lie in different banks
        steps = size.tiles * size.tile_words
        reading = MapReading(layer.window, steps, views[layer.x])
        readings.setdefault(owners[layer.x], []).append(reading)
    roots = sorted(set(owners))
    pitches, blocks = {}, []
    for root in roots:
        members = [number for number, owner in enumerate(owners) if owner == root]
        linear = any(graph.maps[number].linear for number in members)
        pitches[root] = _pitches(
            graph.maps[root], readings.get(root, []), config, dense=dense, linear=linear
        )
        life = (0, last) if keep else (
            min(first_use.get(n, last) for n in members), max(last_use.get(n, 0) for n in members)
        )
        blocks.append(Block(pitches[root].vectors, *life))
    places, vectors = place(blocks)
    start = dict(zip(roots, places, strict=True))
    return MapPlacement(
        tuple(
            PlacedMap(
                start[root] + view.first(pitches[root], depth),
                view.pitches(pitches[root]).of(
                    network_map.height, network_map.width, network_map.vectors(depth)
                ),
                *network_map.size,
            )
            for network_map, root, view in zip(graph.maps, owners, views, strict=True)
        ),
        vectors,
        *_peak(roots, blocks),
    )


def _peak(roots, blocks):
    """Return the layer at which most vectors are in use, and the maps that use them."""
    def live(layer):
        return [
            (root, block.size) for root, block in zip(roots, blocks, strict=True)
            if block.first <= layer <= block.last
        ]

    layers = range(max((block.last for block in blocks), default=0) + 1)
    peak = max(layers, key=lambda layer: sum(size for _, size in live(layer)))
    return peak, tuple(sorted(live(peak), key=lambda found: -found[1]))


def lives(graph: NetworkCoreGraph) -> tuple[dict[int, int], dict[int, int]]:
    """Return the first and the last layer of each map's life.

    The host writes maps before the list of their first reader, and reads results after the list
    that computes them. A map lives as long as all maps that lie in it. The map of a variable always
    lives.
    """
    first_use: dict[int, int] = {}
    last_use: dict[int, int] = {}
    for segment in graph.segments:
        for number in segment.layers:
            layer = graph.layers[number]
            first_use[layer.y] = last_use[layer.y] = number
            for read in layer.reads:
                last_use[read] = number
                if graph.maps[graph.root(read)].form is not None:
                    first_use.setdefault(read, segment.layers.start)
        for number in segment.results.values():
            last_use[number] = max(last_use.get(number, 0), segment.layers.stop - 1)
    for number in graph.variables.values():
        first_use[number], last_use[number] = 0, max(0, len(graph.layers) - 1)
    return first_use, last_use


def _pitches(network_map, readings, config, **rules) -> MapPitches:
    return choose_pitches(
        (network_map.height, network_map.width), network_map.vectors(config.array.depth), readings,
        config.array.rows, config.banks, **rules,
    )


def _owners(graph, keep):
    """Return for each map the map whose place it has: its root, or the map that ADD overwrites.

    Views and their wholes overwrite nothing.
    """
    owners = [graph.root(number) for number in range(len(graph.maps))]
    if keep:
        return owners
    results = {number for segment in graph.segments for number in segment.results.values()}
    apart = Counter(owners)
    for number, layer in enumerate(graph.layers):
        alone = layer.added >= 0 and all(
            apart[graph.root(place)] == 1 for place in (layer.y, layer.added)
        )
        if alone and _may_overwrite(graph, number, layer, results):
            owners[layer.y] = owners[layer.added]
    return owners


def _may_overwrite(graph, number, layer: NetworkLayer, results):
    """Whether no later layer, not the layer's window and not the host reads the added map."""
    later = graph.layers[number + 1 :]
    return (
        layer.added != layer.x and layer.added not in results
        and graph.maps[layer.added].size == graph.maps[layer.y].size
        and graph.maps[layer.added].form is None
        and layer.added not in graph.variables.values()
        and not any(layer.added in other.reads for other in later)
    )
