"""TFLite files of one UNIDIRECTIONAL_SEQUENCE_LSTM with random weights."""

import numpy as np
from tflite_files import T, build

__all__ = ["lstm"]


def lstm(
    rng, batch, time, units=4, size=6, major=False, clip=10.0, cell=2**-11, zero=2, x_zero=-3,
    kind="int8", state=None, activation=4, shape=None, absent=(), present=(), scales=(2**-6, 2**-7),
    weights="float32", asymmetric=False,
):
    """A file of one LSTM; ``shape`` of its state; places of its inputs that change.

    One of float32 may have ``weights`` of int8 or uint8, and ``asymmetric`` rows.
    """
    def constant(*shape):
        if kind == "float32" and weights != "float32" and len(shape) == 2:
            data = rng.integers(-127, 128, shape).astype(np.int8).view(weights)
            return T(data=data, scale=rng.uniform(.002, .01))
        if kind == "float32":
            return T(data=rng.normal(0, 0.4, shape).astype(np.float32))
        return T(data=rng.integers(-127, 128, shape).astype(np.int8), scale=rng.uniform(.002, .02))

    front = (time, batch) if major else (batch, time)
    wide = kind == "int16"
    tensors = {"x": T((*front, size), kind, scale=2**-14 if wide else scales[0], zero=x_zero)}
    tensors |= {f"w{gate}": constant(units, size) for gate in range(4)}
    tensors |= {f"r{gate}": constant(units, units) for gate in range(4)}
    for gate in range(4):
        bias = rng.integers(-3000, 3000, units) * (256 if wide else 1)
        tensors[f"b{gate}"] = T(data=bias.astype(np.int64 if wide else np.int32))
        if kind == "float32":
            tensors[f"b{gate}"] = constant(units)
    scale = 2**-15 if wide else scales[1]
    tensors["h"] = T(shape or (batch, units), state or kind, scale=scale, zero=zero, variable=True)
    kind_of_cell = "float32" if kind == "float32" else "int16"
    tensors["c"] = T(shape or (batch, units), kind_of_cell, scale=cell, variable=True)
    names = list(tensors)
    inputs = [*names[:9], None, None, None, *names[9:13], None, None, "h", "c", *[None] * 4]
    tensors["other"] = T(data=rng.integers(-9, 9, units).astype(np.int8), scale=2**-12)
    inputs = [
        None if n in absent else "other" if n in present else i for n, i in enumerate(inputs)
    ]
    tensors["y"] = T((*front, units), kind, scale=scale, zero=zero)
    tensors["unused"] = T((0,), scale=2**-12)  # of the parts that the LSTM does not have
    tensors["hidden"] = T((0,), scale=scale, zero=zero)
    options = {
        "fusedActivationFunction": activation, "cellClip": clip, "timeMajor": major,
        "asymmetricQuantizeInputs": asymmetric,
    }
    options = "UnidirectionalSequenceLSTMOptions", options
    operator = (
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ["y"], options, 4, [*["unused"] * 4, "hidden"],
    )
    return build(tensors, [operator], ["x"], ["y"])
