"""Products of two maps: BATCH_MATMUL, and FULLY_CONNECTED with computed weights.

A load reads the words of B from the memory, whoever wrote them there. So layers copy the second
map into the order of B, its *stream*, and the next layer has its words from there::

    sum((a - a_zero) * (b - b_zero)) = sum(a * b) + sum(a * -b_zero) + sum(-a_zero * b) + constant

Each of the sums is a tap of the layer, with words of its own. Taps that read A have rows of the
kernel that lie in one row of the map; a tap with ``-a_zero`` lies outside of it.

A cell with a corrected product adds ``b[2i] * b[2i + 1]`` to its sums. Words whose every second
value is 0 have no such products: there a sum is two taps, of the even values and of the odd ones.
"""

import dataclasses
import functools
import math

import numpy as np

from weft.models.arithmetic import Rescale
from weft.models.ir import Gemm, Window
from weft.models.network_core.layers import NetworkLayer, Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.models.network_core.operators.operands import constant
from weft.models.network_core.pools import NO_PADDING
from weft.models.network_core.products import half_of

__all__ = ["product_of_maps"]

_MOST_LAYERS = 1024  # of an operator: lists with more are larger than what they compute
_MOST_TAPS = 255  # of a kernel, along an axis


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
    if len(batch) and not lefts:
        raise Refusal("its results must have values")
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
        if len(builder.layers) > _MOST_LAYERS:
            raise Refusal(f"it must have at most {_MOST_LAYERS:,} layers on the core")
    *layers, last = builder.finished((y,))
    return y, (*layers, dataclasses.replace(last, macs=len(lefts) * m * k * n))


def _check(builder, gemm, b):
    """Raise Refusal for a product, or a core, with properties that this way lacks."""
    given, config = gemm.requantization, builder.config
    if given is None or np.dtype(given.dtype) not in (np.int8, np.uint8):
        raise Refusal("its results must be of 8 bits")
    if gemm.table is not None:
        raise Refusal("its activation is a table")
    if gemm.w_zero.size != 1:
        raise Refusal("its second operand is computed, and must have one zero point")
    if builder.batch > 1:
        raise Refusal(
            "its second operand is computed, and batch must be 1: a list with several inferences"
            " loads the same weights for all"
        )
    if config is not None and config.program_words:
        raise Refusal(
            "its second operand is computed, and a core with program_words loads weights from the"
            " program memory only"
        )
    if not math.prod(builder.tensor(0).shape) * math.prod(b.shape):
        raise Refusal("its operands must have values")


class _Products:
    """Products of maps of ``m`` and ``n`` pixels with ``k`` channels."""

    def __init__(self, builder, m, k, n):
        self._builder, self._m, self._k, self._n = builder, m, k, n
        self._block: int | None = None  # a unit matrix of one vector a pixel
        config = builder.config
        corrected = config is None or config.array.cell.corrected
        every = np.arange(builder.depth)
        # The values of a word that count, for each of the taps of a sum.
        self._masks = [every % 2 == 0, every % 2 == 1] if corrected else [every >= 0]

    def row(self, number, row):
        """Return a map of one row of a map."""
        return self._builder.view(number, (1, *self._builder.size(number)[1:]), row=row)

    def product(self, a, stream, zeros, *, bias, **fields):
        """Append the layer of a product; ``fields`` are those of `OperatorBuilder.layer`."""
        inside, outside = self._taps(zeros)
        taps, rows = [*inside, *outside], len(inside)
        if len(taps) > _MOST_TAPS:
            raise Refusal(f"it must have at most {_MOST_TAPS} taps, not {len(taps)}")
        # The rows of the view lie in one.
        view = self._builder.view(a, (rows, self._m, self._k), line=(0, 0))
        window = Window(
            (len(taps), 1), (1, 1), (1, 1), NO_PADDING, (rows, self._m), (1, self._m)
        )
        weights = np.zeros((len(taps), self._k, self._n), np.int8)
        for tap, (_, value) in enumerate(taps):
            weights[tap] = value
        self._builder.layer(
            view, window, weights, layout=WeightLayout.DENSE, b=stream,
            bias=bias + self._k * zeros[0] * zeros[1], x_zero=_parts(-zeros[0])[0], **fields,
        )

    def stream(self, number, zeros):
        """Return the words of B of a map of one row, whose pixels are the columns."""
        inside, outside = self._taps(zeros)
        return self._stream(number, [*inside, *outside], self._k, self._n)

    def transposed(self, number):
        """Return a map whose pixels are the channels of a map of one row.

        It is the product with a unit matrix. Its rows are pixels of one block of it: a tap lies
        in the block for one vector of the map, and outside of it, where all is 0, for all others.
        """
        builder, depth = self._builder, self._builder.depth
        _, pixels, channels = builder.size(number)
        vectors = -(-channels // depth)
        if self._block is None:
            self._block = constant(builder, np.eye(depth, dtype=np.int64)[None], number)
        taps = [(mask, 0) for mask in self._masks]
        stream = self._stream(number, taps, channels, pixels, by_vectors=True)
        window = Window(
            (vectors, len(taps)), (1, 1), (1, 0), (vectors - 1, 0, 0, 0), (1, depth),
            (vectors, depth),
        )
        whole = builder.layer(
            self._block, window, np.zeros((vectors * len(taps), depth, pixels)),
            layout=WeightLayout.DENSE, b=stream,
        )
        whole = builder.reshaped(whole, (1, vectors * depth, pixels))
        return builder.view(whole, (1, channels, pixels))

    def _taps(self, zeros):
        """Return the taps that read A, and those that read ``-a_zero``.

        Each is the mask of the values of B, or None, and the value that all words have then.
        """
        computed = [(mask, 0) for mask in self._masks]
        inside = computed + [(None, value) for value in _parts(-zeros[1]) if value]
        outside = [each for value in _parts(-zeros[0]) if value for each in computed]
        return inside, outside

    def _stream(self, number, taps, channels, pixels, *, by_vectors=False):
        """Append the layers that write the words of a map, and return the map of the words.

        ``for tile of pixels: for tap: for vector of channels``, or ``for vector from the last one:
        for tap`` if ``by_vectors``. A word has a vector for each pixel of its tile.
        """
        builder, depth, cols = self._builder, self._builder.depth, self._builder.cols
        vectors = -(-channels // depth)
        tiles, rest = divmod(pixels, cols)
        words = len(taps) * vectors
        whole = builder.map((-(-pixels // cols) * words, cols, depth))
        for vector in range(vectors):
            used = np.arange(depth) < channels - vector * depth
            for tap, (mask, value) in enumerate(taps):
                word = tap * vectors + vector
                if by_vectors:
                    word = (vectors - 1 - vector) * len(taps) + tap
                for first, size in ((0, (tiles, cols)), (tiles, (1, rest))):
                    if not math.prod(size):
                        continue
                    x = builder.view(
                        number, (*size, depth), channel=vector * depth, column=first * cols,
                        line=(0, cols),
                    )
                    y = builder.view(
                        whole, (*size, depth), row=first * words + word, line=(words, 0)
                    )
                    weights = used & (mask is not None and mask)
                    if weights.all():
                        builder.copy(x, y=y)
                    else:
                        builder.layer(x, pointwise(size), weights[None], y=y, bias=used * value)
        return whole


def _parts(value):
    """Return int8 values whose sum is a value of -127..128."""
    return [value] if value < 128 else [64, 64]
