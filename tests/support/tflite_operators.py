"""Runs one TFLite operator in numpy and in TFLite Micro, on random and extreme values."""

import numpy as np
from graph_runner import run_graph
from tflite_files import T, build, micro

from weft.models.tflite import load

__all__ = ["FLOAT", "INT8", "INT16", "check", "check_uint8", "q", "values"]

INT8, INT16, FLOAT = np.int8, np.int16, np.float32


def values(rng, t):
    """Random values of a tensor, with both ends of the range."""
    kind = np.dtype(t.dtype)
    if kind == np.bool_:
        return rng.random(t.shape) < 0.5
    if kind.kind == "f":
        x = (rng.standard_normal(t.shape) * 10.0 ** rng.integers(-2, 3)).astype(kind)
        x.ravel()[: x.size // 8] = 0
        return x
    limits = np.iinfo(kind)
    if kind.itemsize > 2:
        return rng.integers(-100_000, 100_000, t.shape).astype(kind)
    x = rng.integers(limits.min, limits.max, t.shape, kind, endpoint=True)
    if x.size > 3:
        x.ravel()[:2] = limits.min, limits.max
    return x


def check(rng, name, inputs, outputs, options=None, kernel=None, trivial=False):
    """One operator on random values; ``inputs`` are tensors, those without data are fed."""
    tensors = {f"i{i}": t for i, t in enumerate(inputs)}
    tensors |= {f"o{i}": t for i, t in enumerate(outputs)}
    ins, outs = list(tensors)[: len(inputs)], list(tensors)[len(inputs) :]
    fed = [key for key in ins if tensors[key].data is None]
    data = build(tensors, [(name, ins, outs, options)], fed, outs)
    graph = load(data, "net")
    [node] = graph.nodes
    assert node.kernel == kernel if kernel else node.kernel != "tflite.model", node.reason
    for _ in range(3):
        x = [values(rng, tensors[key]) for key in fed]
        found = run_graph(graph, x)
        expected = micro(data, x, len(outs))
        for number, y in zip(graph.outputs, expected, strict=True):
            z = found[number]
            same = np.array_equal(z, y, equal_nan=z.dtype.kind == "f")
            assert same, (name, node.attributes, x, z[z != y], y[z != y])
        check_uint8(name, tensors, ins, outs, options, x, expected)
    assert trivial or any(len(np.unique(found[number])) > 1 for number in graph.outputs)


def raised(value):
    """int8 values as uint8, larger by 128; other values as they are."""
    return (value.astype(int) + 128).astype(np.uint8) if value.dtype == INT8 else value


# Operators whose rounding depends on the sign of the raw value, or that keep it.
RAW = ("AVERAGE_POOL_2D", "RESIZE_BILINEAR", "CAST")


def check_uint8(name, tensors, ins, outs, options, x, expected):
    """TFLite Micro has no uint8: the same file, with all int8 values and zero points raised."""
    if name in RAW or not any(t.dtype == "int8" for t in tensors.values()):
        return
    if any(t.dtype == "uint8" for t in tensors.values()) or (name, "int16") == (
        "SOFTMAX", tensors[outs[0]].dtype
    ):
        return
    lifted = {}
    for key, t in tensors.items():
        dtype = "uint8" if t.dtype == "int8" else t.dtype
        zero = t.zero + 128 * (t.dtype == "int8")
        data = None if t.data is None else raised(t.data)
        lifted[key] = T(t.shape, dtype, t.scale, zero, t.axis, data)
    fed = [key for key in ins if tensors[key].data is None]
    graph = load(build(lifted, [(name, ins, outs, options)], fed, outs), "net")
    found = run_graph(graph, [raised(value) for value in x])
    for number, y in zip(graph.outputs, expected, strict=True):
        assert np.array_equal(found[number], raised(y)), (name, graph.nodes[0].attributes)


def q(rng, shape, dtype=INT8, scale=None, zero=None, data=None):
    """A quantized tensor with a random scale and zero point."""
    if dtype == FLOAT or np.dtype(dtype) == np.int32:
        return T(shape, dtype)
    scale = float(np.exp2(rng.uniform(-7, -3))) if scale is None else scale
    if zero is None:
        zero = 0 if dtype == INT16 else int(rng.integers(-128, 128))
    return T(shape, dtype, scale=scale, zero=zero)
