"""Operators that move values: parts of tensors, padding, gathering."""

import dataclasses
import functools
import math

import numpy as np

from weft.models.ir import Tensor
from weft.models.tflite import lite
from weft.models.tflite.context import Fallback
from weft.models.tflite.scales import per_tensor

__all__ = ["BUILDERS", "axes_of", "moved", "sliced"]

REASON = "it only moves values"


def axes_of(operator, values, rank):
    """Axes as numbers from 0; negative ones count from the end."""
    for value in values:
        if not -rank <= value < rank:
            raise operator.error(f"axis must be in {-rank}..{rank - 1}, not {value}")
    return tuple(value % rank for value in values)


def moved(graph, operator, kernel, inputs=(0,), **attributes):
    """A node that moves values of one type."""
    graph.same_type(
        operator, *(graph.input(operator, place) for place in inputs),
        *(graph.output(operator, place) for place in range(len(operator.outputs))),
    )
    return graph.host(operator, kernel, REASON, inputs=inputs, **attributes)


def _transpose(graph, operator):
    graph.counts(operator, 2, 2)
    x = graph.input(operator, 0)
    axes = axes_of(operator, graph.integers(operator, 1), len(x.shape))
    if sorted(axes) != list(range(len(x.shape))):
        raise operator.error(f"axes must be a permutation of {len(x.shape)}, not {axes}")
    graph.expect(operator, [x.shape[axis] for axis in axes])
    return moved(graph, operator, "transpose", axes=axes)


def _concatenation(graph, operator):
    graph.counts(operator, 1, None)
    options = operator.options("ConcatenationOptions")
    inputs, y = graph.inputs(operator), graph.output(operator)
    if options.FusedActivationFunction():
        raise Fallback("a concatenation with a fused activation")
    first = inputs[0].shape
    [axis] = axes_of(operator, [options.Axis()], len(first))
    sizes = []
    for tensor in inputs:
        shape = list(tensor.shape)
        if len(shape) != len(first):
            raise operator.error(f"ranks must be equal, not {shape} and {list(first)}")
        sizes.append(shape.pop(axis))
        if shape != [*first[:axis], *first[axis + 1 :]]:
            raise operator.error(f"inputs must differ along axis {axis} alone: {tensor.shape}")
    graph.expect(operator, [*first[:axis], sum(sizes), *first[axis + 1 :]])
    node = moved(graph, operator, "concatenation", tuple(range(len(inputs))), axis=axis)
    if y.dtype != np.uint8 or y.quantization is None:
        return node
    return dataclasses.replace(node, single=lite.concatenation(operator, inputs, y, axis))


def _pack(graph, operator):
    graph.counts(operator, 1, None)
    inputs = graph.inputs(operator)
    shape = list(inputs[0].shape)
    for tensor in inputs:
        if list(tensor.shape) != shape:
            raise operator.error(f"shapes must be equal, not {shape} and {tensor.shape}")
    axis = operator.options("PackOptions").Axis()
    [axis] = axes_of(operator, [axis], len(shape) + 1)
    graph.expect(operator, [*shape[:axis], len(inputs), *shape[axis:]])
    return moved(graph, operator, "stack", tuple(range(len(inputs))), axis=axis)


def _unpack(graph, operator):
    graph.counts(operator, 1, 1, None)
    x = graph.input(operator, 0)
    [axis] = axes_of(operator, [operator.options("UnpackOptions").Axis()], len(x.shape))
    if len(operator.outputs) != x.shape[axis]:
        raise operator.error(f"outputs must be {x.shape[axis]}, not {len(operator.outputs)}")
    for place in range(len(operator.outputs)):
        graph.expect(operator, x.shape[:axis] + x.shape[axis + 1 :], place)
    return moved(graph, operator, "unstack", axis=axis)


def _split(graph, operator):
    graph.counts(operator, 2, 2, None)
    x = graph.input(operator, 1)
    [axis] = _one_axis(graph, operator, 0, x)
    count = len(operator.outputs)
    if x.shape[axis] % count:
        raise operator.error(f"{x.shape[axis]} values must split into {count} equal parts")
    return _parts(graph, operator, 1, x, axis, [x.shape[axis] // count] * count)


def _split_v(graph, operator):
    graph.counts(operator, 3, 3, None)
    x, sizes = graph.input(operator, 0), graph.integers(operator, 1)
    [axis] = _one_axis(graph, operator, 2, x)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    if min(sizes, default=0) < 0 or sum(sizes) != x.shape[axis]:
        raise operator.error(f"sizes must sum to {x.shape[axis]}, not {sizes}")
    if len(sizes) != len(operator.outputs):
        raise operator.error(f"outputs must be {len(sizes)}, not {len(operator.outputs)}")
    return _parts(graph, operator, 0, x, axis, sizes)


def _one_axis(graph, operator, place, x):
    values = graph.integers(operator, place)
    if len(values) != 1:
        raise operator.error(f"axes must be 1, not {len(values)}")
    return axes_of(operator, values, len(x.shape))


def _parts(graph, operator, place, x, axis, sizes):
    for i, size in enumerate(sizes):
        graph.expect(operator, [*x.shape[:axis], size, *x.shape[axis + 1 :]], i)
    return moved(graph, operator, "split", (place,), axis=axis, sizes=tuple(sizes))


def _slice(graph, operator):
    graph.counts(operator, 3, 3)
    x = graph.input(operator, 0)
    begin, sizes = graph.integers(operator, 1), graph.integers(operator, 2)
    if not len(begin) == len(sizes) == len(x.shape):
        raise operator.error(f"begin and size must have {len(x.shape)} numbers each")
    end = []
    for i, (first, size, whole) in enumerate(zip(begin, sizes, x.shape, strict=True)):
        last = whole if size == -1 else first + size
        if not 0 <= first <= last <= whole:
            raise operator.error(f"slice of axis {i} must be in 0..{whole}, not {first}..{last}")
        end.append(last)
    graph.expect(operator, [b - a for a, b in zip(begin, end, strict=True)])
    return sliced(graph, operator, begin, end, [1] * len(begin))


def sliced(graph, operator, begin, end, step):
    """A node that takes values from ``begin`` to ``end`` of each axis."""
    return moved(
        graph, operator, "slice", begin=tuple(begin), end=tuple(end), step=tuple(step),
        shape=graph.output(operator).shape,
    )


def _padding(graph, operator):
    """A pair for each axis of the first input."""
    x, pairs = graph.input(operator, 0), graph.integers(operator, 1)
    if len(pairs) != 2 * len(x.shape):
        raise operator.error(f"padding must have {2 * len(x.shape)} numbers, not {len(pairs)}")
    if min(pairs, default=0) < 0:
        raise operator.error(f"padding must be at least 0, not {min(pairs)}")
    pairs = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    graph.expect(operator, [a + n + b for n, (a, b) in zip(x.shape, pairs, strict=True)])
    return x, pairs


def _pad(graph, operator):
    graph.counts(operator, 2, 3)
    x, pairs = _padding(graph, operator)
    if graph.present(operator, 2):
        value = graph.constant(operator, 2)
        if value.size != 1 or value.dtype != x.dtype:
            raise operator.error(f"padding value must be one {x.dtype}")
        value = value.ravel()[0].item()
    else:
        y = graph.output(operator)
        value = per_tensor(operator, y)[1] if y.quantization is not None else 0
    return moved(graph, operator, "pad", padding=pairs, value=value)


def _mirror_pad(graph, operator):
    graph.counts(operator, 2, 2)
    x, pairs = _padding(graph, operator)
    mode = operator.options("MirrorPadOptions").Mode()
    if mode not in (0, 1):
        raise operator.error(f"mode must be 0 or 1, not {mode}")
    for size, pair in zip(x.shape, pairs, strict=True):
        if max(pair) > size - (mode == 0):
            raise operator.error(f"padding of {max(pair)} must fit an axis of {size}")
    return moved(
        graph, operator, "mirror_pad", padding=pairs, mode=("reflect", "symmetric")[mode]
    )


def _gather(graph, operator):
    graph.counts(operator, 2, 2)
    options = operator.options("GatherOptions")
    x, indices = graph.input(operator, 0), graph.input(operator, 1)
    if options.BatchDims():
        raise Fallback("a gather with batch dimensions")
    if indices.dtype.kind not in "iu":
        raise operator.error(f"indices must be integers, not {indices.dtype}")
    [axis] = axes_of(operator, [options.Axis()], len(x.shape))
    graph.expect(operator, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    graph.same_type(operator, x, graph.output(operator))
    return graph.host(operator, "gather", REASON, axis=axis)


def _blocks(forward, kind, graph, operator):
    """Space to depth (``forward``) or depth to space."""
    graph.counts(operator, 1, 1)
    x, block = graph.input(operator, 0), operator.options(kind).BlockSize()
    if len(x.shape) != 4 or block < 1:
        raise operator.error(f"input must have 4 dimensions and the block at least 1: {block}")
    n, h, w, c = x.shape
    if (h % block or w % block) if forward else c % block**2:
        raise operator.error(f"a block of {block} must divide the input {x.shape}")
    if forward:
        split, axes = (n, h // block, block, w // block, block, c), (0, 1, 3, 2, 4, 5)
        shape = n, h // block, w // block, c * block**2
    else:
        split, axes = (n, h, w, block, block, c // block**2), (0, 1, 3, 2, 4, 5)
        shape = n, h * block, w * block, c // block**2
    graph.expect(operator, shape)
    return moved(graph, operator, "rearrange", split=split, axes=axes, shape=shape)


def _batch_blocks(graph, operator):
    """Numbers of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: the blocks, and a pair for each axis."""
    graph.counts(operator, 3, 3)
    x, blocks = graph.input(operator, 0), graph.integers(operator, 1)
    pairs = graph.integers(operator, 2)
    if not 1 <= len(blocks) < len(x.shape) or len(pairs) != 2 * len(blocks):
        raise operator.error(
            f"blocks and pairs must be for 1..{len(x.shape) - 1} axes, not {len(blocks)} and"
            f" {len(pairs) / 2}"
        )
    if min(blocks) < 1 or min(pairs) < 0:
        raise operator.error(f"blocks must be 1 or more and sizes 0 or more: {blocks}, {pairs}")
    return x, blocks, list(zip(pairs[::2], pairs[1::2], strict=True))


def _space_to_batch(graph, operator):
    """Padding, and then each place in the blocks becomes a batch."""
    x, blocks, pairs = _batch_blocks(graph, operator)
    inside = [n + sum(pair) for n, pair in zip(x.shape[1:], pairs, strict=False)]
    if any(size % block for size, block in zip(inside, blocks, strict=True)):
        raise operator.error(f"blocks {blocks} must divide the padded sizes {inside}")
    rest, count = x.shape[len(blocks) + 1 :], len(blocks)
    split = [x.shape[0]]
    for size, block in zip(inside, blocks, strict=True):
        split += [size // block, block]
    axes = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2)]
    shape = [x.shape[0] * math.prod(blocks), *split[1::2], *rest]
    graph.expect(operator, shape)
    # As LiteRT; TFLite Micro pads with a number that it does not initialize.
    zero = per_tensor(operator, x)[1] if x.quantization is not None else 0
    padded = graph.add(Tensor(
        f"{x.name}/padded", (x.shape[0], *inside, *rest), x.dtype, x.quantization
    ))
    padding = ((0, 0), *pairs, *[(0, 0)] * len(rest))
    pad = moved(graph, operator, "pad", padding=padding, value=zero)
    move = moved(
        graph, operator, "rearrange", split=(*split, *rest), shape=tuple(shape),
        axes=(*axes, *range(len(split), len(split) + len(rest))),
    )
    return [
        dataclasses.replace(pad, outputs=(padded,)), dataclasses.replace(move, inputs=(padded,)),
    ]


def _batch_to_space(graph, operator):
    """Batches become places in blocks, and then the borders are cut off."""
    x, blocks, pairs = _batch_blocks(graph, operator)
    count, whole = len(blocks), math.prod(blocks)
    batch, sizes, rest = x.shape[0] // whole, x.shape[1 : count + 1], x.shape[count + 1 :]
    if x.shape[0] % whole:
        raise operator.error(f"blocks {blocks} must divide the batch, not {x.shape[0]}")
    axes = [count]
    for axis in range(count):
        axes += [count + 1 + axis, axis]
    joined = [size * block for size, block in zip(sizes, blocks, strict=True)]
    ends = [size - after for size, (_, after) in zip(joined, pairs, strict=True)]
    begins = [before for before, _ in pairs]
    shape = [batch, *(b - a for a, b in zip(begins, ends, strict=True)), *rest]
    if min(shape) < 0:
        raise operator.error(f"borders {pairs} must fit the sizes {joined}")
    graph.expect(operator, shape)
    inner = graph.add(Tensor(
        f"{x.name}/joined", (batch, *joined, *rest), x.dtype, x.quantization
    ))
    move = moved(
        graph, operator, "rearrange", split=(*blocks, batch, *sizes, *rest),
        axes=(*axes, *range(2 * count + 1, 2 * count + 1 + len(rest))),
        shape=(batch, *joined, *rest),
    )
    cut = sliced(
        graph, operator, [0, *begins, *[0] * len(rest)], [batch, *ends, *rest], [1] * len(shape)
    )
    return [
        dataclasses.replace(move, outputs=(inner,)),
        dataclasses.replace(cut, inputs=(inner,)),
    ]


def _tile(graph, operator):
    graph.counts(operator, 2, 2)
    x, repeats = graph.input(operator, 0), tuple(graph.integers(operator, 1))
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 0:
        raise operator.error(f"repeats must be {len(x.shape)} numbers from 0 on, not {repeats}")
    graph.expect(operator, [n * r for n, r in zip(x.shape, repeats, strict=True)])
    return moved(graph, operator, "tile", repeats=repeats)


def _reverse(graph, operator):
    graph.counts(operator, 2, 2)
    x = graph.input(operator, 0)
    axes = axes_of(operator, graph.integers(operator, 1), len(x.shape))
    if len(set(axes)) != len(axes):
        raise operator.error(f"axes must differ, not {axes}")
    graph.expect(operator, x.shape)
    return moved(graph, operator, "reverse", axes=axes)


BUILDERS = {
    "TRANSPOSE": _transpose,
    "CONCATENATION": _concatenation, "PACK": _pack, "UNPACK": _unpack, "SPLIT": _split,
    "SPLIT_V": _split_v, "SLICE": _slice, "PAD": _pad,
    "PADV2": _pad, "MIRROR_PAD": _mirror_pad, "GATHER": _gather,
    "SPACE_TO_BATCH_ND": _space_to_batch, "BATCH_TO_SPACE_ND": _batch_to_space,
    "TILE": _tile, "REVERSE_V2": _reverse,
    "SPACE_TO_DEPTH": functools.partial(_blocks, True, "SpaceToDepthOptions"),
    "DEPTH_TO_SPACE": functools.partial(_blocks, False, "DepthToSpaceOptions"),
}
