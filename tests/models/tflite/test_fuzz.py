"""Mutated TFLite files: each is imported, or refused by a `ModelError` with the file's name."""

import math
import tracemalloc

import numpy as np
import pytest
from graph_runner import product
from tflite_files import T, build

from weft.models import ModelError, kernels
from weft.models.ir import Gemm
from weft.models.tflite import load


def file():
    """A file with most kinds of tables: products, options, constants, the runtime."""
    rng = np.random.default_rng(1)

    def constant(*shape):
        return rng.integers(-128, 128, shape).astype(np.int8)

    tensors = {
        "x": T((1, 6, 6, 3), scale=0.1, zero=3),
        "w": T(data=constant(4, 3, 3, 3), scale=np.full(4, 0.01)),
        "b": T(data=np.arange(4, dtype=np.int32)),
        "c": T((1, 6, 6, 4), scale=0.2), "d": T((1, 6, 6, 8), scale=0.2),
        "v": T(data=constant(1, 3, 3, 8), scale=np.full(8, 0.02), axis=3),
        "p": T((1, 3, 3, 8), scale=0.2), "s": T(data=np.array([1, 72], np.int32)),
        "r": T((1, 72), scale=0.2), "t": T((1, 72), scale=1 / 128),
        "m": T(data=constant(5, 72), scale=0.01), "f": T((1, 5), scale=0.3),
        "g": T((1, 5), scale=0.3), "y": T((1, 5), scale=1 / 256, zero=-128),
        "l": T(data=constant(1, 5), scale=0.1),
        "z": T(data=rng.integers(-8, 8, (5, 5)).astype(np.int8), dtype="int4", scale=0.1),
        "h": T((1, 5), scale=0.3),
    }
    conv = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    pool = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2, "padding": 1}
    fc = "FullyConnectedOptions", {}
    return build(tensors, [
        ("CONV_2D", ["x", "w", "b"], ["c"], ("Conv2DOptions", conv)),
        ("DEPTHWISE_CONV_2D", ["c", "v"], ["d"],
         ("DepthwiseConv2DOptions", {**conv, "depthMultiplier": 2})),
        ("MAX_POOL_2D", ["d"], ["p"], ("Pool2DOptions", pool)),
        ("RESHAPE", ["p", "s"], ["r"], ("ReshapeOptions", {"newShape": [1, 72]})),
        ("L2_NORMALIZATION", ["r"], ["t"], ("L2NormOptions", {})),
        ("FULLY_CONNECTED", ["t", "m"], ["f"], fc),
        ("FULLY_CONNECTED", ["f", "z"], ["h"], fc),
        ("ADD", ["h", "l"], ["g"], ("AddOptions", {})),
        ("SOFTMAX", ["g"], ["y"], ("SoftmaxOptions", {"beta": 1.0})),
    ], ["x"], ["y"])


EDGES = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000,
         0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000, 0x3F800000)


def mutant(data, rng):
    """A copy with a few bytes or words changed, parts moved, or the end cut off."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        kind, at = rng.integers(6), int(rng.integers(len(data)))
        if kind == 0:
            data[at] = int(rng.integers(256))
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            word = int(rng.choice(EDGES))
            data[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
        elif kind == 3:
            other, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
            data[at : at + size] = data[other : other + size]
        elif kind == 4:
            at &= ~3
            step = int.from_bytes(data[at : at + 4], "little") + int(rng.integers(-8, 9))
            data[at : at + 4] = (step % 2**32).to_bytes(4, "little")
        elif rng.random() < 0.1:
            del data[at:]
        if not data:
            data = bytearray(1)
    return bytes(data)


def run(graph, seed):
    """Run what is left of the network, without the runtime; large maps are not worth the time."""
    if any(math.prod(tensor.shape) > 100_000 for tensor in graph.tensors):
        return
    rng = np.random.default_rng(seed)
    values = {i: t.data for i, t in enumerate(graph.tensors) if t.data is not None}
    for number in graph.inputs:
        t = graph.tensors[number]
        values[number] = rng.integers(-100, 100, t.shape).astype(t.dtype)
    for node in graph.nodes:
        if isinstance(node, Gemm):
            outputs = [product(graph, node, values)]
        elif node.kernel == "tflite.model":
            outputs = [np.zeros(t.shape, t.dtype) for t in (graph.tensors[i] for i in node.outputs)]
        else:
            outputs = kernels.run(node.kernel, [values[i] for i in node.inputs], node.attributes)
        for number, y in zip(node.outputs, outputs, strict=True):
            t = graph.tensors[number]
            assert (y.shape, y.dtype) == (t.shape, t.dtype), (seed, node.operator)
            values[number] = y


@pytest.mark.parametrize("seeds", [
    range(400), pytest.param(range(400, 2000), marks=pytest.mark.slow),
    pytest.param(range(2000, 8000), marks=pytest.mark.long),
])
def test_mutants_are_imported_or_refused(seeds):
    data, counts = file(), [0, 0]
    assert load(data, "net").notes == ()
    for seed in seeds:
        changed = mutant(data, np.random.default_rng(seed))
        try:
            graph = load(changed, "net")
        except ModelError as error:
            assert str(error).startswith("net: "), (seed, str(error))
            assert len(str(error)) < 5000
            counts[0] += 1
        else:
            run(graph, seed)
            counts[1] += 1
    assert min(counts) > len(seeds) // 10, counts


def test_memory_is_bounded_by_the_file():
    """Many tensors that share one large vector do not multiply it."""
    data = file()
    tracemalloc.start()
    try:
        for seed in range(60):
            try:
                load(mutant(data, np.random.default_rng(seed)), "net")
            except ModelError:
                continue
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data) + 2_000_000
