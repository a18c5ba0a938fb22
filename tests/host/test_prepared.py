"""Tests of prepared products on the golden transport, against int64 sums and `matmul`."""

import time
from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16

from weft import Accelerator, Config
from weft.host.emulated import GoldenTransport
from weft.host.transport import TransportTimeout

SMALL = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64, b_zero_point="column")


@pytest.fixture
def core():
    with Accelerator(GoldenTransport(SMALL)) as accelerator:
        yield accelerator


def bytes_of(rng, *shape, dtype=np.int8):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (7, 9, 11), (40, 300, 12)])
def test_exact_sums_of_several_a(core, m, k, n):
    rng = np.random.default_rng(1)
    b = bytes_of(rng, k, n)
    prepared = core.prepare((m, k), b, bias=np.arange(n))
    for _ in range(3):
        a = bytes_of(rng, m, k)
        np.testing.assert_array_equal(prepared(a), a.astype(int) @ b + np.arange(n))


def test_a_batch_with_zero_points_of_uint8(core):
    rng = np.random.default_rng(2)
    b = bytes_of(rng, 3, 6, 8, dtype=np.uint8)
    a_shape = (3, 4, 6)
    prepared = core.prepare(a_shape, b, a_dtype=np.uint8, a_zero_point=7, b_zero_point=200)
    for _ in range(2):
        a = bytes_of(rng, *a_shape, dtype=np.uint8)
        np.testing.assert_array_equal(prepared(a), (a.astype(int) - 7) @ (b.astype(int) - 200))


@pytest.mark.parametrize("resident", [False, True])
def test_scaled_results_with_a_table(core, resident):
    rng = np.random.default_rng(3)
    b = bytes_of(rng, 6, 8)
    arguments = dict(
        scale=np.linspace(1e-3, 2e-3, 8), zero_point=3, activation=bytes_of(rng, 256),
    )
    prepared = core.prepare((4, 6), core.load(b) if resident else b, **arguments)
    for _ in range(2):
        a = bytes_of(rng, 4, 6)
        np.testing.assert_array_equal(prepared(a), core.matmul(a, b, **arguments))


def test_operands_loaded_later_do_not_collide(core):
    rng = np.random.default_rng(4)
    b, other, a = bytes_of(rng, 6, 8), bytes_of(rng, 6, 8), bytes_of(rng, 4, 6)
    prepared = core.prepare((4, 6), b)
    prepared(a)
    resident = core.load(other)
    np.testing.assert_array_equal(prepared(a), a.astype(int) @ b)
    np.testing.assert_array_equal(core.matmul(a, resident), a.astype(int) @ other)


def test_matmul_in_between_gets_its_own_parameters(core):
    rng = np.random.default_rng(5)
    a, b = bytes_of(rng, 4, 6), bytes_of(rng, 6, 8)
    prepared = core.prepare((4, 6), b, scale=0.01)
    expected = core.matmul(a, b, scale=0.002)
    prepared(a)
    np.testing.assert_array_equal(core.matmul(a, b, scale=0.002), expected)


def test_stats_are_those_of_matmul(core):
    rng = np.random.default_rng(6)
    a, b = bytes_of(rng, 4, 6), bytes_of(rng, 6, 8)
    assert core.prepare((4, 6), b)(a, record=True)[1] == core.matmul(a, b, record=True)[1]


def test_bf16():
    config = Config(dtype="bf16", a_words=64, b_words=64)
    rng = np.random.default_rng(7)
    b = rng.standard_normal((6, 9)).astype(bfloat16)
    with Accelerator(GoldenTransport(config)) as core:
        arguments = dict(bias=rng.standard_normal(9).astype(np.float32), low=0.0, cast=True)
        prepared = core.prepare((5, 6), b, a_dtype=np.float32, **arguments)
        for _ in range(2):
            a = rng.standard_normal((5, 6)).astype(np.float32)
            np.testing.assert_array_equal(prepared(a), core.matmul(a, b, **arguments))


class Unreliable(GoldenTransport):
    """Loses the results of a job when told."""

    lose = False

    def receive(self, timeout):
        packet = super().receive(timeout)
        if self.lose:
            self.lose = False
            raise TransportTimeout("lost")
        return packet


def test_works_again_after_lost_results():
    transport = Unreliable(SMALL)
    rng = np.random.default_rng(8)
    a, b = bytes_of(rng, 4, 6), bytes_of(rng, 6, 8)
    with Accelerator(transport) as core:
        prepared = core.prepare((4, 6), b)
        transport.lose = True
        with pytest.raises(TransportTimeout):
            prepared(a)
        np.testing.assert_array_equal(prepared(a), a.astype(int) @ b)


@pytest.mark.parametrize("a, error, message", [
    (np.zeros((4, 5), np.int8), ValueError, r"a must be of shape \(4, 6\), not \(4, 5\)"),
    (np.zeros((4, 6), np.uint8), TypeError, "a must be int8, not uint8"),
])
def test_rejects_another_a(core, a, error, message):
    with pytest.raises(error, match=message):
        core.prepare((4, 6), np.zeros((6, 8), np.int8))(a)


def test_rejects_a_freed_b(core):
    resident = core.load(np.zeros((6, 8), np.int8))
    prepared = core.prepare((4, 6), resident)
    resident.free()
    with pytest.raises(ValueError, match="b must be loaded, not freed"):
        prepared(np.zeros((4, 6), np.int8))


def test_rejects_an_empty_product(core):
    with pytest.raises(ValueError, match="M, K and N of 1 or more, not 4, 0 and 8"):
        core.prepare((4, 0), np.zeros((0, 8), np.int8))


def test_rejects_several_tables(core):
    tables = np.zeros((2, 256), np.int8)
    with pytest.raises(ValueError, match=r"activation must be of shape \(256,\) for a prepared"):
        core.prepare((2, 4, 6), np.zeros((6, 8), np.int8), scale=0.1, activation=tables)


class Silent(GoldenTransport):
    """Repeats the results of the first product, without computing."""

    answer = None

    def send(self, commands):
        if self.answer is None:
            super().send(commands)

    def receive(self, timeout):
        if self.answer is None:
            self.answer = super().receive(timeout)
        else:
            self.answer = replace(self.answer, tag=self.answer.tag + 1)
        return self.answer


def test_a_call_takes_little_time():
    a, b = np.zeros((1, 128), np.int8), np.zeros((128, 128), np.int8)
    with Accelerator(Silent(Config(rows=8, cols=8, depth=8))) as core:
        prepared = core.prepare(a.shape, b, scale=0.01)
        prepared(a)
        times = []
        for _ in range(20):
            start = time.process_time()
            for _ in range(10):
                prepared(a)
            times.append((time.process_time() - start) / 10)
    assert min(times) < 2e-4  # seconds of CPU; some 5e-5 on a PC
