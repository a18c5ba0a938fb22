"""Tests of parameters per product of a batch, against golden product by product."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import accelerator, integers
from rejects import rejects

from weft import Config
from weft.golden import activate, add_bias, matmul, requantize
from weft.quantize import quantize_multiplier

SMALL = {"rows": 3, "cols": 5, "depth": 2, "a_words": 64, "b_words": 64}
CONFIGS = [
    Config(requantize=mode, b_zero_point="column", **SMALL) for mode in ("tflite", "single", "onnx")
]
SHAPES = [  # of A, of B, of the batch
    ((4, 3, 7), (4, 7, 6), (4,)),        # a product for each
    ((4, 3, 7), (7, 6), (4,)),           # rows of one product, unless parameters differ
    ((3, 7), (4, 7, 6), (4,)),           # columns of one product
    ((7,), (4, 7, 6), (4,)), ((4, 3, 7), (7,), (4,)), ((7,), (7, 6), ()),
    ((2, 1, 3, 7), (4, 7, 6), (2, 4)), ((2, 4, 3, 7), (4, 7, 6), (2, 4)),
    ((1, 3, 7), (1, 7, 6), (1,)), ((2, 2, 1, 3), (3, 11), (2, 2)),
]


def product_by_product(config, a, b, lead, given, of_rows=()):
    """Golden's result of each product, with its own part of ``given``."""
    a = a[None] if a.ndim == 1 else a
    b = b[:, None] if b.ndim == 1 else b
    m, n = a.shape[-2], b.shape[-1]
    ends = {name: (m if name in of_rows else n,) for name in given} | {"activation": (256,)}
    given = {name: np.broadcast_to(x, (*lead, *ends[name])) for name, x in given.items()}
    a, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    results = [one(config, a[i], b[i], **{name: x[i] for name, x in given.items()})
               for i in np.ndindex(lead)]
    return np.array(results).reshape(*lead, m, n)


def one(config, a, b, *, scale, bias=0, a_zero_point=None, b_zero_point=None, zero_point=0,
        low=None, high=None, activation=None):
    """A product of matrices whose zero points and clamp are the same in every column."""
    if a_zero_point is not None:
        a_zero_point = int(a_zero_point[0])
    acc = add_bias(matmul(a, b, a_zero_point=a_zero_point, b_zero_point=b_zero_point), bias)
    given = {"scale": scale.astype(np.float32)}
    if config.requantize != "onnx":
        given = dict(zip(("multiplier", "shift"), quantize_multiplier(scale), strict=True))
    y = [
        requantize(
            acc[:, n], **{name: x[n] for name, x in given.items()}, mode=config.requantize,
            zero_point=int(zero_point[n]), low=int(low[n]), high=int(high[n]),
        )
        for n in range(acc.shape[1])
    ]
    y = np.stack(y, axis=1)
    return y if activation is None else activate(y, activation)


def check(result, want, shape):
    assert (result.dtype, result.shape) == (want.dtype, shape)
    assert np.array_equal(result, want.reshape(shape))


def of_a_batch(draw, lead, last):
    """A shape that broadcasts to the batch and ``last``."""
    axes = [draw(st.sampled_from([1, extent])) for extent in (*lead, last)]
    return tuple(axes[draw(st.integers(0, len(axes))) :])


@st.composite
def products(draw):
    config, (a, b, lead) = draw(st.sampled_from(CONFIGS)), draw(st.sampled_from(SHAPES))
    n = b[-1] if len(b) > 1 else 1
    names = ["scale", "bias", "b_zero_point", "zero_point", "low", "high"]
    shapes = {name: of_a_batch(draw, lead, n) for name in names}
    shapes["a_zero_point"] = of_a_batch(draw, lead, 1)
    if draw(st.booleans()):
        shapes["activation"] = (*of_a_batch(draw, lead, 1)[:-1], 256)
    return config, a, b, lead, shapes, draw(st.integers(0, 99))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(products())
def test_each_product_of_a_batch_has_its_own_parameters(drawn):
    config, a_shape, b_shape, lead, shapes, seed = drawn
    rng = np.random.default_rng(seed)
    a, b = integers(rng, np.int8, *a_shape), integers(rng, np.int8, *b_shape)
    kinds = {
        "scale": lambda shape: 2.0 ** rng.uniform(-12, -6, shape),
        "bias": lambda shape: rng.integers(-(1 << 14), 1 << 14, shape),
        "low": lambda shape: rng.integers(-128, -20, shape),
        "high": lambda shape: rng.integers(20, 128, shape),
    }
    given = {
        name: kinds[name](shape) if name in kinds else integers(rng, np.int8, *shape)
        for name, shape in shapes.items()
    }
    want = product_by_product(config, a, b, lead, given, of_rows=("a_zero_point",))
    shape = np.matmul(np.zeros(a_shape), np.zeros(b_shape)).shape
    check(accelerator(config).matmul(a, b, **given), want, shape)


def test_multipliers_and_residents_work_with_a_batch():
    config = CONFIGS[0]
    rng = np.random.default_rng(1)
    a, b = integers(rng, np.int8, 4, 3, 20), integers(rng, np.int8, 20, 7)
    scale = 2.0 ** rng.uniform(-12, -6, (4, 7))
    multiplier, shift = quantize_multiplier(scale)
    given = {"bias": rng.integers(-9999, 9999, (4, 1)), "low": [-100], "high": [100]}
    shared = {"zero_point": 3, "a_zero_point": -5}
    want = product_by_product(
        config, a, b, (4,), given | shared | {"scale": scale}, of_rows=("a_zero_point",)
    )
    acc = accelerator(config)
    with acc.load(b) as held:
        got = acc.matmul(a, held, multiplier=multiplier, shift=shift, **given, **shared)
    check(got, want, (4, 3, 7))
    with acc.load(a[0], side="a") as held:
        got = acc.matmul(held, np.stack([b, b[::-1], b, b]), scale=scale, **given, **shared)
    check(got[0], want[0], (3, 7))


@pytest.mark.parametrize("a_shape, b_shape, lead", SHAPES)
def test_each_product_may_have_its_own_table(a_shape, b_shape, lead):
    rng = np.random.default_rng(6)
    a, b = integers(rng, np.int8, *a_shape), integers(rng, np.int8, *b_shape)
    given = {
        "scale": np.float64(0.01), "activation": integers(rng, np.int8, *lead, 256),
        "low": -128, "high": 127,
    }
    want = product_by_product(CONFIGS[2], a, b, lead, given | {"zero_point": 0})
    shape = np.matmul(np.zeros(a_shape), np.zeros(b_shape)).shape
    check(accelerator(CONFIGS[2]).matmul(a, b, **given), want, shape)


def test_zero_points_and_bias_per_product():
    rng = np.random.default_rng(2)
    for a_shape, b_shape, lead in SHAPES[:5]:
        a, b = integers(rng, np.uint8, *a_shape), integers(rng, np.int8, *b_shape)
        x = a[None] if a.ndim == 1 else a
        y = b[:, None] if b.ndim == 1 else b
        p = integers(rng, np.uint8, *lead, x.shape[-2])
        q = integers(rng, np.int8, *lead, y.shape[-1])
        bias = rng.integers(-99, 99, (*lead, 1))
        want = np.matmul(x.astype(int) - p[..., None], y.astype(int) - q[..., None, :])
        got = accelerator(CONFIGS[0]).matmul(a, b, a_zero_point=p, b_zero_point=q, bias=bias)
        shape = np.matmul(np.zeros(a_shape), np.zeros(b_shape)).shape
        check(got, (want + bias[..., None]).astype(np.int32), shape)


@pytest.mark.parametrize("order", "<>")
def test_accepts_parameters_in_both_byte_orders(order):
    rng = np.random.default_rng(5)
    a, b = integers(rng, np.int8, 3, 7), integers(rng, np.int8, 7, 6)
    given = {
        "bias": rng.integers(-999, 999, 6).astype(f"{order}i4"),
        "scale": (2.0 ** rng.uniform(-8, -5, 6)).astype(f"{order}f8"),
        "b_zero_point": integers(rng, np.int8, 6).astype(f"{order}i2"),
        "a_zero_point": np.array([3], f"{order}i8"),
        "zero_point": np.array(-4, f"{order}i2"),
        "low": np.array([-100], f"{order}i4"), "high": np.array([90], f"{order}i4"),
    }
    for config in CONFIGS:
        want = product_by_product(config, a, b, (), given, of_rows=("a_zero_point",))
        check(accelerator(config).matmul(a, b, **given), want, (3, 6))


def sent(acc, *args, **options):
    return acc.matmul(*args, record=True, **options)[1].bytes_in


def test_sends_unchanged_parameters_once():
    rng = np.random.default_rng(3)
    acc = accelerator(CONFIGS[0])
    a, b = integers(rng, np.int8, 3, 3, 20), integers(rng, np.int8, 3, 20, 5)
    raw = sent(acc, a, b)
    a_set = 32 + 2 * 64  # a header, 2 words of 4 entries
    # 64 words of B: each of the three has pages of its own.
    each = {"scale": 2.0 ** rng.uniform(-9, -6, (3, 5)), "bias": np.arange(3)[:, None]}
    assert sent(acc, a, b, **each) == raw + 3 * a_set
    assert sent(acc, a, b, **each) == raw
    assert sent(acc, a[::-1], b, **each) == raw
    one = each | {"bias": np.array([[0], [9], [2]])}
    assert sent(acc, a, b, **one) == raw + a_set
    # A set that is the same for all does not take rows of a batch apart.
    held = acc.load(b[0])
    folded = sent(acc, a, held)
    same = {"scale": np.full((1, 1), 0.01), "bias": np.arange(5)[None]}
    assert sent(acc, a, held, **same) == folded + a_set
    assert sent(acc, a, held, **same) == folded


def test_sends_shared_operands_once():
    rng = np.random.default_rng(7)
    acc = accelerator(CONFIGS[0])
    a, b = integers(rng, np.int8, 4, 3, 20), integers(rng, np.int8, 20, 7)
    given = {"scale": 2.0 ** rng.uniform(-9, -6, (4, 1)), "low": -128, "high": 127}
    want = product_by_product(CONFIGS[0], a, b, (4,), given | {"zero_point": 0})
    with acc.load(b) as held:
        resident = sent(acc, a, held, **given)
    # A header, and 2 panels of 10 words of 10 bytes, a stream word each.
    assert sent(acc, a, b, **given) == resident + 32 + 2 * 10 * 16
    check(acc.matmul(a, b, **given), want, (4, 3, 7))
    acc.load(integers(rng, np.int8, 64, 10))  # all pages are free again
    # Each product has a table of its own, and all products share A.
    acc = accelerator(CONFIGS[0])
    b, tables = integers(rng, np.int8, 4, 20, 5), integers(rng, np.int8, 4, 256)
    given = {"scale": np.float64(0.01), "activation": tables, "low": -128, "high": 127}
    want = product_by_product(CONFIGS[0], a[0], b, (4,), given | {"zero_point": 0})
    with acc.load(a[0], side="a") as held:
        resident = sent(acc, held, b, **given)
    got, record = acc.matmul(a[0], b, record=True, **given)
    check(got, want, (4, 3, 5))
    # 10 words of 6 bytes, two in a stream word; the parameters are there already.
    assert record.bytes_in == resident - 4 * (32 + 2 * 64) + 32 + 5 * 16


def test_sends_a_table_only_when_it_changes():
    rng = np.random.default_rng(4)
    acc = accelerator(CONFIGS[0])
    a, b = integers(rng, np.int8, 4, 3, 20), acc.load(integers(rng, np.int8, 20, 5))
    tables = integers(rng, np.int8, 2, 256)
    plain = sent(acc, a, b, scale=0.01, activation=tables[[0, 0, 0, 0]])
    again = sent(acc, a, b, scale=0.01, activation=tables[[0, 0, 0, 0]])
    assert plain - again == 32 + 2 * 64 + 32 + 256  # one set of parameters, one table
    assert sent(acc, a, b, scale=0.01, activation=tables[[0, 1, 1, 0]]) == again + 2 * (32 + 256)


I8, B8 = np.zeros((4, 3, 6), np.int8), np.zeros((4, 6, 5), np.int8)
TABLE = np.zeros((3, 256), np.int8)
BATCH = "or of a shape that broadcasts to"
COLUMNS = f"one number or one for each of the 5 columns of b, {BATCH} (4, 5)"


@pytest.mark.parametrize("options, text", [
    ({"bias": np.zeros((3, 5), int)}, f"bias must be {COLUMNS}, not of shape (3, 5)"),
    ({"scale": 1, "zero_point": [[1]] * 3}, f"zero_point must be {COLUMNS}, not of shape (3, 1)"),
    ({"scale": np.ones((4, 4))}, f"scale must be {COLUMNS}, not of shape (4, 4)"),
    ({"scale": 1, "high": np.zeros((1, 4, 5), int)},
     f"high must be {COLUMNS}, not of shape (1, 4, 5)"),
    ({"multiplier": 0, "shift": [[0]] * 5}, f"shift must be {COLUMNS}, not of shape (5, 1)"),
    ({"b_zero_point": [[1]] * 5}, f"b_zero_point must be {COLUMNS}, not of shape (5, 1)"),
    ({"a_zero_point": np.zeros((4, 5), int)},
     (f"a_zero_point must be one number or one for each of the 3 rows of a, {BATCH} (4, 3), "
      "not of shape (4, 5)")),
    ({"scale": 1, "a_zero_point": np.zeros((4, 3), int)},
     f"a_zero_point must be one number for scaled results, {BATCH} (4, 1), not of shape (4, 3)"),
    ({"scale": 1, "activation": TABLE},
     "activation must be of shape (256,), or of one that broadcasts to (4, 256), not (3, 256)"),
    ({"scale": 1, "low": [[0], [0], [7], [0]], "high": [5, 6, 6, 7, 8]},
     "low must be at most high (5), not 7"),
])
def test_rejects_parameters_that_do_not_fit_the_batch(options, text):
    acc = accelerator(CONFIGS[0])
    with rejects(ValueError, text):
        acc.matmul(I8, B8, **options)
    assert acc.counters()["words_in"] == 0
