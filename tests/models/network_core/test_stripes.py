"""Stripes: maps that do not fit together are computed some rows at a time, to the same bytes."""

from dataclasses import replace

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_jobs import bank_conflicts
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from products import integers
from tflite_files import T, build, micro
from tiers import quick

from weft.models.errors import UnfitError
from weft.models.network_core import compiler
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.division import divide
from weft.models.network_core.runners import GoldenRunner
from weft.models.network_core.stripes import striped
from weft.models.target import target_of
from weft.models.tflite import load
from weft.network_core.descriptors import ListJob, unpack_list

LARGE = {"words": 1 << 15, "b_words": 512, "lines": 256}
CORES = [
    network_core_config(4, 4, 4, 4, program_words=1 << 18, **LARGE),
    network_core_config(3, 8, 4, 4, read_vectors=2, program_words=1 << 18, **LARGE),
    network_core_config(2, 4, 8, 4, read_vectors=2, program_words=1 << 18, **LARGE),
    network_core_config(4, 4, 4, 4, **LARGE),
]
ONE = (1, 1)
NO_BORDER = (0, 0, 0, 0)


def pointwise(b, x, channels, stride=ONE):
    return b.convolution(x, channels, kernel=ONE, padding=NO_BORDER, stride=stride)


def window(b, rng, x):
    """A layer with a random window: all channels, or each alone."""
    kernel = tuple(int(size) for size in rng.integers(1, 4, 2))
    padding = tuple(int(rng.integers(0, kernel[n // 2])) for n in range(4))
    stride = tuple(int(size) for size in rng.integers(1, 3, 2))
    own = {"kernel": kernel, "padding": padding, "stride": stride}
    if rng.integers(2):
        return b.convolution(x, int(rng.integers(8, 25)), **own)
    return b.convolution(x, 1, groups=b.tensors[x].shape[-1], **own)


def bottleneck(b, rng, x):
    """More channels, a depthwise layer, the channels of before, and ADD."""
    y = pointwise(b, x, int(rng.integers(8, 30)))
    y = b.convolution(y, 1, groups=b.tensors[y].shape[-1])
    return b.add(x, pointwise(b, y, b.tensors[x].shape[-1]))


def branches(b, rng, x):
    """Layers side by side: rows of the middle one need rows around those of the others."""
    first = pointwise(b, x, 8)
    return b.concatenation(first, b.convolution(x, 8), pointwise(b, x, int(rng.integers(3, 9))))


def tall(rng, dtype):
    """A random network whose maps have many rows."""
    shape = 1, *(int(rng.integers(*ends)) for ends in ((10, 26), (5, 14), (1, 4)))
    b = NetworkBuilder(rng, shape, dtype)
    x = 0
    for _ in range(int(rng.integers(2, 7))):
        if min(b.tensors[x].shape[1:3]) < 4:
            break
        kind = rng.integers(6)
        if kind < 2:
            x = window(b, rng, x)
        elif kind == 2:
            x = bottleneck(b, rng, x)
        elif kind == 3:
            x = branches(b, rng, x)
        else:
            x = b.table(x) if kind == 4 else b.pool(x, 2, 2)
    pointwise(b, x, 3, stride=(2, 2))
    return b.graph()


def needs(graph, depth):
    """The largest number of vectors that the maps of a layer need, by their own count."""
    first, last = {}, {}
    for n, layer in enumerate(graph.layers):
        for number in (layer.x, layer.y, layer.added):
            if number >= 0:
                root = graph.root(number)
                first.setdefault(root, 0 if graph.maps[root].form else n)
                last[root] = n
    for segment in graph.segments:
        for number in segment.results.values():
            last[graph.root(number)] = segment.layers.stop - 1
    sizes = {root: np.prod(graph.maps[root].size[:2]) * graph.maps[root].vectors(depth)
             for root in first}
    return max(
        sum(size for root, size in sizes.items() if first[root] <= n <= last[root])
        for n in range(len(graph.layers))
    )


def run(program, config, x):
    with program.open(GoldenRunner(config)) as session:
        return session(x)


# Networks with layers that do not need all rows of large maps.
@pytest.mark.parametrize("seed", quick(4, [0, 2, 5, 10, 13, 14, 21, 22, 28, 29]))
def test_the_same_bytes_in_less_memory(seed, monkeypatch):
    rng, config = np.random.default_rng(seed), CORES[seed % 4]
    dtype = np.uint8 if seed % 5 == 2 else np.int8
    graph = tall(rng, dtype)
    x = integers(rng, dtype, *graph.tensors[0].shape)
    expected = run_graph(graph, [x])[graph.outputs[0]]
    array = config.array
    whole = divide(graph, array.requantize, array.cols, array.depth, config=config)
    found = []
    for share in (0.85, 0.7, 0.5):
        room = int(needs(whole, array.depth) * share)
        made = striped(whole, config, room)
        if made is None:
            continue
        found += [share]
        assert needs(made, array.depth) <= room and len(made.layers) > len(whole.layers)
        assert sum(layer.macs for layer in made.layers) == sum(
            layer.macs for layer in whole.layers
        )
        monkeypatch.setattr(compiler, "divide", lambda *_, made=made, **__: made)
        program = compile_network_core(graph, target_of(config))
        jobs = [job for job in unpack_list(program.segments[0].run) if isinstance(job, ListJob)]
        assert not any(bank_conflicts(config, job) for job in jobs)
        np.testing.assert_array_equal(run(program, config, x), expected)
    assert found


def wide():
    """Maps of 24 x 8 x 40 between small ones: 3 operators."""
    b = NetworkBuilder(np.random.default_rng(1), (1, 24, 8, 2))
    x = pointwise(b, 0, 40)
    x = b.convolution(x, 1, groups=40)
    pointwise(b, x, 2)
    return b.graph()


SMALL = network_core_config(
    4, 4, 4, 4, words=1024, b_words=512, lines=256, program_words=1 << 12
)


def test_a_compiler_takes_stripes_only_without_space():
    graph, x = wide(), integers(np.random.default_rng(2), np.int8, 1, 24, 8, 2)
    expected = run_graph(graph, [x])[graph.outputs[0]]
    notes, weights = {}, {}
    for words in (1024, 256):
        config = replace(SMALL, words=words)
        program = compile_network_core(graph, target_of(config))
        np.testing.assert_array_equal(run(program, config, x), expected)
        notes[words] = [note for note in program.notes if "stripes" in note]
        weights[words] = program.areas["weights"] or len(b"".join(program.setup))
        assert [len(step.operators) for step in program.segments[0].steps] == (
            [1, 1, 1] if words == 1024 else [3]
        )
    text = "3 operators, CONV_2D 0 to CONV_2D 2, are computed in 6 stripes of rows: their maps"
    assert notes == {1024: [], 256: [f"{text} do not fit the memory together"]}
    assert weights[256] < 2 * weights[1024]  # the stripes share them


def test_a_program_that_keeps_its_maps_has_no_stripes():
    with pytest.raises(UnfitError, match="words must be at least 1,024; or"):
        compile_network_core(wide(), target_of(replace(SMALL, words=256)), activations=True)


def test_the_words_of_the_message_suffice():
    with pytest.raises(UnfitError, match="words must be at least 256 with stripes; or"):
        compile_network_core(wide(), target_of(replace(SMALL, words=64)))


def test_a_region_that_writes_some_rows_of_its_result():
    """The second half of the concatenation is a copy behind the region."""
    rng = np.random.default_rng(1)
    values = [
        rng.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 8, 1), (6, 15, 4))
    ]
    data = build({
        "x": T((1, 6, 12), scale=0.008, zero=-128),
        "pads": T(data=np.int32([[2, 0], [2, 0], [0, 3]])),
        "p": T((3, 8, 15), scale=0.008, zero=-128), "k": T(data=values[0], scale=0.03, zero=76),
        "s": T((3, 8, 15), scale=0.09), "c": T((6, 8, 15), scale=0.09),
        "w": T(data=values[1], scale=0.01, zero=-50), "y": T((6, 8, 4), scale=0.2),
    }, [
        ("PAD", ["x", "pads"], ["p"], ("PadOptions", {})),
        ("SQUARED_DIFFERENCE", ["k", "p"], ["s"], ("SquaredDifferenceOptions", {})),
        ("CONCATENATION", ["s", "s"], ["c"], ("ConcatenationOptions", {"axis": 0})),
        ("BATCH_MATMUL", ["c", "w"], ["y"], ("BatchMatMulOptions", {})),
    ], ["x"], ["y"])
    graph, x = load(data, "net"), integers(rng, np.int8, 1, 6, 12)
    config = network_core_config(
        2, 4, 4, 2, words=256, b_words=64, lines=32, read_vectors=2, program_words=1 << 16,
        multiply_maps=True, softmax=True, multiplier="fip",
    )
    y = run(compile_network_core(graph, target_of(config)), config, x)
    np.testing.assert_array_equal(y, micro(data, [x])[0])


def test_layers_that_need_all_rows_have_no_stripes():
    b = NetworkBuilder(np.random.default_rng(1), (1, 24, 8, 2))
    x = b.mean(pointwise(b, 0, 40))
    b.dense(x, 4)
    array = SMALL.array
    whole = divide(b.graph(), array.requantize, array.cols, array.depth, config=SMALL)
    assert striped(whole, SMALL, needs(whole, array.depth) // 2) is None
    assert striped(whole, SMALL, needs(whole, array.depth)) is not None
