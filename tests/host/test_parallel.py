"""Tests of several cores: shared products, maps, the sum of a ring, and failures."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from ml_dtypes import bfloat16
from network_cores import network_core_config
from products import SMALL, accelerator, check_equal, cores, exact, floats, integers
from rejects import rejects

from weft import Accelerator, Config, Parallel
from weft.golden import matmul_bf16
from weft.host import serial_port, tcp
from weft.host.emulated import GoldenTransport, ListTransport, product_config
from weft.host.parallel import ParallelError, even_parts
from weft.host.serial_port import SerialPort
from weft.host.tcp import TcpServer, listen
from weft.host.transport import TransportClosed, TransportError
from weft.models.network_core.runners import GoldenRunner

GUARD = 600  # seconds after which a test hangs
SCALED = Config(rows=3, cols=5, depth=2, a_words=64, b_words=256, requantize="tflite",
                activation="table", b_zero_point="column")
FLOATS = Config(dtype="bf16", rows=2, cols=3, a_words=64, b_words=64, c_words=32)


class Weak(GoldenTransport):
    """A core whose connection fails at the send with number ``fails``, counted from 1."""

    def __init__(self, config, fails):
        super().__init__(config)
        self.sends, self.fails = 0, fails

    def send(self, commands):
        self.sends += 1
        if self.sends == self.fails:
            raise TransportError("the cable was cut")
        super().send(commands)


def weak(fails, config=SMALL):
    """A core that fails."""
    return Accelerator(Weak(config, fails))


@pytest.mark.parametrize("size, count, lengths", [
    (7, 3, [3, 2, 2]), (6, 3, [2, 2, 2]), (2, 4, [1, 1, 0, 0]), (0, 2, [0, 0]), (5, 1, [5]),
])
def test_parts_are_even(size, count, lengths):
    parts = even_parts(size, count)
    assert [len(part) for part in parts] == lengths
    assert [n for part in parts for n in part] == list(range(size))


# Shared products.


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 17])
@pytest.mark.parametrize("m", [None, 1, 4])  # None: a vector
def test_shares_a_product(count, n, m):
    rng = np.random.default_rng(n)
    a, b = integers(rng, np.int8, *([] if m is None else [m]), 19), integers(rng, np.int8, 19, n)
    want = (a.astype(int) @ b).astype(np.int32)
    parallel = cores(count)
    check_equal(parallel.matmul(a, b), want)
    with parallel.load(b) as shared:
        assert shared.shape == (19, n)
        for _ in range(2):
            y, stats = parallel.matmul(a, shared, record=True)
            check_equal(y, want)
        assert len(stats) == min(count, n)
        assert sum(each.macs for each in stats) == (m or 1) * 19 * n


def test_shares_a_batch_and_a_product_without_columns():
    rng = np.random.default_rng(2)
    a, b = integers(rng, np.int8, 3, 1, 2, 9), integers(rng, np.int8, 4, 9, 7)
    parallel = cores(3)
    check_equal(parallel.matmul(a, b), np.matmul(a.astype(np.int32), b.astype(np.int32)))
    check_equal(parallel.matmul(a[0, 0], b[0, :, :0]), np.zeros((2, 0), np.int32))


def test_arguments_of_columns_go_to_the_core_of_their_column():
    rng = np.random.default_rng(3)
    n = 8
    a, b = integers(rng, np.uint8, 4, 12), integers(rng, np.int8, 12, n)
    given = {
        "a_zero_point": 120, "b_zero_point": integers(rng, np.int8, n), "bias": np.arange(n) * 99,
        "scale": 2.0 ** -np.arange(5, 5 + n), "zero_point": list(range(n)),
        "low": np.arange(n) - 90, "high": 100, "activation": integers(rng, np.int8, 256),
    }
    want = accelerator(SCALED).matmul(a, b, **given)
    for count in (2, 3, 8, 9):
        check_equal(cores(count, SCALED).matmul(a, b, **given), want)
    one = {"multiplier": [3 << 29], "shift": np.full(n, -9), "bias": [5]}
    want = accelerator(SCALED).matmul(a, b, **one)
    check_equal(cores(3, SCALED).matmul(a, b, **one), want)


def test_sums_of_bf16_start_from_their_c():
    rng = np.random.default_rng(4)
    a, b, c = floats(rng, 5, 9), floats(rng, 9, 7), floats(rng, 5, 7, dtype=np.float32)
    for start in (c, c[:, :1], c[:1]):
        want = matmul_bf16(a, b, start=start)
        check_equal(cores(3, FLOATS).matmul(a, b, c=start), want)
    y = cores(2, FLOATS).matmul(a.astype(np.float32), b, cast=True, out_dtype=bfloat16)
    check_equal(y, matmul_bf16(a, b).astype(bfloat16))


def test_cores_of_other_sizes_share_a_product():
    larger = Config(rows=2, cols=8, depth=4, a_words=64, b_words=64)
    a, b = (integers(np.random.default_rng(5), np.int8, *shape) for shape in ((3, 20), (20, 11)))
    parallel = Parallel([accelerator(), accelerator(larger)])
    check_equal(parallel.matmul(a, b), exact(a, b).astype(np.int32))


def test_rejects_operands_that_cannot_be_shared():
    parallel, other = cores(2), cores(2)
    b = np.ones((4, 6), np.int8)
    with rejects(ValueError, "b must have 2 dimensions or more to be shared, not 1"):
        parallel.matmul(b[:, 0], b[:, 0])
    one = parallel.cores[0].load(b)
    with rejects(TypeError, "b must be an array or from Parallel.load, not loaded into one core"):
        parallel.matmul(b[:1, :4], one)
    with rejects(TypeError, "a must be an array, not loaded: all cores need it"):
        parallel.matmul(one, b)
    with rejects(ValueError, "b must be loaded by this Parallel, not by another"):
        parallel.matmul(b[:1, :4], other.load(b))
    rule = "bias must have 1 or 6 numbers on its last axis, as b has 6 columns, not 3"
    with rejects(ValueError, rule):
        parallel.matmul(b[:1, :4], b, bias=[1, 2, 3])
    for wrong in (b[:, 0], b[:0]):
        shape = wrong.shape
        with rejects(ValueError, (
            f"b must be a matrix of 1 x 1 or more to be loaded, not of shape {shape}"
        )):
            parallel.load(wrong)
    shared = parallel.load(b)
    shared.free()
    shared.free()
    with rejects(ValueError, "b must be loaded, not freed"):
        parallel.matmul(b[:1, :4], shared)
    with rejects(TypeError, "a must be int8 or uint8, not float64"):
        parallel.matmul(np.ones((1, 4)), b)


def test_rejects_a_matrix_that_does_not_fit_one_core_and_frees_the_others():
    parallel = cores(2)
    free = parallel.cores[0].free_pages()
    parallel.cores[1].load(np.ones((64, 5), np.int8))
    with pytest.raises(ValueError, match=(
        r"^columns 3\.\.5 on core 1 of 2: b of 100 x 3 must fit in the 2 consecutive free pages"
    )):
        parallel.load(np.ones((100, 6), np.int8))
    assert parallel.cores[0].free_pages() == free


@pytest.mark.parametrize("change, rule", [
    ({"requantize": "single"}, "requantize, not 'tflite' on core 0 and 'single'"),
    ({"activation": "none"}, "activation, not 'table' on core 0 and 'none'"),
    ({"b_zero_point": "none"}, "b_zero_point, not 'column' on core 0 and 'none'"),
    ({"dtype": "bf16", "requantize": "none", "b_zero_point": "none", "activation": "clamp"},
     "dtype, not 'int8' on core 0 and 'bf16'"),
])
def test_rejects_cores_with_other_results(change, rule):
    given = {"rows": 3, "cols": 5, "a_words": 64, "b_words": 64, "requantize": "tflite",
             "activation": "table", "b_zero_point": "column", "c_words": 0}
    calls = []
    _check_other_results(Config(**given), Config(**given | change), rule, calls)
    assert not calls


@pytest.mark.parametrize("change, rule", [
    ({"c_words": 0}, "c_words > 0, not True on core 0 and False"),
    ({"flush_subnormals": True}, "flush_subnormals, not False on core 0 and True"),
])
def test_rejects_cores_with_other_results_of_bf16(change, rule):
    calls = []
    _check_other_results(FLOATS, replace(FLOATS, **change), rule, calls)
    assert not calls


def _check_other_results(one, other, rule, calls):
    parallel = Parallel([accelerator(one), accelerator(other)])
    b = np.ones((4, 6), np.int8)
    for call in (
        lambda: parallel.matmul(b[:1, :4], b), lambda: parallel.load(b),
        lambda: parallel.map(lambda core, x: calls.append(x), [1]),
    ):
        with rejects(ValueError, f"cores must have the same {rule} on core 1"):
            call()
    # A pipeline does not mix their results.
    assert parallel.pipeline([lambda core, x: core.config], [1]) == [one]


# Maps.


@pytest.mark.parametrize("count", [3, 5])
def test_a_map_gives_shard_n_to_core_n_modulo_the_cores(count):
    parallel = cores(count)
    found = parallel.map(lambda core, x: (parallel.cores.index(core), 10 * x), range(12))
    assert found == [(n % count, 10 * n) for n in range(12)]
    assert parallel.map(lambda core, x: x, []) == []
    assert parallel.map(lambda core, x: x, iter("a")) == ["a"]


def test_cores_of_a_map_work_at_the_same_time_and_their_shards_in_order():
    meet, seen = threading.Barrier(2), [[], []]

    def call(core, n):
        meet.wait(GUARD)  # a core alone would wait here
        seen[n % 2].append(n)

    cores(2).map(call, range(6))
    assert seen == [[0, 2, 4], [1, 3, 5]]


def test_a_failed_call_of_a_map_is_named_and_later_ones_do_not_start():
    calls = []

    def call(core, n):
        calls.append(n)
        time.sleep(0.001)
        if n == 5:
            raise KeyError("no such layer")

    with rejects(ParallelError, "shard 5 failed on core 1 of 2: 'no such layer'"):
        cores(2).map(call, range(2000))
    assert len(calls) < 900 and 7 not in calls


def test_rejects_a_map_of_what_is_no_function():
    with rejects(TypeError, "fn must be callable, not 3"):
        cores(1).map(3, [])


# The sum of a ring.


def in_ring_order(shards):
    """The definition, number by number."""
    count, size = len(shards), shards[0].size
    owner = [rank for rank, part in enumerate(even_parts(size, count)) for _ in part]
    flat = [shard.reshape(-1) for shard in shards]
    total = np.empty(size, np.float32)
    for n, rank in enumerate(owner):
        order = [flat[(rank + 1 + step) % count][n] for step in range(count)]
        total[n] = list(itertools.accumulate(order, lambda x, y: np.float32(x + y)))[-1]
    return total.reshape(shards[0].shape)


def test_a_ring_adds_in_its_order():
    # 2**24 + 1 is 2**24 in float32, so only the order tells whether the 1 survives.
    large = np.float32(2**24)
    shards = [np.full(3, value, np.float32) for value in (large, 1, -large)]
    # Chunk 0: (1 - large) + large. Chunk 1: (-large + large) + 1. Chunk 2: (large + 1) - large.
    check_equal(Parallel.all_reduce(shards), np.array([1, 1, 0], np.float32))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (4, 9), (0, 3)])
def test_a_ring_of_any_size(count, shape):
    rng = np.random.default_rng(count)
    shards = [floats(rng, *shape, dtype=np.float32).reshape(shape) for _ in range(count)]
    before = [shard.copy() for shard in shards]
    total = Parallel.all_reduce(shards)
    check_equal(total, in_ring_order(shards))
    chunks = Parallel.reduce_scatter(shards)
    assert [len(chunk) for chunk in chunks] == list(map(len, even_parts(total.size, count)))
    check_equal(np.concatenate(chunks), total.reshape(-1))
    total[...], chunks[0][...] = 0, 0  # the result is no part of an argument
    for shard, kept in zip(shards, before, strict=True):
        check_equal(shard, kept)


def test_a_ring_keeps_infinities_and_nan():
    shards = [np.array([np.inf, 3e38, np.nan], np.float32), np.array([-np.inf, 3e38, 1], "f4")]
    with np.errstate(all="raise"):
        total = Parallel.all_reduce(shards)
    assert np.array_equal(total, [np.nan, np.inf, np.nan], equal_nan=True)


@pytest.mark.parametrize("shards, kind, text", [
    ([], ValueError, "shards must be 1 or more, not 0"),
    ([np.float32(1), np.float64(1)], TypeError, "shard 1 must be float32, not float64"),
    ([np.zeros(2, np.float32), np.zeros(3, np.float32)], ValueError,
     "shard 1 must have the shape of shard 0, (2,), not (3,)"),
])
def test_rejects_shards_without_a_sum(shards, kind, text):
    with rejects(kind, text):
        Parallel.all_reduce(shards)


# Failures, threads, transports.


def test_rejects_no_core_and_one_core_twice():
    core = accelerator()
    with rejects(ValueError, "cores must be 1 or more, not 0"):
        Parallel([])
    with rejects(TypeError, "core 1 must be a weft.Accelerator, not 'golden'"):
        Parallel([core, "golden"])
    with rejects(ValueError, "core 2 must be another one than core 0"):
        Parallel([core, accelerator(), core])


def test_a_core_that_fails_is_named_and_works_again():
    rng = np.random.default_rng(7)
    a, b = integers(rng, np.int8, 2, 8), integers(rng, np.int8, 8, 9)
    parallel = Parallel([accelerator(), weak(2), accelerator()])
    check_equal(parallel.matmul(a, b), exact(a, b).astype(np.int32))
    with rejects(ParallelError, "core 1 of 3 failed: the cable was cut"):
        parallel.matmul(a, b)
    check_equal(parallel.matmul(a, b), exact(a, b).astype(np.int32))
    parallel = Parallel([accelerator(), weak(3)])
    with rejects(ParallelError, "shard 5 failed on core 1 of 2: the cable was cut"):
        parallel.map(lambda core, x: core.matmul(x, b), [a] * 9)
    parallel = Parallel([accelerator(), weak(1)])
    with rejects(ParallelError, "core 1 of 2 failed: the cable was cut"):
        parallel.load(b)
    assert parallel.cores[0].free_pages() == accelerator().free_pages()


def test_rejects_a_closed_core():
    a = np.ones((2, 6), np.int8)
    parallel = cores(3)
    parallel.cores[1].close()
    with rejects(ParallelError, "core 1 of 3 failed: the transport is closed"):
        parallel.matmul(a, a.T @ a)
    with parallel:
        pass
    for core in parallel.cores:
        with rejects(TransportClosed, "the transport is closed"):
            core.counters()
    for call in (parallel.counters, lambda: parallel.load(a)):
        with rejects(ParallelError, "core 0 of 3 failed: the transport is closed"):
            call()


def test_counters_of_each_core():
    parallel = cores(2)
    parallel.matmul(np.ones((1, 6), np.int8), np.ones((6, 5), np.int8))
    assert [each["finished"] for each in parallel.counters()] == [1, 1]
    assert len(parallel) == 2


def test_threads_share_the_cores_and_a_call_may_be_within_a_call():
    parallel = cores(2)
    rng = np.random.default_rng(8)
    b = integers(rng, np.int8, 8, 7)
    shared = parallel.load(b)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(5):
            a = integers(rng, np.int8, 3, 8)
            check_equal(parallel.matmul(a, shared), exact(a, b).astype(np.int32))
            found = parallel.map(lambda core, x: parallel.matmul(x, shared), [a, a[:1], a])
            check_equal(found[1], exact(a[:1], b).astype(np.int32))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_network_core_and_a_product_core_share_a_product():
    config = network_core_config(2, 4, 4, 2, words=128, b_words=8, lines=8, read_vectors=2)
    lists = Accelerator(ListTransport(GoldenRunner(config)))
    a, b = (integers(np.random.default_rng(10), np.int8, *shape) for shape in ((3, 20), (20, 11)))
    parallel = Parallel([lists, accelerator(product_config(config))])
    check_equal(parallel.matmul(a, b), exact(a, b).astype(np.int32))
    one = accelerator(product_config(config)).matmul(a, b, scale=2.0**-9, bias=np.arange(11))
    check_equal(parallel.matmul(a, b, scale=2.0**-9, bias=np.arange(11)), one)


def test_boards_on_a_serial_port_and_over_tcp_share_a_product(line, far_line, monkeypatch):
    for module in (serial_port, tcp):
        monkeypatch.setattr(module, "_PROBE_TIMEOUT", GUARD)
    port = SerialPort(far_line.path, 115200)
    server = TcpServer(port, port, listen("localhost"), say=lambda text: None, timeout=GUARD)
    thread = threading.Thread(target=server.serve)
    thread.start()
    a, b = (integers(np.random.default_rng(9), np.int8, *shape) for shape in ((4, 20), (20, 13)))
    names = line.path, f"tcp://localhost:{server.port}"
    with Parallel([*map(Accelerator, names), accelerator(line.config)]) as three:
        check_equal(three.matmul(a, b), exact(a, b).astype(np.int32))
        with three.load(b) as shared:
            check_equal(three.matmul(a[0], shared), exact(a, b).astype(np.int32)[0])
        found = three.pipeline([
            lambda core, x: np.clip(core.matmul(x, b) >> 8, -9, 9).astype(np.int8),
            lambda core, x: core.matmul(x, b.T),
        ], [a, a[:1]])
        hidden = np.clip(exact(a, b) >> 8, -9, 9)
        check_equal(found[0], exact(hidden, b.T).astype(np.int32))
        check_equal(found[1], found[0][:1])
        line.pull()
        line.thread.join(GUARD)
        with pytest.raises(ParallelError, match=f"^core 0 of 3 failed: {line.path} "):
            three.matmul(a, b)
    server.close()
    thread.join(GUARD)
