"""The memory of a network: its maps by their lives, and the areas of all else."""

from dataclasses import dataclass

from weft.chip.config import ChipConfig
from weft.network.chip.jobs import PlacedMap
from weft.network.chip.layers import ChipGraph, NetworkLayer
from weft.network.chip.pitches import MapPitches, MapReading, choose_pitches
from weft.network.chip.placing import Block, place
from weft.network.chip.weights import LayerWords

__all__ = ["MapPlacement", "plan_maps"]


@dataclass(frozen=True)
class MapPlacement:
    """The places of all maps.

    Attributes
    ----------
    maps : tuple of PlacedMap
        In the order of `ChipGraph.maps`.
    vectors : int
        Vectors of all maps together.
    """

    maps: tuple[PlacedMap, ...]
    vectors: int


def plan_maps(
    graph: ChipGraph, sizes: list[LayerWords], chip: ChipConfig, *, keep: bool = False,
    dense: bool = False,
) -> MapPlacement:
    """Choose the pitches of all maps, and place them.

    ``keep``: no map overwrites another one. ``dense``: the pixels of a map follow each other.
    """
    owners = _owners(graph, keep)
    last = len(graph.layers) - 1
    first_use = dict.fromkeys(range(len(graph.maps)), 0)
    last_use = dict.fromkeys(range(len(graph.maps)), 0)
    readings: dict[int, list[MapReading]] = {}
    for number, layer in enumerate(graph.layers):
        first_use[layer.y] = last_use[layer.y] = number
        last_use[layer.x] = number
        if layer.added >= 0:
            last_use[layer.added] = number
        steps = sizes[number].tiles * sizes[number].tile_words
        readings.setdefault(owners[layer.x], []).append(MapReading(layer.window, steps))
    for number in graph.results.values():
        last_use[number] = last
    roots = sorted(set(owners))
    pitches, blocks = {}, []
    for root in roots:
        members = [number for number, owner in enumerate(owners) if owner == root]
        pitches[root] = _pitches(graph.maps[root], readings.get(root, []), chip, dense)
        lives = (0, last) if keep else (
            min(first_use[n] for n in members), max(last_use[n] for n in members)
        )
        blocks.append(Block(pitches[root].vectors, *lives))
    places, vectors = place(blocks)
    start = dict(zip(roots, places, strict=True))
    return MapPlacement(
        tuple(
            PlacedMap(start[owner], pitches[owner], *found.size)
            for found, owner in zip(graph.maps, owners, strict=True)
        ),
        vectors,
    )


def _pitches(found, readings, chip, dense) -> MapPitches:
    return choose_pitches(
        (found.height, found.width), found.vectors(chip.core.depth), readings, chip.core.rows,
        chip.banks, dense=dense,
    )


def _owners(graph, keep):
    """Return for each map the map whose place it has: the sum of ADD overwrites the added map."""
    owners = list(range(len(graph.maps)))
    if keep:
        return owners
    results = set(graph.results.values())
    for number, layer in enumerate(graph.layers):
        if layer.added >= 0 and _may_overwrite(graph, number, layer, results):
            owners[layer.y] = owners[layer.added]
    return owners


def _may_overwrite(graph, number, layer: NetworkLayer, results):
    """Whether no later layer, not the layer's window and not the host reads the added map."""
    later = graph.layers[number + 1 :]
    return (
        layer.added != layer.x and layer.added not in results
        and graph.maps[layer.added].form is None
        and not any(layer.added in (other.x, other.added) for other in later)
    )
