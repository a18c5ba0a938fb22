"""Tests of the shapes and values of products, against int64 sums."""

import itertools

import numpy as np
import pytest
from ml_dtypes import bfloat16
from products import SMALL, accelerator, check_sums, exact, integers
from rejects import rejects

from weft import Config

LARGE = Config(rows=8, cols=8, depth=2, multiplier="fip", bytes_in=32)
I8 = np.zeros((3, 4), np.int8)
U8 = np.zeros((4, 5), np.uint8)


@pytest.mark.parametrize(
    "shapes",
    [
        ((7,), (7,)), ((7,), (7, 3)), ((3, 7), (7,)), ((4, 3, 7), (7,)), ((7,), (4, 7, 3)),
        ((4, 3, 7), (7, 6)), ((3, 7), (4, 7, 6)), ((4, 3, 7), (4, 7, 6)),
        ((2, 1, 3, 7), (4, 7, 6)),
        ((1, 3, 7), (4, 7, 6)), ((4, 3, 7), (1, 1, 7, 6)), ((1, 7), (7, 1)),
        ((0, 7), (7, 3)), ((3, 7), (7, 0)), ((3, 0), (0, 4)), ((0, 3, 7), (7, 6)),
        ((3, 7), (0, 7, 6)),
        ((0,), (0,)), ((2, 0, 3, 7), (0, 7, 6)), ((4, 3, 7), (4, 7, 0)), ((3, 7), (4, 7, 0)),
    ],
)
@pytest.mark.parametrize("types", [(np.int8, np.int8), (np.uint8, np.int8), (np.int8, np.uint8)])
def test_follows_the_shapes_of_numpy(shapes, types):
    rng = np.random.default_rng(1)
    a, b = (integers(rng, t, *s) for t, s in zip(types, shapes, strict=True))
    with accelerator() as acc:
        check_sums(acc.matmul(a, b, a_zero_point=3, b_zero_point=5), exact(a, b, 3, 5))


def pairs():
    """Shapes of a and b with axes of 0, 1 and 2: vectors, matrices, batches that broadcast."""
    leads = [(), (0,), (1,), (2,), (2, 1)]
    for m, k, n in itertools.product((0, 1, 2), repeat=3):
        for lead in leads:
            yield (k,), (*lead, k, n)
            yield (*lead, m, k), (k,)
        for left, right in itertools.product(leads, leads):
            if (left, right) not in {((0,), (2,)), ((2,), (0,))}:
                yield (*left, m, k), (*right, k, n)
        yield (k,), (k,)


SINGLE = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64, requantize="single")
CORES = {
    "sums": (SMALL, np.int8, {}),
    "uint8": (SMALL, np.uint8, {"a_zero_point": 3, "b_zero_point": 5, "bias": 7}),
    "scaled": (SINGLE, np.int8, {"scale": 0.125, "bias": 21, "zero_point": 1}),
    "bf16": (Config(dtype="bf16", a_words=64, b_words=64, c_words=32), bfloat16, {}),
    "bf16 bias": (
        Config(dtype="bf16", a_words=64, b_words=64, c_words=32), bfloat16, {"bias": 7, "low": 0}
    ),
}


@pytest.mark.parametrize("kind", CORES)
def test_follows_numpy_for_empty_and_broadcast_axes(kind):
    config, dtype, options = CORES[kind]
    acc = accelerator(config)
    for a_shape, b_shape in dict.fromkeys(pairs()):
        a, b = np.full(a_shape, 2, dtype), np.full(b_shape, 3, dtype)
        sums = np.matmul(a.astype(int) - options.get("a_zero_point", 0),
                         b.astype(int) - options.get("b_zero_point", 0)) + options.get("bias", 0)
        # Sums of 0, 6 and 12 on 21 over 8, rounded: 2.625, 3.375, 4.125.
        want = (sums + 4) // 8 + 1 if kind == "scaled" else sums
        got = acc.matmul(a, b, **options)
        assert got.shape == want.shape, (a_shape, b_shape)
        assert np.array_equal(got, want), (a_shape, b_shape)
        assert got.dtype == {"bf16": np.float32, "scaled": np.int8}.get(kind.split()[0], np.int32)


def test_two_vectors_give_a_numpy_scalar():
    a, b = np.array([1, 2], np.int8), np.array([3, 4], np.int8)
    assert type(accelerator().matmul(a, b)) is np.int32
    assert type(accelerator().matmul(a, b, scale=1)) is np.int8
    assert accelerator().matmul(a, b) == 11
    acc = accelerator(CORES["bf16"][0])
    assert type(acc.matmul(a.astype(bfloat16), b.astype(bfloat16))) is np.float32
    got = acc.matmul(a.astype(bfloat16), b.astype(bfloat16), out_dtype=bfloat16)
    assert (type(got), got) == (bfloat16, 11)


def test_a_scaled_product_with_k_of_0_is_the_scaled_bias():
    config = Config(
        rows=3, cols=5, depth=2, a_words=64, b_words=64, requantize="single", b_zero_point="column"
    )
    table = np.arange(256, dtype=np.uint8).view(np.int8)[::-1]
    got, record = accelerator(config).matmul(
        I8[:, :0], U8[:0], a_zero_point=100, b_zero_point=[1, 2, 3, 4, 5], scale=0.5,
        bias=[-9, -1, 0, 6, 900], zero_point=2, activation=table, record=True,
    )
    # -4.5 and -0.5, ties up; 450 and 2 is at the clamp. The table takes byte i to 255 - i.
    want = [~(-4 + 2), ~(0 + 2), ~2, ~(3 + 2), ~127]
    assert got.tolist() == [want] * 3
    assert (got.dtype, record.macs, record.jobs) == (np.int8, 0, 1)


def test_accepts_zero_points_per_row_of_a_batch():
    rng = np.random.default_rng(2)
    a, b = integers(rng, np.uint8, 4, 3, 7), integers(rng, np.int8, 4, 7, 6)
    p, q = integers(rng, np.uint8, 3), integers(rng, np.int8, 6)
    for x, y in ((a, b), (a[0], b), (a, b[0])):
        check_sums(accelerator().matmul(x, y, a_zero_point=p, b_zero_point=q), exact(x, y, p, q))


def test_accepts_strided_arrays():
    rng = np.random.default_rng(3)
    a, b = integers(rng, np.int8, 14, 40)[::-2, ::3], integers(rng, np.uint8, 9, 14).T
    check_sums(accelerator().matmul(a, b), exact(a, b))


@pytest.mark.parametrize("value", [-128, 127])
def test_computes_the_largest_sums(value):
    a = np.full((1, 131_071), value, np.int8)
    b = np.full((131_071, 1), -128, np.int8)
    check_sums(accelerator(LARGE).matmul(a, b), np.array([[value * -128 * 131_071]]))
    a, b = np.full((1, 33_025), 255, np.uint8), np.full((33_025, 1), -128, np.int8)
    want = np.array([[255 * -255 * 33_025]])
    check_sums(accelerator(LARGE).matmul(a, b, b_zero_point=127), want)


@pytest.mark.parametrize(
    ("kind", "args", "options", "text"),
    [
        (TypeError, (I8.astype(np.float32), U8), {}, "a must be int8 or uint8, not float32"),
        (TypeError, (I8, [[1]] * 4), {}, "b must be int8 or uint8, not int64"),
        (TypeError, (I8, U8 > 3), {}, "b must be int8 or uint8, not bool"),
        (ValueError, (np.int8(3), U8), {}, "a must have 1 dimension or more, not 0"),
        (ValueError, (I8, U8[:3]), {}, "a and b must have the same K, not 4 and 3"),
        (ValueError, (np.zeros((2, 3, 4), np.int8), np.zeros((3, 4, 5), np.int8)), {},
         "batches of a and b must broadcast, not be (2,) and (3,)"),
        (ValueError, (I8, U8), {"a_zero_point": 128}, "a_zero_point must be in -128..127, not 128"),
        (ValueError, (I8, U8), {"b_zero_point": [0, 1, 256, 2, -1]},
         "b_zero_point must be in 0..255, not 256"),
        (ValueError, (I8, U8), {"a_zero_point": [1, 2]},
         "a_zero_point must be one number or one for each of the 3 rows of a, not of shape (2,)"),
        (ValueError, (I8, U8), {"b_zero_point": [1, 2]},
         ("b_zero_point must be one number or one for each of the 5 columns of b, "
          "not of shape (2,)")),
        (TypeError, (I8, U8), {"a_zero_point": 1.0},
         "a_zero_point must be an integer or an array of integers, not float64"),
        (TypeError, (I8, U8), {"b_zero_point": True},
         "b_zero_point must be an integer or an array of integers, not bool"),
        (ValueError, (np.zeros((1, 131_072), np.int8), np.zeros((131_072, 1), np.int8)), {},
         "K must be at most 131071 with int8, not 131072"),
        (ValueError, (np.zeros((1, 33_026), np.int8), np.zeros((33_026, 1), np.uint8)), {},
         "K must be at most 33025 with uint8 operands or zero points, not 33026"),
        (ValueError, (np.zeros((1, 33_026), np.int8), np.zeros((33_026, 1), np.int8)),
         {"b_zero_point": [1]},
         "K must be at most 33025 with uint8 operands or zero points, not 33026"),
    ],
)
def test_rejects_wrong_operands_before_sending(kind, args, options, text):
    acc = accelerator()
    sent = acc.counters()["words_in"]
    with rejects(kind, text):
        acc.matmul(*args, **options)
    assert acc.counters()["words_in"] == sent == 0
