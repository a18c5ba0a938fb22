"""What the trained networks share: scales, tensors and operators of an int8 TFLite file."""

import numpy as np

from tools.tflite_writer import OperatorSpec, TensorSpec

__all__ = ["NONE", "RELU", "accuracy", "calibrate", "operator", "weights_and_bias"]

NONE, RELU = 0, 1  # fused activation functions of the schema
SAME = 0  # padding of the schema


def calibrate(values):
    """Scale (float32) and zero point so that int8 covers ``values`` and 0, as in TFLite."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = np.float32((high - low) / 255)
    return scale, int(np.clip(np.rint(-128 - low / float(scale)), -128, 127))


def weights_and_bias(name, weights, bias, x_scale, axis, shape):
    """The tensors of int8 weights per channel (the columns of ``weights``) and of their bias."""
    maximum = np.abs(weights).max(axis=0)
    scale = (np.maximum(maximum, maximum.max() / 1024) / 127).astype(np.float32)
    values = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    sum_scale = np.float64(x_scale) * scale
    if axis == 0:
        values = values.T
    bias = np.rint(bias / sum_scale).astype(np.int32)
    return {
        f"{name}_weights": TensorSpec(scale=scale, data=values.reshape(shape), axis=axis),
        f"{name}_bias": TensorSpec(scale=np.float32(sum_scale), data=bias),
    }


def operator(
    code, kind, version, x, y, weights=None, *, other=None, stride=None, relu=NONE, **fields
):
    fields["fusedActivationFunction"] = relu
    if stride:
        fields |= {"padding": SAME, "strideW": stride, "strideH": stride}
        if "Conv" in kind:
            fields |= {"dilationWFactor": 1, "dilationHFactor": 1}
    inputs = (x, f"{weights}_weights", f"{weights}_bias") if weights else (x, other)
    return OperatorSpec(
        code, tuple(name for name in inputs if name), (y,), (kind, fields), version
    )


def accuracy(data, x, labels):
    """The share of the float inputs ``x`` that TFLite Micro classifies correctly."""
    from tflite_micro import runtime

    model = runtime.Interpreter.from_bytes(data)
    found = model.get_input_details(0)
    parameters = found["quantization_parameters"]
    scale, zero = (np.ravel(parameters[name])[0] for name in ("scales", "zero_points"))
    values = np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)
    correct = 0
    for value, label in zip(values, labels, strict=True):
        model.set_input(value.reshape(found["shape"]), 0)
        model.invoke()
        correct += int(np.argmax(model.get_output(0))) == label
    return correct / len(labels)
