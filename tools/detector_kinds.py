"""Networks of detectors, of poses, of masks: with maps of several sizes, and several outputs."""

from collections.abc import Callable

import numpy as np

from tools.network_writer import NONE, RELU, RELU6, SAME, VALID

__all__ = ["DETECTORS"]


def _yolo(w, n):
    """Gates, pools of 5 x 5 (SPPF), maps of two scales, heads as rows."""
    x = w.swish(w.convolution("x", 8, stride=2, activation=NONE))
    deep = w.swish(w.convolution(x, 8, stride=2, activation=NONE))
    pools = [deep]
    for _ in range(1 + n):
        pools.append(w.pool(pools[-1], "MAX_POOL_2D", 5, 1, SAME))
    deep = w.convolution(w.concatenation(*pools), 8, 1, activation=NONE)
    up = w.resize(deep, "RESIZE_NEAREST_NEIGHBOR", size=w.shape(x)[1:3])
    rows = []
    for part in (w.joined(up, x), deep):
        head = w.convolution(part, 14, 1, activation=NONE)
        _, height, width, _ = w.shape(head)
        rows.append(w.reshape(head, (1, height * width * 2, 7)))
    y = w.function(w.joined(*rows, axis=1, scale=0.1), "LOGISTIC")
    return w.transpose(y, (0, 2, 1)) if n else y


def _boxes(w, n):
    """The end of a detector: centres, sizes, and scores from rows of values."""
    x = w.convolution("x", 12, stride=4, activation=NONE)
    _, height, width, _ = w.shape(x)
    count = height * width * 2
    rows = w.function(w.reshape(x, (1, count, 6)), "LOGISTIC")
    centre, size = (
        w.slice(rows, (0, 0, first), (1, count, first + 2), (1, 1, 1)) for first in (0, 2)
    )
    score = w.slice(rows, (0, 0, 4), (1, count, 6), (1, 1, 1))
    centre = w.sum(w.product(centre, w.values(1, 1, 1), 0.02), w.values(1, count, 2))
    size = w.product(size, size, 0.01)
    size = w.product(size, w.values(1, count, 2), 0.02)
    return w.joined(centre, size, score, axis=2)


def _distances(w, n):
    """Boxes as expectations of distances (DFL): SOFTMAX, and a product with constants."""
    x = w.convolution("x", 16, stride=4, activation=NONE)
    _, height, width, _ = w.shape(x)
    count = height * width
    rows = w.reshape(x, (1, count, 4, 4))
    if n:
        rows = w.transpose(rows, (0, 2, 1, 3))
    y = w.convolution(w.softmax(rows), 1, 1, activation=NONE)
    y = w.reshape(y, (1, 4, count) if n else (1, count, 4))
    if not n:
        y = w.transpose(y, (0, 2, 1))
    first, second = (
        w.slice(y, (0, begin, 0), (1, begin + 2, count), (1, 1, 1)) for begin in (0, 2)
    )
    anchors = w.values(1, 2, count)
    low, high = w.sum(anchors, first, operator="SUB"), w.sum(second, anchors)
    centre = w.product(w.sum(low, high), w.values())
    return w.joined(centre, w.sum(high, low, operator="SUB"), axis=1)


def _faces(w, n):
    """BlazeFace: more channels by PAD beside a pool, heads of two maps, two outputs."""
    x = w.convolution("x", 8, 5, 2)
    for columns, stride in ((8, 1), (12, 2), (12, 1)):
        y = w.convolution(w.depthwise(x, 3 + 2 * (n > 0), stride, NONE), columns, 1,
                          activation=NONE)
        if stride > 1:
            x = w.pool(x, "MAX_POOL_2D", 2, 2, SAME)
        more = columns - w.shape(x)[3]
        if more:
            x = w.pad(x, (0, 0), (0, 0), (0, 0), (0, more))
        x = w.function(w.sum(y, x), "RELU") if n == 1 else w.sum(y, x, activation=RELU)
    small = w.convolution(x, 12, stride=2)
    found = []
    for values in (2, 8):
        rows = []
        for part in (x, small):
            head = w.convolution(part, 2 * values, 1, activation=NONE)
            _, height, width, _ = w.shape(head)
            rows.append(w.reshape(head, (1, height * width * 2, values)))
        found.append(w.joined(*rows, axis=1))
    return found


def _palms(w, n):
    """Palm detection: PRELU, sums of maps of two sizes."""
    w.input((1, 16 + 8 * n, 24, 3), "x")

    def prelu(x):
        slopes = w.values(1, 1, w.shape(x)[3], scale=0.004)
        return w.add("PRELU", [x, slopes], w.output(w.shape(x), 0.06))

    x = prelu(w.convolution("x", 8, 5, 2, activation=NONE))
    y = w.convolution(w.depthwise(x, 5, activation=NONE), 8, 1, activation=NONE)
    x = prelu(w.sum(x, y))
    y = w.convolution(w.depthwise(x, 5, 2, NONE), 8, 1, activation=NONE)
    deep = prelu(w.sum(w.pool(x, "MAX_POOL_2D", 2, 2, SAME), y))
    up = w.resize(deep, "RESIZE_BILINEAR", size=w.shape(x)[1:3], halfPixelCenters=n > 0)
    return w.convolution(prelu(w.sum(prelu(w.convolution(up, 8, 1, activation=NONE)), x)), 3, 1,
                         activation=NONE)


def _poses(w, n):
    """MoveNet, CenterNet: a pyramid of maps that grow, and four heads, each an output."""
    if n < 2:  # otherwise of sizes that do not double
        w.input((1, 16 + 16 * n, 24, 3), "x")
    x = w.convolution("x", 8, stride=2, activation=RELU6)
    y = w.convolution(w.depthwise(x, stride=2, activation=RELU6), 12, 1, activation=NONE)
    z = w.convolution(w.depthwise(y, stride=2, activation=RELU6), 16, 1, activation=NONE)
    for part in (y, x):
        z = w.convolution(z, 8, 1, activation=NONE)
        z = w.resize(z, "RESIZE_BILINEAR", size=w.shape(part)[1:3], halfPixelCenters=n < 2)
        z = w.sum(z, w.convolution(part, 8, 1, activation=NONE))
        z = w.convolution(w.depthwise(z, activation=RELU), 8, 1)
    heads = [w.convolution(w.convolution(z, 8), columns, 1, activation=NONE)
             for columns in (1, 2 + n, 4)]
    return [w.function(heads[0], "LOGISTIC"), *heads[1:]]


def _deeplab(w, n):
    """Dilated layers, as batches, too; the mean of the map joined with it; a mask."""
    x = w.convolution("x", 8, stride=2, activation=RELU6)
    if n:
        _, height, width, _ = w.shape(x)
        pairs = [(2, 2 + -size % 2) for size in (height, width)]
        parts = w.batches(x, "SPACE_TO_BATCH_ND", 2, pairs)
        cut = [(0, -size % 2) for size in (height, width)]
        x = w.batches(w.depthwise(parts, padding=VALID), "BATCH_TO_SPACE_ND", 2, cut)
    else:
        x = w.depthwise(x, dilation=2)
    size = w.shape(x)[1:3]
    if n == 1:
        mean = w.mean(x, (1, 2))
    else:
        mean = w.pool(x, "AVERAGE_POOL_2D", tuple(size), tuple(size))
    mean = w.convolution(mean, 8, 1)
    mean = w.resize(mean, "RESIZE_BILINEAR", size=size, alignCorners=n == 0)
    y = w.convolution(w.joined(mean, w.convolution(x, 8, 1)), 5, 1, activation=NONE)
    options = {"alignCorners": True} if n == 0 else {"halfPixelCenters": n == 2}
    grown = [3 * (k - 1) + 1 for k in size] if n == 0 else [(2 + 6 * (n - 1)) * k for k in size]
    return w.resize(y, "RESIZE_BILINEAR", size=grown, **options)


def _decoder(w, n):
    """Maps that grow by TRANSPOSE_CONV."""
    x = w.convolution("x", 8, stride=2)
    y = w.convolution(x, 12, stride=2)
    y = w.transposed(y, 8, (2, 3, 4)[n], 2, (SAME, SAME, VALID)[n], bias=n != 1)
    if n == 2:
        y = w.slice(y, (0, 1, 1, 0), (1, *(k + 1 for k in w.shape(x)[1:3]), 8), (1, 1, 1, 1))
    else:
        y = w.slice(y, (0, 0, 0, 0), (1, *w.shape(x)[1:3], 8), (1, 1, 1, 1))
    y = w.convolution(w.joined(y, x), 6)
    return w.transposed(y, 3, 3, (2, 1) if n else 2)


def _pyramid(w, n):
    """A pyramid of maps with weighted sums (BiFPN); sizes that do not double."""
    x = w.convolution("x", 8, stride=2, activation=RELU6)
    y = w.pool(w.convolution(x, 8, 1), "MAX_POOL_2D", 3, 2, SAME)
    z = w.pool(y, "MAX_POOL_2D", 3, 2, SAME)
    scale = w.constant(np.int8(60 + n), 0.01)
    for part in (y, x):
        up = w.resize(z, "RESIZE_NEAREST_NEIGHBOR", size=w.shape(part)[1:3],
                      halfPixelCenters=n == 1)
        z = w.sum(w.product(up, scale, 0.03), w.product(part, scale, 0.04))
        z = w.convolution(w.depthwise(w.function(z, "RELU6")), 8, 1, activation=NONE)
    return z


def _super(w, n):
    """Larger images: DEPTH_TO_SPACE at the end."""
    x = w.convolution(w.convolution("x", 8, 5), 3 * (2 + n % 2) ** 2, 3, activation=NONE)
    block = 2 + n % 2
    _, height, width, channels = w.shape(x)
    return w.like(
        x, "DEPTH_TO_SPACE", (1, height * block, width * block, channels // block**2),
        ("DepthToSpaceOptions", {"blockSize": block}),
    )


def _heads(w, n):
    x = w.convolution("x", 8, stride=2)
    y = w.pool(x, "MAX_POOL_2D", 3, 1, SAME)
    heads = []
    for part in (x, w.convolution(y, 8, stride=2)):
        head = w.convolution(part, 6, 1, activation=NONE)
        _, height, width, _ = w.shape(head)
        heads.append(w.reshape(head, (1, height * width * (1 + n % 2), 6 // (1 + n % 2))))
    return w.function(w.concatenation(*heads, axis=1), "LOGISTIC")


def _largest(w, n):
    """ARG_MAX at the end."""
    x = w.convolution("x", 4, stride=2, activation=NONE)
    y = w.integers(w.shape(x)[:3])
    axis = w.constant(np.int32([3]))
    return w.add("ARG_MAX", [x, axis], y, ("ArgMaxOptions", {"outputType": 2}))


DETECTORS: dict[str, Callable] = {
    "yolo": _yolo, "boxes": _boxes, "distances": _distances, "faces": _faces, "palms": _palms,
    "poses": _poses, "masks": _deeplab, "decoder": _decoder, "pyramid": _pyramid,
    "larger images": _super, "heads": _heads, "largest channel": _largest,
}
