"""Convolutions of PyTorch, transposed ones, and their gradients, as windows over maps.

Maps of PyTorch are [N, C, positions...]. A kernel is [O, C / groups, positions...], and that of a
transposed convolution [C, O / groups, positions...]. `weft.offload.windows` has the channels last.
"""

import torch

from weft.offload import Window
from weft.offload.windows import spread

__all__ = ["each", "forward", "input_gradient", "weight_gradient", "weight_of"]


def each(values, x) -> list[int]:
    """A value for each dimension of a map; PyTorch takes one for all of them, too."""
    return list(values) * (x.dim() - 2) if len(values) == 1 else list(values)


def forward(x, w, stride, padding, dilation, transposed, output_padding, groups):
    """Return the window of a convolution, and the kernel [positions..., C / groups, O].

    A transposed convolution is one of the map with ``stride - 1`` zeros between its values, with
    the kernel turned around.
    """
    kernel = w.shape[2:]
    if not transposed:
        return _window(stride, [(p, p) for p in padding], dilation, groups), _outputs_first(w)
    pads = []
    for size, pad, gap, more in zip(kernel, padding, dilation, output_padding, strict=True):
        whole = gap * (size - 1) - pad
        pads.append((whole, whole + more))
    window = _window([1] * len(stride), pads, dilation, groups, x_dilation=stride)
    return window, _inputs_first(w, groups).flip(list(range(len(kernel))))


def input_gradient(dy, x, w, stride, padding, dilation, transposed, groups):
    """Return the window over ``dy`` whose result is the gradient of x, and the kernel."""
    if transposed:
        return _window(stride, [(p, p) for p in padding], dilation, groups), _outputs_first(w)
    sizes = zip(
        x.shape[2:], dy.shape[2:], w.shape[2:], stride, padding, dilation, strict=True
    )
    # Positions of x that no window reaches: their gradient is 0.
    rest = [
        size + 2 * pad - spread(kernel, gap) - (out - 1) * step
        for size, out, kernel, step, pad, gap in sizes
    ]
    return forward(dy, w, stride, padding, dilation, True, rest, groups)


def weight_gradient(dy, x, w, stride, padding, dilation, transposed, groups):
    """Return a map, a kernel and their window; the result is the gradient of w.

    ``dw[q, c, o] = sum(dy[n, p, o] * x[n, p * stride + q * dilation - padding, c])`` over the
    positions p and the images n, in this order: the positions are those of a kernel, and the images
    are its channels. x and dy change places in a transposed convolution.

    The map is [C, positions..., N], the kernel [positions..., N, O], and the result
    [C / groups, positions of w..., O].
    """
    seen, moved = (dy, x) if transposed else (x, dy)
    pads = []
    for size, out, kernel, step, pad, gap in zip(
        seen.shape[2:], moved.shape[2:], w.shape[2:], stride, padding, dilation, strict=True
    ):
        # Positions after the last window are left out.
        end = (kernel - 1) * gap + spread(out, step)
        pads.append((pad, end - size - pad))
    window = Window(
        strides=tuple(dilation), padding=tuple(pads), x_dilation=(1,) * len(stride),
        w_dilation=tuple(stride), batch_groups=groups,
    )
    return seen.movedim(0, -1), moved.movedim(1, -1).movedim(0, -2), window


def weight_of(y: torch.Tensor) -> torch.Tensor:
    """The gradient [O, C / groups, positions...] of a result of `weight_gradient`."""
    return y.movedim(-1, 0)


def _window(stride, padding, dilation, groups, x_dilation=None):
    return Window(
        strides=tuple(stride), padding=tuple(padding),
        x_dilation=tuple(x_dilation or [1] * len(stride)), w_dilation=tuple(dilation),
        groups=groups,
    )


def _outputs_first(w):
    """[O, C / groups, positions...] as [positions..., C / groups, O]."""
    return w.movedim((0, 1), (-1, -2))


def _inputs_first(w, groups):
    """[C, O / groups, positions...] as [positions..., C / groups, O]."""
    channels, outputs, *kernel = w.shape
    parts = w.reshape(groups, channels // groups, outputs, *kernel)
    # groups, C / groups, O / groups, positions -> positions, C / groups, groups, O / groups
    parts = parts.movedim((1, 0, 2), (-3, -2, -1))
    return parts.reshape(*kernel, channels // groups, groups * outputs)
