"""Functions of JAX with their products on a core: transformations, control flow, report, errors.

Products of small integers are exact in bfloat16 and float32, so that XLA's results are expected to
the last bit; nothing but the products may differ.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import tiers

from weft import Accelerator
from weft.host import GoldenTransport
from weft.jax import offload


def integers(rng, *shape):
    return jnp.asarray(rng.integers(-2, 3, shape), jnp.float32)


@jax.custom_jvp
def doubled(x, w):
    return x @ w


@doubled.defjvp
def _(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    return x @ w, 2 * (dx @ w) + x @ dw  # not the derivative


@jax.custom_vjp
def tripled(x, w):
    return x @ w


tripled.defvjp(
    lambda x, w: (x @ w, (x, w)), lambda kept, c: (3 * (c @ kept[1].T), kept[0].T @ c)
)


def scanned(x, w):
    def turn(carry, row):
        carry = jnp.clip(carry @ w + row, -2, 2)
        return carry, (carry * row).sum()

    carry, sums = jax.lax.scan(turn, x, jnp.stack([x, x + 1, x - 1]))
    return carry + jnp.sign(sums.sum())


def looped(x, w):
    return jax.lax.while_loop(
        lambda c: c[0] + 0 * (c[1] @ w).sum() < 2, lambda c: (c[0] + 1, c[1] @ w), (0.0, x)
    )[1]


FUNCTIONS = {
    "plain": lambda x, w: jax.nn.relu(x @ w) * 2,
    "jit inside": lambda x, w: jax.jit(lambda x: (x @ w) @ w)(x),
    "scan": scanned,
    "counted loop": lambda x, w: jax.lax.fori_loop(0, 3, lambda n, c: jnp.clip(c @ w, -2, 2), x),
    "cond": lambda x, w: jax.lax.cond(x[0, 0] > 0, lambda c: c @ w, lambda c: c @ w.T, x),
    "switch": lambda x, w: jax.lax.switch(
        2, [lambda c: c, lambda c: c @ w, lambda c: (c @ w) @ w], x),
    "checkpoint": jax.checkpoint(lambda x, w: jnp.clip(x @ w, -3, 3) @ w),
    "custom_jvp": doubled,
    "custom_vjp": tripled,
    "custom_vjp in scan": lambda x, w: jax.lax.scan(
        lambda c, _: (jnp.clip(tripled(c, w), -2, 2), None), x, None, length=2)[0],
    "vmap inside": lambda x, w: jax.vmap(lambda row: row @ w)(x),
    "grad inside": lambda x, w: jax.grad(lambda x: ((x @ w) ** 2).sum())(x),
}


@pytest.mark.parametrize("name", tiers(
    {name: name for name in FUNCTIONS}, "plain", "jit inside", "scan", "counted loop", "cond",
    "custom_jvp", "custom_vjp", "grad inside",
))
def test_transformations(name, bf16, rng):
    """Values, gradients before and after `offload`, batches, and all in `jit`."""
    f = FUNCTIONS[name]
    x, w = integers(rng, 3, 4), integers(rng, 4, 4)

    def loss(f):
        return lambda x, w: (f(x, w) * (jnp.arange(12.0) % 3 - 1).reshape(3, 4)).sum()

    on_core = offload(f, bf16)
    assert np.array_equal(on_core(x, w), jax.jit(f)(x, w))
    wanted = jax.jit(jax.grad(loss(f), (0, 1)))(x, w)
    for gradient in (jax.jit(jax.grad(loss(on_core), (0, 1))),
                     offload(jax.grad(loss(f), (0, 1)), bf16)):
        for a, b in zip(gradient(x, w), wanted, strict=True):
            assert np.array_equal(a, b)
    xs = jnp.stack([x, x + 1])
    assert np.array_equal(
        jax.jit(jax.vmap(on_core, (0, None)))(xs, w), jax.jit(jax.vmap(f, (0, None)))(xs, w)
    )
    products = [row for row in on_core.report().rows if row.operator.products]
    assert products and all(row.operator.on_weft for row in products)


def test_a_loop_with_a_product_in_its_condition(bf16, rng):
    x, w = integers(rng, 3, 4), jnp.eye(4)
    f = offload(looped, bf16)
    assert np.array_equal(f(x, w), looped(x, w))
    assert [row.calls for row in f.report().on_weft] == [5]  # 3 and 2


def test_derivatives_of_any_kind(bf16, rng):
    x, w = integers(rng, 3, 4), integers(rng, 4, 4)

    def cubed(x):
        return ((x @ w) ** 3).sum()

    f = offload(cubed, bf16)
    for derive in (jax.jacfwd, jax.jacrev, jax.hessian):
        assert np.array_equal(jax.jit(derive(f))(x), jax.jit(derive(cubed))(x))
    rows = jnp.stack([x, -x])
    found, wanted = (jax.jit(jax.vmap(jax.grad(function)))(rows) for function in (f, cubed))
    assert np.array_equal(found, wanted)


def test_both_operands_of_a_batch(bf16, rng):
    x, w = integers(rng, 5, 3, 4), integers(rng, 4, 5, 2)
    f = offload(jnp.matmul, bf16)
    wanted = jax.vmap(jnp.matmul, (0, 1), 1)(x, w)
    assert np.array_equal(jax.vmap(f, (0, 1), 1)(x, w), wanted)
    k = integers(rng, 2, 2, 2, 2, 3)
    maps = integers(rng, 2, 1, 4, 4, 2)

    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    assert np.array_equal(jax.vmap(offload(conv, bf16))(maps, k), jax.vmap(conv)(maps, k))


def test_trees_and_keywords(bf16, rng):
    x, w = integers(rng, 3, 4), integers(rng, 4, 4)
    f = offload(lambda p, *, x: {"y": x @ p["w"], "none": None, "same": p["w"]}, bf16)
    y = f({"w": w}, x=x)
    assert np.array_equal(y["y"], x @ w) and y["none"] is None and np.array_equal(y["same"], w)


FLOATS_ONLY = "the core computes products of float32, float16 and bfloat16"


def test_what_the_core_cannot_compute_runs_in_xla(bf16, rng):
    x = jnp.asarray(rng.integers(-9, 9, (3, 3)), jnp.int32)
    f = offload(lambda x: (x @ x, x.astype(jnp.float32)[:0] @ x.astype(jnp.float32)), bf16)
    y, empty = f(x)
    assert np.array_equal(y, x @ x) and empty.shape == (0, 3)
    report = f.report()
    assert report.on_weft == () and report.cycles == 0
    assert report.reasons() == [
        f"on XLA: dot_general: int32 x int32 -> int32: {FLOATS_ONLY}",
        "on XLA: dot_general: the product is empty",
    ]


def test_products_inside_operators_that_stay(bf16):
    """The functions inside custom_linear_solve are used in several ways; XLA has them."""
    a = jnp.asarray([[4.0, 1], [2, 3]])

    def solve(b):
        return jax.lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, b: jnp.linalg.solve(a, b), symmetric=False,
            transpose_solve=lambda _, b: jnp.linalg.solve(a.T, b),
        )

    f = offload(solve, bf16)
    b = jnp.asarray([1.0, 2])
    assert np.array_equal(f(b), jax.jit(solve)(b))
    assert f.report().reasons()[0].endswith("it is inside custom_linear_solve")


def test_operators_with_products_inside(bf16, rng):
    x, w = integers(rng, 3, 4), integers(rng, 2, 4, 2)

    def f(x, w):
        return jax.lax.ragged_dot(x, w, jnp.asarray([2, 1])), jnp.linalg.cholesky(jnp.eye(3) * 4)

    on_core = offload(f, bf16)
    for found, wanted in zip(on_core(x, w), jax.jit(f)(x, w), strict=True):
        assert np.array_equal(found, wanted)
    reasons = on_core.report().reasons()
    kinds = [reason.removesuffix(": XLA computes the products inside it") for reason in reasons]
    assert len(kinds) == 2 and kinds[1] == "on XLA: cholesky"
    assert kinds[0].removesuffix("_general") == "on XLA: ragged_dot"  # JAX has renamed it


def test_a_product_of_another_core_is_in_its_own_report(bf16, rng):
    other = offload(jnp.matmul, Accelerator(GoldenTransport(bf16.config)))
    x, w = integers(rng, 3, 4), integers(rng, 4, 4)
    f = offload(lambda x, w: other(x, w) @ w, bf16)
    assert np.array_equal(f(x, w), x @ w @ w)
    for report in (f.report(), other.report()):
        assert report.macs == 48 and [row.operator.kind for row in report.rows] == ["dot_general"]


def test_the_report_names_scopes_and_lines(bf16, rng):
    x, w = integers(rng, 3, 4), integers(rng, 4, 4)

    def net(x, w):
        with jax.named_scope("layer1"):
            x = x @ w
        return jax.jit(lambda x: x @ w)(x)

    f = offload(jax.grad(lambda x, w: (net(x, w) ** 2).sum()), bf16)
    jax.block_until_ready(f(x, w))
    names = [row.operator.name for row in f.report().on_weft]
    assert "layer1" in names[0] and "test_functions.py:" in names[0] and "net" in names[0]
    text = str(f.report())
    assert "on Weft" in text.splitlines()[0] and "on XLA" in text.splitlines()[0]
    f.record.clear()
    assert f.report().cycles == 0
    jax.block_until_ready([f(x, w), f(x, w)])
    report = f.report()
    assert all(row.calls == 2 * row.uses for row in report.on_weft)
    assert report.macs == sum(row.calls * row.operator.macs for row in report.on_weft) > 0


def test_an_error_inside_jit_names_the_operator(int8):
    def layer(x):
        with jax.named_scope("layer7"):
            return x @ x

    f = jax.jit(offload(layer, int8, "int8"))
    with pytest.raises(Exception, match=r"dot_general at .*layer7.* failed on Weft: operands must"):
        jax.block_until_ready(f(jnp.full((2, 2), jnp.nan)))
    assert np.array_equal(f(jnp.eye(2)), np.eye(2))  # the next call works


def test_threads(bf16, rng):
    x, w = integers(rng, 8, 3, 4), integers(rng, 4, 4)
    gradient = jax.jit(jax.grad(offload(lambda x, w: (jax.nn.relu(x @ w) @ w).sum(), bf16)))
    plain = jax.jit(jax.grad(lambda x: (jax.nn.relu(x @ w) @ w).sum()))
    wanted = [plain(part) for part in x]
    start = threading.Barrier(4)

    def work(first):
        start.wait()
        return [gradient(x[n], w) for n in range(first, 8, 4) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for first, parts in enumerate(found):
        for n, y in enumerate(parts):
            assert np.array_equal(y, wanted[first + 4 * (n // 5)])


def test_threads_with_weights_that_stay(int8, rng):
    """Two models on one core, and one model on two cores; some threads have other weights."""
    other = Accelerator(GoldenTransport(int8.config))
    x = jnp.asarray(rng.integers(-128, 128, (2, 9), np.int8))
    weights = [jnp.asarray(rng.integers(-128, 128, (9, 5), np.int8)) for _ in range(3)]

    def model(w, x):
        return jnp.matmul(x, w, preferred_element_type=jnp.int32)

    models = [offload(model, core, "int8", weights=0) for core in (int8, int8, other)]
    wanted = [np.asarray(model(w, x)) for w in weights]
    for f in models:
        f(weights[0], x)
    start = threading.Barrier(4)

    def work(thread):
        start.wait()
        return [
            np.array_equal(models[turn % 3](weights[number], x), wanted[number])
            for turn in range(12) for number in ((thread + turn // 3) % 3,)
        ]

    with ThreadPoolExecutor(4) as pool:
        assert all(all(found) for found in pool.map(work, range(4)))
