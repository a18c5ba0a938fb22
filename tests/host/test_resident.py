"""Tests of resident operands: loaded, used, freed and rejected."""

import re

import numpy as np
import pytest

from weft import Accelerator, Config
from weft.host.golden import GoldenTransport
from weft.host.transport import TransportError

SMALL = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64)
I8 = np.zeros((3, 4), np.int8)
U8 = np.zeros((4, 5), np.uint8)


def numbers(rng, dtype, *shape):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def exact(a, b, p=0, q=0):
    p, q = np.asarray(p, np.int64), np.asarray(q, np.int64)
    p = p[:, None] if p.ndim else p
    return np.matmul(a.astype(np.int64) - p, b.astype(np.int64) - q)


def accelerator(config=SMALL, **options):
    return Accelerator(GoldenTransport(config), config, **options)


def whole(text):
    return f"^{re.escape(text)}$"


def check(result, want):
    assert result.dtype == np.int32
    assert result.shape == want.shape
    assert (result == want).all()


def test_keeps_resident_operands_apart():
    rng = np.random.default_rng(4)
    acc = accelerator()
    b, c = numbers(rng, np.uint8, 20, 7), numbers(rng, np.int8, 9, 5)
    a, d = numbers(rng, np.uint8, 30, 20), numbers(rng, np.uint8, 4, 9)
    with acc.load(b) as first, acc.load(c) as second:
        for _ in range(2):
            check(acc.matmul(a, first, a_zero_point=9, b_zero_point=7), exact(a, b, 9, 7))
            check(acc.matmul(d, second), exact(d, c))
        # one page is left
        check(acc.matmul(a, numbers(np.random.default_rng(5), np.int8, 20, 9)),
              exact(a, numbers(np.random.default_rng(5), np.int8, 20, 9)))
    with acc.load(numbers(rng, np.int8, 30, 20)):  # all 4 pages are free again
        pass


def test_reports_an_operand_that_does_not_fit():
    acc = accelerator()
    held = acc.load(np.zeros((20, 7), np.int8))
    text = "b of 33 x 10 must fit in the 2 consecutive free pages of 16 words, not need 4"
    with pytest.raises(ValueError, match=whole(text)):
        acc.load(np.zeros((33, 10), np.int8))
    held.free()
    held.free()
    acc.load(np.zeros((33, 10), np.int8))
    with pytest.raises(ValueError, match=whole("pages free for b must be 1 or more, not 0")):
        acc.matmul(np.zeros((3, 3), np.int8), np.zeros((3, 3), np.int8))


def test_rejects_wrong_residents():
    acc = accelerator()
    for args, text in (
        ((U8, "c"), "side must be 'a' or 'b', not 'c'"),
        ((U8[0],), "b must be a matrix of 1 x 1 or more to be loaded, not of shape (5,)"),
        ((U8[:0],), "b must be a matrix of 1 x 1 or more to be loaded, not of shape (0, 5)"),
    ):
        with pytest.raises(ValueError, match=whole(text)):
            acc.load(*args)
    with pytest.raises(TypeError) as wrong:
        acc.load(U8.astype(np.int16))
    assert str(wrong.value) == "b must be int8 or uint8, not int16"
    freed = acc.load(U8)
    freed.free()
    for a, b, text in (
        (I8, freed, "b must be loaded, not freed"),
        (acc.load(U8), I8, "a must be loaded with side='a', not side='b'"),
        (I8, accelerator().load(U8), "b must be loaded into this accelerator, not into another"),
    ):
        with pytest.raises(ValueError, match=whole(text)):
            acc.matmul(a, b)


def test_frees_the_pages_of_a_load_that_failed(monkeypatch):
    acc = accelerator()
    whole_buffer = np.zeros((64, 10), np.int8)
    with monkeypatch.context() as patch:
        patch.setattr(GoldenTransport, "send", broken)
        with pytest.raises(TransportError, match="^no way$"):
            acc.load(whole_buffer)
    with acc.load(whole_buffer):
        pass


def broken(transport, commands):
    raise TransportError("no way")
