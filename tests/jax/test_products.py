"""Products of JAX on a core: each result is a chain of FMA, and its gradients are, too."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_dtypes import bfloat16
from offload_cores import INT8, CountingTransport
from tiers import quick, tiers

from weft import Accelerator
from weft.commands import HEADER_BYTES
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


def chains(eqn, x, w):
    """A convolution of float32 by the definition: a golden chain over the kernel, channels inside.

    A position around the map is +0; one between dilated values takes no part.
    """
    params, out = eqn.params, eqn.outvars[0].aval
    numbers, groups = params["dimension_numbers"], params["feature_group_count"]
    x, w = (
        a.astype(bfloat16).transpose(spec)
        for a, spec in ((x, numbers.lhs_spec), (w, numbers.rhs_spec))
    )
    y = np.zeros(out.shape, np.float32).transpose(numbers.out_spec)
    of_batch, channels = y.shape[1] // params["batch_group_count"], w.shape[1]
    for n, o, *p in np.ndindex(y.shape):
        image = x[o // of_batch * len(y) + n]
        image = image[o // (y.shape[1] // groups) * channels :][:channels]
        row, column = [], []
        for q in np.ndindex(w.shape[2:]):
            spread = [
                at * step + tap * gap - low for at, step, tap, gap, (low, _) in zip(
                    p, params["window_strides"], q, params["rhs_dilation"], params["padding"],
                    strict=True,
                )
            ]
            places = [divmod(at, gap) for at, gap in zip(spread, params["lhs_dilation"],
                                                         strict=True)]
            if any(rest for _, rest in places):
                continue
            place = tuple(at for at, _ in places)
            inside = all(0 <= at < size for at, size in zip(place, x.shape[2:], strict=True))
            row += [image[c][place] if inside else bfloat16(0) for c in range(channels)]
            column += [w[(o, c, *q)] for c in range(channels)]
        if row:
            y[(n, o, *p)] = matmul_bf16(np.array([row]), np.array(column)[:, None])[0, 0]
    return y.transpose(np.argsort(numbers.out_spec))


def same(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    bits = f"u{found.itemsize}"
    assert (found.view(bits) == wanted.view(bits)).all()


@pytest.mark.parametrize("numbers, a_shape, b_shape", quick(4, [*NUMBERS[2:], *NUMBERS[:2]]))
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
        elif eqn.primitive.name == "conv_general_dilated":
            y = chains(eqn, *map(np.asarray, inputs))
        elif eqn.primitive.name in ("jit", "pjit"):
            y = evaluated(eqn.params["jaxpr"], *inputs)
        else:
            assert eqn.primitive.name in ("transpose", "reshape", "squeeze", "mul", "rev")
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


def test_subnormal_numbers(bf16, int8):
    """XLA calls back where the processor makes them 0; the core keeps them."""
    values = np.float32([np.inf, -np.inf, np.nan, 3e38, 1e-40, -3e-39, 1.5e-20, -0.0, 0.0, 1])
    a, b = values.reshape(-1, 1), values.reshape(1, -1)
    f = offload(jnp.matmul, bf16)
    with np.errstate(invalid="ignore"):
        wanted = matmul_bf16(a.astype(bfloat16), b.astype(bfloat16))
    for found in (f(a, b), jax.jit(jax.vmap(f, (0, None)))(a, b)):
        same(found, wanted)
    kinds = np.dtype(np.float32)
    assert (np.abs(wanted[wanted != 0]) < np.finfo(kinds).tiny).any()
    a, b = np.float32([[1e-38, -3e-39]]), np.float32([[2], [1e20]])
    qa, qb = quantized(a, (1,)), quantized(b, (0,))
    wanted = np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale)
    same(offload(jnp.matmul, int8, "int8")(a, b), wanted)
    assert wanted[0, 0] != 0
    # XLA's own arithmetic is as before.
    g = jax.jit(lambda a, b: (f(a, b), a * jnp.float32(0.5)))
    same(g(a, b)[1], jax.jit(lambda a: a * jnp.float32(0.5))(a))


CONVOLUTIONS = {
    "NHWC": ((2, 6, 5, 3), (3, 2, 3, 4), ("NHWC", "HWIO", "NHWC"), {"window_strides": (2, 1)}),
    "NCHW": ((2, 4, 6, 5), (6, 4, 3, 2), ("NCHW", "OIHW", "NHWC"), {"padding": ((1, 2), (0, 3))}),
    "grouped": ((1, 6, 5, 4), (2, 3, 2, 6), ("NHWC", "HWIO", "NCHW"), {"feature_group_count": 2}),
    "grouped, strides": (
        (2, 7, 6, 4), (3, 3, 2, 4), ("NHWC", "HWIO", "NHWC"),
        {"feature_group_count": 2, "window_strides": (3, 2), "padding": ((2, 1), (1, 1))},
    ),
    "batch groups": ((4, 5, 5, 2), (2, 2, 2, 6), ("NHWC", "HWIO", "NHWC"),
                     {"batch_group_count": 2}),
    "dilated": ((1, 5, 6, 2), (2, 3, 2, 3), ("NHWC", "HWIO", "NHWC"),
                {"lhs_dilation": (2, 3), "rhs_dilation": (3, 1), "padding": ((3, -1), (2, 2))}),
    "dilated, strides": (
        (1, 7, 6, 2), (2, 2, 2, 3), ("NHWC", "HWIO", "NHWC"),
        {"window_strides": (2, 3), "rhs_dilation": (2, 1), "padding": ((2, 1), (0, 1))},
    ),
    "one dimension": ((2, 7, 2), (3, 2, 3), ("NWC", "WIO", "NWC"), {"window_strides": (2,)}),
    "three dimensions": ((1, 3, 4, 3, 2), (2, 2, 1, 2, 2), ("NDHWC", "DHWIO", "NDHWC"), {}),
}


def convolution(case):
    """The shapes of a map and of a kernel, and the function of both."""
    x_shape, w_shape, names, given = CONVOLUTIONS[case]
    given = {"window_strides": (1,) * (len(x_shape) - 2), "padding": "VALID"} | given
    return x_shape, w_shape, lambda x, w: jax.lax.conv_general_dilated(
        x, w, dimension_numbers=names, **given
    )


@pytest.mark.parametrize("case", tiers(
    {case: case for case in CONVOLUTIONS}, "NCHW", "grouped, strides", "batch groups",
    "dilated, strides", "three dimensions",
))
def test_convolutions_and_their_gradients(case, bf16, rng):
    """Small integers are exact in bfloat16 and float32: XLA's results are a third party's."""
    x_shape, w_shape, conv = convolution(case)
    x, w = (rng.integers(-8, 9, shape).astype(np.float32) for shape in (x_shape, w_shape))
    f = offload(conv, bf16)
    y = conv(x, w)
    same(f(x, w), y)
    ct = jnp.asarray(rng.integers(-8, 9, y.shape), jnp.float32)
    gradients = (jax.jit(lambda f=f: jax.vjp(f, x, w)[1](ct))() for f in (f, conv))
    for found, wanted in zip(*gradients, strict=True):
        same(found, wanted)
    assert all(row.operator.on_weft for row in f.report().rows if row.operator.products)
    assert f.report().macs > 0


@pytest.mark.parametrize("case", quick(2, [*CONVOLUTIONS]))
def test_convolutions_and_their_gradients_are_chains(case, bf16, rng):
    """The gradients are convolutions of the cotangent: those of JAX, by the definition."""
    x_shape, w_shape, conv = convolution(case)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in (x_shape, w_shape))
    f = offload(conv, bf16)
    y = f(x, w)
    same(y, evaluated(jax.make_jaxpr(conv)(x, w), x, w))
    ct = rng.normal(size=y.shape).astype(np.float32)
    found = jax.vjp(f, x, w)[1](jnp.asarray(ct))
    for side, linear in enumerate((lambda x: conv(x, w), lambda w: conv(x, w))):
        closed = jax.make_jaxpr(
            lambda c, linear=linear, side=side: jax.linear_transpose(linear, (x, w)[side])(c)[0]
        )(ct)
        same(found[side], evaluated(closed, ct))


def test_int8_scales_rows_and_columns(int8, rng):
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((5, 33), (33, 6)))
    qa, qb = quantized(a, (1,)), quantized(b, (0,))
    want = np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale)
    for weights in ((), 1, (1,), (0, 1)):
        f = offload(jnp.matmul, int8, "int8", weights=weights)
        same(f(a, b), want)
        same(f(a, b), want)
        same(jax.vmap(f, (0, None))(a, b), want)  # a sample does not depend on the others


def test_int8_samples_of_a_batch_do_not_depend_on_each_other(int8, rng):
    """Convolutions, with very different samples: `vmap` changes no bit, nor that of a gradient."""
    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=2)

    f = offload(conv, int8, "int8")
    g = jax.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1))
    sizes = np.float32([1, 10, 100]).reshape(3, 1, 1, 1, 1)
    x = jnp.asarray(rng.normal(size=(3, 2, 4, 4, 2)) * sizes, jnp.float32)
    w = jnp.asarray(rng.normal(size=(3, 2, 2, 1, 4)) * sizes, jnp.float32)
    for function, axes in ((f, (0, 0)), (f, (0, None)), (f, (None, 0)), (g, (0, 0))):
        given = [v if axis == 0 else v[0] for v, axis in zip((x, w), axes, strict=True)]
        found = jax.vmap(function, axes)(*given)
        alone = [
            function(*(v[n] if axis == 0 else v for v, axis in zip(given, axes, strict=True)))
            for n in range(3)
        ]
        jax.tree.map(same, found, jax.tree.map(lambda *parts: jnp.stack(parts), *alone))


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


def test_int8_weights_are_sent_once(rng):
    """Weights of an argument, a constant, and a kernel; the map and the rows with each call."""
    transport = CountingTransport(INT8)
    core = Accelerator(transport)
    constant = jnp.asarray(rng.normal(size=(6, 5)), jnp.float32)
    p = {"w": rng.normal(size=(6, 9)), "k": rng.normal(size=(2, 2, 3, 6))}
    p = jax.tree.map(lambda w: jnp.asarray(w, jnp.float32), p)
    x = jnp.asarray(rng.normal(size=(2, 4, 3, 3)), jnp.float32)

    def network(p, x):
        hidden = jax.lax.conv_general_dilated(
            x, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (hidden @ constant).sum() + (hidden @ p["w"])

    f = offload(network, core, "int8", weights=0)
    y = jax.block_until_ready(f(p, x))
    # Panels of 4 columns with k of 12, 6 and 6: a word of the stream, 16 bytes, has 4 of k.
    weights = sorted([2 * 3 * 16, 2 * 2 * 16, 3 * 2 * 16])
    first, loads = transport.sent, sorted(transport.taken())
    assert loads == weights
    same(f(p, x), y)
    jax.effects_barrier()
    # Each load of weights had a header, and an empty job after it.
    assert transport.sent - first == first - sum(weights) - 3 * 2 * HEADER_BYTES
    assert transport.taken() == []
    changed = p | {"w": p["w"] + 1}
    fresh = offload(network, Accelerator(CountingTransport(INT8)), "int8")
    same(f(changed, x), fresh(changed, x))
    assert transport.taken() == [3 * 2 * 16]


def test_int8_arrays_are_sent_once(rng):
    """An argument that is weights, a constant, and a kernel of int8; the sums are exact."""
    transport = CountingTransport(INT8)
    w, fixed, kernel, x, maps = (
        jnp.asarray(rng.integers(-128, 128, shape, np.int8))
        for shape in ((9, 6), (9, 5), (2, 2, 3, 6), (4, 9), (2, 4, 3, 3))
    )

    def network(p, x, maps):
        products = [jnp.matmul(x, b, preferred_element_type=jnp.int32) for b in (p["w"], fixed)]
        return *products, jax.lax.conv_general_dilated(
            maps, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=jnp.int32,
        )

    f = offload(network, Accelerator(transport), "int8", weights=0)
    for p in ({"w": w, "k": kernel}, {"w": w ^ 1, "k": kernel}):
        wanted = network(p, x, maps)
        loads = []
        for _ in range(3):
            for found, exact in zip(f(p, x, maps), wanted, strict=True):
                same(found, exact)
            loads.append(sorted(transport.taken()))
        # Panels of 4 columns: 9 of k need 5 words of 2, 8 bytes each, in a stream of 16 bytes.
        first = [2 * 3 * 16, 2 * 3 * 16, 2 * 3 * 16] if p["w"] is w else [2 * 3 * 16]
        assert loads == [first, [], []]
    sent = transport.sent
    changing = offload(network, Accelerator(transport), "int8")  # nothing says what are weights
    for _ in range(2):
        jax.block_until_ready(changing(p, x, maps))
    assert len(transport.taken()) >= 2 * 2 + 1 and transport.sent > sent


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


def test_rejects_weights_that_are_no_argument(int8):
    with pytest.raises(TypeError, match="weights must be numbers of arguments, not 'p'"):
        offload(jnp.matmul, int8, "int8", weights="params")
    with pytest.raises(ValueError, match="weights must be 0 or more, not -1"):
        offload(jnp.matmul, int8, "int8", weights=(0, -1))
    f = offload(jnp.matmul, int8, "int8", weights=1)
    message = "weights must be below 1, the number of arguments by position, not 1"
    with pytest.raises(ValueError, match=message):
        f(jnp.eye(2), b=jnp.eye(2))
