"""Maps share their memory: no layer overwrites a map that is read later."""

import numpy as np
import pytest
from chip_networks import NetworkBuilder, random_network
from network_chips import LARGE, SMALL

from weft.network.chip.division import divide
from weft.network.chip.memory import plan_maps
from weft.network.chip.weights import LayerWords


def planned(graph, chip, **options):
    """The divided network, and the places of its maps."""
    core = chip.core
    divided = divide(graph, core.requantize, core.cols, core.depth)
    sizes = [
        LayerWords.of(layer, divided.maps[layer.x].channels, chip) for layer in divided.layers
    ]
    return divided, plan_maps(divided, sizes, chip, **options)


def vectors(place, depth):
    """The vectors of a map's pixels."""
    y, x, v = np.ogrid[: place.height, : place.width, : -(-place.channels // depth)]
    return place.first + y * place.pitches.row_pitch + x * place.pitches.pitch + v


def check(divided, plan, chip):
    """Follow which map each vector has, layer by layer."""
    owner = np.full(plan.vectors, -1)
    for segment in divided.segments:
        check_list(divided, segment, plan, chip, owner)


def check_list(divided, segment, plan, chip, owner):
    """The layers of one list; the host writes maps before it, and reads results after it."""
    depth, written = chip.core.depth, set()
    layers = [divided.layers[number] for number in segment.layers]
    for number in {n for layer in layers for n in (layer.x, layer.added) if n >= 0}:
        if divided.maps[number].form is not None:
            place = vectors(plan.maps[number], depth)
            if not (owner[place] == number).all():
                owner[place] = number
                written.add(number)
    for layer in layers:
        x, y = (vectors(plan.maps[n], depth) for n in (layer.x, layer.y))
        assert (owner[x] == layer.x).all()
        assert not np.intersect1d(x, y).size
        if layer.added >= 0:
            added = vectors(plan.maps[layer.added], depth)
            assert (owner[added] == layer.added).all()
            same = added.shape == y.shape and (added == y).all()
            assert same or not np.intersect1d(added, y).size
        owner[y] = layer.y
    for number in segment.results.values():
        assert (owner[vectors(plan.maps[number], depth)] == number).all()


def builder():
    return NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 8))


def test_the_sum_overwrites_the_added_map():
    b = builder()
    x = b.convolution(0, 8)
    y = b.convolution(b.convolution(x, 8), 8)
    b.convolution(b.add(x, y), 8)
    divided, plan = planned(b.graph(), LARGE)
    check(divided, plan, LARGE)
    total = divided.layers[2]
    assert plan.maps[total.y] == plan.maps[total.added]


def test_a_map_that_is_read_later_stays():
    b = builder()
    x = b.convolution(0, 8)
    y = b.add(x, b.convolution(b.convolution(x, 8), 8))
    b.add(b.convolution(y, 8), x)
    check(*planned(b.graph(), LARGE), LARGE)


def test_the_input_is_added():
    b = builder()
    x = b.convolution(0, 8)
    for _ in range(3):
        x = b.convolution(x, 8)
    b.convolution(b.add(x, 0), 8)
    divided, plan = planned(b.graph(), LARGE)
    assert len(divided.maps) == 6  # the first layer and ADD read the same map
    check(divided, plan, LARGE)


def test_the_added_map_is_the_window():
    b = builder()
    x = b.convolution(0, 8)
    b.convolution(b.add(x, b.convolution(x, 8)), 8)
    check(*planned(b.graph(), LARGE), LARGE)


def test_an_output_of_the_network_stays():
    b = builder()
    x = b.convolution(0, 8)
    y = b.convolution(b.convolution(x, 8), 8)
    z = b.convolution(b.add(x, y), 8)
    check(*planned(b.graph(x, z), LARGE), LARGE)


@pytest.mark.parametrize("chip", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("seed", range(25))
def test_random_networks(seed, chip):
    graph = random_network(np.random.default_rng(seed))
    for options in ({}, {"dense": True}, {"keep": True}):
        divided, plan = planned(graph, chip, **options)
        check(divided, plan, chip)
        if "keep" in options:
            places = [vectors(place, chip.core.depth).ravel() for place in plan.maps]
            joined = np.concatenate(places)
            assert len(np.unique(joined)) == len(joined)
