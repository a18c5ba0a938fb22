"""Networks of the kinds that people have."""

from collections.abc import Callable

import numpy as np

from tools.detector_kinds import DETECTORS
from tools.network_writer import NONE, RELU, RELU6, SAME, VALID

__all__ = ["KINDS"]


def _lenet(w, n):
    x = w.pool(w.convolution("x", 6 + n), "MAX_POOL_2D")
    return w.dense(w.pool(w.convolution(x, 16, 3), "MAX_POOL_2D", 3, 2 - n % 2, SAME), 10)


def _classifier(w, n):
    x = w.depthwise(w.convolution("x", 8 + 8 * n, stride=2))
    x = w.pool(w.convolution(x, 16, 1), "AVERAGE_POOL_2D", w.shape(x)[1], 1)
    return w.softmax(w.dense(x, 2 + 5 * n))


def _padded_channels(w, n):
    x = w.convolution("x", 8)
    y = w.pool(x, "AVERAGE_POOL_2D")
    wide = w.pad(y, (0, 0), (0, 0), (0, 0), (n, 8 - n))
    return w.binary("ADD", w.convolution(x, 16, stride=2), wide, ("AddOptions", {}))


def _padded(w, n):
    x = w.pad(w.convolution("x", 5), (0, 0), (1, n), (2, 1), (0, 0))
    x = w.pool(x, "MAX_POOL_2D", 3, 2)
    mirrored = w.pad(
        x, (0, 0), (1, 1), (1, 1), (0, 0), operator="MIRROR_PAD",
        options=("MirrorPadOptions", {"mode": n % 2}),
    )
    return w.convolution(mirrored, 4, padding=VALID)


def _unet(w, n):
    x = w.convolution("x", 8)
    y = w.convolution(w.pool(x, "MAX_POOL_2D"), 8 + 3 * n)
    up = w.resize(y, "RESIZE_NEAREST_NEIGHBOR")
    return w.convolution(w.concatenation(x, up), 3, 1, activation=NONE)


def _bilinear(w, n):
    x = w.convolution("x", 7, stride=2)
    corners = {"halfPixelCenters": True} if n else {}
    y = w.resize(w.convolution(x, 7, stride=1), "RESIZE_BILINEAR", **corners)
    return w.binary("ADD", y, w.convolution("x", 7), ("AddOptions", {}))


def _functions(w, n):
    x = w.convolution("x", 9, activation=NONE)
    for operator, options in (
        ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": 0.1})), ("HARD_SWISH", None), ("TANH", None),
        ("LOGISTIC", None), ("RELU", None),
    )[n:n + 3]:
        x = w.convolution(w.function(x, operator, options), 6, activation=NONE)
    return x


def _squeeze(w, n):
    x = w.convolution("x", 8 * (n + 1), stride=2)
    gate = w.mean(x, (1, 2))
    gate = w.convolution(w.convolution(gate, 4, 1), 8 * (n + 1), 1, activation=NONE)
    y = w.binary("MUL", x, w.function(gate, "LOGISTIC"), ("MulOptions", {}), 0.03)
    return w.convolution(y, 4, 1)


def _gates(w, n):
    x = w.convolution("x", 8 + n, activation=NONE)
    y = w.binary("MUL", x, w.function(x, "LOGISTIC"), ("MulOptions", {}), 0.03)
    z = w.convolution(y, 8 + n, activation=NONE)
    return w.binary("MUL", z, w.convolution(y, 8 + n), ("MulOptions", {}), 0.2)


def _prelu(w, n):
    x = w.convolution("x", 6 + n, activation=NONE)
    slopes = w.rng.integers(-128, 128, (1, 1, 6 + n)).astype(np.int8)
    y = w.output(w.shape(x), 0.06)
    w.add("PRELU", [x, w.constant(slopes, 0.004, 3 * n)], y)
    return w.dense(w.pool(y, "MAX_POOL_2D"), 5)


def _shuffle(w, n):
    x = w.convolution("x", 16 + 4 * n)
    a, b = w.split(x, 2)
    a = w.convolution(w.depthwise(a), 8 + 2 * n, 1)
    return w.convolution(w.concatenation(b, a), 7, 1)


def _focus(w, n):
    _, height, width, channels = w.shape("x")
    parts = [
        w.slice("x", (0, y, x, 0), (1, height, width, channels), (1, 2, 2, 1))
        for y in (0, 1) for x in (0, 1)
    ]
    x = w.convolution(w.concatenation(*parts), 8)
    return w.slice(x, (0, 1, 0, n), (1, height // 2, width // 2 - 1, 8), (1, 1, 1, 1))


def _turned(w, n):
    x = w.convolution("x", 8, stride=2)
    axes = ((0, 2, 1, 3), (0, 2, 1, 3), (0, 3, 1, 2))[n]
    y = w.mean(w.transpose(x, axes), (1 + n % 2,), keep=n == 1)
    return w.dense(y, 6)


def _averages(w, n):
    x = w.convolution("x", 8)
    x = w.pool(x, "AVERAGE_POOL_2D", 3, 1 + n % 2, SAME)
    x = w.convolution(x, 12, 1)
    return w.dense(w.mean(x, ((1, 2), (3,), (1,))[n], "SUM" if n == 2 else "MEAN"), 6)


def _arithmetic(w, n):
    x, y = w.convolution("x", 8, activation=NONE), w.convolution("x", 8, activation=NONE)
    z = w.binary("SUB", x, y, ("SubOptions", {}))
    z = w.binary(("MAXIMUM", "MINIMUM", "MAXIMUM")[n], z, w.convolution("x", 8))
    shape = ((8,), (1, 1, 1, 1), (1, 1, 1, 8))[n]
    constant = w.constant(w.rng.integers(-128, 128, shape).astype(np.int8), 0.02, 4)
    z = w.binary("ADD", z, constant, ("AddOptions", {}))
    z = w.binary("MUL", z, constant, ("MulOptions", {}))
    return w.dense(w.mean(z, (1, 2), "REDUCE_MAX"), 4)


def _old(w, n):
    x = w.depthwise(w.convolution("x", 8, stride=2, activation=RELU6), activation=RELU6)
    x = w.convolution(x, 12, 1, activation=RELU6)
    return w.dense(w.pool(x, ("MAX_POOL_2D", "AVERAGE_POOL_2D")[n % 2], 2, 2), 5)


def _long(w, n):
    return w.dense(w.convolution("x", 40 + 8 * n), 9)


def _mobile(w, n):
    """MobileNetV3: HARD_SWISH as its steps, squeeze and excite with hard limits."""
    def swish(x):
        if n == 2:
            return w.function(x, "HARD_SWISH")
        six = w.constant(np.int8(100), 1 / 600) if n else w.values(1)
        gate = w.sum(x, w.constant(np.int8([[[[127]]]] if n else 127), 3 / 127), 0.05, RELU6)
        return w.product(w.product(gate, six, 0.01), x, 0.04)

    x = swish(w.convolution("x", 8, stride=2, activation=NONE))
    y = swish(w.convolution(x, 16, 1, activation=NONE))
    y = w.depthwise(y, 5, 1, NONE)
    gate = w.mean(y, (1, 2), keep=False)
    gate = w.dense(w.dense(gate, 4, RELU), 16)
    gate = w.sum(gate, w.constant(np.int8(127), 3 / 127), 0.05, RELU6)
    gate = w.product(gate, w.constant(np.int8(100), 1 / 600), 0.006)
    y = w.product(y, w.reshape(gate, (1, 1, 1, 16)), 0.05)
    x = w.sum(w.convolution(y, 8, 1, activation=NONE), x)
    return w.dense(w.mean(x, (1, 2), keep=False), 7)


def _ends(w, n):
    """QUANTIZE at both ends, from uint8 and to uint8; a map that is an output, too."""
    w.tensors["x"].dtype, w.tensors["x"].zero = ("uint8", 127) if n else ("int8", 3)
    x = w.requantized("x", 0.05 if n == 1 else 0.06, -1, "int8")
    x = w.convolution(x, 8, stride=2)
    y = w.requantized(w.convolution(x, 4), 0.08)
    last = w.requantized(w.dense(y, 6), 0.07, 100, "uint8")
    return [last, x] if n == 2 else last


def _dynamic(w, n):
    """Shapes that the network computes: SHAPE, STRIDED_SLICE, PACK."""
    x = w.convolution("x", 6, stride=2)
    shape = w.add("SHAPE", [x], w.integers((4,)), ("ShapeOptions", {"outType": 2}))
    index = [w.constant(np.int32([k])) for k in (0, 1)]
    batch = w.add(
        "STRIDED_SLICE", [shape, index[0], index[1], w.constant(np.int32([1]))],
        w.integers(()), ("StridedSliceOptions", {"shrinkAxisMask": 1}),
    )
    rest = w.constant(np.int32(-1 if n else np.prod(w.shape(x))))
    wanted = w.add(
        "PACK", [batch, rest], w.integers((2,)), ("PackOptions", {"valuesCount": 2})
    )
    k = int(np.prod(w.shape(x)))
    flat = w.like(x, "RESHAPE", (1, k), ("ReshapeOptions", {"newShape": [-1, k]}), (wanted,))
    return w.dense(flat, 5 + n)


def _sequence(w, n):
    """Values in time: FULLY_CONNECTED of each row, without bias, and means over time."""
    w.input((1, 10 + n, 12), "x")
    x = w.dense("x", 16, RELU, bias=n != 1, keep=True)
    y = w.dense(x, 12, keep=True, bias=False)
    y = w.sum(y, "x")
    return w.dense(w.mean(y, (1,), keep=n == 1), 5)


def _audio(w, n):
    """Convolutions along time: kernels of one row or column, EXPAND_DIMS, SQUEEZE."""
    w.input((1, 25 + n, 10), "x")
    if n < 2:
        x = w.expand("x", 1 + n)
        kernel, stride = ((1, 9), (1, 2)) if n == 0 else ((9, 1), (2, 1))
    else:
        x = w.expand("x", 3)
        kernel, stride = (10, 4), (2, 2)
    x = w.convolution(x, 12, kernel, stride)
    y = w.convolution(x, 12, kernel, 1, activation=NONE)
    x = w.sum(y, x, activation=RELU)
    x = w.depthwise(x, (1, 5) if n == 0 else (5, 1), 1, padding=n % 2, dilation=1)
    x = w.pool(x, "AVERAGE_POOL_2D", tuple(w.shape(x)[1:3]), 1)
    x = w.convolution(x, 6, 1, activation=NONE)
    return w.softmax(w.reshape(x, (1, 6)) if n == 1 else w.squeeze(x, (1, 2)))


def _stream(w, n):
    """Layers along time that keep the last values in variables, as wake words have them."""
    w.input((1, 2 + n, 1, 8), "x")
    x = "x"
    for number in range(2):
        x = w.ring(x, 2 + number)
        x = w.depthwise(x, (3 + number, 1), 1, padding=VALID)
        x = w.convolution(x, 8, 1)
    return w.requantized(w.function(w.dense(x, 2), "LOGISTIC"), 1 / 256, 0, "uint8")


def _rare(w, n):
    """Functions that are rare."""
    x = w.convolution("x", 8, stride=2, activation=NONE)
    x = w.convolution(w.function(x, ("ELU", "ABS", "GELU")[n % 2]), 8, activation=NONE)
    return w.convolution(w.function(x, ("RELU6", "RELU")[n % 2]), 4, 1, activation=n + 1)


def _several(w, n):
    """Several inputs, and outputs of several sizes."""
    other = w.input((1, 1, 1, 8))
    x = w.convolution("x", 8, stride=2)
    y = w.sum(x, w.dense(other, 8) if n == 1 else other)
    z = w.mean(y, (1, 2))
    z = w.joined(z, other)
    return [y, w.dense(z, 4 + n), z][: 2 + n % 2]


def _groups(w, n):
    """Groups, depth multipliers, dilation, strides that differ, odd sizes."""
    x = w.convolution("x", 16, (3, 5), (2, 1))
    x = w.convolution(x, 16, 3, groups=(2, 4, 8)[n])
    x = w.depthwise(x, 3, 1, multiplier=2)
    x = w.convolution(x, 8, 3, dilation=(1, 2, 3)[n], padding=n % 2)
    return w.depthwise(w.convolution("x", 3, (2, 3), (3, 2)), 3, 1, multiplier=4) if n == 2 else x


def _shuffled(w, n):
    """Channels exchanged between groups, by RESHAPE and TRANSPOSE of 5 axes."""
    x = w.convolution("x", 16, 1, stride=2)
    _, height, width, channels = w.shape(x)
    groups = (2, 4, 2)[n]
    y = w.reshape(x, (1, height, width, groups, channels // groups))
    y = w.transpose(y, (0, 1, 2, 4, 3))
    y = w.reshape(y, (1, height, width, channels))
    if n == 2:
        a, b = w.split(y, 2)
        y = w.concatenation(a, w.depthwise(b))
    return w.convolution(y, 8, 1)


def _before(w, n):
    """Scales and offsets of channels before layers, as ResNetV2 has them."""
    x = w.convolution("x", 8, stride=2, activation=NONE)
    for _ in range(2):
        y = w.product(x, w.values(8), 0.03)
        y = w.sum(y, w.values(*((8,), (1, 1, 1, 8), (1, 1, 1, 8))[n]), activation=RELU)
        x = w.sum(x, w.convolution(y, 8, activation=NONE))
    return w.dense(w.mean(x, (1, 2)), 5)


def _deviation(w, variance):
    """``1 / sqrt(variance + epsilon)``: converters see no value below 0."""
    shape = w.shape(variance)
    total = w.add(
        "ADD", [variance, w.constant(np.int8([-127]), 0.0001, -128)], w.output(shape, 0.03, -128),
        ("AddOptions", {}),
    )
    return w.add("RSQRT", [total], w.output(shape, 0.05, -128))


def _norm(w, n):
    """Normalization over channels: means, squares of differences, RSQRT."""
    x = w.convolution("x", 8, stride=4, activation=NONE)
    axes = ((3,), (3,), (1, 2))[n]
    mean = w.mean(x, axes)
    squares = w.binary("SQUARED_DIFFERENCE", x, mean, None, 0.02)
    y = w.product(w.sum(x, mean, operator="SUB"), _deviation(w, w.mean(squares, axes)))
    return w.sum(w.product(y, w.values(8)), w.values(8))


def _torch(w, n):
    """A network of channels first, converted: TRANSPOSE at both ends, PAD before windows."""
    _, height, width, channels = w.shape("x")
    w.input((1, channels, height, width), "x")
    x = w.transpose("x", (0, 2, 3, 1))
    x = w.pad(x, (0, 0), (1, 1), (1, 1), (0, 0))
    w.tensors[x].zero = w.tensors["x"].zero
    x = w.convolution(x, 8, 3, 2, VALID)
    x = w.pad(x, (0, 0), (1, 1), (1, 1), (0, 0))
    x = w.depthwise(x, 3, 1, padding=VALID)
    if n == 2:
        x = w.pad(x, (0, 0), (1, 1), (1, 1), (0, 0), operator="PADV2",
                  options=("PadV2Options", {}))
        value = w.constant(np.int8([-128]), w.tensors[x].scale, w.tensors[x].zero)
        last = w.operators[-1]
        w.operators[-1] = last._replace(inputs=[*last.inputs, value])
        x = w.pool(x, "MAX_POOL_2D", 3, 2, VALID)
    x = w.transpose(x, (0, 3, 1, 2))
    if n:
        return w.dense(x, 6)
    return x


def _unrolled(w, n):
    """A recurrent layer, one step after the other: gates of FULLY_CONNECTED."""
    w.input((1, 4 + n, 6), "x")
    state, cell = None, None
    for step in w.unpack("x", 1):
        gates = w.dense(step, 32)
        if state is not None:
            gates = w.sum(gates, w.dense(state, 32))
        i, f, o, g = (w.function(part, "TANH" if k == 3 else "LOGISTIC")
                      for k, part in enumerate(w.split(gates, 4, 1)))
        new = w.product(i, g, 0.01)
        cell = new if cell is None else w.sum(w.product(f, cell, 0.02), new, 0.03)
        state = w.product(o, w.function(cell, "TANH"), 0.008)
    return w.dense(state, 3)


def _steps(w, n):
    """Parts in time: UNPACK, PACK, GATHER, REVERSE, TILE."""
    w.input((1, 6, 8), "x")
    parts = w.unpack("x", 1)
    parts = [w.dense(part, 8, RELU) for part in parts[:: 1 + n]]
    scale, zero = w.tensors[parts[0]].scale, w.tensors[parts[0]].zero
    for part in parts:
        w.tensors[part].scale, w.tensors[part].zero = scale, zero
    x = w.pack(*parts, axis=1)
    x = w.like(x, "GATHER", (1, 2, 8), ("GatherOptions", {"axis": 1}),
               (w.constant(np.int32([1, 0])),))
    return w.dense(x, 4)


def _unit(w, n):
    """A vector of length 1 at the end."""
    x = w.dense(w.convolution("x", 8, stride=4), 16)
    y = w.output(w.shape(x), 1 / 128, 0)
    return w.add("L2_NORMALIZATION", [x], y, ("L2NormOptions", {}))


def _attention(w, n):
    """Products of two maps."""
    w.input((1, 8, 16), "x")
    q, k, v = (w.dense("x", 16, keep=True) for _ in range(3))
    options = ("BatchMatMulOptions", {"adjY": True})
    y = w.add("BATCH_MATMUL", [q, k], w.output((1, 8, 8), 0.2), options)
    y = w.softmax(y)
    y = w.add("BATCH_MATMUL", [y, v], w.output((1, 8, 16), 0.05), ("BatchMatMulOptions", {}))
    return w.sum(y, "x")


def _layer_norm(w, x):
    """LayerNorm over the channels, as converters write it."""
    *lead, channels = w.shape(x)
    mean = w.mean(x, (len(lead),), keep=True)
    square = w.binary("SQUARED_DIFFERENCE", x, mean, scale=0.06)
    factor = _deviation(w, w.mean(square, (len(lead),), keep=True))
    gains = w.product(factor, w.values(channels), scale=0.03)
    moved = w.sum(w.product(x, gains), w.values(channels))
    return w.sum(moved, w.product(mean, gains), operator="SUB")


def _attended(w, x, tokens, heads, size):
    """Attention with several heads: each token takes what the others have."""
    def parts():
        part = w.reshape(w.dense(x, heads * size, keep=True), (1, tokens, heads, size))
        return w.transpose(part, (0, 2, 1, 3))

    q, k, v = (parts() for _ in range(3))
    y = w.add(
        "BATCH_MATMUL", [q, k], w.output((1, heads, tokens, tokens), 0.2),
        ("BatchMatMulOptions", {"adjY": True}),
    )
    y = w.add(
        "BATCH_MATMUL", [w.softmax(y), v], w.output((1, heads, tokens, size), 0.03),
        ("BatchMatMulOptions", {}),
    )
    y = w.reshape(w.transpose(y, (0, 2, 1, 3)), (1, tokens, heads * size))
    return w.dense(y, heads * size, keep=True)


def _block(w, x, tokens, heads, size):
    """A block of a transformer, with LayerNorm before both of its parts."""
    x = w.sum(_attended(w, _layer_norm(w, x), tokens, heads, size), x)
    y = w.function(w.dense(_layer_norm(w, x), 2 * heads * size, keep=True), "HARD_SWISH")
    return w.sum(w.dense(y, heads * size, keep=True), x)


def _keywords(w, n):
    """A transformer whose tokens are steps in time: a spectrogram, and a class."""
    tokens, heads, size = 10 + 4 * n, 1 + n, 8
    w.input((1, tokens, 20), "x")
    x = w.sum(w.dense("x", heads * size, keep=True), w.values(1, tokens, heads * size))
    for _ in range(1 + n % 2):
        x = _block(w, x, tokens, heads, size)
    return w.softmax(w.dense(w.mean(_layer_norm(w, x), (1,), keep=False), 12))


def _vision(w, n):
    """A transformer whose tokens are blocks of pixels."""
    side, heads, size = 3 + n, 2, 8
    w.input((1, 4 * side, 4 * side, 3), "x")
    tokens = side * side
    x = w.convolution("x", heads * size, 4, stride=4, padding=VALID, activation=NONE)
    x = w.reshape(x, (1, tokens, heads * size))
    x = _block(w, w.sum(x, w.values(1, tokens, heads * size)), tokens, heads, size)
    return w.dense(w.mean(_layer_norm(w, x), (1,), keep=False), 10)


def _recurrent(w, n):
    """One LSTM, or two, over steps in time: the last step is classified."""
    steps, units = 6 + 5 * n, 10 + 7 * n
    w.input((1, steps, 13), "x")
    x = w.lstm(w.dense("x", 16, RELU, keep=True) if n else "x", units, clip=0.1 if n == 1 else 10.0)
    if n == 2:
        x = w.lstm(x, 8, cell=2**-15)
    last = w.slice(x, (0, steps - 1, 0), (1, steps, w.shape(x)[2]), (1, 1, 1))
    return w.softmax(w.dense(last, 5))


def _filters(w, n):
    """A streaming wake word: SVDF with states of 16 bits, and of 8 bits among them."""
    w.input((1, 20 + 10 * n), "x")
    x = w.filter("x", 32 + 16 * n, 8, 1 + n % 2, "int16")
    x = w.filter(w.dense(x, 24, RELU), 32, 10, 1, "int8" if n == 2 else "int16")
    return w.softmax(w.dense(w.filter(x, 20, 6, 2, "int16"), 4))


def _wide(w, n):
    """Activations of int16: a residual block, a pool, padding, a mean."""
    x = w.convolution("x", 8 + 5 * n, 3, 2)
    y = w.convolution(w.depthwise(x), w.shape(x)[3], 1, activation=NONE)
    x = w.sum(x, y, activation=RELU if n else NONE)
    x = w.pool(x, "AVERAGE_POOL_2D" if n == 1 else "MAX_POOL_2D", 2, 2)
    x = w.pad(w.joined(x, w.convolution(x, 5, 1)), (0, 0), (1, 0), (0, 2), (0, 0))
    return w.dense(w.mean(w.convolution(x, 12, 3, 1, VALID), [1, 2]), 6)


def _jobs(w, n):
    """A layer of each kind of job, small: for the simulation of gates."""
    w.input((1, 4 + n, 4, 16), "x")
    x = w.convolution("x", 8)
    y = w.pool(w.depthwise(x), "MAX_POOL_2D")
    y = w.product(y, w.function(w.convolution(y, 8, 1), "LOGISTIC"))
    y = w.sum(w.convolution(y, 8, 1), y)
    y = w.pool(y, "AVERAGE_POOL_2D", w.shape(y)[1:3], 1)
    return w.softmax(w.dense(y, 5))


KINDS: dict[str, Callable] = {
    "max pools": _lenet, "classifier": _classifier, "padded channels": _padded_channels,
    "padded maps": _padded, "nearest, joined": _unet, "bilinear": _bilinear,
    "functions": _functions, "squeeze, excite": _squeeze, "gates": _gates, "PRELU": _prelu,
    "split, joined": _shuffle, "slices": _focus, "transposed": _turned, "averages": _averages,
    "arithmetic": _arithmetic, "uint8": _old, "long K": _long, "hard limits": _mobile,
    "ends": _ends, "computed shapes": _dynamic, "sequence": _sequence, "audio": _audio,
    "wake words": _stream, "rare functions": _rare, "several inputs": _several, "groups": _groups,
    "shuffled": _shuffled, "scaled before": _before, "normalized": _norm, "channels first": _torch,
    "unrolled": _unrolled, "steps in time": _steps, "length 1": _unit, "attention": _attention,
    "each job": _jobs,
    **DETECTORS, "keyword transformer": _keywords, "vision transformer": _vision,
    "recurrent": _recurrent, "filters": _filters, "int16": _wide,
}
