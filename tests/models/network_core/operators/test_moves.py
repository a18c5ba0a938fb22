"""Operators that move values equal their kernels on a network core, in one list."""

import contextlib
import math

import numpy as np
import pytest
from lowered_operators import OperatorNetwork, check_whole
from network_cores import LARGE, ODD, SIMULATED, SMALL, SPRAM
from tiers import quick

from weft.models import kernels
from weft.models.network_core.division import divide
from weft.sim.network_core import SimulatedRunner

CORES = pytest.mark.parametrize("config", [
    pytest.param(config, id=config.array.name, marks=marks)
    for config, marks in (
        (LARGE, ()), (SMALL, pytest.mark.slow), (ODD, pytest.mark.long), (SPRAM, pytest.mark.slow),
    )
])


def full(*bounds):
    """Attributes of a slice."""
    begin, end, step = zip(*bounds, strict=True)
    return {"begin": begin, "end": end, "step": step}


def moved(network, kernel, *inputs, **attributes):
    """An operator whose outputs have the shapes that its kernel gives them."""
    values = [
        np.zeros(kind.shape, kind.dtype) if kind.data is None else kind.data
        for kind in (network.tensors[n] for n in inputs)
    ]
    if kernel == "slice":
        bounds = zip(*(attributes[name] for name in ("begin", "end", "step")), strict=True)
        attributes["shape"] = values[0][tuple(slice(*bound) for bound in bounds)].shape
    shapes = [value.shape for value in kernels.run(kernel, values, attributes)]
    several = kernel in ("split", "unstack")
    return network.operator(
        kernel.upper(), kernel, inputs, shapes if several else shapes[0], **attributes
    )


MOVES = {
    "rows": ((7, 6, 5), "slice", full((0, 1, 1), (1, 7, 2), (0, 6, 1), (0, 5, 1))),
    "pixel": ((5, 6, 9), "slice", full((0, 1, 1), (3, 4, 1), (4, 5, 1), (0, 9, 1))),
    "columns": ((1, 30, 20), "slice", full((0, 1, 1), (0, 1, 1), (3, 29, 5), (0, 20, 1))),
    "vectors": ((4, 5, 24), "slice", full((0, 1, 1), (1, 4, 1), (0, 5, 3), (8, 24, 1))),
    "channels": ((5, 4, 12), "slice", full((0, 1, 1), (0, 5, 2), (0, 4, 1), (3, 10, 1))),
    "every third": ((3, 4, 20), "slice", full((0, 1, 1), (0, 3, 1), (0, 4, 1), (1, 20, 3))),
    "backwards": ((3, 4, 7), "slice", full((0, 1, 1), (2, None, -1), (3, None, -2), (6, None, -1))),
    "split rows": ((6, 4, 5), "split", {"axis": 1, "sizes": (2, 1, 3)}),
    "split vectors": ((3, 4, 24), "split", {"axis": -1, "sizes": (8, 16)}),
    "split channels": ((3, 4, 13), "split", {"axis": 3, "sizes": (5, 8)}),
    "unstack": ((3, 4, 5), "unstack", {"axis": 2}),
    "unstack channels": ((5, 6, 3), "unstack", {"axis": 3}),
    "border": ((5, 6, 7), "pad", {"padding": ((0, 0), (1, 2), (0, 3), (0, 0)), "value": 17}),
    "border of one": ((4, 1, 1), "pad", {"padding": ((0, 0), (2, 1), (3, 4), (0, 0)), "value": 3}),
    "all axes": ((3, 4, 5), "pad", {"padding": ((0, 0), (1, 0), (2, 1), (3, 4)), "value": 9}),
    "channels after": ((3, 4, 8), "pad", {"padding": ((0, 0), (0, 0), (0, 0), (0, 9)), "value": 1}),
    "reflect": ((5, 6, 3), "mirror_pad", {
        "padding": ((0, 0), (2, 1), (3, 2), (0, 0)), "mode": "reflect"}),
    "symmetric": ((4, 5, 9), "mirror_pad", {
        "padding": ((0, 0), (2, 1), (0, 5), (1, 2)), "mode": "symmetric"}),
    "tile": ((2, 3, 5), "tile", {"repeats": (1, 3, 2, 1)}),
    "tile channels": ((3, 3, 5), "tile", {"repeats": (1, 1, 2, 3)}),
    "broadcast": ((1, 1, 9), "broadcast", {"shape": (1, 5, 6, 9)}),
    "broadcast channel": ((4, 5, 1), "broadcast", {"shape": (1, 4, 5, 12)}),
    "swap": ((4, 7, 6), "transpose", {"axes": (0, 2, 1, 3)}),
    "channels first": ((3, 5, 4), "transpose", {"axes": (0, 3, 1, 2)}),
    "channels between": ((4, 3, 7), "transpose", {"axes": (0, 1, 3, 2)}),
    "one column": ((6, 1, 10), "transpose", {"axes": (0, 3, 2, 1)}),
    "space to depth": ((6, 4, 5), "rearrange", {
        "split": (1, 3, 2, 2, 2, 5), "axes": (0, 1, 3, 2, 4, 5), "shape": (1, 3, 2, 20)}),
    "depth to space": ((3, 2, 12), "rearrange", {
        "split": (1, 3, 2, 2, 2, 3), "axes": (0, 1, 3, 2, 4, 5), "shape": (1, 6, 4, 3)}),
    "depth to space of vectors": ((3, 4, 32), "rearrange", {
        "split": (1, 3, 4, 2, 2, 8), "axes": (0, 1, 3, 2, 4, 5), "shape": (1, 6, 8, 8)}),
    "shuffle": ((3, 4, 12), "rearrange", {
        "split": (1, 3, 4, 3, 4), "axes": (0, 1, 2, 4, 3), "shape": (1, 3, 4, 12)}),
    "reverse": ((4, 5, 6), "reverse", {"axes": (1, 2)}),
    "reverse channels": ((4, 1, 11), "reverse", {"axes": (3,)}),
    "twice": ((4, 5, 6), "tflite.resize_nearest", {
        "size": (8, 10), "align_corners": False, "half_pixel_centers": False}),
    "three times": ((3, 4, 2), "tflite.resize_nearest", {
        "size": (9, 12), "align_corners": False, "half_pixel_centers": True}),
    "any ratio": ((5, 3, 4), "tflite.resize_nearest", {
        "size": (7, 8), "align_corners": True, "half_pixel_centers": False}),
    "smaller": ((9, 8, 9), "tflite.resize_nearest", {
        "size": (3, 5), "align_corners": False, "half_pixel_centers": False}),
}


def of_moves(shape, kernel, attributes, dtype=np.int8):
    """A network with an operator of the host's input and one of a layer, read by both."""
    network = OperatorNetwork(3, (1, *shape), dtype)
    outputs = []
    for x in (0, network.convolution(0, shape[2])):
        found = moved(network, kernel, x, **attributes)
        outputs += found if isinstance(found, list | tuple) else [found]
    readers = [
        network.convolution(y, 4) if len(network.tensors[y].shape) == 4 else network.dense(y, 3)
        for y in outputs
    ]
    return network, *outputs, *readers


@CORES
@pytest.mark.parametrize("shape, kernel, attributes", MOVES.values(), ids=MOVES)
def test_moves(shape, kernel, attributes, config):
    check_whole(*of_moves(shape, kernel, attributes), config=config)


@pytest.mark.parametrize("shape, kernel, attributes", quick(4, [*MOVES.values()]), ids=MOVES)
def test_moves_of_uint8(shape, kernel, attributes):
    check_whole(*of_moves(shape, kernel, attributes, np.uint8), config=LARGE)


@pytest.mark.parametrize("name, layers", [
    ("rows", 0), ("vectors", 0), ("channels", 1), ("backwards", 1), ("split rows", 0),
    ("split channels", 1), ("border", 1), ("all axes", 1), ("swap", 0), ("one column", 0),
    ("channels between", 7), ("space to depth", 1), ("depth to space", 4), ("shuffle", 1),
    ("twice", 2), ("three times", 4), ("broadcast", 1),
])
def test_layers_of_moves(name, layers):
    """Views take no layer."""
    shape, kernel, attributes = MOVES[name]
    network = OperatorNetwork(3, (1, *shape))
    found = moved(network, kernel, network.convolution(0, shape[2]), **attributes)
    graph = divide(network.graph(*(found if isinstance(found, tuple) else [found])), "tflite", 8, 8)
    assert len(graph.layers) == 1 + layers
    assert (graph.host, len(graph.segments[0].renamed) > 0) == ((), not layers)


JOINED = {
    "vectors": ([(3, 4, 8), (3, 4, 16)], -1),
    "channels": ([(3, 4, 5), (3, 4, 7), (3, 4, 1)], 3),
    "many channels": ([(2, 3, 20), (2, 3, 17)], 3),
    "rows": ([(2, 4, 5), (1, 4, 5), (3, 4, 5)], 1),
    "columns": ([(3, 2, 9), (3, 5, 9)], 2),
}


@CORES
@pytest.mark.parametrize("shapes, axis", JOINED.values(), ids=JOINED)
def test_concatenations(shapes, axis, config):
    network = OperatorNetwork(4, (1, *shapes[0]))
    inputs = [0, *(network.input((1, *shape)) for shape in shapes[1:])]
    layers = [network.convolution(x, network.tensors[x].shape[3]) for x in inputs]
    of_host = moved(network, "concatenation", *inputs, axis=axis)
    first = moved(network, "concatenation", *layers, axis=axis)
    again = moved(network, "concatenation", *reversed(layers), layers[0], axis=axis)
    mixed = moved(network, "concatenation", layers[0], *inputs[1:], axis=axis)
    last = moved(network, "concatenation", first, again, axis=axis)
    readers = [network.convolution(y, 6) for y in (of_host, first, again, mixed, last)]
    program = check_whole(network, of_host, first, again, mixed, last, *readers, config=config)
    given = {step.tensor: set(step.inputs) for step in program.steps}
    assert given.get(first, set(layers)) == set(layers)


@CORES
def test_concatenations_with_constants_and_gathers(config):
    network = OperatorNetwork(5, (1, 4, 5, 6))
    rng = np.random.default_rng(6)
    x = network.convolution(0, 6)
    rows = network.constant(rng.integers(-128, 128, (1, 1, 5, 6)).astype(np.int8))
    one = network.constant(np.full((1, 2, 5, 6), 7, np.int8))
    joined = moved(network, "concatenation", rows, x, one, axis=1)
    indices = network.constant(np.array([3, 0, 2, 2], np.int32))
    gathered = [
        moved(network, "gather", y, indices, axis=axis) for axis in (1, 2, 3) for y in (0, x)
    ]
    readers = [network.convolution(y, 3) for y in (joined, *gathered)]
    check_whole(network, joined, *gathered, *readers, config=config)


@CORES
def test_stacks(config):
    network = OperatorNetwork(7, (1, 5, 6))
    other = network.input((1, 5, 6))
    layers = [network.dense(x, 6, rows=5) for x in (0, other)]
    stacked = [moved(network, "stack", *layers, axis=axis) for axis in (0, 1, 2)]
    check_whole(network, *stacked, config=config)


@pytest.mark.parametrize("columns, inputs", [
    (12, (1, 2)),  # channels begin inside a vector
    (8, (1, 1)),
    (8, (1, 0)),  # the host writes one of them
])
def test_concatenations_with_one_layer(columns, inputs):
    network = OperatorNetwork(9, (1, 6, 6, 3))
    network.convolution(network.convolution(0, columns), 3)
    moved(network, "concatenation", *inputs, axis=3)
    graph = divide(network.graph(), "tflite", 8, 8)
    assert [layer.operators for layer in graph.layers[1:]] in (
        [("CONCATENATION",)], [("CONV_2D",), ("CONCATENATION",)]
    )


def test_a_reshape_that_layers_compute():
    """A step on the way has no operator."""
    network = OperatorNetwork(10, (1, 6, 6, 3))
    x = moved(network, "reshape", network.convolution(0, 8), shape=(1, 12, 24, 1))
    network.convolution(x, 8)
    check_whole(network, config=LARGE)
    graph = divide(network.graph(), "tflite", 8, 8)
    assert [layer.operators for layer in graph.layers[1:]] == 16 * [()] + [("CONV_2D",)]


@CORES
def test_moves_of_reshaped_maps(config):
    """Two pixels become one, and these follow each other backwards."""
    network = OperatorNetwork(12, (1, 2, 6, 3))
    x = network.convolution(0, 3)
    pairs = moved(network, "reshape", x, shape=(1, 2, 3, 6))
    check_whole(network, moved(network, "reverse", pairs, axes=(1, 2)), config=config)


@CORES
def test_a_shuffle_of_channels_has_five_axes(config):
    """Its last axes are the channels of one map, and the operator is one layer."""
    network = OperatorNetwork(14, (1, 3, 4, 12))
    x = moved(network, "reshape", network.convolution(0, 12), shape=(1, 3, 4, 3, 4))
    x = moved(network, "transpose", x, axes=(0, 1, 2, 4, 3))
    x = moved(network, "reshape", x, shape=(1, 3, 4, 12))
    program = check_whole(network, x, network.convolution(x, 5), config=config)
    assert [operator for step in program.steps for operator in step.operators] == [
        "CONV_2D", "TRANSPOSE", "CONV_2D"
    ]


def test_batches_stay_on_the_host():
    network = OperatorNetwork(15, (1, 4, 4, 8))
    x = network.convolution(0, 8)
    moved(network, "rearrange", x, split=(1, 2, 2, 2, 2, 8), axes=(2, 4, 0, 1, 3, 5),
          shape=(4, 2, 2, 8))
    [step] = divide(network.graph(), "tflite", 8, 8).after
    assert step.placement.reason == "its shape must be one map, not (4, 2, 2, 8)"


@CORES
def test_a_map_that_is_read_in_one_row_and_joined(config):
    """A view counts its pixels through all rows, so it is no part of a wider map."""
    network = OperatorNetwork(13, (1, 3, 4, 5))
    x = network.convolution(0, 5)
    row = network.convolution(moved(network, "reshape", x, shape=(1, 2, 6, 5)), 4)
    joined = moved(network, "concatenation", x, x, axis=2)
    check_whole(network, row, joined, network.convolution(joined, 2), config=config)


@pytest.mark.long
def test_values_that_move_in_too_many_ways():
    """The host moves them: between two lists for a convolution, or instead of an operator."""
    network = OperatorNetwork(11, (1, 29, 23, 3))
    x = network.convolution(0, 8)
    turned = moved(network, "reshape", x, shape=(1, 8, 23, 29))
    network.convolution(turned, 8)
    graph = divide(network.graph(), "tflite", 8, 8)
    assert (graph.host, len(graph.segments)) == ((), 2)
    assert graph.maps[graph.layers[1].x].form is not None
    indices = network.constant(np.random.default_rng(1).permutation(667).astype(np.int32))
    pixels = moved(network, "reshape", x, shape=(1, 667, 8))
    network.nodes.pop(2)
    moved(network, "gather", pixels, indices, axis=1)
    [step] = divide(network.graph(), "tflite", 8, 8).after
    assert step.placement.reason == (
        "its values move in ways that need more than 64 jobs or 65,536 weights"
    )


def test_channels_that_become_pixels_inside_a_network():
    """A job for each pixel; after the last layer it is the host that reads them so."""
    network = OperatorNetwork(3, (1, 6, 1, 10))
    turned = moved(network, "transpose", network.convolution(0, 10), axes=(0, 3, 2, 1))
    network.convolution(turned, 8)
    graph = divide(network.graph(), "tflite", 8, 8)
    assert (graph.host, len(graph.segments), len(graph.layers)) == ((), 1, 12)


def random_move(rng, shape):
    """A kernel and its attributes for a map of a shape."""
    _, height, width, channels = shape
    flags = {name: bool(rng.integers(2)) for name in ("align_corners", "half_pixel_centers")}
    pads = ((0, 0), *((int(a), int(b)) for a, b in rng.integers(0, 3, (3, 2))))
    fewer = tuple((min(a, n - 1), min(b, n - 1)) for (a, b), n in zip(pads, shape, strict=True))
    bounds = []
    for n in shape:
        first = int(rng.integers(0, n))
        bounds.append((first, int(rng.integers(first + 1, n + 1)), int(rng.integers(1, 3))))
    flat = int(rng.choice([d for d in range(1, 9) if math.prod(shape) % d == 0]))
    size = tuple(int(n) for n in rng.integers(1, 7, 2))
    return [
        ("slice", full(*bounds)),
        ("pad", {"padding": pads, "value": int(rng.integers(-128, 128))}),
        ("mirror_pad", {"padding": fewer, "mode": "reflect"}),
        ("transpose", {"axes": (0, *(int(n) + 1 for n in rng.permutation(3)))}),
        ("reverse", {"axes": tuple(int(n) for n in rng.integers(1, 4, 1))}),
        ("tile", {"repeats": (1, *(int(n) for n in rng.integers(1, 3, 3)))}),
        ("tflite.resize_nearest", {"size": size, **flags}),
        ("reshape", {"shape": (1, 1, math.prod(shape) // flat, flat)}),
        ("reshape", {"shape": (1, width, channels, height)}),
    ][int(rng.integers(9))]


@pytest.mark.parametrize("seed", quick(12, [*range(40)]))
def test_random_sequences(seed):
    rng = np.random.default_rng(seed)
    shape = (1, *(int(n) for n in rng.integers(1, 5, 2)), int(rng.choice([1, 3, 4, 8, 9])))
    network = OperatorNetwork(seed, shape)
    y = network.convolution(0, shape[3])
    found = []
    for _ in range(3):
        kernel, attributes = random_move(rng, network.tensors[y].shape)
        if math.prod(network.tensors[y].shape) < 200:
            y = moved(network, kernel, y, **attributes)
            found.append(y)
    found.append(network.convolution(y, 3))
    check_whole(network, *found, config=[LARGE, SMALL, ODD, SPRAM][seed % 4])


def test_the_simulated_core_has_bytes_and_cycles_of_moves():
    network = OperatorNetwork(8, (1, 3, 4, 5))
    x = network.convolution(0, 6)
    outputs = [
        moved(network, kernel, x, **attributes) for kernel, attributes in (
            ("reverse", {"axes": (1, 2)}),
            ("pad", {"padding": ((0, 0), (1, 1), (0, 2), (1, 0)), "value": -3}),
            ("transpose", {"axes": (0, 2, 1, 3)}),
            ("transpose", {"axes": (0, 1, 3, 2)}),
        )
    ]
    outputs.append(moved(network, "concatenation", x, x, axis=3))
    pixel = moved(network, "slice", x, **full((0, 1, 1), (2, 3, 1), (3, 4, 1), (0, 6, 1)))
    outputs.append(moved(network, "broadcast", pixel, shape=(1, 2, 3, 6)))
    outputs.append(network.convolution(outputs[2], 3))
    with contextlib.closing(SimulatedRunner(SIMULATED)) as runner:
        check_whole(network, *outputs, config=SIMULATED, runner=runner)


@pytest.mark.parametrize("shape, axes", [
    ((1, 4, 5, 6), (0, 3, 1, 2)), ((1, 700, 9), (0, 2, 1)), ((1, 4, 1, 6), (0, 2, 3, 1)),
])
def test_the_host_reads_the_last_map_with_its_channels_first(shape, axes):
    """No job moves the values."""
    network = OperatorNetwork(3, (1, *(1,) * (4 - len(shape)), *shape[1:]))
    x = network.convolution(0, shape[-1], kernel=(1, 1), padding=(0, 0, 0, 0))
    if len(shape) == 3:
        x = network.host(x, "RESHAPE", "reshape", shape, shape=shape)
    y = network.host(x, "TRANSPOSE", "transpose", tuple(shape[n] for n in axes), axes=axes)
    program = check_whole(network, y, config=LARGE)
    assert len(program.segments[0].steps) == 1


def test_a_transpose_that_a_layer_reads_is_no_last_one():
    network = OperatorNetwork(3, (1, 4, 5, 6))
    x = network.convolution(0, 6)
    y = network.host(x, "TRANSPOSE", "transpose", (1, 6, 4, 5), axes=(0, 3, 1, 2))
    check_whole(network, y, network.convolution(y, 3), config=LARGE)


@pytest.mark.parametrize("config", [LARGE, ODD], ids=lambda config: config.array.name)
def test_heads_of_many_rows_are_joined(config):
    """Two rows of a box for each pixel, of maps with 40 and 30 rows: more than 64 patterns."""
    network, rows = OperatorNetwork(3, (1, 40, 2, 3)), []
    x = network.convolution(0, 3)
    for part in (x, network.convolution(x, 6, kernel=(11, 1), padding=(0, 0, 0, 0))):
        head = network.convolution(part, 10, kernel=(1, 1), padding=(0, 0, 0, 0))
        _, height, width, _ = network.tensors[head].shape
        shape = 1, height * width * 2, 5
        rows.append(network.host(head, "RESHAPE", "reshape", shape, shape=shape))
    check_whole(network, moved(network, "concatenation", *rows, axis=1), config=config)


def test_maps_of_other_sizes_are_joined_along_the_channels():
    """A map of 12 x 4 x 1 is one of 12 pixels with 4 channels, beside one of 12 x 5."""
    network = OperatorNetwork(3, (1, 12, 4, 3))
    boxes = network.convolution(0, 1, kernel=(1, 1), padding=(0, 0, 0, 0))
    boxes = network.host(boxes, "RESHAPE", "reshape", (1, 12, 4), shape=(1, 12, 4))
    scores = network.convolution(0, 5, kernel=(1, 4), padding=(0, 0, 0, 0))
    scores = network.host(scores, "RESHAPE", "reshape", (1, 12, 5), shape=(1, 12, 5))
    check_whole(network, moved(network, "concatenation", boxes, scores, axis=2), config=LARGE)
