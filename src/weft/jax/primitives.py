"""``dot_general`` and ``conv_general_dilated`` as JAX primitives that run on an accelerator.

Each has the parameters of the operator of JAX, and a `Site`. Its derivatives and its batches are
those of the operator of JAX: JAX makes them, and their products run on the accelerator again.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from weft.offload import Operator, Products, StaticWeights, Window
from weft.offload.subnormals import KeptSubnormals

__all__ = ["TWINS", "Site", "products_of"]


@dataclass(frozen=True, eq=False)
class Site:
    """An operator of an offloaded function.

    Attributes
    ----------
    products : Products
    operator : Operator
    static : (bool, bool)
        Whether each operand depends on constant weights alone.
    evaluate : callable
        ``evaluate(function, arguments, static, name)`` returns the results of a function of JAX
        with its products on the accelerator.
    """

    products: Products
    operator: Operator
    static: tuple[bool, bool]
    evaluate: Callable
    caches: dict = field(default_factory=dict)

    def operand(self, side: int, array: np.ndarray, make: Callable[[], StaticWeights]):
        """Return an operand; constant weights of an int8 core are converted once.

        Those of int8 stay in the core's buffer like converted ones, as operand B.
        """
        ready = side == 0 and array.dtype == np.int8
        if not self.static[side] or not self.products.quantizes or ready:
            return array
        return self.caches.setdefault(side, make())(array)

    def derived(self, how, function, arguments, static):
        """Return the results of a function that follows from the operator, such as a transpose."""
        return self.evaluate(function, arguments, static, f"{how}({self.operator.name})")


def _axes(numbers, a_rank, b_rank):
    """The batch axes, free axes and contracted axes of both operands."""
    (a_sum, b_sum), (a_batch, b_batch) = numbers
    a_free = [axis for axis in range(a_rank) if axis not in (*a_sum, *a_batch)]
    b_free = [axis for axis in range(b_rank) if axis not in (*b_sum, *b_batch)]
    return (a_batch, a_free, a_sum), (b_batch, b_free, b_sum)


def _dot_shape(a_shape, b_shape, params):
    a_axes, b_axes = _axes(params["dimension_numbers"], len(a_shape), len(b_shape))
    count, m, k = (math.prod(a_shape[axis] for axis in axes) for axes in a_axes)
    return count, m, k, math.prod(b_shape[axis] for axis in b_axes[1])


def _dot(site, a, b, params):
    """The result of dot_general [batch..., free axes of a..., free axes of b...], in numpy."""
    a_axes, b_axes = _axes(params["dimension_numbers"], a.ndim, b.ndim)
    count, m, k, n = _dot_shape(a.shape, b.shape, params)
    free = [a.shape[axis] for axis in (*a_axes[0], *a_axes[1])]
    free += [b.shape[axis] for axis in b_axes[1]]
    a = a.transpose([axis for axes in a_axes for axis in axes]).reshape(count, m, k)
    order = [axis for axes in (b_axes[0], b_axes[2], b_axes[1]) for axis in axes]
    b = b.transpose(order).reshape(count, k, n)
    products = site.products
    a = site.operand(0, a, products.static_rows)
    b = site.operand(1, b, products.static_columns)
    return products.matmul(site.operator, a, b).reshape(free)


def _window(params):
    return Window(
        strides=tuple(params["window_strides"]), padding=tuple(map(tuple, params["padding"])),
        x_dilation=tuple(params["lhs_dilation"]), w_dilation=tuple(params["rhs_dilation"]),
        groups=params["feature_group_count"], batch_groups=params["batch_group_count"],
    )


def _orders(params):
    """The orders of axes of operands and results: batch, positions, channels; for a kernel
    positions, channels, results.
    """
    numbers = params["dimension_numbers"]
    batch, channels, *positions = numbers.lhs_spec
    outputs, inputs, *kernel = numbers.rhs_spec
    out_batch, out_channels, *out = numbers.out_spec
    return (
        (batch, *positions, channels), (*kernel, inputs, outputs),
        (out_batch, *out, out_channels),
    )


def _conv_products(x_shape, w_shape, params):
    x_order, w_order, _ = _orders(params)
    x_shape, w_shape = [x_shape[axis] for axis in x_order], [w_shape[axis] for axis in w_order]
    return _window(params).products(tuple(x_shape), tuple(w_shape))


def _conv(site, x, w, params):
    """The result of conv_general_dilated in numpy."""
    x_order, w_order, y_order = _orders(params)
    products = site.products
    w = site.operand(1, w.transpose(w_order), products.static_kernel)
    y = products.convolution(site.operator, x.transpose(x_order), w, _window(params))
    return y.transpose(np.argsort(y_order))


def products_of(name: str, a_shape, b_shape, params) -> tuple[tuple[int, int, int, int], ...]:
    """Return count, m, k and n of each product of an operator of JAX."""
    if name == "dot_general":
        return (_dot_shape(a_shape, b_shape, params),)
    return _conv_products(a_shape, b_shape, params)


def _twin(original, compute) -> Primitive:
    """Return the primitive that computes an operator of JAX with ``compute`` on the host."""
    twin = Primitive(f"weft_{original.name}")

    def plain(a, b, params):
        return original.bind(a, b, **params)

    def result(a, b, params):
        return jax.eval_shape(
            functools.partial(plain, params=params),
            jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct(b.shape, b.dtype),
        )

    def on_host(a, b, *, site, out, params):
        with KeptSubnormals():
            y = compute(site, np.asarray(a), np.asarray(b), params)
            return np.asarray(y, out.dtype, order="C")

    @twin.def_abstract_eval
    def _(a, b, *, site, **params):
        out = result(a, b, params)
        return jax.core.ShapedArray(out.shape, out.dtype)

    @twin.def_impl
    def _(a, b, *, site, **params):
        out = result(a, b, params)
        return jax.numpy.asarray(on_host(a, b, site=site, out=out, params=params))

    def lower(ctx, a, b, *, site, **params):
        # What `jax.pure_callback` emits, but with operands that stay numpy arrays: arrays of JAX
        # would be copied by threads of XLA, which wait for this callback on a machine with one.
        out = ctx.avals_out[0]
        call = functools.partial(on_host, site=site, out=out, params=params)
        found, *_ = mlir.emit_python_callback(
            ctx, lambda a, b: (call(a, b),), None, [a, b], ctx.avals_in, ctx.avals_out,
            has_side_effect=False, **_NO_TOKEN,
        )
        return found

    mlir.register_lowering(twin, lower, **_NOT_CACHED)

    def transposed(side):
        def rule(cotangent, a, b, *, site, **params):
            unknown, known = (a, b) if side == 0 else (b, a)
            shape = jax.ShapeDtypeStruct(unknown.aval.shape, unknown.aval.dtype)

            def transpose(cotangent, known):
                linear = (
                    (lambda x: plain(x, known, params)) if side == 0
                    else (lambda x: plain(known, x, params))
                )
                return jax.linear_transpose(linear, shape)(cotangent)

            static = (False, site.static[1 - side])
            return site.derived("transpose", transpose, (cotangent, known), static)[0]

        return rule

    ad.defbilinear(twin, transposed(0), transposed(1))

    def batched(arguments, dims, *, site, **params):
        def batch(a, b):
            return jax.vmap(lambda a, b: plain(a, b, params), in_axes=tuple(dims))(a, b)

        return site.derived("vmap", batch, tuple(arguments), site.static)[0], 0

    batching.primitive_batchers[twin] = batched
    return twin


def _keyword(function, **given):
    """``given`` if a function has such a parameter: older releases of JAX have not."""
    import inspect

    known = inspect.signature(function).parameters
    return {name: value for name, value in given.items() if name in known}


# Newer releases return a token unless they are asked not to.
_NO_TOKEN = _keyword(mlir.emit_python_callback, returns_token=False)
# A lowering that is cached would use the site of another operator.
_NOT_CACHED = _keyword(mlir.register_lowering, cacheable=False)

# By the name of the operator of JAX, the primitive that takes its place.
TWINS = {
    "dot_general": _twin(jax.lax.dot_general_p, _dot),
    "conv_general_dilated": _twin(jax.lax.conv_general_dilated_p, _conv),
}
