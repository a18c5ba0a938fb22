"""Tensors of int16 as maps of int8: the bytes of each value are two neighbouring channels.

::

    s = 256 * high + low + 128                       high is the even channel, low the odd one

So the sum of a product has two digits, which are neighbouring columns of a job with ``pairs``::

    2^8 * sum(high * w)
          sum(low * w) + bias + 128 * sum(w)

The job adds them modulo 2^32. TensorFlow Lite Micro has sums of 64 bits, if the bias has 64 bits or
is absent, and multiplies them by 16 bits with one rounding::

    y = (sum * m + 2^(14 - shift)) >> (15 - shift)

A lane rounds once, too, if its own shift is 0: it computes ``(sum * M + 2^30) >> 31`` with
``M = m * 2^(16 + shift)``. That needs a sum that has 32 bits for all inputs, and a scale of at
least 2^-17; other layers are a `Refusal`.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from weft.models.arithmetic import Rescale, core_parts
from weft.models.ir import Gemm, Graph, Host, Node, Tensor
from weft.models.network_core.layers import LOW_ZERO, Refusal

__all__ = [
    "INT16", "NO_INT16", "WIDE", "PairGemm", "bytes_of", "moved_bytes", "pair_constants",
    "pair_scales",
    "pair_zeros", "values_of", "with_pairs",
]

INT16 = np.dtype(np.int16)
_LIMITS = np.iinfo(np.int16)
_SUM = np.iinfo(np.int32)
_MULTIPLIER = 15  # bits of a multiplier of a sum of 64 bits
NO_INT16 = "the core has no values of 16 bits"  # why the host computes it, if another core would
_UNKNOWN = "no such operator of int16"  # instead of a kernel that has maps of bytes only
_MOVES = {
    "broadcast", "concatenation", "gather", "mirror_pad", "pad", "read_variable", "rearrange",
    "reshape", "reverse", "slice", "split", "stack", "tile", "transpose", "unstack",
}
# Kernels with a lowering of their own for maps of bytes, which has this prefix.
WIDE = "int16."
_LOWERED = {
    "table", "tflite.add", "tflite.average_pool", "tflite.max_pool", "tflite.mean",
    "tflite.requantize", "tflite.sub", "tflite.sum",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class PairGemm(Gemm):
    """A product of int16 with weights for the bytes of x, and two columns for each of y.

    Attributes
    ----------
    whole : Gemm
        The operator, with its own weights, bias and scales.
    """

    whole: Gemm


def bytes_of(values: np.ndarray) -> np.ndarray:
    """Return the bytes of int16 ``values``: int8, with twice as many along the last axis."""
    parts = np.stack(core_parts(values), -1)
    return parts.reshape(*values.shape[:-1], -1)


def values_of(pixels: np.ndarray) -> np.ndarray:
    """Return int16 values from their bytes; half as many along the last axis."""
    wide = pixels.astype(np.int64)
    return (256 * wide[..., ::2] + wide[..., 1::2] - LOW_ZERO).astype(np.int16)


def pair_constants(values) -> np.ndarray:
    """Return numbers below 0 for constants of int16, which `moved_bytes` knows."""
    return _LIMITS.min - 1 - np.asarray(values, np.int64)


def moved_bytes(index: np.ndarray) -> np.ndarray:
    """Return the places of bytes from the places of values, with twice as many in the last axis.

    A constant byte v is -129 - v.
    """
    values = (_LIMITS.min - 1 - np.minimum(index, -1)).astype(np.int16)
    constants = -129 - bytes_of(values).astype(np.int64)
    places = np.stack([2 * index, 2 * index + 1], -1).reshape(constants.shape)
    return np.where(places < 0, constants, places)


def with_pairs(graph: Graph) -> tuple[list[Node], tuple[Tensor, ...], frozenset[int]]:
    """Return the nodes and the tensors as a core with values of 16 bits has them.

    The third result are the tensors of int16: their type is int8, and their last axis has twice as
    many channels. Nodes that the core cannot compute from such maps are of an unknown kernel.
    """
    wide = frozenset(
        number for number, tensor in enumerate(graph.tensors)
        if tensor.dtype == INT16 and tensor.data is None
    )
    tensors = tuple(
        dataclasses.replace(tensor, dtype=np.dtype(np.int8), shape=_doubled(tensor.shape))
        if number in wide else tensor for number, tensor in enumerate(graph.tensors)
    )
    nodes = [
        _of_bytes(node) if wide & {*node.inputs, *node.outputs} else node for node in graph.nodes
    ]
    return nodes, tensors, wide


def _doubled(shape):
    """The shape of the bytes of a tensor."""
    return (*shape[:-1], 2 * shape[-1]) if shape else (2,)


def _of_bytes(node: Node) -> Node:
    """A node whose inputs and outputs are bytes of int16."""
    if isinstance(node, Gemm) and node.weights is not None and node.requantization is not None:
        return _pair_gemm(node)
    if isinstance(node, Host) and node.kernel in _MOVES:
        return node
    if isinstance(node, Host) and node.kernel in _LOWERED:
        return dataclasses.replace(node, kernel=WIDE + node.kernel)
    reason = node.reason if isinstance(node, Host) else _UNKNOWN
    return Host(
        operator=node.operator, name=node.name, position=node.position, inputs=node.inputs,
        outputs=node.outputs, kernel=_UNKNOWN, attributes={}, reason=reason,
    )


def _pair_gemm(gemm: Gemm) -> PairGemm:
    """A product with weights for bytes: each one twice, and 0 between different bytes."""
    groups, k, n = gemm.weights.shape
    zero = np.broadcast_to(gemm.w_zero, groups * n).reshape(groups, 1, n)
    weights = (gemm.weights.astype(np.int64) - zero).astype(np.int16)
    taps = 1 if gemm.window is None else int(np.prod(gemm.window.kernel))
    if k == taps and n == 1 < groups:  # depthwise: a channel is a group
        pairs = np.repeat(weights, 2, 0)
    else:
        pairs = np.zeros((groups, k, 2, n, 2), np.int16)
        pairs[:, :, 0, :, 0] = pairs[:, :, 1, :, 1] = weights
        pairs = pairs.reshape(groups, 2 * k, 2 * n)
    bias = np.zeros((groups * n, 2), np.int64)
    if gemm.bias is not None:
        bias[:, 1] = gemm.bias
    fields = {f.name: getattr(gemm, f.name) for f in dataclasses.fields(Gemm)}
    return PairGemm(**fields | {
        "weights": pairs, "w_zero": np.zeros(1, np.int64), "bias": bias.reshape(-1), "whole": gemm,
    })


def pair_zeros(columns: int) -> np.ndarray:
    """Return what the bytes that each column reads are for a value of 0."""
    return np.tile([0, LOW_ZERO], columns // 2)


def pair_scales(gemm: PairGemm, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return multiplier and shift of each column, as the lanes of a core have them.

    Raises Refusal if the lanes would compute other results than the runtime.
    """
    whole, given = gemm.whole, gemm.whole.requantization
    assert given is not None and whole.weights is not None
    if whole.x_zero or given.zero:
        raise Refusal(f"zero points of int16 must be 0, not {whole.x_zero} and {given.zero}")
    rescale = Rescale.of(given, gemm.bias.size // 2, mode)
    multiplier, shift = rescale.multiplier, rescale.shift
    if rescale.wide:
        _check_sums(gemm, np.maximum(shift, 0))
        reduced = np.minimum((multiplier + (1 << 15)) >> 16, (1 << _MULTIPLIER) - 1) << 16
        right = np.maximum(-shift, 0)
        multiplier, shift = reduced >> right, np.maximum(shift, 0)
        if (multiplier << right != reduced).any():
            raise Refusal(
                f"its scales must be at least 2^-17, and one is below 2^-{right.max()}"
            )
    return np.repeat(multiplier, 2), np.repeat(shift, 2)


def _check_sums(gemm, left):
    """Raise Refusal if a sum, times ``2^left``, may have more than 32 bits."""
    weights, bias = gemm.weights.astype(np.int64), gemm.bias.reshape(-1, 2)[:, 1]
    low, high = (
        choose(weights * _LIMITS.min, weights * _LIMITS.max).sum(1).reshape(-1, 2)[:, 1] + bias
        for choose in (np.minimum, np.maximum)
    )
    if (low < _SUM.min >> left).any() or (high > _SUM.max >> left).any():
        bits = max(int(value).bit_length() for value in (-1 - low.min(), high.max())) + 1
        raise Refusal(
            f"its sums may have {bits} bits, with scales up to 2^{left.max()}, and the lanes have"
            " 32"
        )
