"""Tests of BF16 operands and parameters: batches, NaN, both byte orders."""

import numpy as np
import pytest
from ml_dtypes import bfloat16
from products import accelerator, check_equal, floats

from weft import Config
from weft.golden import clamp, matmul_bf16

SMALL = Config(dtype="bf16", rows=3, cols=5, a_words=64, b_words=64, c_words=32)
FLUSHES = Config(dtype="bf16", rows=4, cols=4, flush_subnormals=True, a_words=256, b_words=256)


@pytest.mark.parametrize("shapes", [
    ((4, 3, 7), (4, 7, 6)), ((4, 3, 7), (7, 6)), ((3, 7), (4, 7, 6)), ((7,), (4, 7, 6)),
    ((2, 1, 3, 7), (4, 7, 6)), ((4, 3, 0), (4, 0, 6)), ((4, 3, 0), (0, 6)),
])
def test_bias_and_limits_per_product(shapes):
    rng = np.random.default_rng(6)
    a, b = (floats(rng, *shape) for shape in shapes)
    matrix = a[None] if a.ndim == 1 else a
    lead = np.broadcast_shapes(matrix.shape[:-2] if a.ndim > 1 else (), b.shape[:-2])
    acc = accelerator(SMALL)
    for shape in [(*lead, 6), (*lead, 1), (lead[-1], 6), (1, 6)]:
        bias, low = (floats(rng, *shape, dtype=np.float32) for _ in range(2))
        every = [np.broadcast_to(x, (*lead, 6)) for x in (bias, low)]
        sums = matmul_bf16(matrix, b, start=every[0][..., None, :])
        want = np.empty_like(sums)
        for i in np.ndindex(lead):
            want[i] = clamp(sums[i], every[1][i].copy(), every[1][i] + 1)
        shape = np.matmul(np.ones(shapes[0]), np.ones(shapes[1])).shape
        got = acc.matmul(a, b, bias=bias, low=low, high=every[1] + 1)
        check_equal(got, want.reshape(shape))


def test_accepts_signalling_nans():
    """IEEE 754 6.2.3. Warnings are errors in tests, so none is given."""
    signalling = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
    half = np.array([0x7C01], np.uint16).view(np.float16)
    ones = np.ones((2, 1), np.float32)
    a = np.ones((2, 2), np.float32)
    a[0] = signalling
    for config in (SMALL, FLUSHES):
        acc = accelerator(config)
        got = acc.matmul(a, ones, cast=True)
        assert got.view(np.uint32).tolist() == [[0x7FC00000], [0x40000000]]
        for bias in (signalling[:1], half):
            got = acc.matmul(ones, ones[:1], bias=bias, cast=True, out_dtype=bfloat16)
            assert got.view(np.uint16).tolist() == [[0x7FC0]] * 2
            got = acc.matmul(ones[:, :0], ones[:0], bias=bias, cast=True)
            assert got.view(np.uint32).tolist() == [[0x7FC00000]] * 2


@pytest.mark.parametrize("order", "<>")
def test_accepts_both_byte_orders(order):
    rng = np.random.default_rng(7)
    a, b, c = (floats(rng, 4, 4, dtype=np.float32) for _ in range(3))
    given = [x.astype(f"{order}f4") for x in (a, b, c, c[0] + 50)]
    acc = accelerator(SMALL)
    sums = matmul_bf16(a.astype(bfloat16), b.astype(bfloat16), start=c)
    want = clamp(sums, high=c[0] + 50)
    check_equal(acc.matmul(*given[:2], cast=True, c=given[2], high=given[3]), want)
    with acc.load(given[1], cast=True) as held:
        check_equal(acc.matmul(given[0], held, cast=True, c=given[2], high=given[3]), want)
