"""The multiply-accumulate operations of an operator that TFLite Micro computes."""

import math

__all__ = ["macs_of"]


def macs_of(operator, tensors) -> int:
    """Return the MAC of an operator in one inference; 0 if it has no product.

    ``tensors`` are those of the file. As for products of the core, padding counts, and zeros that
    a transposed convolution inserts do, too.
    """
    shapes = [tensors[n].shape if n >= 0 else () for n in operator.inputs]
    y = tensors[operator.outputs[0]].shape if operator.outputs else ()
    try:
        return _MACS[operator.name](shapes, y) if operator.name in _MACS else 0
    except (IndexError, ZeroDivisionError):  # of a damaged file, which the runtime refuses
        return 0


def _convolution(shapes, y):
    return math.prod(y[:3]) * math.prod(shapes[1])


def _fully_connected(shapes, y):
    return math.prod(shapes[0]) // shapes[1][-1] * math.prod(shapes[1])


def _batch_matmul(shapes, y):
    # K is what both operands have, and y has not; the transposed axes do not matter.
    m, n = y[-2:]
    return math.prod(y) * (math.prod(shapes[0][-2:]) // m if m else 0)


def _svdf(shapes, y):
    return shapes[0][0] * (math.prod(shapes[1]) + math.prod(shapes[2]))


def _lstm(shapes, y):
    matrices = sum(math.prod(shape) for shape in shapes[1:9] if len(shape) == 2)
    projection = math.prod(shapes[16]) if len(shapes) > 16 and len(shapes[16]) == 2 else 0
    return math.prod(shapes[0][:2]) * (matrices + projection)


_MACS = {
    "BATCH_MATMUL": _batch_matmul, "CONV_2D": _convolution, "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _fully_connected, "SVDF": _svdf, "TRANSPOSE_CONV": _convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
