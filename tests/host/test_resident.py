"""Tests of resident operands: loaded, used, freed and rejected."""

import numpy as np
import pytest
from products import accelerator, check_sums, exact, integers
from rejects import rejects

from weft.host.emulated import GoldenTransport
from weft.host.transport import TransportError

I8 = np.zeros((3, 4), np.int8)
U8 = np.zeros((4, 5), np.uint8)


def test_keeps_resident_operands_apart():
    rng = np.random.default_rng(4)
    acc = accelerator()
    b, c = integers(rng, np.uint8, 20, 7), integers(rng, np.int8, 9, 5)
    a, d = integers(rng, np.uint8, 30, 20), integers(rng, np.uint8, 4, 9)
    with acc.load(b) as first, acc.load(c) as second:
        for _ in range(2):
            check_sums(acc.matmul(a, first, a_zero_point=9, b_zero_point=7), exact(a, b, 9, 7))
            check_sums(acc.matmul(d, second), exact(d, c))
        # one page is left
        check_sums(acc.matmul(a, integers(np.random.default_rng(5), np.int8, 20, 9)),
              exact(a, integers(np.random.default_rng(5), np.int8, 20, 9)))
    with acc.load(integers(rng, np.int8, 30, 20)):  # all 4 pages are free again
        pass


def test_reports_an_operand_that_does_not_fit():
    acc = accelerator()
    held = acc.load(np.zeros((20, 7), np.int8))
    text = "b of 33 x 10 must fit in the 2 consecutive free pages of 16 words, not need 4"
    with rejects(ValueError, text):
        acc.load(np.zeros((33, 10), np.int8))
    held.free()
    held.free()
    acc.load(np.zeros((33, 10), np.int8))
    with rejects(ValueError, "pages free for b must be 1 or more, not 0"):
        acc.matmul(np.zeros((3, 3), np.int8), np.zeros((3, 3), np.int8))


def test_rejects_wrong_residents():
    acc = accelerator()
    for args, text in (
        ((U8, "c"), "side must be 'a' or 'b', not 'c'"),
        ((U8[0],), "b must be a matrix of 1 x 1 or more to be loaded, not of shape (5,)"),
        ((U8[:0],), "b must be a matrix of 1 x 1 or more to be loaded, not of shape (0, 5)"),
    ):
        with rejects(ValueError, text):
            acc.load(*args)
    with rejects(TypeError, "b must be int8 or uint8, not int16"):
        acc.load(U8.astype(np.int16))
    freed = acc.load(U8)
    freed.free()
    for a, b, text in (
        (I8, freed, "b must be loaded, not freed"),
        (acc.load(U8), I8, "a must be loaded with side='a', not side='b'"),
        (I8, accelerator().load(U8), "b must be loaded into this accelerator, not into another"),
    ):
        with rejects(ValueError, text):
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
