"""Maps share their memory: no layer overwrites a map that is read later."""

import numpy as np
import pytest
from network_core_networks import NetworkBuilder, random_divided_network, random_network
from network_cores import LARGE, MICRO, SMALL
from tiers import quick

from weft.models.errors import UnfitError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.division import divide
from weft.models.network_core.memory import plan_maps
from weft.models.network_core.weights import LayerWords
from weft.models.target import NetworkTarget


def planned(graph, config, **options):
    """The divided network, and the places of its maps."""
    array = config.array
    divided = divide(graph, array.requantize, array.cols, array.depth)
    sizes = [
        LayerWords.of(layer, divided.maps[layer.x].channels, config) for layer in divided.layers
    ]
    return divided, plan_maps(divided, sizes, config, **options)


def vectors(place, depth):
    """The vectors of a map's pixels."""
    y, x, v = np.ogrid[: place.height, : place.width, : -(-place.channels // depth)]
    return place.first + y * place.pitches.row_pitch + x * place.pitches.pitch + v


def cells(divided, number, depth):
    """A number for each vector of a map's pixels, by its place in the map in which it lies."""
    found = divided.maps[number]
    y, x, v = np.ogrid[: found.height, : found.width, : found.vectors(depth)]
    while found.view:
        view = found.view
        y, x, v = (
            view.row + y * view.line[0] + x * view.pixel[0],
            view.column + y * view.line[1] + x * view.pixel[1], v + view.channel // depth,
        )
        number, found = view.whole, divided.maps[view.whole]
    return ((number * 1000 + y * found.width + x) * 1000) + v


def check(divided, plan, config):
    """Follow what each vector has, layer by layer."""
    owner = np.full(plan.vectors, -1)
    for segment in divided.segments:
        check_list(divided, segment, plan, config, owner)


def check_list(divided, segment, plan, config, owner):
    """The layers of one list; the host writes maps before it, and reads results after it."""
    depth = config.array.depth

    def intact(number):
        own = cells(divided, number, depth)
        return (owner[vectors(plan.maps[number], depth)] == own).all()

    def write(number):
        owner[vectors(plan.maps[number], depth)] = cells(divided, number, depth)

    layers = [divided.layers[number] for number in segment.layers]
    for number in {n for layer in layers for n in (layer.x, layer.added) if n >= 0}:
        root = divided.root(number)
        if divided.maps[root].form is not None and not intact(root):
            write(root)
    for layer in layers:
        y = vectors(plan.maps[layer.y], depth)
        assert intact(layer.x)
        assert not np.intersect1d(vectors(plan.maps[layer.x], depth), y).size
        if layer.added >= 0:
            added = vectors(plan.maps[layer.added], depth)
            assert intact(layer.added)
            same = added.shape == y.shape and (added == y).all()
            assert same or not np.intersect1d(added, y).size
        write(layer.y)
    assert all(map(intact, segment.results.values()))


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


def test_a_part_of_a_concatenation_stays():
    """The sum must not overwrite x, which the concatenation needs; the inner one begins at 8."""
    b = builder()
    x = b.convolution(0, 8)
    inner = b.concatenation(x, b.convolution(x, 8))
    outer = b.concatenation(b.convolution(x, 8), inner)
    total = b.add(b.convolution(b.convolution(0, 8), 8), x)
    b.convolution(outer, 4)
    divided, plan = planned(b.graph(total, len(b.tensors) - 1), LARGE)
    check(divided, plan, LARGE)
    assert [found.view.channel for found in divided.maps if found.view] == [0, 8, 8, 0]


def test_results_of_a_list_stay_until_its_end():
    """The host reads the first map of each list when the last one has been computed."""
    b = builder()
    x = b.convolution(0, 8)
    y = b.convolution(b.convolution(x, 8), 8)
    b.convolution(b.add(b.convolution(b.softmax(x), 8), y), 8)
    divided, plan = planned(b.graph(), LARGE)
    assert len(divided.segments) == 2
    check(divided, plan, LARGE)


@pytest.mark.parametrize("config", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("seed", quick(10, [*range(25)]))
def test_random_networks(seed, config):
    rng = np.random.default_rng(seed)
    graph = random_network(rng) if seed < 15 else random_divided_network(rng)
    for options in ({}, {"dense": True}, {"keep": True}):
        divided, plan = planned(graph, config, **options)
        check(divided, plan, config)
        if "keep" in options:
            # A view has vectors of its whole.
            places = [
                vectors(place, config.array.depth).ravel()
                for place, found in zip(plan.maps, divided.maps, strict=True) if not found.view
            ]
            joined = np.concatenate(places)
            assert len(np.unique(joined)) == len(joined)


@pytest.mark.parametrize("seed", [5, 8, 11])
def test_a_product_whose_weights_have_no_space_is_computed_one_by_one(seed):
    """Its weights exceed the buffer, and together with the rest the memory."""
    graph = random_divided_network(np.random.default_rng(seed))
    program = compile_network_core(graph, NetworkTarget("core", MICRO))
    last = program.products[-1]
    assert last.placement.on_weft
    assert last.placement.reason == "the memory has no space for its weights"


def test_a_network_of_one_large_product_needs_the_memory_of_all_of_it():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 1, 1, 1680))
    builder.dense(0, 12)
    with pytest.raises(UnfitError, match=r"must have 2\d,\d{3} bytes .* weights 2\d,\d{3}, "):
        compile_network_core(builder.graph(), NetworkTarget("core", MICRO))
