"""Products of two maps: BATCH_MATMUL, FULLY_CONNECTED with computed weights, large TRANSPOSE.

A load reads the words of B from the memory, whoever wrote them there. So layers copy the second
map into the order of B, its *stream*, and the next layer has its words from there::

    sum((a - a_zero) * (b - b_zero)) = sum(a * b) + sum(a * -b_zero) + sum(-a_zero * b) + constant

Each of the three sums is taps of the layer. Taps that read A have rows of the kernel that lie in
one row of the map; taps of ``-a_zero`` lie outside of it. A zero point of -128 needs two of them,
with 64 each.

A cell with a corrected product adds ``b[2i] * b[2i + 1]`` to its sums. Words whose every second
value is 0 have no such products: there a sum is two taps, of the even values and of the odd ones.
"""

import dataclasses
import functools
import itertools
import math

import numpy as np

from weft.models.arithmetic import Rescale
from weft.models.ir import Gemm, Window
from weft.models.network_core.layers import NetworkLayer, Refusal, WeightLayout, WrongMap
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.models.network_core.operators.moves import move
from weft.models.network_core.operators.operands import constant
from weft.models.network_core.pools import NO_PADDING
from weft.models.network_core.products import half_of

__all__ = ["LOWERINGS", "product_of_maps"]

_MOST_LAYERS = 1024  # of an operator: lists with more are larger than what they compute


def product_of_maps(builder: OperatorBuilder, gemm: Gemm) -> tuple[int, tuple[NetworkLayer, ...]]:
    """Return the map and the layers of a product whose second operand is computed.

    Raises Refusal if the core cannot compute it.
    """
    place = gemm.inputs.index(gemm.b)
    x, b = builder.tensor(0), builder.tensor(place)
    given = gemm.requantization
    _check(builder, gemm, b)
    k, n = b.shape[-2:][::-1] if gemm.b_transposed else b.shape[-2:]
    m = math.prod(x.shape) // (math.prod(x.shape[:-2]) * k)
    products = _Products(builder, m, k, n)
    batch = np.broadcast_shapes(x.shape[:-2], b.shape[:-2])
    lefts, rights = (
        np.broadcast_to(np.arange(math.prod(lead)).reshape(lead), batch).reshape(-1).tolist()
        for lead in (x.shape[:-2], b.shape[:-2])
    )
    left, right = (
        builder.read(operand, (math.prod(tensor.shape[:-2]), *tensor.shape[-2:]))
        for operand, tensor in ((0, x), (place, b))
    )
    zeros = builder.zero(gemm.x_zero, x), builder.zero(int(gemm.w_zero[0]), b)
    rescale, half = Rescale.of(given, n, builder.mode), half_of(np.dtype(given.dtype))
    bias = np.zeros(n, np.int64) if gemm.bias is None else gemm.bias.astype(np.int64)
    y = builder.map((len(lefts), m, n))
    # Several products may read a map.
    transposed = functools.cache(products.transposed)
    stream = functools.cache(functools.partial(products.stream, zeros=zeros))
    for row, (first, second) in enumerate(zip(lefts, rights, strict=True)):
        a, other = products.row(left, first), products.row(right, second)
        if gemm.x_transposed:
            a = transposed(a)
        if not gemm.b_transposed:
            other = transposed(other)
        products.product(
            a, stream(other), zeros, y=builder.view(y, (1, m, n), row=row), bias=bias,
            scale=(rescale.multiplier, rescale.shift), zero=rescale.zero - half,
            low=rescale.low - half, high=rescale.high - half,
        )
        _check_layers(builder)
    *layers, last = builder.finished((y,))
    return y, (*layers, dataclasses.replace(last, macs=len(lefts) * m * k * n))


def _check(builder, gemm, b):
    """Raise Refusal for a product, or a core, with properties that this way lacks."""
    given = gemm.requantization
    if given is None or np.dtype(given.dtype) not in (np.int8, np.uint8):
        raise Refusal("its results must be of 8 bits")
    if gemm.table is not None:
        raise Refusal("its activation is a table")
    if gemm.w_zero.size != 1:
        raise Refusal("its second operand is computed, and must have one zero point")
    _need_loads(builder)
    if not math.prod(builder.tensor(0).shape) * math.prod(b.shape):
        raise Refusal("its operands must have values")


def _need_loads(builder):
    """Raise Refusal if the loads of a list cannot read the map of each inference."""
    if builder.config is not None and builder.config.resident:
        raise Refusal("its second operand is computed, and the core has no loads")
    if builder.batch > 1:
        raise Refusal(
            "its second operand is computed, and batch must be 1: a list with several inferences"
            " loads the same weights for all"
        )


def _check_layers(builder):
    if len(builder.layers) > _MOST_LAYERS:
        raise Refusal(f"it must have at most {_MOST_LAYERS:,} layers on the core")


class _Streams:
    """Maps as words of B, and the exchange of pixels and channels."""

    def __init__(self, builder):
        self._builder = builder
        self._block: int | None = None  # a unit matrix of one vector a pixel
        config, every = builder.config, np.arange(builder.depth)
        corrected = config is None or config.array.cell.corrected
        # The values of a word that count, for each of the taps of a sum.
        self._masks = [every % 2 == 0, every % 2 == 1] if corrected else [every >= 0]

    def transposed(self, number, y=None):
        """Return a map of one row whose pixels are the channels of a map of one row: ``y``, or new.

        It is the product with a unit matrix. Its rows are pixels of one block of it: a tap lies
        in the block for one vector of the map, and outside of it, where all is 0, for all others.
        """
        builder, depth = self._builder, self._builder.depth
        _, pixels, channels = builder.size(number)
        vectors, sums = self._vectors(channels), len(self._masks)
        if self._block is None:
            self._block = constant(builder, np.eye(depth, dtype=np.int64)[None], number)
        last = (vectors - 1) * sums  # of the last vector, which is the first tap
        order = [(last + mask, -sums) for mask in range(sums)]
        stream = self._stream(number, order, channels, pixels, vectors * sums)
        whole = builder.map((1, channels, pixels)) if y is None else y
        full, rest = divmod(channels, depth)
        for vector, size in ((0, (full, depth)), (full, (1, rest))):
            if not math.prod(size):
                continue
            window = Window(
                (vectors, sums), (1, 1), (1, 0), (vectors - 1 - vector, 0, 0, 0), (1, depth), size
            )
            builder.layer(
                self._block, window, np.zeros((vectors * sums, depth, pixels)),
                layout=WeightLayout.DENSE, b=stream, b_order=(*range(vectors * sums),),
                y=builder.view(
                    whole, (*size, pixels), column=vector * depth, line=(0, depth)
                ),
            )
        return whole

    def _vectors(self, channels):
        return -(-channels // self._builder.depth)

    def _stream(self, number, order, channels, pixels, words):
        """Append the layers that write the words of a map, and return the map of all words.

        A tile of pixels has ``words`` words, each with a vector for each pixel. ``order`` has for
        each mask the place of the word of its first vector, and the step to that of the next one.
        """
        builder, depth, cols = self._builder, self._builder.depth, self._builder.cols
        tiles, rest = divmod(pixels, cols)
        whole = builder.map((-(-pixels // cols) * words, cols, depth))
        for vector, (mask, (first, step)) in itertools.product(
            range(self._vectors(channels)), zip(self._masks, order, strict=True)
        ):
            weights = mask & (np.arange(depth) < channels - vector * depth)
            for tile, size in ((0, (tiles, cols)), (tiles, (1, rest))):
                if not math.prod(size):
                    continue
                x = builder.view(
                    number, (*size, depth), channel=vector * depth, column=tile * cols,
                    line=(0, cols),
                )
                word = tile * words + first + vector * step
                y = builder.view(whole, (*size, depth), row=word, line=(words, 0))
                if weights.all():
                    builder.copy(x, y=y)
                else:
                    builder.layer(x, pointwise(size), weights[None], y=y)
        return whole


class _Products(_Streams):
    """Products of maps of ``m`` and ``n`` pixels with ``k`` channels."""

    def __init__(self, builder, m, k, n):
        super().__init__(builder)
        self._m, self._k, self._n = m, k, n

    def row(self, number, row):
        """Return a map of one row of a map."""
        return self._builder.view(number, (1, *self._builder.size(number)[1:]), row=row)

    def product(self, a, stream, zeros, *, bias, **fields):
        """Append the layer of a product; ``fields`` are those of `OperatorBuilder.layer`."""
        constants, outside = _parts(-zeros[1]), _parts(-zeros[0])
        sums, vectors = len(self._masks), self._vectors(self._k)
        rows = sums + len(constants)
        taps = rows + sums * len(outside)
        # The rows of the view lie in one.
        view = self._builder.view(a, (rows, self._m, self._k), line=(0, 0))
        window = Window((taps, 1), (1, 1), (1, 1), NO_PADDING, (rows, self._m), (1, self._m))
        weights = np.zeros((taps, self._k, self._n), np.int8)
        for tap, value in enumerate(constants, sums):
            weights[tap] = value
        self._builder.layer(
            view, window, weights, layout=WeightLayout.DENSE, b=stream,
            b_order=(*range(rows * vectors), *(*range(sums * vectors),) * len(outside)),
            bias=bias + self._k * zeros[0] * zeros[1], x_zero=(*outside, 0)[0], **fields,
        )

    def stream(self, number, zeros):
        """Return the words of B of a map of one row, whose pixels are the columns.

        A tile has the words of each mask, then those of constants, each with all vectors of K.
        """
        constants, vectors = _parts(-zeros[1]), self._vectors(self._k)
        first = len(self._masks) * vectors
        order = [(mask * vectors, 1) for mask in range(len(self._masks))]
        whole = self._stream(number, order, self._k, self._n, first + len(constants) * vectors)
        for place, value in enumerate(constants):
            self._constants(number, whole, first + place * vectors, value)
        return whole

    def _constants(self, number, whole, word, value):
        """Append the layers that write a value into the words of all channels of all tiles.

        They read outside of a map. The words of a tile follow each other.
        """
        builder, depth, cols = self._builder, self._builder.depth, self._builder.cols
        vectors, rest = divmod(self._k, depth)
        tiles = -(-self._n // cols)
        words = builder.size(whole)[0] // tiles
        x = builder.view(number, (1, 1, min(depth, self._k)))
        for first, count, used in ((0, vectors, depth), (vectors, 1, rest)):
            if not count * used:
                continue
            size = tiles, count * cols
            y = builder.view(whole, (*size, depth), row=word + first, line=(words, 0))
            window = Window((1, 1), (1, 1), (1, 1), (1, 0, 0, 0), (1, 1), size)
            builder.layer(
                x, window, np.zeros((1, builder.size(x)[2], depth)), layout=WeightLayout.DENSE,
                y=y, bias=value * (np.arange(depth) < used),
            )


def _parts(value):
    """Return the fewest int8 values, none of them 0, whose sum is a value of -127..128."""
    if not value:
        return []
    return [value] if value < 128 else [64, 64]


def _transpose(builder: OperatorBuilder) -> tuple[int, ...]:
    """TRANSPOSE: by views and jobs that move values, or by products with a unit matrix."""
    try:
        return move(builder)
    except WrongMap:
        raise
    except Refusal:
        axes = _exchanged(builder)
        if axes is None:
            raise
    x, streams = builder.read(), _Streams(builder)
    size, moved = builder.size(x), axes[2]
    y, place = builder.map(tuple(size[axis] for axis in axes)), axes.index(2)
    _need_loads(builder)
    for number in range(size[1 - moved]):
        ends = [
            builder.view(
                whole, (1, size[pixels], size[channels]),
                **({"column": number, "pixel": (1, 0)} if in_rows else {"row": number}),
            )
            for whole, pixels, channels, in_rows in (
                (x, moved, 2, moved == 0), (y, 2, moved, place == 0)
            )
        ]
        streams.transposed(*ends)
        _check_layers(builder)
    return (y,)


def _exchanged(builder):
    """Return the axes of a map that a TRANSPOSE exchanges; None if it keeps the channels."""
    axes, shape = builder.node.attributes["axes"], builder.tensor(0).shape
    before = max(0, len(shape) - 3)
    if math.prod(shape[:before]) != 1 or any(axes[n] != n for n in range(before)):
        return None
    found = [axis - before for axis in axes[before:]]
    found = [*range(3 - len(found)), *(axis + 3 - len(found) for axis in found)]
    return None if found[2] == 2 else found


LOWERINGS = {"transpose": _transpose}
