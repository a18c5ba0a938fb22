"""Tests of the driver on the golden transport, with and without failures, against int64 sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import SMALL, accelerator, check_sums, exact, integers
from rejects import rejects

from weft import Accelerator, Config
from weft.commands import Status
from weft.host.accelerator import AcceleratorError
from weft.host.emulated import GoldenTransport
from weft.host.planner import Planner
from weft.host.stats import Stats
from weft.host.transport import Packet, TransportClosed, TransportError, TransportTimeout

pytestmark = pytest.mark.usefixtures("fixed_cycles")
CONFIGS = [
    Config(
        rows=1, cols=1, depth=1, a_words=32, b_words=32, bytes_in=1, bytes_out=1, lanes=1
    ),
    SMALL,
    Config(rows=1, cols=16, depth=8, a_words=32, b_words=64, bytes_in=64, bytes_out=64),
    Config(rows=12, cols=12, depth=2, a_words=64, b_words=32, bytes_in=4, bytes_out=2, lanes=2),
    Config(rows=8, cols=8, depth=2, multiplier="fip", bytes_in=32),
]


SIZE = st.integers(1, 40)
TYPE = st.sampled_from([np.int8, np.uint8])


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    config=st.sampled_from(CONFIGS), m=SIZE, n=SIZE, k=st.integers(1, 200),
    types=st.tuples(TYPE, TYPE), seed=st.integers(0, 2**32),
    zeros=st.tuples(*[st.sampled_from(["none", "one", "each"])] * 2),
    resident=st.sampled_from(["", "a", "b", "ab"]),
)
def test_multiplies(config, m, n, k, types, seed, zeros, resident):
    rng = np.random.default_rng(seed)
    a, b = integers(rng, types[0], m, k), integers(rng, types[1], k, n)
    zero = {
        name: {"none": None, "one": int(integers(rng, t)), "each": integers(rng, t, size)}[how]
        for name, how, t, size in zip("pq", zeros, types, (m, n), strict=True)
    }
    want = exact(a, b, *(0 if z is None else z for z in zero.values()))
    acc = accelerator(config)
    given = {"a": a, "b": b}
    for side in resident:
        try:
            given[side] = acc.load(given[side], side=side)
            # the rest of a buffer may have no page free
            acc.matmul(given["a"], given["b"])
        except ValueError as error:
            assert "free" in str(error)
            return
    for _ in range(2):
        result = acc.matmul(
            given["a"], given["b"], a_zero_point=zero["p"], b_zero_point=zero["q"]
        )
        check_sums(result, want)


I8 = np.zeros((3, 4), np.int8)
U8 = np.zeros((4, 5), np.uint8)


def test_rejects_other_hardware():
    with rejects(AcceleratorError, (
        "the core's cols must be 6, not 5\n"
        "the core's multiplier must be fip, not plain\n"
        "the core's a_words must be 4096, not 64\n"
        "the core's b_words must be 4096, not 64"
    )):
        Accelerator(GoldenTransport(SMALL), Config(rows=3, cols=6, multiplier="fip", depth=2))


def test_rejects_registers_that_describe_no_config():
    transport = GoldenTransport(SMALL)
    transport.read = lambda address, count, timeout: [0] * count
    with rejects(AcceleratorError, (
        "the core's registers do not describe a Config: "
        "register magic must be 0x54464557 ('WEFT'), not 0x00000000; if Weft made the core, make it"
        " again with this version: weft build BOARD, then weft program BOARD; for an IP core weft"
        " generate"
    )):
        Accelerator(transport)


def test_takes_its_config_from_the_core():
    assert Accelerator(GoldenTransport(SMALL)).config == SMALL


def test_returns_the_stats_of_a_product():
    rng = np.random.default_rng(6)
    a, b = integers(rng, np.int8, 6, 8), integers(rng, np.int8, 8, 5)
    acc = accelerator()
    for _ in range(2):
        result, record = acc.matmul(a, b, record=True)
        check_sums(result, exact(a, b))
        # 1 job, 3 loads; A in 2 panels of 2 lines, B in 1 of 4; results in 6 rows of 2 chunks
        assert record == Stats(
            cycles=1000, macs=240, peak=30, bytes_in=4 * 32 + 16 * (2 * 2 + 4), bytes_out=6 * 32,
            active=900, starved=60, stalled=40, jobs=1,
        )
        assert record.utilization == 240 / 30_000
    _, nothing = acc.matmul(a[:0], b, record=True)
    assert nothing == Stats(0, 0, 30, 0, 0, 0, 0, 0, 0)
    assert nothing.utilization == 0


class Broken(GoldenTransport):
    """A golden transport that changes one ``send`` or ``receive`` by a function in ``spoil``."""

    def __init__(self, config, **spoil):
        super().__init__(config)
        self.spoil, self.sends = spoil, 0

    def send(self, commands):
        self.sends += 1
        super().send(self.spoil.pop("send", lambda x: x)(list(commands)))

    def receive(self, timeout):
        change = self.spoil.pop("receive", lambda x: x)
        return change(super().receive(timeout))


def fail(error):
    def raise_it(_):
        raise error

    return raise_it


def changed(**fields):
    return lambda packet: Packet(**{**vars(packet), **fields})


@pytest.mark.parametrize(
    ("spoil", "kind", "text"),
    [
        ({"receive": changed(tag=77)}, AcceleratorError,
         "expected results of job 0, received results of job 77"),
        ({"receive": changed(data=b"1234")}, AcceleratorError,
         "expected 96 bytes of results of job 0, received 4"),
        ({"receive": changed(status=Status.ABORTED)}, AcceleratorError,
         "job 0 ended with status ABORTED, expected complete"),
        ({"receive": changed(status=Status.REJECTED)}, AcceleratorError,
         "job 0 ended with status REJECTED, expected complete"),
        ({"receive": fail(TransportError("a frame was lost"))}, TransportError, "a frame was lost"),
        ({"receive": fail(KeyboardInterrupt())}, KeyboardInterrupt, ""),
        # the job's header without the loads that feed it
        ({"send": lambda x: x[:1]}, TransportTimeout, "no results within 600 s"),
    ],
)
@pytest.mark.parametrize("again", ["matmul", "load"])
def test_recovers_after_a_failure(spoil, kind, text, again):
    rng = np.random.default_rng(7)
    a, b = integers(rng, np.int8, 3, 8), integers(rng, np.int8, 8, 5)
    acc = Accelerator(Broken(SMALL, **spoil), timeout=600)
    with rejects(kind, text):
        acc.matmul(a, b)
    operand = acc.load(b) if again == "load" else b
    for rows in (a[::-1], a):
        check_sums(acc.matmul(rows, operand), exact(rows, b))


def test_drops_results_of_abandoned_jobs():
    rng = np.random.default_rng(7)
    a, b = integers(rng, np.int8, 3, 8), integers(rng, np.int8, 8, 5)
    # headers that nothing feeds follow a job that ends: they are in the way of the next
    acc = Accelerator(Broken(SMALL, send=lambda x: x + 3 * x[:1]), timeout=600)
    check_sums(acc.matmul(a, b), exact(a, b))
    with pytest.raises(TransportTimeout):
        acc.matmul(a, b)
    for _ in range(2):
        check_sums(acc.matmul(a, b), exact(a, b))


def test_reports_a_core_that_stays_busy():
    transport = GoldenTransport(SMALL)
    acc = Accelerator(transport, timeout=0.05)
    transport.send = lambda commands: None
    with pytest.raises(TransportTimeout):
        acc.matmul(I8, U8)
    with rejects(AcceleratorError, "the core is still busy 0.05 s after an abort; reset the core"):
        acc.matmul(I8, U8)


def test_reports_a_closed_transport():
    acc = accelerator()
    acc.close()
    for _ in range(2):
        with rejects(TransportClosed, "the transport is closed"):
            acc.matmul(I8, U8)


def test_sends_a_batch_in_one_call():
    transport = Broken(SMALL)
    rng = np.random.default_rng(8)
    a, b = integers(rng, np.int8, 6, 7, 90), integers(rng, np.int8, 6, 90, 12)
    check_sums(Accelerator(transport).matmul(a, b), exact(a, b))
    assert transport.sends == 1


def test_joins_packets_of_a_job():
    class Pieces(GoldenTransport):
        def _answer(self, tag, status, data=None):
            super()._answer(tag, status, data)
            whole = self._packets.pop()
            for at in range(0, len(whole.data), 16):
                data = whole.data[at : at + 16]
                last = at + 16 >= len(whole.data)
                self._packets.append(Packet(tag, last, status if last else Status(0), data))

    rng = np.random.default_rng(9)
    a, b = integers(rng, np.int8, 30, 8), integers(rng, np.int8, 8, 50)
    check_sums(Accelerator(Pieces(SMALL)).matmul(a, b), exact(a, b))


def test_splits_many_jobs_into_several_sends(monkeypatch):
    monkeypatch.setattr("weft.host.accelerator.MAX_JOBS", 5)
    transport = Broken(SMALL)
    rng = np.random.default_rng(10)
    a, b = integers(rng, np.int8, 12, 2, 3), integers(rng, np.int8, 12, 3, 2)
    check_sums(Accelerator(transport).matmul(a, b), exact(a, b))
    assert transport.sends == 3


def test_a_product_is_planned_once(monkeypatch):
    planned = []

    class Counted(Planner):
        def plan(self, *shape, **options):
            planned.append(shape)
            return super().plan(*shape, **options)

    monkeypatch.setattr("weft.host.accelerator.Planner", Counted)
    acc = Accelerator(GoldenTransport(SMALL))
    rng = np.random.default_rng(9)
    a, b = integers(rng, np.int8, 4, 6), integers(rng, np.int8, 6, 5)
    for _ in range(3):
        check_sums(acc.matmul(a, b), exact(a, b))
    assert planned == [(4, 5, 6)]
    resident = acc.load(b)  # other pages are free, so the plan is another one
    for _ in range(2):
        check_sums(acc.matmul(a, b), exact(a, b))
        check_sums(acc.matmul(a, resident), exact(a, b))
    assert planned == 3 * [(4, 5, 6)]
    for m in range(1, 70):  # more products than plans are kept
        check_sums(acc.matmul(a[:1].repeat(m, 0), b), exact(a[:1].repeat(m, 0), b))
    assert len(acc._plans) == 64
