"""Tests of threads that share an accelerator: each product is complete."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from products import SMALL, check_sums, exact, integers

from weft import Accelerator, Config
from weft.host.emulated import GoldenTransport
from weft.host.transport import TransportClosed


class Slow(GoldenTransport):
    """A golden transport that lets other threads run between any two steps."""

    def send(self, commands):
        time.sleep(0)
        super().send(commands)
        time.sleep(0.0005)

    def receive(self, timeout):
        time.sleep(0.0005)
        return super().receive(timeout)


def in_threads(work, count=4):
    """Run ``work(start, index)`` in ``count`` threads at once; the list of results."""
    start = threading.Barrier(count)

    def guarded(index):
        try:
            return work(start, index)
        except BaseException:
            start.abort()  # no thread waits for one that failed
            raise

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(guarded, range(count)))


def test_threads_share_an_accelerator():
    config = Config(rows=3, cols=5, depth=2, a_words=64, b_words=256, requantize="single")
    acc = Accelerator(Slow(config))
    rng = np.random.default_rng(11)
    shared = integers(rng, np.int8, 8, 5)
    held = acc.load(shared)

    def work(start, index):
        rng = np.random.default_rng(index)
        a, b = integers(rng, np.int8, 4, 8), integers(rng, np.int8, 8, 7)
        table = integers(rng, np.int8, 256)
        start.wait()
        for _ in range(5):
            check_sums(acc.matmul(a, b), exact(a, b))
            # Half of the sum and the thread's bias, then the thread's table.
            got = acc.matmul(a, held, scale=0.5, bias=1000 * index, activation=table)
            sums = np.clip((exact(a, shared) + 1000 * index + 1) // 2, -128, 127)
            assert np.array_equal(got, table[sums.astype(np.int8).view(np.uint8)])
            with acc.load(b) as own:
                result, record = acc.matmul(a, own, record=True)
            check_sums(result, exact(a, b))
            assert record.jobs == 1 and record.bytes_out == 4 * 3 * 16
            assert acc.counters()["errors"] == 0

    in_threads(work)


def test_close_waits_for_the_product_of_another_thread():
    transport = Slow(SMALL)
    acc = Accelerator(transport)
    rng = np.random.default_rng(12)
    a, b = integers(rng, np.int8, 3, 8), integers(rng, np.int8, 8, 5)

    def work(start, index):
        start.wait()
        if index == 0:
            time.sleep(0.005)
            return acc.close()
        with pytest.raises(TransportClosed):
            while True:
                check_sums(acc.matmul(a, b), exact(a, b))

    in_threads(work)
    assert not transport._packets  # no product was cut off


def test_free_waits_for_the_product_of_another_thread():
    class Watched(GoldenTransport):
        """Another thread frees the operand during the wait for results."""

        def receive(self, timeout):
            if waiting:
                waiting[0].start()
                waiting[0].join(0.05)
                alive.append(waiting.pop().is_alive())
            return super().receive(timeout)

    waiting, alive = [], []
    acc = Accelerator(Watched(SMALL))
    rng = np.random.default_rng(13)
    a, b = integers(rng, np.int8, 3, 8), integers(rng, np.int8, 8, 5)
    held = acc.load(b)
    waiting.append(thread := threading.Thread(target=held.free))
    check_sums(acc.matmul(a, held), exact(a, b))
    thread.join()
    assert alive == [True]
    assert held.page is None
