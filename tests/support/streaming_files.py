"""TFLite files of streaming networks: each keeps its last frames in variables."""

import numpy as np
from tflite_files import T, build, runner

from tools.tflite_writer import assign, handle, read

__all__ = [
    "CONV", "FRAME", "POINT", "SHAPE", "assign", "conv", "expected_of", "handle", "maps", "read",
    "streaming_file", "svdf_file", "variables", "weights",
]

FRAME = 1, 1, 1, 10  # of the input of `streaming_file`
_CONV = dict(padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
CONV = "Conv2DOptions", _CONV
POINT = {"scale": 0.05, "zero": 3}
SHAPE = 1, 2, 3, 8


def expected_of(data, x, outputs=1):
    """The outputs of TFLite Micro for one inference after the other."""
    run = runner(data, outputs)
    return [np.concatenate(part) for part in zip(*(run(row[None]) for row in x), strict=True)]


def variables(*names):
    """Handles of variables."""
    return {f"h_{name}": T((), "resource") for name in names}


def maps(*names, shape=SHAPE):
    """Maps of one scale and zero point."""
    return {name: T(shape, **POINT) for name in names}


def weights(rng):
    """Weights and bias of `conv`."""
    return {
        "w": T(data=rng.integers(-127, 128, (8, 1, 1, 8)).astype(np.int8), scale=0.01),
        "b": T(data=rng.integers(-900, 900, 8).astype(np.int32), scale=0.0005),
    }


def conv(x, y):
    """A convolution of 1 x 1 with the tensors of `weights`."""
    return ("CONV_2D", [x, "w", "b"], [y], CONV)


class _Stream:
    """Adds operators; each method returns the name of its result."""

    def __init__(self, rng):
        self.rng, self.tensors, self.operators = rng, {}, []

    def ring(self, name, x, length):
        """The last ``length`` rows of x, of which a variable has all but the newest one."""
        like = self.tensors[x]
        quantized = {"scale": like.scale, "zero": like.zero}
        columns = like.shape[2:]
        self.tensors |= {
            f"h_{name}": T((), "resource"),
            f"{name}_old": T((1, length - 1, *columns), **quantized),
            f"{name}_all": T((1, length, *columns), **quantized),
            f"{name}_new": T((1, length - 1, *columns), **quantized),
            f"{name}_begin": T(data=np.int32([0, 1, 0, 0])),
            f"{name}_end": T(data=np.int32([1, length, *columns])),
            f"{name}_step": T(data=np.int32([1, 1, 1, 1])),
        }
        slices = [f"{name}_{part}" for part in ("all", "begin", "end", "step")]
        self.operators += [
            handle(name), read(name, f"{name}_old"),
            ("CONCATENATION", [f"{name}_old", x], [f"{name}_all"], (
                "ConcatenationOptions", {"axis": 1},
            )),
            ("STRIDED_SLICE", slices, [f"{name}_new"], ("StridedSliceOptions", {})),
            assign(name, f"{name}_new"),
        ]
        return f"{name}_all"

    def product(self, operator, y, x, weights, shape, options):
        columns = shape[-1]
        scale = 0.3 / np.sqrt(weights[0].size) / 60
        self.tensors |= {
            f"{y}_w": T(data=weights, scale=scale),
            f"{y}_b": T(
                data=self.rng.integers(-400, 400, columns).astype(np.int32),
                scale=scale * self.tensors[x].scale,
            ),
            y: T(shape, scale=self.tensors[x].scale / 2, zero=-20),
        }
        self.operators.append((operator, [x, f"{y}_w", f"{y}_b"], [y], options))
        return y

    def weights(self, *shape):
        return self.rng.integers(-127, 128, shape).astype(np.int8)

    def convolution(self, y, x, channels):
        _, rows, _, depth = self.tensors[x].shape
        return self.product(
            "CONV_2D", y, x, self.weights(channels, rows, 1, depth), (1, 1, 1, channels),
            ("Conv2DOptions", _CONV),
        )

    def depthwise(self, y, x):
        _, rows, _, channels = self.tensors[x].shape
        return self.product(
            "DEPTHWISE_CONV_2D", y, x, self.weights(1, rows, 1, channels), (1, 1, 1, channels),
            ("DepthwiseConv2DOptions", _CONV | {"depthMultiplier": 1}),
        )

    def dense(self, y, x, columns):
        size = int(np.prod(self.tensors[x].shape))
        self.tensors[f"{y}_shape"] = T(data=np.int32([1, size]))
        flat = f"{y}_flat"
        self.tensors[flat] = T((1, size), scale=self.tensors[x].scale, zero=self.tensors[x].zero)
        self.operators.append(("RESHAPE", [x, f"{y}_shape"], [flat], ("ReshapeOptions", {})))
        return self.product(
            "FULLY_CONNECTED", y, flat, self.weights(columns, size), (1, columns),
            ("FullyConnectedOptions", {}),
        )


def streaming_file(rng):
    """A wake word of the usual kind: convolutions in time, each over a ring of frames.

    Its input is a `FRAME`, its output [1, 3].
    """
    stream = _Stream(rng)
    stream.tensors["x"] = T(FRAME, scale=0.1, zero=4)
    x = stream.convolution("mixed", stream.ring("frames", "x", 3), 12)
    x = stream.depthwise("filtered", stream.ring("mixes", x, 5))
    x = stream.convolution("points", x, 8)
    x = stream.dense("scores", stream.ring("tail", x, 4), 3)
    stream.tensors["y"] = T((1, 3), scale=1 / 256, zero=-128)
    stream.operators.append(("LOGISTIC", [x], ["y"], None))
    return build(stream.tensors, stream.operators, ["x"], ["y"])


def svdf_file(
    rng, filters, rank, memory, x_zero, state_zero, *, layers=True, bias=900, count=1,
    largest=127, kind="int8", pixels=1, features=None, host=False, time=None, y_scale=None,
):
    """SVDF ``count`` times, one after the other, between two fully connected layers.

    Its input is [1, 13]; ``pixels`` : more than 1 for a map, [1, 1, pixels, 13]. ``bias`` : the
    largest one, or None for a file without it. ``largest`` : of the weights of features, which are
    ``features`` if they are given. ``kind`` : of the state. ``host`` : an operator before them that
    the host computes. ``time``, ``y_scale`` : others than random weights, and the usual scale.
    """
    stream, units = _Stream(rng), filters // rank
    stream.tensors["x"] = T((1, 13), scale=0.05, zero=x_zero)
    x, size = "x", 13
    if pixels > 1:
        stream.tensors["x"].shape = 1, 1, pixels, 13
        stream.tensors["x_shape"] = T(data=np.int32([1, 5 * pixels]))
        x, size = "x_flat", 5 * pixels
        stream.convolution("points", "x", 5)
        stream.tensors["points"].shape = 1, 1, pixels, 5
        stream.tensors[x] = T((1, size), scale=0.025, zero=-20)
        stream.operators.append(("RESHAPE", ["points", "x_shape"], [x], ("ReshapeOptions", {})))
    elif layers:
        x, size = stream.dense("before", x, 9), 9
    if host:
        stream.tensors["norm"] = T((1, size), scale=1 / 128)
        stream.operators.append(("L2_NORMALIZATION", [x], ["norm"], ("L2NormOptions", {})))
        x = "norm"
    for number in range(count):
        name, zero = f"filter{number}", state_zero if kind == "int8" else 0
        weights = features
        if weights is None:
            weights = rng.integers(-largest, largest + 1, (filters, size)).astype(np.int8)
        limit = np.iinfo(kind).max
        if time is None:
            own = rng.integers(-limit, limit + 1, (filters, memory)).astype(kind)
        else:
            own = time
        stream.tensors |= {
            f"{name}_f": T(data=weights, scale=0.01),
            f"{name}_t": T(data=own, scale=1.0 / limit),
            f"{name}_s": T(
                (1, filters * memory), kind, scale=3.0 / limit, zero=zero, variable=True
            ),
            name: T((1, units), scale=y_scale or 0.02 * np.sqrt(memory * rank), zero=-20),
        }
        inputs = [x, f"{name}_f", f"{name}_t", None, f"{name}_s"]
        if bias is not None:
            values = rng.integers(-bias, bias + 1, units).astype(np.int32)
            stream.tensors[f"{name}_b"] = T(data=values, scale=3.0 / limit**2)
            inputs[3] = f"{name}_b"
        options = {"rank": rank, "fusedActivationFunction": 1}
        stream.operators.append(("SVDF", inputs, [name], ("SVDFOptions", options)))
        x, size = name, units
    if layers:
        x = stream.dense("after", x, 3)
    return build(stream.tensors, stream.operators, ["x"], [x])
