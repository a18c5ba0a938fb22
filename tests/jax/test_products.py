"""Products of JAX on a core: each result is a chain of FMA, and its gradients are, too."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_dtypes import bfloat16

from weft.golden import matmul, matmul_bf16
from weft.jax import offload
from weft.offload.quantization import quantized

NUMBERS = [  # contracted axes of a and b, batch axes of a and b, for shapes below
    ((((1,), (0,)), ((), ())), (3, 7), (7, 5)),
    ((((0,), (1,)), ((), ())), (7, 3), (5, 7)),
    ((((2,), (1,)), ((0,), (0,))), (2, 3, 7), (2, 7, 5)),
    ((((1, 3), (2, 0)), ((2,), (1,))), (3, 4, 2, 5), (5, 2, 4, 6)),
    ((((0,), (0,)), ((), ())), (7,), (7,)),
    ((((), ()), ((), ())), (3, 2), (4,)),
    ((((1,), (2,)), ((2, 0), (0, 3))), (3, 5, 2), (2, 4, 5, 3)),
]


def chain(numbers, a, b):
    """The dot_general of float32 operands by the definition, with a golden chain a result."""
    (a_sum, b_sum), (a_batch, b_batch) = numbers
    a_free = [n for n in range(a.ndim) if n not in (*a_sum, *a_batch)]
    b_free = [n for n in range(b.ndim) if n not in (*b_sum, *b_batch)]
    sizes = [a.shape[n] for n in (*a_batch, *a_free)] + [b.shape[n] for n in b_free]
    y = np.zeros(sizes, np.float32)
    for place in np.ndindex(*sizes):
        batch = place[: len(a_batch)]
        left = dict(zip(a_batch, batch, strict=True))
        left |= zip(a_free, place[len(a_batch) : len(a_batch) + len(a_free)], strict=True)
        right = dict(zip(b_batch, batch, strict=True))
        right |= zip(b_free, place[len(a_batch) + len(a_free) :], strict=True)
        row, column = [], []
        for q in itertools.product(*(range(a.shape[n]) for n in a_sum)):
            at, to = left | dict(zip(a_sum, q, strict=True)), right | dict(
                zip(b_sum, q, strict=True)
            )
            row.append(a[tuple(at[n] for n in range(a.ndim))])
            column.append(b[tuple(to[n] for n in range(b.ndim))])
        x, w = (np.array(v, np.float32).astype(bfloat16) for v in (row, column))
        y[place] = matmul_bf16(x[None], w[:, None])[0, 0]
    return y


def same(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    bits = f"u{found.itemsize}"
    assert (found.view(bits) == wanted.view(bits)).all()


@pytest.mark.parametrize("numbers, a_shape, b_shape", NUMBERS)
def test_dot_general_and_its_gradients(numbers, a_shape, b_shape, bf16, rng):
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in (a_shape, b_shape))
    f = offload(lambda a, b: jax.lax.dot_general(a, b, numbers), bf16)
    y = f(a, b)
    same(y, chain(numbers, a, b))
    # The gradients are products of the cotangent: those of JAX, evaluated by the definition.
    ct = rng.normal(size=y.shape).astype(np.float32)
    _, pull = jax.vjp(f, a, b)
    found = pull(jnp.asarray(ct))

    def wanted(side):
        linear = (lambda x: jax.lax.dot_general(x, b, numbers)) if side == 0 else (
            lambda x: jax.lax.dot_general(a, x, numbers))
        closed = jax.make_jaxpr(lambda c: jax.linear_transpose(linear, (a, b)[side])(c)[0])(ct)
        return evaluated(closed, ct)

    same(found[0], wanted(0))
    same(found[1], wanted(1))


def evaluated(closed, *arguments):
    """The results of a jaxpr of plain operators, with golden chains as products."""
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    values |= dict(zip(closed.jaxpr.invars, arguments, strict=True))
    for eqn in closed.jaxpr.eqns:
        inputs = [var.val if hasattr(var, "val") else values[var] for var in eqn.invars]
        if eqn.primitive.name == "dot_general":
            y = chain(eqn.params["dimension_numbers"], *map(np.asarray, inputs))
        elif eqn.primitive.name in ("jit", "pjit"):
            y = evaluated(eqn.params["jaxpr"], *inputs)
        else:
            assert eqn.primitive.name in ("transpose", "reshape", "squeeze", "mul")
            y = eqn.primitive.bind(*map(jnp.asarray, inputs), **eqn.params)
        values[eqn.outvars[0]] = y
    return values[closed.jaxpr.outvars[0]]


@pytest.mark.parametrize("a_type, b_type, out", [
    (jnp.bfloat16, jnp.bfloat16, jnp.bfloat16), (jnp.bfloat16, jnp.bfloat16, jnp.float32),
    (jnp.float16, jnp.float16, jnp.float16), (jnp.float32, jnp.float32, jnp.float32),
])
def test_types(a_type, b_type, out, bf16, rng):
    a = jnp.asarray(rng.normal(size=(5, 9)), a_type)
    b = jnp.asarray(rng.normal(size=(9, 4)), b_type)
    y = offload(lambda a, b: jnp.matmul(a, b, preferred_element_type=out), bf16)(a, b)
    want = matmul_bf16(*(np.asarray(x).astype(np.float32).astype(bfloat16) for x in (a, b)))
    same(y, want.astype(np.dtype(out)))


CONVOLUTIONS = {
    "NHWC": ((2, 6, 5, 3), (3, 2, 3, 4), ("NHWC", "HWIO", "NHWC"), {"window_strides": (2, 1)}),
    "NCHW": ((2, 4, 6, 5), (6, 4, 3, 2), ("NCHW", "OIHW", "NHWC"), {"padding": ((1, 2), (0, 3))}),
    "grouped": ((1, 6, 5, 4), (2, 3, 2, 6), ("NHWC", "HWIO", "NCHW"), {"feature_group_count": 2}),
    "batch groups": ((4, 5, 5, 2), (2, 2, 2, 6), ("NHWC", "HWIO", "NHWC"),
                     {"batch_group_count": 2}),
    "dilated": ((1, 5, 6, 2), (2, 3, 2, 3), ("NHWC", "HWIO", "NHWC"),
                {"lhs_dilation": (2, 3), "rhs_dilation": (3, 1), "padding": ((3, -1), (2, 2))}),
    "one dimension": ((2, 7, 2), (3, 2, 3), ("NWC", "WIO", "NWC"), {"window_strides": (2,)}),
    "three dimensions": ((1, 3, 4, 3, 2), (2, 2, 1, 2, 2), ("NDHWC", "DHWIO", "NDHWC"), {}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_and_their_gradients(case, bf16, rng):
    """Small integers are exact in bfloat16 and float32: XLA's results are a third party's."""
    x_shape, w_shape, names, given = CONVOLUTIONS[case]
    given = dict(given)
    x, w = (rng.integers(-8, 9, shape).astype(np.float32) for shape in (x_shape, w_shape))
    steps = given.pop("window_strides", (1,) * (x.ndim - 2))
    padding = given.pop("padding", "VALID")

    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, steps, padding, dimension_numbers=names, **given
        )

    f = offload(conv, bf16)
    y = conv(x, w)
    same(f(x, w), y)
    ct = jnp.asarray(rng.integers(-8, 9, y.shape), jnp.float32)
    gradients = (jax.jit(lambda f=f: jax.vjp(f, x, w)[1](ct))() for f in (f, conv))
    for found, wanted in zip(*gradients, strict=True):
        same(found, wanted)
    assert all(row.operator.on_weft for row in f.report().rows if row.operator.products)
    assert f.report().macs > 0


def test_a_convolution_is_a_chain(bf16, rng):
    """A 1 x 1 convolution is a product; the order of larger ones is in tests/offload."""
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 3, 9), (1, 1, 9, 4)))
    f = offload(lambda x, w: jax.lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")), bf16)
    want = matmul_bf16(x.reshape(18, 9).astype(bfloat16), w.reshape(9, 4).astype(bfloat16))
    same(f(x, w), want.reshape(2, 3, 3, 4))


def test_int8_scales_rows_and_columns(int8, rng):
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((5, 33), (33, 6)))
    qa, qb = quantized(a, (1,)), quantized(b, (0,))
    want = np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale)
    for weights in ((), 1, (1,), (0, 1)):
        f = offload(jnp.matmul, int8, "int8", weights=weights)
        same(f(a, b), want)
        same(f(a, b), want)
        same(jax.vmap(f, (0, None))(a, b), want)  # a sample does not depend on the others


def test_int8_weights_are_quantized_once(int8, rng, monkeypatch):
    from weft.offload import products

    seen = []

    def counted(array, axes):
        seen.append(array.shape)
        return quantized(array, axes)

    monkeypatch.setattr(products, "quantized", counted)
    b = rng.normal(size=(6, 9)).astype(np.float32)
    constant = jnp.asarray(b)
    x = rng.normal(size=(4, 9)).astype(np.float32)
    f = offload(lambda p, x: (x @ p["w"].T) @ constant[:, :2], int8, "int8", weights=0)
    y = f({"w": b}, x)
    same(f({"w": b}, x), y)
    assert sorted(seen) == [(1, 4, 6), (1, 4, 6), (1, 4, 9), (1, 4, 9), (1, 6, 2), (1, 9, 6)]
    seen.clear()
    f({"w": b + 1}, x)
    assert sorted(seen) == [(1, 4, 6), (1, 4, 9), (1, 9, 6)]


def test_int8_sums_are_exact(int8, rng):
    a, b = (rng.integers(-128, 128, s, np.int8) for s in ((5, 300), (300, 4)))
    f = offload(lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.int32), int8, "int8")
    same(f(a, b), a.astype(np.int32) @ b.astype(np.int32))
    assert f.report().macs == 6000


def test_rejects(bf16):
    with pytest.raises(TypeError, match="function must be callable, not 3"):
        offload(3, bf16)
    with pytest.raises(ValueError, match="weights must be absent where dtype is bf16, not 0"):
        offload(jnp.matmul, bf16, weights=0)
    with pytest.raises(ValueError, match="dtype must be 'bf16', the type of the core, not 'int8'"):
        offload(jnp.matmul, bf16, "int8")
