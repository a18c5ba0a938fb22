"""Tests of BF16 products on the golden transport, bit by bit, and of invalid arguments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16
from products import accelerator, check_equal, floats, run_counted
from rejects import rejects
from tiers import quick

from weft import Config
from weft.golden import clamp, matmul_bf16, to_bfloat16

pytestmark = pytest.mark.usefixtures("fixed_cycles")
SMALL = Config(dtype="bf16", rows=3, cols=5, a_words=64, b_words=64, c_words=32)
CONFIGS = [
    Config(
        dtype="bf16", rows=1, cols=1, a_words=32, b_words=32, c_words=32, bytes_in=2, bytes_out=1,
        lanes=1,
    ),
    SMALL,
    Config(dtype="bf16", rows=1, cols=16, a_words=32, b_words=512, bytes_in=64, bytes_out=64),
    Config(
        dtype="bf16", rows=12, cols=12, a_words=64, b_words=32, c_words=64, bytes_in=4,
        bytes_out=2, lanes=16,
    ),
    Config(dtype="bf16", rows=4, cols=4, flush_subnormals=True, a_words=256, b_words=256),
    Config(dtype="bf16"),
]
SPECIAL = np.array(
    [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 2.0**-126, 3.4e38, -3.4e38, 1],
    np.float32,
)


def numbers(rng, *shape, special=0.0, dtype=bfloat16):
    """Numbers of many magnitudes; some are special values."""
    values = floats(rng, *shape, dtype=np.float64)
    chosen = rng.random(shape) < special
    return np.where(chosen, rng.choice(SPECIAL, shape), values).astype(dtype)


def golden(config, a, b, *, start=None, low=None, high=None, out_dtype=np.float32):
    y = matmul_bf16(a, b, start=start, flush_subnormals=config.flush_subnormals)
    limits = [None if limit is None else np.float32(limit) for limit in (low, high)]
    if config.flush_subnormals:
        least = np.float32(2.0**-126)
        limits = [x if x is None else np.where(abs(x) < least, x * 0, x) for x in limits]
    y = clamp(y, *limits)
    return y if out_dtype == np.float32 else to_bfloat16(y)


SIZE = st.one_of(st.just(1), st.integers(1, 40))


OPERANDS = given(
    config=st.sampled_from(CONFIGS), m=SIZE, n=SIZE,
    k=st.one_of(st.just(1), st.integers(1, 60), st.just(150)),
    seed=st.integers(0, 2**32), special=st.sampled_from([0, 0.02, 0.5]),
    start=st.sampled_from(["", "c", "row", "column", "bias", "one"]),
    limits=st.sampled_from(["", "low", "high", "both", "each"]),
    out_dtype=st.sampled_from([np.float32, bfloat16]),
    resident=st.sampled_from(["", "a", "b", "ab"]),
)


def multiplies(config, m, n, k, seed, special, start, limits, out_dtype, resident):
    rng = np.random.default_rng(seed)
    a, b = numbers(rng, m, k, special=special), numbers(rng, k, n, special=special)
    shape = {"c": (m, n), "row": (1, n), "column": (m, 1), "bias": (n,), "one": ()}.get(start)
    options, c = {"out_dtype": out_dtype}, None
    if start:
        c = numbers(rng, *shape, special=special, dtype=np.float32)
        options["c" if start in ("c", "row", "column") else "bias"] = c
    low, high = np.sort(numbers(rng, 2, n) if limits == "each" else numbers(rng, 2), axis=0)
    held = {"low": low, "high": high}
    if limits not in ("both", "each"):
        held = {limits: held[limits]} if limits else {}
    want = golden(config, a, b, start=c, out_dtype=out_dtype, **held)
    acc = accelerator(config)
    given = {"a": a, "b": b}
    for side in resident:
        try:
            given[side] = acc.load(given[side], side=side)
            acc.matmul(given["a"], given["b"])  # the rest of a buffer may have no page free
        except ValueError as error:
            assert "free" in str(error)
            return
    for _ in range(2):
        check_equal(acc.matmul(given["a"], given["b"], **options, **held), want)


@pytest.mark.parametrize("examples", quick(1, [60, 200]))
def test_multiplies(examples):
    settings(derandomize=True, deadline=None, max_examples=examples)(OPERANDS(multiplies))()


@pytest.mark.parametrize("config", quick(3, CONFIGS), ids=lambda config: config.name)
@pytest.mark.parametrize("m, n, k", [
    (1, 1, 1), (1, 1, 700), (1, 50, 40), (50, 1, 40), (20, 20, 1), (13, 31, 300), (2, 90, 600),
])
def test_sums_of_integers_are_exact(config, m, n, k):
    """Integer sums are exact in any order, so the expected values do not need golden."""
    if config.rows * config.cols == 1:
        m, n = min(m, 3), min(n, 4)  # each tile of it is a job or more
    rng = np.random.default_rng(k)
    a, b = rng.integers(-16, 17, (m, k)), rng.integers(-16, 17, (k, n))
    c = rng.integers(-99, 99, (m, n))
    acc = accelerator(config)
    given = a.astype(bfloat16), b.astype(bfloat16)
    check_equal(acc.matmul(*given), (a @ b).astype(np.float32))
    check_equal(acc.matmul(*given, c=c.astype(np.float32)), (a @ b + c).astype(np.float32))
    got = acc.matmul(*given, bias=c[0].astype(np.float32), low=0, high=200)
    check_equal(got, np.clip(a @ b + c[0], 0, 200).astype(np.float32))


SHAPES = [
    ((7,), (7,)), ((7,), (7, 3)), ((3, 7), (7,)), ((4, 3, 7), (7,)), ((7,), (4, 7, 3)),
    ((4, 3, 7), (7, 6)), ((3, 7), (4, 7, 6)), ((4, 3, 7), (4, 7, 6)), ((2, 1, 3, 7), (4, 7, 6)),
    ((1, 3, 7), (4, 7, 6)), ((4, 3, 7), (1, 1, 7, 6)), ((1, 7), (7, 1)), ((0, 7), (7, 3)),
    ((3, 7), (7, 0)), ((0, 3, 7), (7, 6)), ((3, 7), (0, 7, 6)), ((4, 3, 7), (4, 7, 0)),
    ((3, 0), (0, 4)), ((0,), (0,)), ((4, 3, 0), (4, 0, 6)), ((3, 0), (4, 0, 6)), ((4, 0), (0,)),
    ((4, 3, 0), (0, 6)), ((0, 0), (0, 4)),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("low", [None, 0])
@pytest.mark.parametrize("out_dtype", [np.float32, bfloat16])
def test_follows_the_shapes_of_numpy(shapes, low, out_dtype):
    rng = np.random.default_rng(1)
    a, b = (numbers(rng, *shape) for shape in shapes)
    whole = np.matmul(np.ones(shapes[0]), np.ones(shapes[1])).shape
    starts = {whole[n:] for n in range(len(whole) + 1)}
    starts |= {(1,) * n + whole[n:] for n in range(len(whole) + 1)}
    starts |= {(*whole[:-1], 1), (*whole[:-2], 1, *whole[-1:])} if len(whole) > 1 else set()
    acc = accelerator(SMALL)
    matrices = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    for shape in [None, *sorted(starts)]:
        c = None if shape is None else numbers(rng, *shape, special=0.3, dtype=np.float32)
        start = c
        if c is not None:
            start = np.broadcast_to(c, whole)
            start = start[..., None] if b.ndim == 1 else start
            start = start[..., None, :] if a.ndim == 1 else start
        want = golden(SMALL, *matrices, start=start, low=low, out_dtype=out_dtype).reshape(whole)
        check_equal(acc.matmul(a, b, c=c, low=low, out_dtype=out_dtype), want)


@pytest.mark.parametrize("shapes", [((4, 3, 7), (4, 7, 6)), ((3, 7), (4, 7, 6)), ((7,), (7, 6))])
def test_bias_and_limits_apply_to_columns_of_a_batch(shapes):
    rng = np.random.default_rng(2)
    a, b = (numbers(rng, *shape) for shape in shapes)
    bias, low = numbers(rng, 6, dtype=np.float32), numbers(rng, 6, dtype=np.float32)
    matrix = a[None] if a.ndim == 1 else a
    want = golden(SMALL, matrix, b, start=bias, low=low, high=low + 9)
    want = want[0] if a.ndim == 1 else want
    check_equal(accelerator(SMALL).matmul(a, b, bias=bias, low=low, high=low + 9), want)


@pytest.mark.parametrize("config", [SMALL, CONFIGS[4]], ids=["keeps", "flushes"])
@pytest.mark.parametrize("out_dtype", [np.float32, bfloat16])
def test_k_of_0_gives_the_start_values(config, out_dtype):
    a, b, c = np.zeros((2, 0), bfloat16), np.zeros((0, 12), bfloat16), SPECIAL[None]
    acc = accelerator(config)
    sent = acc.counters()["words_in"]
    for options in ({}, {"low": -1.0}, {"high": 0.0}, {"low": -0.0, "high": 1e-39}):
        want = golden(config, a, b, start=c, out_dtype=out_dtype, **options)
        check_equal(acc.matmul(a, b, c=c, out_dtype=out_dtype, **options), want)
        check_equal(acc.matmul(a, b, bias=c[0], out_dtype=out_dtype, **options), want)
        want = golden(config, a, b, out_dtype=out_dtype, **options)
        check_equal(acc.matmul(a, b, out_dtype=out_dtype, **options), want)
    assert acc.counters()["words_in"] == sent


def test_a_relu_keeps_nan_and_has_no_minus_zero():
    a = np.array([[-0.0], [np.nan], [-3], [2]], bfloat16)
    got = accelerator(SMALL).matmul(a, np.ones((1, 1), bfloat16), c=np.float32(-0.0), low=0)
    assert got.view(np.uint32).ravel().tolist() == [0, 0x7FC00000, 0, 0x40000000]


def test_sums_start_from_plus_zero_or_from_any_zero():
    a, b = np.array([[-0.0]], bfloat16), np.array([[1]], bfloat16)
    acc = accelerator(SMALL)
    # IEEE 754 6.3: (-0) + (+0) is +0, (-0) + (-0) is -0
    assert acc.matmul(a, b).view(np.uint32) == 0
    assert acc.matmul(a, b, bias=0.0).view(np.uint32) == 0
    assert acc.matmul(a, b, bias=-0.0).view(np.uint32) == 1 << 31


def test_casts_to_nearest_even():
    ones, ulp = np.ones((1, 1), bfloat16), 2.0**-7
    values = [1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + 2.0**-20, 3.4e38, -np.inf]
    want = np.array([[1, 1 + 2 * ulp, 1 + ulp, np.inf, -np.inf]], np.float32)
    given = np.array([values], np.float32)
    acc = accelerator(SMALL)
    check_equal(acc.matmul(ones, given, cast=True), want)
    check_equal(acc.matmul(given.T, ones, cast=True), want.T)
    with acc.load(given, cast=True) as held:
        assert (held.shape, held.dtype, held.sums) == ((1, 5), bfloat16, None)
        check_equal(acc.matmul(ones, held), want)
    with acc.load(given.T, side="a", cast=True) as held:
        check_equal(acc.matmul(held, ones.astype(np.float32), cast=True), want.T)


def test_accepts_strided_arrays():
    rng = np.random.default_rng(3)
    a, b = numbers(rng, 14, 40)[::-2, ::3], numbers(rng, 9, 14).T
    c = numbers(rng, 9, 14, dtype=np.float32).T[::2]
    check_equal(accelerator(SMALL).matmul(a, b, c=c), golden(SMALL, a, b, start=c))


def test_sends_unchanged_data_once():
    rng = np.random.default_rng(4)
    a, b = numbers(rng, 3, 20), numbers(rng, 20, 7)
    acc = accelerator(SMALL)
    held = acc.load(b)
    raw, _ = run_counted(acc, a, held)
    # 2 panels of a word of 5 sums; 2 panels of 2 words of 4 entries; each after a header
    row, limits = 32 + 2 * 32, 32 + 2 * 2 * 32
    options = {"bias": numbers(rng, 7, dtype=np.float32), "low": 0}
    for extra in (row + limits, 0):
        size, y = run_counted(acc, a, held, **options)
        assert size == raw + extra
        check_equal(y, golden(SMALL, a, b, start=options["bias"], low=0))
    c = np.broadcast_to(options["bias"], (3, 7))
    for extra in (32 + 2 * 3 * 32, 0):
        size, y = run_counted(acc, a, held, c=c)
        assert size == raw + extra
        check_equal(y, golden(SMALL, a, b, start=c))
    size, y = run_counted(acc, a, held, **options)  # rows of C lie where the bias was
    assert size == raw + row
    check_equal(y, golden(SMALL, a, b, start=options["bias"], low=0))


def test_returns_the_stats_of_a_product():
    rng = np.random.default_rng(5)
    acc = accelerator(SMALL)
    _, record = acc.matmul(numbers(rng, 6, 8), numbers(rng, 8, 5), record=True)
    # 1 job, 3 loads; A in 2 panels of 4 lines of 2 words, B in 1 of 8 lines of a word; results
    # in 6 rows of 2 chunks of 4
    assert (record.macs, record.peak, record.jobs) == (240, 15, 1)
    assert (record.bytes_in, record.bytes_out) == (4 * 32 + 16 * (2 * 4 + 8), 6 * 2 * 16)
    _, record = acc.matmul(
        numbers(rng, 6, 8), numbers(rng, 8, 5), out_dtype=bfloat16, record=True
    )
    assert record.bytes_out == 6 * 2 * 8


A, B = np.zeros((3, 4), bfloat16), np.zeros((4, 5), bfloat16)
ALIEN = "must be absent where Config.dtype is bf16, not given"


@pytest.mark.parametrize(
    ("kind", "args", "options", "text"),
    [
        (TypeError, (A.astype(np.float32), B), {},
         "a must be bfloat16, or float32 with cast=True, not float32"),
        (TypeError, (A, B.astype(np.float64)), {"cast": True},
         "b must be bfloat16, or float32 with cast=True, not float64"),
        (TypeError, (A, B.astype(np.int8)), {},
         "b must be bfloat16, or float32 with cast=True, not int8"),
        (ValueError, (A, B[:3]), {}, "a and b must have the same K, not 4 and 3"),
        (ValueError, (A[0, 0], B), {}, "a must have 1 dimension or more, not 0"),
        (TypeError, (A, B), {"scale": 0.5}, f"scale {ALIEN}"),
        (TypeError, (A, B),
         {"a_zero_point": 0, "b_zero_point": 0, "multiplier": 1 << 30, "shift": 0, "zero_point": 0,
          "activation": np.zeros(256, np.int8)},
         f"a_zero_point, b_zero_point, multiplier, shift, zero_point, activation {ALIEN}"),
        (TypeError, (A, B), {"c": np.float32(1), "bias": 1},
         "bias must be absent where c is given, not given as well"),
        (TypeError, (A, B), {"c": np.zeros((3, 5))}, "c must be float32, not float64"),
        (TypeError, (A, B), {"c": np.zeros((3, 5), np.int32)}, "c must be float32, not int32"),
        (TypeError, (A, B), {"c": "x"}, "c must be float32, not <U1"),
        (TypeError, (A, B), {"bias": True}, "bias must be float32, not bool"),
        (TypeError, (A, B), {"bias": [1j]}, "bias must be float32, not complex128"),
        (ValueError, (A, B), {"c": np.zeros((2, 5), np.float32)},
         "c must be of a shape that broadcasts to (3, 5), not (2, 5)"),
        (ValueError, (A, B), {"c": np.zeros((2, 3, 5), np.float32)},
         "c must be of a shape that broadcasts to (3, 5), not (2, 3, 5)"),
        (ValueError, (A[0], B), {"c": np.zeros((3, 1), np.float32)},
         "c must be of a shape that broadcasts to (5,), not (3, 1)"),
        (ValueError, (A, B), {"bias": np.zeros((1, 5), np.float32)},
         "bias must be one number or one for each of the 5 columns of b, not of shape (1, 5)"),
        (ValueError, (A, B), {"low": [1, 2]},
         "low must be one number or one for each of the 5 columns of b, not of shape (2,)"),
        (ValueError, (A, B), {"high": np.nan}, "high must be a number, not nan"),
        (ValueError, (A, B), {"low": [0, 0, np.nan, 0, 0]}, "low must be a number, not nan"),
        (TypeError, (A, B), {"low": np.float64(0)}, "low must be float32, not float64"),
        (ValueError, (A, B), {"low": [0, 1, 2, 3, 4], "high": [0, 1.5, 1.25, 9, 9]},
         "low must be at most high (1.25), not 2.0"),
        (TypeError, (A, B), {"out_dtype": np.int8},
         "out_dtype must be float32 or bfloat16, not int8"),
    ],
)
def test_rejects_wrong_arguments_before_sending(kind, args, options, text):
    acc = accelerator(SMALL)
    with rejects(kind, text):
        acc.matmul(*args, **options)
    assert acc.counters()["words_in"] == 0


@pytest.mark.parametrize("fields, options, text", [
    ({"c_words": 0}, {"bias": 1}, "Config.c_words must be 32 or more for c and bias, not 0"),
    ({"activation": "none"}, {"low": 0},
     "Config.activation must be clamp for low and high, not none"),
])
def test_rejects_features_not_in_the_config(fields, options, text):
    config = Config(dtype="bf16", rows=3, cols=5, **fields)
    acc = accelerator(config)
    with rejects(ValueError, text):
        acc.matmul(A, B, **options)
    check_equal(acc.matmul(A, B, out_dtype=bfloat16), np.zeros((3, 5), bfloat16))


def test_an_int8_core_rejects_bf16_arguments():
    acc = accelerator(Config())
    matrix = np.zeros((4, 4), np.int8)
    text = "must be absent where Config.dtype is int8, not given"
    with rejects(TypeError, f"c, cast {text}"):
        acc.matmul(matrix, matrix, c=np.zeros((4, 4), np.float32), cast=True)
    with rejects(TypeError, f"cast {text}"):
        acc.load(matrix, cast=True)


def test_rejects_wrong_residents():
    acc = accelerator(SMALL)
    with rejects(TypeError, "b must be bfloat16, or float32 with cast=True, not float32"):
        acc.load(A.astype(np.float32))
    text = "b of 65 x 7 must fit in the 4 consecutive free pages of 16 words, not need 10"
    with rejects(ValueError, text):
        acc.load(np.zeros((65, 7), bfloat16))
