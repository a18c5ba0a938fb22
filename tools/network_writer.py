"""Writes networks of TensorFlow Lite, operator after operator."""

import numpy as np

from tools.tflite_writer import OperatorSpec, TensorSpec, tflite_file

__all__ = ["NONE", "RELU", "RELU6", "SAME", "VALID", "Writer"]

SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3
_TANH = 4


def _pair(value):
    return value if isinstance(value, tuple) else (value, value)


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
        self.tensors: dict[str, TensorSpec] = {}
        self.inputs: list[str] = []
        self.input(shape, name="x")
        self.operators: list[OperatorSpec] = []

    def file(self, *outputs: str) -> bytes:
        """Return the file with these outputs."""
        return tflite_file(self.tensors, self.operators, self.inputs, list(outputs))

    def input(self, shape: tuple[int, ...], name: str | None = None) -> str:
        """An input; ``x`` exists, and gets another shape."""
        name = name or f"x{len(self.inputs)}"
        if name not in self.tensors:
            self.inputs.append(name)
        self.tensors[name] = TensorSpec(shape, self.dtype, scale=0.05, zero=self._zero())
        return name

    def _zero(self):
        return 0 if self.dtype == "int16" else int(self.rng.integers(-20, 20)) + self.half

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.tensors[name].shape

    def output(self, shape, scale=0.05, zero=None, dtype=None) -> str:
        """A tensor of the network."""
        zero = self._zero() if zero is None else zero
        return self._named(
            TensorSpec(tuple(map(int, shape)), dtype or self.dtype, scale=scale, zero=zero)
        )

    def constant(self, data, scale=None, zero=0, axis=0) -> str:
        """A constant."""
        return self._named(TensorSpec(data=data, scale=scale, zero=zero, axis=axis))

    def integers(self, shape) -> str:
        """A tensor of int32."""
        return self._named(TensorSpec(shape, "int32"))

    def values(self, *shape, scale=0.03) -> str:
        """A constant at random, of the type of the maps."""
        limits = np.iinfo(self.dtype)
        data = self.rng.integers(limits.min, limits.max + 1, shape).astype(self.dtype)
        return self.constant(data, scale, self._zero())

    def _named(self, tensor):
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name

    def add(self, name, inputs, outputs, options=None, version=2, others=()):
        """An operator; return its first output. ``others`` are intermediate tensors."""
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.operators.append(OperatorSpec(name, inputs, outputs, options, version, others))
        return outputs[0] if outputs else None

    def like(self, name, operator, shape=None, options=None, others=(), **fields):
        """An operator whose output has the scale of its input."""
        y = self._like(name, self.shape(name) if shape is None else shape)
        return self.add(operator, [name, *others], y, options, **fields)

    def _like(self, name, shape):
        given = self.tensors[name]
        return self.output(shape, given.scale, int(np.max(given.zero)), given.dtype)

    def weights(self, shape, axis):
        """Weights; with 9 bits if the maps are uint8."""
        if self.dtype == "uint8":
            data, zero = self.rng.integers(0, 256, shape).astype(np.uint8), 120
            return self.constant(data, 0.01, zero)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = self.rng.uniform(0.005, 0.015, shape[axis]).astype(np.float32)
        return self.constant(data, scales, np.zeros(shape[axis], int), axis)

    def _bias(self, x, weights, columns):
        scale = self.tensors[x].scale * np.asarray(self.tensors[weights].scale)
        dtype = np.int64 if self.dtype == "int16" else np.int32
        return self.constant(self.rng.integers(-3000, 3000, columns).astype(dtype), scale)

    def convolution(
        self, x, columns, kernel=3, stride=1, padding=SAME, activation=RELU, groups=1, dilation=1
    ):
        """CONV_2D."""
        *_, channels = self.shape(x)
        kernel, stride, dilation = _pair(kernel), _pair(stride), _pair(dilation)
        weights = self.weights((columns, *kernel, channels // groups), 0)
        y = self.output(
            self._map(x, kernel, stride, padding, columns, dilation),
            0.05 * 0.01 * 60 * np.sqrt(kernel[0] * kernel[1] * channels // groups),
        )
        options = dict(
            padding=padding, strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0],
            dilationWFactor=dilation[1], fusedActivationFunction=activation,
        )
        inputs = [x, weights, self._bias(x, weights, columns)]
        return self.add("CONV_2D", inputs, y, ("Conv2DOptions", options), 3)

    def depthwise(
        self, x, kernel=3, stride=1, activation=RELU, padding=SAME, multiplier=1, dilation=1
    ):
        """DEPTHWISE_CONV_2D."""
        columns = self.shape(x)[3] * multiplier
        kernel, stride, dilation = _pair(kernel), _pair(stride), _pair(dilation)
        weights = self.weights((1, *kernel, columns), 3)
        y = self.output(
            self._map(x, kernel, stride, padding, columns, dilation),
            0.05 * 0.01 * 60 * np.sqrt(kernel[0] * kernel[1]),
        )
        options = dict(
            padding=padding, strideH=stride[0], strideW=stride[1], depthMultiplier=multiplier,
            dilationHFactor=dilation[0], dilationWFactor=dilation[1],
            fusedActivationFunction=activation,
        )
        inputs = [x, weights, self._bias(x, weights, columns)]
        return self.add("DEPTHWISE_CONV_2D", inputs, y, ("DepthwiseConv2DOptions", options), 3)

    def transposed(self, x, columns, kernel=2, stride=2, padding=SAME, bias=True):
        """TRANSPOSE_CONV."""
        _, height, width, channels = self.shape(x)
        kernel, stride = _pair(kernel), _pair(stride)
        weights = self.weights((columns, *kernel, channels), 0)
        size = [
            n * s if padding == SAME else (n - 1) * s + k
            for n, k, s in zip((height, width), kernel, stride, strict=True)
        ]
        y = self.output((1, *size, columns), 0.05 * 0.01 * 60 * np.sqrt(channels))
        inputs = [self.constant(np.int32(self.shape(y))), weights, x]
        inputs += [self._bias(x, weights, columns)] if bias else []
        options = dict(padding=padding, strideH=stride[0], strideW=stride[1])
        return self.add("TRANSPOSE_CONV", inputs, y, ("TransposeConvOptions", options), 3)

    def dense(self, x, columns, activation=NONE, bias=True, keep=False):
        """FULLY_CONNECTED of all values of a map; ``keep``: of each pixel."""
        if not keep:
            x = self.reshape(x, (1, int(np.prod(self.shape(x)))))
        k = self.shape(x)[-1]
        data = self.rng.integers(-127, 128, (columns, k)).astype(np.int8)
        weights = self.constant(data, 0.01)
        if self.dtype == "uint8":
            weights = self.constant(data.view(np.uint8), 0.01, 120)
        inputs = [x, weights, self._bias(x, weights, columns) if bias else None]
        y = self.output((*self.shape(x)[:-1], columns), 0.05 * 0.01 * 60 * np.sqrt(k))
        options = {"keepNumDims": keep, "fusedActivationFunction": activation}
        return self.add("FULLY_CONNECTED", inputs, y, ("FullyConnectedOptions", options), 4)

    def lstm(self, x, units, major=False, clip=10.0, cell=2**-11):
        """UNIDIRECTIONAL_SEQUENCE_LSTM of a sequence: [1, steps, K], or [steps, 1, K]."""
        k, scale = self.shape(x)[-1], 0.007
        weights = [
            self.constant(self.rng.integers(-127, 128, (units, size)).astype(np.int8), 0.01)
            for size in (*[k] * 4, *[units] * 4)
        ]
        biases = [
            self.constant(self.rng.integers(-3000, 3000, units).astype(np.int32)) for _ in range(4)
        ]
        zero = self._zero()
        states = [
            self._named(TensorSpec((1, units), kind, scale=size, zero=place, variable=True))
            for kind, size, place in ((self.dtype, scale, zero), ("int16", cell, 0))
        ]
        inputs = [x, *weights, *[None] * 3, *biases, None, None, *states, *[None] * 4]
        options = {"fusedActivationFunction": _TANH, "cellClip": clip, "timeMajor": major}
        y = self.output((*self.shape(x)[:-1], units), scale, zero)
        # Of parts that this layer does not have, and of its hidden values.
        others = [
            *[self._named(TensorSpec((0,), scale=2**-12)) for _ in range(4)],
            self._named(TensorSpec((0,), scale=scale, zero=zero)),
        ]
        return self.add("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, (
            "UnidirectionalSequenceLSTMOptions", options,
        ), 4, others)

    def filter(self, x, units, memory, rank=1, kind="int8"):
        """SVDF; ``kind`` is the type of its state and of its weights in time."""
        size, limit = self.shape(x)[-1], np.iinfo(kind).max
        count = units * rank
        features = self.constant(self.rng.integers(-127, 128, (count, size)).astype("i1"), 0.01)
        time = self.rng.integers(-limit, limit + 1, (count, memory)).astype(kind)
        time = self.constant(time, 1 / limit)
        state = self._named(TensorSpec((1, count * memory), kind, scale=4 / limit, variable=True))
        bias = self.constant(self.rng.integers(-900, 900, units).astype("i4"), 4 / limit**2)
        y = self.output((1, units), 0.02 * (memory * rank) ** 0.5)
        options = {"rank": rank, "fusedActivationFunction": RELU}
        return self.add("SVDF", [x, features, time, bias, state], [y], ("SVDFOptions", options))

    def _map(self, x, kernel, stride, padding, channels, dilation=(1, 1)):
        """The shape of the output of a window."""
        batch, *sizes, _ = self.shape(x)
        size = [
            -(-n // s) if padding == SAME else (n - (k - 1) * d - 1) // s + 1
            for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
        ]
        return batch, *size, channels

    def reshape(self, x, shape):
        """RESHAPE."""
        return self.like(x, "RESHAPE", shape, ("ReshapeOptions", {"newShape": list(shape)}))

    def squeeze(self, x, axes):
        """SQUEEZE."""
        shape = [size for axis, size in enumerate(self.shape(x)) if axis not in axes]
        return self.like(x, "SQUEEZE", shape, ("SqueezeOptions", {"squeezeDims": list(axes)}))

    def ring(self, x, count):
        """The last ``count`` rows before those of x, and these: a variable keeps them."""
        given = self.shape(x)
        shape = (1, count, *given[2:])
        handle = self._named(TensorSpec((1,), "resource"))
        options = ("VarHandleOptions", {"sharedName": handle})
        self.add("VAR_HANDLE", [], handle, options)
        before, options = self._like(x, shape), ("ReadVariableOptions", {})
        self.add("READ_VARIABLE", [handle], before, options)
        whole = self.concatenation(before, x, axis=1)
        rows = self.shape(whole)[1]
        kept = self.slice(whole, (0, rows - count, 0, 0), (1, rows, *given[2:]), (1, 1, 1, 1))
        self.add("ASSIGN_VARIABLE", [handle, kept], [], ("AssignVariableOptions", {}))
        return whole

    def expand(self, x, axis):
        """EXPAND_DIMS."""
        shape = list(self.shape(x))
        shape.insert(axis, 1)
        return self.like(x, "EXPAND_DIMS", shape, None, (self.constant(np.int32(axis)),))

    def pool(self, x, operator, size=2, stride=2, padding=VALID):
        """A pool."""
        size, stride = _pair(size), _pair(stride)
        options = dict(
            padding=padding, strideH=stride[0], strideW=stride[1], filterHeight=size[0],
            filterWidth=size[1],
        )
        shape = self._map(x, size, stride, padding, self.shape(x)[3])
        return self.like(x, operator, shape, ("Pool2DOptions", options))

    def pad(self, x, *pairs, operator="PAD", options=("PadOptions", {})):
        """PAD; a pair for each axis."""
        shape = [n + sum(pair) for n, pair in zip(self.shape(x), pairs, strict=True)]
        return self.like(
            x, operator, shape, options, (self.constant(np.int32(pairs)),)
        )

    def resize(self, x, operator, factor=2, size=None, **options):
        """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR."""
        _, height, width, channels = self.shape(x)
        size = np.int32([height * factor, width * factor] if size is None else size)
        kind = "ResizeBilinearOptions" if "BILINEAR" in operator else "ResizeNearestNeighborOptions"
        return self.like(
            x, operator, (1, *size, channels), (kind, options), (self.constant(size),)
        )

    def batches(self, x, operator, block, pairs):
        """SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND of rows and columns."""
        batch, height, width, channels = self.shape(x)
        (top, bottom), (left, right) = pairs
        if operator == "SPACE_TO_BATCH_ND":
            size = (height + top + bottom) // block, (width + left + right) // block
            batch *= block * block
        else:
            size = height * block - top - bottom, width * block - left - right
            batch //= block * block
        others = self.constant(np.int32([block, block])), self.constant(np.int32(pairs))
        return self.like(x, operator, (batch, *size, channels), None, others)

    def concatenation(self, *inputs, axis=3):
        """CONCATENATION; all inputs get the scale of the first one."""
        first = self.tensors[inputs[0]]
        for name in inputs[1:]:
            self.tensors[name].scale, self.tensors[name].zero = first.scale, first.zero
        shape = list(first.shape)
        shape[axis] = sum(self.shape(name)[axis] for name in inputs)
        y = self.output(shape, first.scale, int(np.max(first.zero)))
        return self.add("CONCATENATION", list(inputs), y, ("ConcatenationOptions", {"axis": axis}))

    def joined(self, *inputs, axis=3, scale=0.06):
        """CONCATENATION of maps with scales of their own: QUANTIZE for each."""
        zero = self._zero()
        return self.concatenation(
            *(self.requantized(name, scale, zero) for name in inputs), axis=axis
        )

    def requantized(self, x, scale=0.06, zero=None, dtype=None):
        """QUANTIZE of a tensor of 8 bits."""
        return self.add("QUANTIZE", [x], self.output(self.shape(x), scale, zero, dtype))

    def function(self, x, operator, options=None, scale=None, zero=None):
        """A function of each value."""
        fixed = {"LOGISTIC": (1 / 256, self.half - 128), "TANH": (1 / 128, self.half)}
        scale, zero = fixed.get(operator, (scale or 0.04, zero))
        return self.add(operator, [x], self.output(self.shape(x), scale, zero), options)

    def binary(self, operator, a, b, options=None, scale=0.08, shape=None):
        """An operator of two maps."""
        shape = shape or np.broadcast_shapes(self.shape(a), self.shape(b))
        if operator in ("MAXIMUM", "MINIMUM"):
            first, second = self.tensors[a], self.tensors[b]
            second.scale, second.zero = first.scale, first.zero
            return self.like(a, operator, shape, options, (b,))
        return self.add(operator, [a, b], self.output(shape, scale), options)

    def sum(self, a, b, scale=0.08, activation=NONE, operator="ADD"):
        """ADD or SUB."""
        options = {"fusedActivationFunction": activation}
        return self.binary(operator, a, b, (f"{operator.title()}Options", options), scale)

    def product(self, a, b, scale=0.03, activation=NONE):
        """MUL."""
        options = {"fusedActivationFunction": activation}
        return self.binary("MUL", a, b, ("MulOptions", options), scale)

    def swish(self, x):
        """``x * sigmoid(x)``."""
        return self.product(x, self.function(x, "LOGISTIC"))

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

    def split(self, x, count, axis=3):
        """SPLIT into equal parts."""
        shape = list(self.shape(x))
        shape[axis] //= count
        outputs = [self._like(x, shape) for _ in range(count)]
        number = self.constant(np.int32(axis))
        self.add("SPLIT", [number, x], outputs, ("SplitOptions", {"numSplits": count}))
        return outputs

    def unpack(self, x, axis):
        """UNPACK."""
        shape = list(self.shape(x))
        count = shape.pop(axis)
        outputs = [self._like(x, shape) for _ in range(count)]
        self.add("UNPACK", [x], outputs, ("UnpackOptions", {"num": count, "axis": axis}))
        return outputs

    def pack(self, *inputs, axis):
        """PACK."""
        shape = list(self.shape(inputs[0]))
        shape.insert(axis, len(inputs))
        options = "PackOptions", {"valuesCount": len(inputs), "axis": axis}
        return self.like(inputs[0], "PACK", shape, options, inputs[1:])

    def softmax(self, x):
        """SOFTMAX."""
        y = self.output(self.shape(x), 1 / 256, self.half - 128)
        return self.add("SOFTMAX", [x], y, ("SoftmaxOptions", {"beta": 1.0}))
