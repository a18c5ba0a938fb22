"""The geometry of convolutions: attributes of ``Conv`` and ``ConvTranspose`` become windows."""

from weft.models.ir import Window

__all__ = ["conv_window", "conv_transpose_window"]


def conv_window(attributes, kernel, input, output) -> Window:
    """The window of a convolution.

    Parameters
    ----------
    attributes : mapping
        Of the node: ``strides``, ``dilations``, ``pads``, ``auto_pad``.
    kernel, input, output : (int, int)
        Heights and widths.
    """
    stride = _pair(attributes, "strides")
    dilation = _pair(attributes, "dilations")
    begin, end = _pads(attributes, kernel, stride, dilation, input, output)
    return Window(
        kernel, stride, dilation, (begin[0], end[0], begin[1], end[1]), input, output
    )


def conv_transpose_window(attributes, kernel, input, output) -> Window:
    """The window of a transposed convolution, whose kernel is mirrored.

    The map is spread by the strides and convolved with a stride of 1. ``dilation * (kernel - 1)``
    less the padding of the node surrounds it, at the end as much as the output needs.
    """
    spread = _pair(attributes, "strides")
    dilation = _pair(attributes, "dilations")
    extra = tuple(attributes.get("output_padding", ())) or (0, 0)
    extra = (0, *extra) if len(extra) == 1 else extra
    edges = []
    for axis in range(2):
        reach = dilation[axis] * (kernel[axis] - 1)
        spread_size = spread[axis] * (input[axis] - 1) + 1
        total = spread_size + reach + extra[axis] - output[axis]  # that the node cuts off
        begin = _cut_at_begin(attributes, axis, total)
        before = reach - begin
        edges += [before, output[axis] + reach - spread_size - before]
    return Window(kernel, (1, 1), dilation, tuple(edges), input, output, spread)


def _cut_at_begin(attributes, axis, total):
    """Rows that a transposed convolution cuts off at the begin of an axis, of ``total``."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule == "VALID":
        return 0
    if rule == "NOTSET" and "output_shape" not in attributes:
        pads = tuple(attributes.get("pads", ())) or (0, 0, 0, 0)
        pads = (0, pads[0], 0, pads[1]) if len(pads) == 2 else pads
        return pads[axis]
    total = max(total, 0)
    return total // 2 if rule == "SAME_UPPER" else total - total // 2


def _pads(attributes, kernel, stride, dilation, input, output):
    """Padding (top, left) and (bottom, right) of a convolution."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule == "NOTSET":
        pads = tuple(attributes.get("pads", ())) or (0, 0, 0, 0)
        pads = (0, pads[0], 0, pads[1]) if len(pads) == 2 else pads
        return pads[:2], pads[2:]
    if rule == "VALID":
        return (0, 0), (0, 0)
    begin, end = [], []
    for axis in range(2):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        total = max((output[axis] - 1) * stride[axis] + reach - input[axis], 0)
        begin.append(total - total // 2 if rule == "SAME_LOWER" else total // 2)
        end.append(total - begin[-1])
    return tuple(begin), tuple(end)


def _pair(attributes, name):
    """An attribute of two axes; (1, 1) by default. A missing first axis is 1."""
    values = tuple(attributes.get(name, ())) or (1, 1)
    return (1, *values) if len(values) == 1 else values
