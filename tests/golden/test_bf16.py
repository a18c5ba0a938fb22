"""The golden BF16 models with values computed by hand: sums, special values, clamp, rounding."""

import ml_dtypes
import numpy as np
import pytest
from rejects import rejects

from weft.golden import clamp, matmul_bf16, to_bfloat16

INF, NAN = 0x7F800000, 0x7FC00000
SIGN = 1 << 31
EVERY = np.arange(1 << 16, dtype=np.uint32)  # every bfloat16, as an upper half of binary32


def bf16(*values):
    """bfloat16 from numbers that it represents exactly."""
    array = np.float64(values).astype(ml_dtypes.bfloat16)
    assert np.array_equal(array.astype(np.float64), values, equal_nan=True)
    return array


def f32(*bits):
    return np.array(bits, np.uint32).view(np.float32)


def bits(x):
    return x.view(np.uint32 if x.dtype == np.float32 else np.uint16).tolist()


def numbers(rng, *shape):
    return rng.normal(size=shape).astype(ml_dtypes.bfloat16)


def dot(a, b, start=None, **options):
    """Bits of the product of a row and a column, from bits of binary32."""
    start = None if start is None else f32(start)
    a, b = bf16(*a)[None, :], bf16(*b)[:, None]
    return bits(matmul_bf16(a, b, start=start, **options))[0][0]


# The order of additions, and the single rounding.


BIG = 2.0**24  # 1 is half a unit in its last place


@pytest.mark.parametrize("terms, expected", [
    ((BIG, 1, -BIG), 0),                # the tie goes back to 2**24
    ((-BIG, 1, BIG), 1),
    ((1, BIG, -BIG), 0),
    ((BIG, -BIG, 1), 1),
    ((BIG, 2, 1, -BIG), 4),             # 2**24 + 2, odd: the tie goes up
    ((BIG, 1, 2, -BIG), 2),
    ((BIG, 1, 1, 1, 1, -BIG), 0),
    ((1, 1, 1, 1, BIG, -BIG), 4),
    ((-BIG, 1, 1, 1, 1, BIG), 4),
    ((2.0**127, 2.0**127, -(2.0**127)), np.inf),
    ((2.0**127, -(2.0**127), 2.0**127), 2.0**127),
])
def test_adds_in_order_of_k(terms, expected):
    ones = np.ones(len(terms))
    expected = bits(np.float32(expected))
    assert dot(terms, ones) == dot(ones, terms) == expected
    # The same at every position of a matrix, and with the first term as the initial sum.
    a, b = np.tile(bf16(*terms), (3, 1)), np.tile(bf16(*ones)[:, None], 4)
    assert bits(matmul_bf16(a, b)) == [[expected] * 4] * 3
    assert dot(terms[1:], ones[1:], bits(np.float32(terms[0]))) == expected


def test_numpy_adds_in_another_order():
    """2**24 absorbs each 1; numpy adds most of the ones to each other first."""
    terms = bf16(BIG, *[1] * 4096, -BIG)
    a, b = np.tile(terms, (64, 1)), np.ones((4098, 64), ml_dtypes.bfloat16)
    assert bits(matmul_bf16(a, b)) == [[0] * 64] * 64
    assert np.all(a.astype(np.float32) @ b.astype(np.float32) > 0)
    assert np.all(a.astype(np.float64) @ b.astype(np.float64) == 4096)


@pytest.mark.parametrize("a, b, start, expected", [
    (2.0**127, 2, 0xFF000000, 0x7F000000),    # 2**128 - 2**127: the product alone is infinite
    (2.0**-75, 2.0**-75, 1, 2),               # 1.5 times the least subnormal, to even
    (2.0**-75, 2.0**-75, 2, 2),               # 2.5 times
    (2.0**-75, -(2.0**-75), 1, 0),            # half of it
    (2.0**-75, 2.0**-75, 0, 0),
    (1.5 * 2.0**-75, 2.0**-75, 0, 1),
    (1 + 2.0**-7, 1 + 2.0**-7, 0xBF800000, 0x3C808000),  # 2**-6 + 2**-14, exactly
    (2.0**103, 1, 0x7F7FFFFF, INF),           # half a unit above the largest
    (2.0**102, 1.9921875, 0x7F7FFFFF, 0x7F7FFFFF),
    (-(2.0**103), 1, 0xFF7FFFFF, SIGN | INF),
])
def test_rounds_once(a, b, start, expected):
    assert dot([a], [b], start) == expected


# Zeros and special values.


@pytest.mark.parametrize("a, b, start, expected", [
    ([], [], None, 0),
    ([], [], SIGN, SIGN),
    ([0.0], [0.0], SIGN, 0),                 # padding with zeros would not be neutral
    ([-0.0], [0.0], SIGN, SIGN),
    ([0.0], [-1.0], SIGN, SIGN),
    ([-0.0], [-0.0], SIGN, 0),
    ([-0.0], [0.0], None, 0),                # from +0
    ([1.0], [1.0], 0xBF800000, 0),           # cancels to +0
    ([-1.0], [1.0], 0x3F800000, 0),
    ([1.0, -0.0], [-1.0, 0.0], 0x3F800000, 0),
    ([-(2.0**-80)], [2.0**-80], 0, SIGN),    # underflows to the sign of the sum
    ([-(2.0**-80)], [2.0**-80], SIGN, SIGN),
    ([2.0**-80], [2.0**-80], SIGN, 0),
])
def test_signs_of_zeros(a, b, start, expected):
    assert dot(a, b, start) == expected
    assert dot(a, b, start, flush_subnormals=True) == expected


inf, nan = np.inf, np.nan


@pytest.mark.parametrize("a, b, start, expected", [
    ([inf], [0.0], 0, NAN),
    ([-0.0], [-inf], 0, NAN),
    ([inf], [0.0], INF, NAN),
    ([inf], [1.0], SIGN | INF, NAN),
    ([-inf], [1.0], INF, NAN),
    ([inf, inf], [1.0, -1.0], None, NAN),
    ([inf, 0.0], [1.0, inf], None, NAN),
    ([inf], [-1.0], SIGN | INF, SIGN | INF),
    ([inf], [-inf], None, SIGN | INF),
    ([inf], [2.0**-126], 0xFF7FFFFF, INF),
    ([-(2.0**127)], [2.0**127], INF, INF),   # infinite by the start; the product is not
    ([1.0], [2.0], SIGN | INF, SIGN | INF),
    ([nan, 0.0], [0.0, 0.0], None, NAN),
    ([0.0, 1.0], [0.0, nan], None, NAN),
    ([nan], [inf], None, NAN),
    ([-nan], [-nan], SIGN | NAN, NAN),
    ([0.0], [0.0], 0xFF800001, NAN),         # a signalling NaN
    ([1.0] * 9, [1.0] * 9, 0xFFFFFFFF, NAN),
    ([], [], 0xFF800001, NAN),
])
def test_special_values(a, b, start, expected):
    assert dot(a, b, start) == expected
    assert dot(a, b, start, flush_subnormals=True) == expected


def test_every_nan_is_canonical():
    halves = EVERY[(EVERY & 0x7FFF) > 0x7F80].astype(np.uint16)
    assert len(halves) == 254
    a, one = halves.view(ml_dtypes.bfloat16)[:, None], np.ones((1, 1), ml_dtypes.bfloat16)
    for result in (matmul_bf16(a, one), matmul_bf16(one, a.T), matmul_bf16(a, one, start=f32(INF))):
        assert np.all(result.view(np.uint32) == NAN)


def test_does_not_raise_numpy_errors():
    a, start = EVERY.astype(np.uint16).view(ml_dtypes.bfloat16)[:, None], f32(0xFF800001)
    with np.errstate(all="raise"):
        for flush in (False, True):
            for b in (a[1:2], a[0x7F7F:0x7F80], a[0x7F80:0x7F81], a[0x7F81:0x7F82]):
                matmul_bf16(a, b, flush_subnormals=flush)
                matmul_bf16(b, b, start=start, flush_subnormals=flush)
        clamp(start, np.float32(0), np.float32(1))
        to_bfloat16((EVERY << 16 | 0xFFFF).view(np.float32))


# Shapes.


@pytest.mark.parametrize("shape_a, shape_b, shape_start", [
    ((1, 1), (1, 1), ()),
    ((1, 7), (7, 5), (5,)),
    ((4, 7), (7, 1), (4, 1)),
    ((4, 1), (1, 5), (4, 5)),
    ((4, 0), (0, 5), (1, 5)),
    ((0, 3), (3, 5), (5,)),
    ((4, 3), (3, 0), (4, 1)),
    ((2, 4, 7), (7, 5), (4, 5)),
    ((4, 7), (3, 7, 5), (3, 1, 1)),
    ((2, 1, 4, 7), (3, 7, 5), (2, 3, 4, 5)),
    ((0, 4, 7), (1, 7, 5), (4, 5)),
])
@pytest.mark.parametrize("flush", [False, True])
def test_broadcasts(shape_a, shape_b, shape_start, flush):
    rng = np.random.default_rng(4)
    print("seed 4")
    a, b = numbers(rng, *shape_a), numbers(rng, *shape_b)
    start = rng.normal(size=shape_start).astype(np.float32)
    result = matmul_bf16(a, b, start=start, flush_subnormals=flush)
    shape = np.matmul(np.zeros(shape_a), np.zeros(shape_b)).shape
    assert (result.dtype, result.shape) == (np.float32, shape)
    whole_a = np.broadcast_to(a, (*shape[:-2], *shape_a[-2:]))
    whole_b = np.broadcast_to(b, (*shape[:-2], *shape_b[-2:]))
    whole_start = np.broadcast_to(start, shape)
    for *batch, i, j in np.ndindex(shape):
        row, column = whole_a[(*batch, i)], whole_b[(*batch, slice(None), j)]
        acc = whole_start[(*batch, i, j)]
        for x, y in zip(row.astype(np.float64), column.astype(np.float64), strict=True):
            acc = np.float32(x * y + np.float64(acc))
        assert result[(*batch, i, j)] == acc


def test_accepts_views_and_does_not_change_them():
    rng = np.random.default_rng(5)
    print("seed 5")
    a, b, start = numbers(rng, 6, 8), numbers(rng, 5, 12), np.float32([[1e-40]])
    held = [x.copy() for x in (a, b, start)]
    views = a[::-2, ::2], b[:, ::3].T[:, ::-1]
    want = matmul_bf16(*(np.ascontiguousarray(v) for v in views), start=start)
    for flush in (False, True):
        result = matmul_bf16(*views, start=start, flush_subnormals=flush)
        assert np.array_equal(result, want)
    assert [x.tobytes() for x in (a, b, start)] == [x.tobytes() for x in held]
    untouched = matmul_bf16(a[:, :0], b.T[:0, :], start=start)
    untouched[...] = 3  # a result of its own
    assert bits(start) == bits(held[2])


def test_accepts_lists_of_bfloat16():
    rows = [list(bf16(1, 2)), list(bf16(3, 4))]
    assert matmul_bf16(rows, rows).tolist() == [[7, 10], [15, 22]]


# The clamp.


EDGES = f32(0, SIGN, 1, SIGN | 1, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x40C00000, 0x40C00001,
            0x7F7FFFFF, 0xFF7FFFFF, INF, SIGN | INF, NAN, SIGN | NAN, 0x7F800001, 0xFFFFFFFF)


@pytest.mark.parametrize("low, high, expected", [
    (None, None, [0, SIGN, 1, SIGN | 1, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x40C00000, 0x40C00001,
                  0x7F7FFFFF, 0xFF7FFFFF, INF, SIGN | INF]),
    (0, None, [0, 0, 1, 0, 0x007FFFFF, 0x3F800000, 0, 0x40C00000, 0x40C00001,        # ReLU
               0x7F7FFFFF, 0, INF, 0]),
    (0, 0x40C00000, [0, 0, 1, 0, 0x007FFFFF, 0x3F800000, 0, 0x40C00000, 0x40C00000,  # ReLU6
                     0x40C00000, 0, 0x40C00000, 0]),
    (SIGN, None, [0, 0, 1, 0, 0x007FFFFF, 0x3F800000, 0, 0x40C00000, 0x40C00001,
                  0x7F7FFFFF, 0, INF, 0]),
    (None, SIGN, [0, 0, 0, SIGN | 1, 0, 0, 0xBF800000, 0, 0, 0, 0xFF7FFFFF, 0, SIGN | INF]),
    (SIGN, 0, [0] * 13),
    (SIGN | INF, INF, [0, 0, 1, SIGN | 1, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x40C00000,
                       0x40C00001, 0x7F7FFFFF, 0xFF7FFFFF, INF, SIGN | INF]),
    (0x3F800000, 0x3F800000, [0x3F800000] * 13),
])
def test_clamps_by_hand(low, high, expected):
    low, high = (None if limit is None else f32(limit)[0] for limit in (low, high))
    result = clamp(EDGES, low, high)
    assert result.dtype == np.float32
    assert bits(result) == [*expected, NAN, NAN, NAN, NAN]
    assert bits(clamp(EDGES[:, None], low, high))[13] == [NAN]
    assert bits(clamp(EDGES[1], low, high)) == expected[1]


def test_clamps_columns():
    values = np.float32([[-5, -5, -5], [0.5, 0.5, 0.5], [5, 5, np.nan]])
    low, high = np.float32([-1, 0, 1]), np.float32([0, 1, np.inf])
    assert clamp(values, low, high)[:2].tolist() == [[-1, 0, 1], [0, 0.5, 1]]
    assert bits(clamp(values, low, high)[2]) == [0, 0x3F800000, NAN]
    assert clamp(values, low=low)[1].tolist() == [0.5, 0.5, 1]
    assert clamp(values, high=np.float32(-1))[1].tolist() == [-1, -1, -1]
    assert clamp(np.zeros((0, 3), np.float32), low, high).shape == (0, 3)


# Rounding to bfloat16.


def canonical(halves):
    return np.where((halves & 0x7FFF) > 0x7F80, 0x7FC0, halves)


def test_rounds_every_upper_half():
    """Against the cast of ml_dtypes, which differs only in NaN."""
    print("seed 6")
    some = np.random.default_rng(6).integers(2, 0xFFFE, 6)
    for lower in (0, 1, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF, *some.tolist()):
        values = (EVERY << 16 | lower).view(np.float32)
        with np.errstate(invalid="ignore"):
            cast = canonical(values.astype(ml_dtypes.bfloat16).view(np.uint16))
        result = to_bfloat16(values)
        assert result.dtype == ml_dtypes.bfloat16
        assert np.array_equal(result.view(np.uint16), cast)


def test_keeps_bfloat16_values():
    halves = EVERY.astype(np.uint16)
    with np.errstate(invalid="ignore"):
        values = halves.view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(to_bfloat16(values).view(np.uint16), canonical(halves))
    # So does a product by one, added to -0.
    one = np.ones((1, 1), ml_dtypes.bfloat16)
    product = matmul_bf16(halves.view(ml_dtypes.bfloat16)[:, None], one, start=f32(SIGN))
    wanted = canonical(halves).astype(np.uint32) << 16
    assert np.array_equal(product.view(np.uint32)[:, 0], wanted)


@pytest.mark.parametrize("value, expected", [
    (0x3F808000, 0x3F80),     # a tie, to even
    (0x3F818000, 0x3F82),
    (0x3F808001, 0x3F81),
    (0x3FFF8000, 0x4000),
    (0x7F7F7FFF, 0x7F7F),
    (0x7F7F8000, 0x7F80),     # overflow
    (0xFF7FFFFF, 0xFF80),
    (0x7F800001, 0x7FC0),     # NaN, not infinity
    (0xFFFFFFFF, 0x7FC0),     # nor 0
    (0x00008000, 0x0000),
    (0x80008001, 0x8001),
    (0x007F7FFF, 0x007F),
    (0x007F8000, 0x0080),     # up to the least normal number, which stays
    (0x807FFFFF, 0x8080),
    (0x00808000, 0x0080),
])
def test_rounds_by_hand(value, expected):
    values = f32(value)
    for x in (values, values[0], values.reshape(1, 1, 1)):
        result = to_bfloat16(x)
        assert isinstance(result, np.ndarray)
        assert result.shape == np.shape(x)
        assert result.view(np.uint16).item() == expected


# Invalid arguments.


A, B = np.zeros((2, 3), ml_dtypes.bfloat16), np.zeros((3, 4), ml_dtypes.bfloat16)
X = np.zeros((5, 2), np.float32)
BAD = [
    (matmul_bf16, dict(a=A.astype(np.float32)), TypeError, "a must be bfloat16, not float32"),
    (matmul_bf16, dict(a=[[1, 2, 3]]), TypeError, "a must be bfloat16, not int64"),
    (matmul_bf16, dict(b=B.view(np.uint16)), TypeError, "b must be bfloat16, not uint16"),
    (matmul_bf16, dict(b=B.astype(np.float16)), TypeError, "b must be bfloat16, not float16"),
    (matmul_bf16, dict(start=B), TypeError, "start must be float32, not bfloat16"),
    (matmul_bf16, dict(start=0.0), TypeError, "start must be float32, not float64"),
    (matmul_bf16, dict(a=A[0]), ValueError, "a must be of shape [..., M, K], not (3,)"),
    (matmul_bf16, dict(a=A[0, 0]), ValueError, "a must be of shape [..., M, K], not ()"),
    (matmul_bf16, dict(b=B[:, 0]), ValueError, "b must be of shape [..., 3, N], not (3,)"),
    (matmul_bf16, dict(b=B.T), ValueError, "b must be of shape [..., 3, N], not (4, 3)"),
    (matmul_bf16, dict(b=B[:1]), ValueError, "b must be of shape [..., 3, N], not (1, 4)"),
    (matmul_bf16, dict(a=np.tile(A, (2, 1, 1)), b=np.tile(B, (3, 1, 1))), ValueError,
     "b must be of a batch that broadcasts with (2,), not (3,)"),
    (matmul_bf16, dict(start=np.zeros(2, np.float32)), ValueError,
     "start must be of a shape that broadcasts to (2, 4), not (2,)"),
    (matmul_bf16, dict(start=np.zeros((1, 2, 4), np.float32)), ValueError,
     "start must be of a shape that broadcasts to (2, 4), not (1, 2, 4)"),
    (clamp, dict(values=[0.0]), TypeError, "values must be float32, not float64"),
    (clamp, dict(low=0), TypeError, "low must be float32, not int64"),
    (clamp, dict(high=np.float64(6)), TypeError, "high must be float32, not float64"),
    (clamp, dict(low=np.zeros(5, np.float32)), ValueError,
     "low must be a scalar or of shape (2,), not (5,)"),
    (clamp, dict(high=X), ValueError, "high must be a scalar or of shape (2,), not (5, 2)"),
    (clamp, dict(low=np.float32(np.nan)), ValueError, "low must be a number, not nan"),
    (clamp, dict(high=np.float32([0, np.nan])), ValueError, "high must be a number, not nan"),
    (clamp, dict(low=np.float32(1), high=np.float32(0.5)), ValueError,
     "low must be at most high (0.5), not 1.0"),
    (clamp, dict(low=np.float32([0, 3]), high=np.float32(2)), ValueError,
     "low must be at most high (2.0), not 3.0"),
    (to_bfloat16, dict(values=[0.5]), TypeError, "values must be float32, not float64"),
    (to_bfloat16, dict(values=A), TypeError, "values must be float32, not bfloat16"),
]
RIGHT = {matmul_bf16: dict(a=A, b=B), clamp: dict(values=X), to_bfloat16: dict(values=X)}


@pytest.mark.parametrize("function, wrong, error, message", BAD, ids=[case[3] for case in BAD])
def test_rejects(function, wrong, error, message):
    with rejects(error, message):
        function(**(RIGHT[function] | wrong))
