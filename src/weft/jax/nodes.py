"""Operators of JAX as nodes of ONNX: float models with the layouts that ONNX has.

A value of JAX is stored as a tensor of ONNX with its axes in another order, where ONNX wants
another one: the order stays until an operator needs the first one, so that a convolution network
with the channels last has no transpositions inside.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.models.errors import ModelError

__all__ = ["NODES", "Builder", "Value"]


@dataclass(frozen=True)
class Value:
    """A value of JAX.

    Attributes
    ----------
    name : str
        Of the tensor of ONNX.
    shape : tuple of int
    dtype : numpy.dtype
    order : tuple of int
        Axis ``i`` of the tensor is axis ``order[i]`` of the value.
    flat : tuple of (Value, int) or None
        The value before a reshape that joined its axes from this axis on, if the tensor has another
        order of them: the tensor has the same numbers in its own order.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    order: tuple[int, ...]
    flat: "tuple[Value, int] | None" = None

    @property
    def plain(self) -> bool:
        """Whether the tensor has the axes and the numbers in the order of the value."""
        return self.order == tuple(range(len(self.shape))) and self.flat is None


class Builder:
    """Nodes and constants of a model of ONNX.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    constants : list of onnx.TensorProto
    """

    def __init__(self) -> None:
        self.nodes: list = []
        self.constants: list = []

    def constant(self, array) -> str:
        """Return the name of a new constant."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind: str, inputs, **attributes) -> str:
        """Append a node; return the name of its result."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def value(self, kind, inputs, like, order=None, **attributes) -> Value:
        """Append a node; return its result, with the shape and the type of ``like``."""
        order = tuple(range(len(like.shape))) if order is None else order
        name = self.node(kind, inputs, **attributes)
        return Value(name, tuple(like.shape), np.dtype(like.dtype), order)

    def ordered(self, value: "Value | np.ndarray", order=None) -> str:
        """Return the name of a tensor with the axes of a value in an order, by default its own."""
        order = tuple(range(value.ndim if isinstance(value, np.ndarray) else len(value.shape))) if (
            order is None
        ) else tuple(order)
        if isinstance(value, np.ndarray):
            return self.constant(value.transpose(order))
        if value.flat is not None:
            before, _ = value.flat
            name = self.node("Reshape", [self.ordered(before), self.shape(value.shape)])
            value = Value(name, value.shape, value.dtype, tuple(range(len(value.shape))))
        if value.order == order:
            return value.name
        return self.node(
            "Transpose", [value.name], perm=[value.order.index(axis) for axis in order]
        )

    def shape(self, shape) -> str:
        """Return the name of a shape; its first axis is the batch, of any size."""
        return self.constant(np.array([-1, *shape[1:]] if len(shape) else [], np.int64))


Given = Value | np.ndarray
_FLOAT = np.dtype(np.float32)


def _conv(build, eqn, x, w):
    params, out = eqn.params, eqn.outvars[0].aval
    if isinstance(x, np.ndarray) or not isinstance(w, np.ndarray):
        raise ModelError("the kernel must be constant, and the map computed")
    if any(gap != 1 for gap in params["lhs_dilation"]) or params["batch_group_count"] != 1:
        raise ModelError("it must have no lhs_dilation and no batch groups")
    if any(pad < 0 for pair in params["padding"] for pad in pair):
        raise ModelError(f"its padding must be 0 or more, not {params['padding']}")
    numbers = params["dimension_numbers"]
    lows, highs = zip(*params["padding"], strict=True)
    return build.value(
        "Conv", [build.ordered(x, numbers.lhs_spec), build.ordered(w, numbers.rhs_spec)], out,
        tuple(numbers.out_spec), strides=list(params["window_strides"]), pads=[*lows, *highs],
        dilations=list(params["rhs_dilation"]), group=params["feature_group_count"],
    )


def _dot(build, eqn, a, b):
    out = eqn.outvars[0].aval
    (a_sum, b_sum), (a_batch, b_batch) = eqn.params["dimension_numbers"]
    if len(a_sum) != 1:
        raise ModelError(f"it must have one contracted axis, not {len(a_sum)}")
    ranks = [len(x.shape) for x in (a, b)]
    a_free = [axis for axis in range(ranks[0]) if axis not in (*a_sum, *a_batch)]
    b_free = [axis for axis in range(ranks[1]) if axis not in (*b_sum, *b_batch)]
    if not a_batch and len(b_free) == 1 and isinstance(b, np.ndarray):
        b = b.transpose(*b_sum, *b_free)
        if a_sum == (1,) and isinstance(a, Value) and a.flat is not None:
            return build.value("MatMul", [a.name, build.constant(_permuted(b, a))], out)
        return build.value("MatMul", [build.ordered(a, (*a_free, *a_sum)), build.constant(b)], out)
    if len(a_free) > 1 or len(b_free) > 1:
        raise ModelError("it must have one free axis of each operand, or a constant matrix b")
    a_name = build.ordered(a, (*a_batch, *a_free, *a_sum))
    b_name = build.ordered(b, (*b_batch, *b_sum, *b_free))
    if len(a_free) == len(b_free) == 1:
        return build.value("MatMul", [a_name, b_name], out)
    raise ModelError("both operands must have a free axis")


def _permuted(b, a):
    """The rows of b in the order in which the tensor of a flat value has them."""
    before, first = a.flat
    sizes = before.shape[first:]
    order = [axis - first for axis in before.order[first:]]
    rows = np.arange(math.prod(sizes)).reshape(sizes).transpose(order).reshape(-1)
    return b[rows]


def _attribute(attribute):
    """The value of an attribute of a node."""
    from onnx import helper

    return helper.get_attribute_value(attribute)


def _elementwise(kind: str) -> Callable:
    def build_node(build, eqn, *inputs):
        out = eqn.outvars[0].aval
        values = [x for x in inputs if isinstance(x, Value)]
        same = values[0]
        if same.flat is not None or any(v.order != same.order or v.flat for v in values):
            return build.value(kind, [build.ordered(_wide(x, out)) for x in inputs], out)
        names = [
            x.name if isinstance(x, Value)
            # Without axes of size 1 before it, the quantizer takes a row as the bias of a matrix.
            else build.constant(_narrow(_wide(x, out).transpose(same.order)))
            for x in inputs
        ]
        return build.value(kind, names, out, same.order)

    return build_node


def _narrow(array):
    """An array without its first axes of size 1."""
    while array.ndim and array.shape[0] == 1:
        array = array[0]
    return array


def _wide(x, out):
    """A constant with as many axes as a result; a number stays one."""
    if isinstance(x, np.ndarray) and x.ndim != len(out.shape):
        return x.reshape((1,) * (len(out.shape) - x.ndim) + x.shape)
    return x


def _add(build, eqn, a, b):
    """The sum with a constant of the channels is the bias of a convolution."""
    x, bias = (a, b) if isinstance(a, Value) else (b, a)
    made = next((node for node in build.nodes if isinstance(x, Value) and node.output[0] == x.name),
                None)
    if isinstance(bias, np.ndarray) and bias.size > 1 and made is not None and (
        made.op_type == "Conv" and len(made.input) == 2
    ):
        wide = _wide(bias, eqn.outvars[0].aval)
        if wide.size == wide.shape[x.order[1]]:
            # Another reader of the convolution alone still has it; else nothing reads it any more.
            given = {a.name: _attribute(a) for a in made.attribute}
            inputs = [*made.input, build.constant(wide.reshape(-1))]
            return build.value("Conv", inputs, eqn.outvars[0].aval, x.order, **given)
    return _elementwise("Add")(build, eqn, a, b)


def _max(build, eqn, a, b):
    """``max(x, 0)`` is Relu."""
    for x, limit in ((a, b), (b, a)):
        if isinstance(limit, np.ndarray) and isinstance(x, Value) and not limit.any():
            return _elementwise("Relu")(build, eqn, x)
    return _elementwise("Max")(build, eqn, a, b)


def _clamp(build, eqn, low, x, high):
    return _elementwise("Min")(build, eqn, _elementwise("Max")(build, eqn, x, low), high)


def _reshape(build, eqn, x):
    out = eqn.outvars[0].aval
    axis = next((n for n, (a, b) in enumerate(zip(x.shape, out.shape, strict=False)) if a != b), 0)
    joins = len(out.shape) == axis + 1 and axis > 0 and x.flat is None and (
        x.order[:axis] == tuple(range(axis))
    )
    if not joins or x.plain:
        return build.value("Reshape", [build.ordered(x), build.shape(out.shape)], out)
    flat = build.value("Reshape", [x.name, build.shape(out.shape)], out)
    return Value(flat.name, flat.shape, flat.dtype, flat.order, (x, axis))


def _transpose(build, eqn, x):
    if x.flat is not None:
        return build.value(
            "Transpose", [build.ordered(x)], eqn.outvars[0].aval,
            perm=list(eqn.params["permutation"]),
        )
    out, moved = eqn.outvars[0].aval, eqn.params["permutation"]
    order = tuple(moved.index(axis) for axis in x.order)
    return Value(x.name, tuple(out.shape), x.dtype, order)


def _broadcast(build, eqn, x):
    """Axes of size 1 are added; the operator that reads them makes them wide."""
    out, places = eqn.outvars[0].aval, eqn.params["broadcast_dimensions"]
    shape = [1] * len(out.shape)
    for axis, place in enumerate(places):
        shape[place] = x.shape[axis]
    narrow = build.value("Reshape", [build.ordered(x), build.shape(shape)], out)
    if tuple(shape) == tuple(out.shape):
        return narrow
    return build.value("Expand", [narrow.name, build.constant(np.array(
        [1, *out.shape[1:]], np.int64
    ))], out)


def _reduce(kind: str) -> Callable:
    def build_node(build, eqn, x):
        out, axes = eqn.outvars[0].aval, eqn.params["axes"]
        if 0 in axes:
            raise ModelError("it must leave the first axis, the batch, as it is")
        if x.flat is None:  # the tensor may have another order
            places = sorted(x.order.index(axis) for axis in axes)
            left = [axis for axis in x.order if axis not in axes]
            order = tuple(sorted(left).index(axis) for axis in left)
            name = x.name
        else:
            places, order, name = list(axes), None, build.ordered(x)
        # The axes are an input of ReduceSum, and an attribute of the others below operator set 18.
        if kind == "ReduceSum":
            inputs, given = [name, build.constant(np.array(places, np.int64))], {}
        else:
            inputs, given = [name], {"axes": places}
        return build.value(kind, inputs, out, order, keepdims=0, **given)

    return build_node


def _argmax(build, eqn, x):
    axis, = eqn.params["axes"]
    out = eqn.outvars[0].aval
    found = build.node("ArgMax", [build.ordered(x)], axis=axis, keepdims=0)
    return build.value("Cast", [found], out, to=_onnx_type(out.dtype))


def _pool(kind: str) -> Callable:
    """A pool over windows of all axes but two: the batch and the channels."""
    def build_node(build, eqn, x, *start):
        params, out = eqn.params, eqn.outvars[0].aval
        size, steps = params["window_dimensions"], params["window_strides"]
        gaps = [*params["base_dilation"], *params.get("window_dilation", ())]
        still = [n for n in range(len(size)) if size[n] == steps[n] == 1]
        if len(size) < 3 or len(still) < 2 or 0 not in still or any(gap != 1 for gap in gaps):
            raise ModelError(
                "its windows must leave batch and channels, and have no dilation, not be"
                f" {size}"
            )
        channels = still[-1]
        moved = [n for n in range(1, len(size)) if n != channels]
        order = (0, channels, *moved)
        lows, highs = zip(*(params["padding"][n] for n in moved), strict=True)
        given = {"kernel_shape": [size[n] for n in moved], "strides": [steps[n] for n in moved],
                 "pads": [*lows, *highs]}
        if kind == "MaxPool":
            return build.value(kind, [build.ordered(x, order)], out, order, **given)
        mean = build.node(
            "AveragePool", [build.ordered(x, order)], count_include_pad=1, **given
        )
        area = build.constant(np.float32(math.prod(size)))
        return build.value("Mul", [mean, area], out, order)

    return build_node


def _same(build, eqn, x):
    return x


def _power(build, eqn, x):
    exponent = np.array(eqn.params["y"], _FLOAT)
    return _elementwise("Pow")(build, eqn, x, exponent)


def _square(build, eqn, x):
    return _elementwise("Mul")(build, eqn, x, x)


def _inverse_root(build, eqn, x):
    return _elementwise("Reciprocal")(build, eqn, _elementwise("Sqrt")(build, eqn, x))


def _convert(build, eqn, x):
    if eqn.params["new_dtype"] == x.dtype:
        return x
    out = eqn.outvars[0].aval
    return build.value("Cast", [build.ordered(x)], out, to=_onnx_type(out.dtype))


def _onnx_type(dtype):
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _select(build, eqn, which, *cases):
    if len(cases) != 2 or np.dtype(which.dtype) != bool:
        raise ModelError("it must choose by a condition")
    return _elementwise("Where")(build, eqn, which, cases[1], cases[0])


def _concatenate(build, eqn, *inputs):
    out = eqn.outvars[0].aval
    return build.value(
        "Concat", [build.ordered(x) for x in inputs], out, axis=eqn.params["dimension"]
    )


# By the name of the operator of JAX, what appends its nodes and returns its result.
NODES: dict[str, Callable] = {
    "conv_general_dilated": _conv, "dot_general": _dot, "reshape": _reshape, "squeeze": _reshape,
    "expand_dims": _reshape, "transpose": _transpose, "broadcast_in_dim": _broadcast,
    "add": _add, "add_any": _add, "max": _max, "clamp": _clamp, "reduce_sum": _reduce("ReduceSum"),
    "reduce_max": _reduce("ReduceMax"), "reduce_min": _reduce("ReduceMin"), "argmax": _argmax,
    "reduce_window_max": _pool("MaxPool"), "reduce_window_sum": _pool("AveragePool"),
    "stop_gradient": _same, "copy": _same, "optimization_barrier": _same,
    "integer_pow": _power, "square": _square, "rsqrt": _inverse_root,
    "convert_element_type": _convert,
    "select_n": _select, "concatenate": _concatenate,
} | {name: _elementwise(kind) for name, kind in {
    "sub": "Sub", "mul": "Mul", "div": "Div", "min": "Min",
    "pow": "Pow", "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh",
    "logistic": "Sigmoid", "sqrt": "Sqrt", "abs": "Abs", "erf": "Erf", "sign": "Sign",
    "gt": "Greater", "lt": "Less", "ge": "GreaterOrEqual", "le": "LessOrEqual", "eq": "Equal",
}.items()}
