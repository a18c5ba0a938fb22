"""The multiply-accumulate operations of a node that onnxruntime computes."""

import math

__all__ = ["macs_of"]


def macs_of(operator, types) -> int:
    """Return the MAC of a node in one inference; 0 if it has no product.

    ``types`` has (dtype, shape) by the names of tensors.
    """
    shapes = [types[name][1] if name else () for name in operator.inputs]
    y = next((types[name][1] for name in operator.outputs if name), ())
    try:
        if operator.kind in _PRODUCTS:
            return _PRODUCTS[operator.kind](operator, shapes, y)
    except IndexError:  # of a node that onnxruntime refuses
        pass
    return 0


def _weights(place):
    """A convolution whose weights are input ``place``."""
    return lambda operator, shapes, y: math.prod(y) * math.prod(shapes[place][1:])


def _transposed(operator, shapes, y):
    return math.prod(shapes[0]) * math.prod(shapes[1][1:])


def _matmul(operator, shapes, y):
    return math.prod(y) * shapes[0][-1]


def _gemm(operator, shapes, y):
    return math.prod(y) * shapes[0][0 if operator.attributes.get("transA", 0) else 1]


def _recurrent(operator, shapes, y):
    steps = math.prod(shapes[0][:2])  # of all sequences
    return steps * (math.prod(shapes[1]) + math.prod(shapes[2]))


def _attention(operator, shapes, y):
    """Of ONNX with q, k and v; of onnxruntime with the weights that make them of x."""
    past = shapes[4][-2] if len(shapes) > 4 and shapes[4] else 0
    if operator.domain != "com.microsoft":
        return (math.prod(shapes[0]) + math.prod(y)) * (shapes[1][-2] + past)
    batch, rows, _ = shapes[0]
    of_q = (shapes[1][1] - y[-1]) // 2
    return batch * rows * (math.prod(shapes[1]) + (rows + past) * (of_q + y[-1]))


def _quantized_attention(operator, shapes, y):
    """As Attention of onnxruntime, with scales and zero points before the past."""
    return _attention(operator, [*shapes[:4], *shapes[8:9]], y)


def _multi_head_attention(operator, shapes, y):
    """Of q, k and v. They may be in one tensor of 5 axes; k and v in one, or by heads, of 4."""
    query, key, *_ = [*shapes, ()]
    keys = key[2 if len(key) == 4 else 1] if key else query[1]
    past = shapes[6][-2] if len(shapes) > 6 and shapes[6] else 0
    of_q = math.prod(query[2:]) // (3 if len(query) == 5 else 1)
    return query[0] * query[1] * (keys + past) * (of_q + y[-1])


_PRODUCTS = {
    "Attention": _attention,
    "Conv": _weights(1), "ConvInteger": _weights(1), "ConvTranspose": _transposed,
    "DynamicQuantizeMatMul": _matmul, "FusedConv": _weights(1), "FusedGemm": _gemm,
    "FusedMatMul": _matmul, "GRU": _recurrent, "Gemm": _gemm, "LSTM": _recurrent,
    "MatMul": _matmul, "MatMulInteger": _matmul, "MatMulIntegerToFloat": _matmul,
    "MultiHeadAttention": _multi_head_attention, "QAttention": _quantized_attention,
    "QGemm": _gemm, "QLinearConv": _weights(3), "QLinearMatMul": _matmul, "RNN": _recurrent,
}
