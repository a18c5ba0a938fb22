"""ATen operators as products: what an operator computes with one product of a core.

Each function takes a ``core``: ``core.matmul(a, b)`` returns the products [count, M, N] of
A [count, M, K] and B [count, K, N], and ``core.convolution(x, w, window)`` those of
`weft.offload.windows`. Both are float32, or int32 for operands of int8. What an operator adds to a
product is added in float32 by PyTorch, before the result gets the type of the operator.
"""

from collections.abc import Callable

import torch

from weft.torch.convolutions import each, forward

__all__ = ["PRODUCTS"]

aten = torch.ops.aten


def _sum(product, c, beta, alpha):
    """``beta * c + alpha * product`` in float32."""
    if alpha != 1:
        product = product * alpha
    # PyTorch does not read c where beta is 0: its NaN have no effect.
    if beta == 0:
        return product
    c = c.to(product.dtype)
    return product + (c if beta == 1 else c * beta)


def _mm(core, a, b):
    return core.matmul(a[None], b[None])[0]


def _bmm(core, a, b):
    return core.matmul(a, b)


def _mv(core, a, v):
    return core.matmul(a[None], v[None, :, None])[0, :, 0]


def _dot(core, v, w):
    return core.matmul(v[None, None], w[None, :, None])[0, 0, 0]


def _addmm(core, c, a, b, beta=1, alpha=1):
    return _sum(_mm(core, a, b), c, beta, alpha)


def _baddbmm(core, c, a, b, beta=1, alpha=1):
    return _sum(_bmm(core, a, b), c, beta, alpha)


def _addmv(core, c, a, v, beta=1, alpha=1):
    return _sum(_mv(core, a, v), c, beta, alpha)


def _addbmm(core, c, a, b, beta=1, alpha=1):
    """The sum over a batch is one product: its k is the batch, and k inside it."""
    count, m, k = a.shape
    a, b = a.transpose(0, 1).reshape(m, count * k), b.reshape(count * k, b.shape[2])
    return _addmm(core, c, a, b, beta, alpha)


def _linear(core, x, w, bias=None):
    rows = x.reshape(-1, x.shape[-1]) if x.dim() != 1 else x[None]
    y = _mm(core, rows, w.t()).reshape(*x.shape[:-1], w.shape[0])
    return y if bias is None else y + bias.to(y.dtype)


def _convolution(
    core, x, w, bias, stride, padding, dilation, transposed, output_padding, groups
):
    stride, padding, dilation, output_padding = (
        each(values, x) for values in (stride, padding, dilation, output_padding)
    )
    window, kernel = forward(x, w, stride, padding, dilation, transposed, output_padding, groups)
    y = core.convolution(x.movedim(1, -1), kernel, window).movedim(-1, 1)
    return y if bias is None else y + bias.to(y.dtype).reshape(-1, *[1] * (y.dim() - 2))


# By operator: what computes it, and the positions of A and B (of a map and a kernel).
PRODUCTS: dict[torch._ops.OpOverload, tuple[Callable, tuple[int, int]]] = {
    aten.mm.default: (_mm, (0, 1)),
    aten.bmm.default: (_bmm, (0, 1)),
    aten.mv.default: (_mv, (0, 1)),
    aten.dot.default: (_dot, (0, 1)),
    aten.vdot.default: (_dot, (0, 1)),
    aten.addmm.default: (_addmm, (1, 2)),
    aten.baddbmm.default: (_baddbmm, (1, 2)),
    aten.addbmm.default: (_addbmm, (1, 2)),
    aten.addmv.default: (_addmv, (1, 2)),
    aten.linear.default: (_linear, (0, 1)),
    aten._int_mm.default: (_mm, (0, 1)),
    aten.convolution.default: (_convolution, (0, 1)),
}
