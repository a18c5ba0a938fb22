"""Networks of the kinds that people have: which are one list on a network core, with which bytes.

    python -m tools.whole_networks [KIND ...]

Each kind has networks of random sizes. Memory does not count: the core has the largest one. All
bytes of the outputs are compared with TensorFlow Lite Micro. It has no weights of uint8: networks
with them are compared with a product core, whose host computes all but the products.
"""

import dataclasses
import sys
from collections.abc import Callable

import numpy as np

from tools.tflite_writer import OperatorSpec, TensorSpec, tflite_file
from weft.boards.catalog import BOARDS
from weft.models.loading import load
from weft.models.target import NetworkTarget, target_of
from weft.network_core.config import NetworkCoreConfig

__all__ = ["COUNT", "KINDS", "main", "network"]

COUNT = 3  # networks of each kind
BOARD = "ulx3s-85f"
SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3


class Writer:
    """Appends operators to a file; each method takes and returns names of tensors.

    Parameters
    ----------
    seed : int
    shape : tuple of int
        Of the input ``x``.
    dtype : str
        Of all maps.
    """

    def __init__(self, seed: int, shape: tuple[int, ...], dtype: str = "int8"):
        self.rng, self.dtype = np.random.default_rng(seed), dtype
        self.half = 128 if dtype == "uint8" else 0
        self.tensors = {"x": TensorSpec(shape, dtype, scale=0.05, zero=self._zero())}
        self.operators: list[OperatorSpec] = []

    def _zero(self):
        return int(self.rng.integers(-20, 20)) + self.half

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.tensors[name].shape

    def output(self, shape, scale=0.05, zero=None) -> str:
        """A tensor of the network."""
        zero = self._zero() if zero is None else zero
        return self._named(TensorSpec(tuple(map(int, shape)), self.dtype, scale=scale, zero=zero))

    def constant(self, data, scale=None, zero=0, axis=0) -> str:
        """A constant."""
        return self._named(TensorSpec(data=data, scale=scale, zero=zero, axis=axis))

    def _named(self, tensor):
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name

    def add(self, name, inputs, outputs, options=None, version=2):
        """An operator; return its first output."""
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.operators.append(OperatorSpec(name, inputs, outputs, options, version))
        return outputs[0]

    def like(self, name, operator, shape=None, options=None, others=(), **fields):
        """An operator whose output has the scale of its input."""
        given = self.tensors[name]
        y = self.output(
            given.shape if shape is None else shape, given.scale, int(np.max(given.zero))
        )
        return self.add(operator, [name, *others], y, options, **fields)

    def weights(self, shape, axis):
        """Weights; with 9 bits if the maps are uint8."""
        if self.dtype == "uint8":
            data, zero = self.rng.integers(0, 256, shape).astype(np.uint8), 120
            return self.constant(data, 0.01, zero)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = self.rng.uniform(0.005, 0.015, shape[axis]).astype(np.float32)
        return self.constant(data, scales, np.zeros(shape[axis], int), axis)

    def _bias(self, x, weights):
        scale = self.tensors[x].scale * np.asarray(self.tensors[weights].scale)
        columns = self.tensors[weights].shape[self.tensors[weights].axis]
        if self.dtype == "uint8":
            columns = self._columns
        return self.constant(self.rng.integers(-3000, 3000, columns).astype(np.int32), scale)

    def convolution(self, x, columns, kernel=3, stride=1, padding=SAME, activation=RELU):
        """CONV_2D."""
        _, height, width, channels = self.shape(x)
        self._columns = columns
        weights = self.weights((columns, kernel, kernel, channels), 0)
        y = self.output(
            (1, *(self._length(n, kernel, stride, padding) for n in (height, width)), columns),
            0.05 * 0.01 * 60 * np.sqrt(kernel * kernel * channels),
        )
        options = dict(
            padding=padding, strideH=stride, strideW=stride, dilationHFactor=1, dilationWFactor=1,
            fusedActivationFunction=activation,
        )
        return self.add(
            "CONV_2D", [x, weights, self._bias(x, weights)], y, ("Conv2DOptions", options), 3
        )

    def depthwise(self, x, kernel=3, stride=1, activation=RELU):
        """DEPTHWISE_CONV_2D."""
        _, height, width, channels = self.shape(x)
        self._columns = channels
        weights = self.weights((1, kernel, kernel, channels), 3)
        y = self.output(
            (1, *(self._length(n, kernel, stride, SAME) for n in (height, width)), channels),
            0.05 * 0.01 * 60 * kernel,
        )
        options = dict(
            padding=SAME, strideH=stride, strideW=stride, depthMultiplier=1, dilationHFactor=1,
            dilationWFactor=1, fusedActivationFunction=activation,
        )
        return self.add(
            "DEPTHWISE_CONV_2D", [x, weights, self._bias(x, weights)], y,
            ("DepthwiseConv2DOptions", options), 3,
        )

    def dense(self, x, columns):
        """FULLY_CONNECTED of all values of a map."""
        k = int(np.prod(self.shape(x)))
        x = self.reshape(x, (1, k))
        data = self.rng.integers(-127, 128, (columns, k)).astype(np.int8)
        weights = self.constant(data, 0.01)
        if self.dtype == "uint8":
            weights = self.constant(data.view(np.uint8), 0.01, 120)
        bias = self.constant(
            self.rng.integers(-3000, 3000, columns).astype(np.int32), self.tensors[x].scale * 0.01
        )
        y = self.output((1, columns), 0.05 * 0.01 * 60 * np.sqrt(k))
        return self.add("FULLY_CONNECTED", [x, weights, bias], y, ("FullyConnectedOptions", {}), 4)

    @staticmethod
    def _length(size, kernel, stride, padding):
        return -(-size // stride) if padding == SAME else (size - kernel) // stride + 1

    def reshape(self, x, shape):
        """RESHAPE."""
        return self.like(x, "RESHAPE", shape, ("ReshapeOptions", {"newShape": list(shape)}))

    def pool(self, x, operator, size=2, stride=2, padding=VALID):
        """A pool."""
        _, height, width, channels = self.shape(x)
        shape = (*(self._length(n, size, stride, padding) for n in (height, width)), channels)
        options = dict(
            padding=padding, strideH=stride, strideW=stride, filterHeight=size, filterWidth=size
        )
        return self.like(x, operator, (1, *shape), ("Pool2DOptions", options))

    def pad(self, x, *pairs, operator="PAD", options=("PadOptions", {})):
        """PAD; a pair for each axis."""
        shape = [n + sum(pair) for n, pair in zip(self.shape(x), pairs, strict=True)]
        return self.like(
            x, operator, shape, options, (self.constant(np.int32(pairs)),)
        )

    def resize(self, x, operator, factor=2, **options):
        """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR."""
        _, height, width, channels = self.shape(x)
        size = np.int32([height * factor, width * factor])
        kind = "ResizeBilinearOptions" if "BILINEAR" in operator else "ResizeNearestNeighborOptions"
        return self.like(
            x, operator, (1, *size, channels), (kind, options), (self.constant(size),)
        )

    def concatenation(self, *inputs, axis=3):
        """CONCATENATION; all inputs get the scale of the first one."""
        first = self.tensors[inputs[0]]
        for name in inputs[1:]:
            self.tensors[name].scale, self.tensors[name].zero = first.scale, first.zero
        shape = list(first.shape)
        shape[axis] = sum(self.shape(name)[axis] for name in inputs)
        y = self.output(shape, first.scale, int(np.max(first.zero)))
        return self.add("CONCATENATION", list(inputs), y, ("ConcatenationOptions", {"axis": axis}))

    def function(self, x, operator, options=None, scale=None, zero=None):
        """A function of each value."""
        fixed = {"LOGISTIC": (1 / 256, self.half - 128), "TANH": (1 / 128, self.half)}
        scale, zero = fixed.get(operator, (scale or 0.04, zero))
        return self.add(operator, [x], self.output(self.shape(x), scale, zero), options)

    def binary(self, operator, a, b, options=None, scale=0.08, shape=None):
        """An operator of two maps."""
        if operator in ("MAXIMUM", "MINIMUM"):
            first, second = self.tensors[a], self.tensors[b]
            second.scale, second.zero = first.scale, first.zero
            return self.like(a, operator, shape, options, (b,))
        return self.add(operator, [a, b], self.output(shape or self.shape(a), scale), options)

    def mean(self, x, axes, operator="MEAN", keep=True):
        """MEAN, SUM, REDUCE_MAX."""
        shape = [1 if n in axes else size for n, size in enumerate(self.shape(x))]
        if not keep:
            shape = [n for axis, n in enumerate(shape) if axis not in axes]
        others = self.constant(np.int32(axes)),
        options = "ReducerOptions", {"keepDims": keep}
        if operator == "REDUCE_MAX":
            return self.like(x, operator, shape, options, others)
        scale = 0.2 if operator == "SUM" else 0.03
        return self.add(operator, [x, *others], self.output(shape, scale), options)

    def slice(self, x, begin, end, strides):
        """STRIDED_SLICE."""
        shape = [-(-(b - a) // s) for a, b, s in zip(begin, end, strides, strict=True)]
        others = tuple(self.constant(np.int32(v)) for v in (begin, end, strides))
        return self.like(x, "STRIDED_SLICE", shape, ("StridedSliceOptions", {}), others)

    def transpose(self, x, axes):
        """TRANSPOSE."""
        shape = [self.shape(x)[axis] for axis in axes]
        return self.like(
            x, "TRANSPOSE", shape, ("TransposeOptions", {}), (self.constant(np.int32(axes)),)
        )

    def split(self, x, count):
        """SPLIT of channels."""
        given = self.tensors[x]
        shape = (*given.shape[:3], given.shape[3] // count)
        outputs = [
            self.output(shape, given.scale, int(np.max(given.zero))) for _ in range(count)
        ]
        axis = self.constant(np.int32(3))
        self.add("SPLIT", [axis, x], outputs, ("SplitOptions", {"numSplits": count}))
        return outputs

    def softmax(self, x):
        """SOFTMAX."""
        y = self.output(self.shape(x), 1 / 256, self.half - 128)
        return self.add("SOFTMAX", [x], y, ("SoftmaxOptions", {"beta": 1.0}))


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


def _heads(w, n):
    x = w.convolution("x", 8, stride=2)
    y = w.pool(x, "MAX_POOL_2D", 3, 1, SAME)
    heads = []
    for part in (x, w.convolution(y, 8, stride=2)):
        head = w.convolution(part, 6, 1, activation=NONE)
        _, height, width, _ = w.shape(head)
        heads.append(w.reshape(head, (1, height * width * (1 + n % 2), 6 // (1 + n % 2))))
    return w.function(w.concatenation(*heads, axis=1), "LOGISTIC")


KINDS: dict[str, Callable] = {
    "max pools": _lenet, "classifier": _classifier, "padded channels": _padded_channels,
    "padded maps": _padded, "nearest, joined": _unet, "bilinear": _bilinear,
    "functions": _functions, "squeeze, excite": _squeeze, "gates": _gates, "PRELU": _prelu,
    "split, joined": _shuffle, "slices": _focus, "transposed": _turned, "averages": _averages,
    "arithmetic": _arithmetic, "uint8": _old, "long K": _long, "heads": _heads,
}


def network(kind: str, number: int) -> bytes:
    """Return the file of a network of a kind, one of `COUNT`."""
    seed = 100 * list(KINDS).index(kind) + number
    side = 12 + 4 * number
    writer = Writer(seed, (1, side, side + 2, 3), "uint8" if kind == "uint8" else "int8")
    y = KINDS[kind](writer, number)
    return tflite_file(writer.tensors, writer.operators, ["x"], [y])


def core() -> NetworkCoreConfig:
    """Return the core of the board with the largest memory that a core can have."""
    config = BOARDS[BOARD].built_for("networks").config
    return dataclasses.replace(config, words=config.most_words)


def reference(data: bytes, dtype: np.dtype) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from the input of a file to its output, as `rows` compares it."""
    if dtype == np.uint8:
        return load(data, "net").compile(target_of(BOARD)).open("golden")
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 22)

    def run(x):
        interpreter.set_input(x, 0)
        interpreter.invoke()
        return interpreter.get_output(0)

    return run


def equal(data: bytes, program, rng) -> bool:
    """Whether the golden model returns the bytes of the `reference` for three inputs."""
    tensor = program.tensors[program.inputs[0]]
    run, limits = reference(data, tensor.dtype), np.iinfo(tensor.dtype)
    with program.open("golden") as session:
        for _ in range(3):
            x = rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
            expected, found = run(x), session(x)
            if found.dtype != expected.dtype or not np.array_equal(found, expected):
                return False
    return True


def rows(kinds=tuple(KINDS)):
    """Yield for each network its kind, number, lists, operators of the host, cycles, equality."""
    target, rng = NetworkTarget(BOARD, core()), np.random.default_rng(1)
    for kind in kinds:
        for number in range(COUNT):
            data = network(kind, number)
            program = load(data, f"{kind} {number}").compile(target)
            host = ", ".join(dict.fromkeys(step.operators[0] for step in program.host))
            yield (
                kind, number, len(program.segments), host or "-", program.cycles,
                "yes" if equal(data, program, rng) else "NO",
            )


def main(arguments: list[str]) -> int:
    """Print the networks of the kinds, by default of all; the exit code 1 if bytes differ."""
    found = []
    for kind, number, lists, host, cycles, same in rows(arguments or tuple(KINDS)):
        print(
            f"{kind:<18}{number}  lists {lists}  host: {host:<30} {cycles:>9,} {same}", flush=True
        )
        found.append((lists == 1 and host == "-", same == "yes"))
    whole = sum(is_whole for is_whole, _ in found)
    print(f"{whole} of {len(found)} networks are one list without an operator of the host.")
    return int(not all(same for _, same in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
