"""`Accelerator` on a network core: results of the golden core, bit for bit; what is sent."""

import numpy as np
import pytest
from faulty_pipe import End
from golden_network_board import CYCLES, PipedNetworkBoard
from network_cores import PROGRAM, network_core_config
from rejects import rejects

from weft import Accelerator
from weft.host import list_plan
from weft.host.accelerator import AcceleratorError
from weft.host.board import BoardTransport
from weft.host.emulated import GoldenTransport, ListTransport, product_config
from weft.host.list_plan import ProductSpace
from weft.host.list_products import ListProducts
from weft.host.packing import ENTRY
from weft.host.transport import TransportError
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.descriptors import ListError, ListReport

# A memory of 1,536 bytes, a buffer of 8 words of B: most products are divided in all directions.
TINY = network_core_config(2, 4, 4, 2, words=128, b_words=8, lines=8, read_vectors=2)
FIP = network_core_config(
    3, 4, 4, 2, words=1024, b_words=256, lines=64, read_vectors=2, multiplier="fip"
)
WIDE = network_core_config(1, 16, 8, 8, words=512, requantize="single")
ONNX = network_core_config(2, 4, 8, 4, words=512, requantize="onnx")
CHIPS = pytest.mark.parametrize(
    "config", [TINY, FIP, WIDE, PROGRAM, ONNX], ids=lambda config: config.array.name
)


class Runner(GoldenRunner):
    """Counts the bytes that are written, and fails on request."""

    def __init__(self, config):
        super().__init__(config)
        self.written, self.error = 0, None

    def write(self, address, data, **form):
        self.written += len(data)
        super().write(address, data, **form)

    def run(self, *addresses, timeout):
        error, self.error = self.error, None
        if isinstance(error, Exception):
            raise error
        report = super().run(*addresses, timeout=timeout)
        return ListReport(error, 1) if error else report


def pair(config):
    """Accelerators on the network core and on a golden core of the same array."""
    runner = Runner(config)
    lists = Accelerator(ListTransport(runner))
    return runner, lists, Accelerator(GoldenTransport(product_config(config)))


def operands(rng, a_shape, b_shape):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (a_shape, b_shape))
    return a, b


@CHIPS
def test_sums_of_any_shape(config):
    rng = np.random.default_rng(1)
    _, lists, _ = pair(config)
    shapes = [(1, 1, 1), (5, 1, 9), (3, 70, 7), (17, 9, 33), *rng.integers(1, 24, (4, 3))]
    for m, k, n in shapes:
        a, b = operands(rng, (m, k), (k, n))
        assert (lists.matmul(a, b) == a.astype(int) @ b.astype(int)).all()
    a, b = np.full((4, 40), -128, np.int8), np.full((40, 5), -128, np.int8)
    assert (lists.matmul(a, b) == 40 * 128 * 128).all()


@CHIPS
def test_all_arguments_equal_the_golden_core(config):
    """Scales, zero points and limits of columns, uint8, batches, vectors, K of 0."""
    rng = np.random.default_rng(2)
    _, lists, golden = pair(config)
    a, b = operands(rng, (9, 21), (21, 10))
    bias, scale = rng.integers(-9000, 9000, 10), rng.uniform(1e-3, 1e-2, 10)
    unsigned = a.view(np.uint8)
    calls = [
        (a, b, dict(bias=bias, scale=scale, zero_point=-7, low=-50, high=120)),
        (a, b, dict(scale=scale, zero_point=rng.integers(-4, 0, 10), high=rng.integers(9, 12, 10))),
        (unsigned, b, dict(bias=bias, scale=0.01, a_zero_point=130, out_dtype=np.uint8,
                           zero_point=200, low=3)),
        (unsigned, b, dict(scale=0.01, out_dtype=np.uint8, high=100)),
        (a, b, dict(a_zero_point=rng.integers(-5, 5, 9), b_zero_point=rng.integers(-5, 5, 10))),
        (*operands(rng, (2, 3, 5), (2, 5, 4)), dict(bias=bias[:4], scale=0.01)),
        (*operands(rng, (3, 1, 6, 5), (2, 5, 4)), {}),
        (*operands(rng, (5,), (5, 3)), {}),
        (*operands(rng, (3, 0), (0, 4)), dict(bias=bias[:4], scale=0.01)),
        (*operands(rng, (3, 0), (0, 4)), {}),
        (*operands(rng, (0, 3), (3, 4)), {}),
    ]
    for left, right, arguments in calls:
        y, expected = (acc.matmul(left, right, **arguments) for acc in (lists, golden))
        assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
        assert (y == expected).all(), arguments


@CHIPS
def test_products_stay_in_their_part_of_the_memory(config):
    rng, runner = np.random.default_rng(8), Runner(config)
    depth, first = config.array.depth, 60
    vectors = config.vectors - first - 5
    lists = 16, config.program_bytes // depth - 16 - 7
    products = ListProducts(runner, space=ProductSpace(first, vectors, *lists))
    part = slice(first * depth, (first + vectors) * depth)
    before, program = runner.memory.copy(), runner.program.copy()
    for m, k, n in ((1, 1, 1), (17, 9, 33), (3, 70, 7)):
        a, b = operands(rng, (m, k), (n, k))
        assert (products.sums(a, b) == a.astype(int) @ b.T.astype(int)).all()
    assert (runner.memory[part] != before[part]).any()
    runner.memory[part] = before[part]
    np.testing.assert_array_equal(runner.memory, before)
    if config.program_words:
        assert (runner.program != program).any()
        runner.program[16 * depth : -7 * depth] = program[16 * depth : -7 * depth]
        np.testing.assert_array_equal(runner.program, program)
    # Others use the buffers: without `forget`, the products would compute with their contents.
    runner._buffers = type(runner._buffers)(config)
    products.forget()
    assert (products.sums(a, b) == a.astype(int) @ b.T.astype(int)).all()


def test_resident_and_prepared_products():
    rng = np.random.default_rng(3)
    runner, lists, golden = pair(FIP)
    _, b = operands(rng, (1, 1), (30, 12))
    with lists.load(b) as weights:
        products = lists.prepare((4, 30), weights, scale=0.004), golden.prepare(
            (4, 30), b, scale=0.004
        )
        for _ in range(2):
            a, _ = operands(rng, (4, 30), (1, 1))
            assert (lists.matmul(a, weights) == a.astype(int) @ b.astype(int)).all()
            assert (products[0](a) == products[1](a)).all()


def test_weights_and_lists_are_sent_once():
    rng = np.random.default_rng(4)
    runner, lists, _ = pair(FIP)
    a, b = operands(rng, (6, 40), (40, 20))
    lists.matmul(a, b)
    # B; for each of 5 tiles 2 lines of 24 bytes; A; 4 descriptors.
    assert runner.written == 20 * 40 + 5 * 2 * 24 + 6 * 40 + 4 * 128
    for expected in (2 * 128 + 6 * 40, 6 * 40):  # the list has no loads now; then it is there
        a, _ = operands(rng, (6, 40), (1, 1))
        before = runner.written
        assert (lists.matmul(a, b) == a.astype(int) @ b.astype(int)).all()
        assert runner.written - before == expected
    before = runner.written
    lists.matmul(a, b)
    assert runner.written == before
    counters = lists._core._transport.products.counters
    assert (counters.lists, counters.sent) == (4, runner.written)
    assert counters.received == 4 * 6 * 20 * 4


def test_a_product_is_planned_once(monkeypatch):
    """For each B, number of rows, and parameters."""
    rng, made = np.random.default_rng(9), []
    plan_of = list_plan.ListPlan
    monkeypatch.setattr(
        "weft.host.list_products.ListPlan",
        lambda *given: made.append(given[2:]) or plan_of(*given),
    )
    products = ListProducts(Runner(TINY))
    a, b = operands(rng, (6, 40), (20, 40))
    wanted = a.astype(int) @ b.astype(int).T
    plan = products.prepare(6, b)
    for _ in range(3):
        assert (products.sums(a, b.copy()) == wanted).all()
        assert (products.compute(plan, a) == wanted).all()
    assert len(made) == 1
    assert (products.sums(a[:3], b) == wanted[:3]).all()
    b[0, 0] += 1
    assert (products.sums(a, b) == a.astype(int) @ b.astype(int).T).all()
    entries = np.zeros(20, ENTRY)
    entries["high"] = 7
    products.prepare(6, b, entries)
    entries["low"] = 7
    assert (products.results(a[:, :9], b[:, :9], entries) == 7).all()
    assert len(made) == 5


def test_plans_that_take_too_much_memory_are_dropped(monkeypatch):
    """The ones first that were not used for the longest time."""
    products, made = ListProducts(Runner(TINY)), []
    _, b = operands(np.random.default_rng(9), (1, 1), (3, 20, 40))
    monkeypatch.setattr(
        "weft.host.list_products._MAX_PLANNED", 2 * products.prepare(6, b[0]).bytes
    )
    for number in (0, 1, 0, 2, 0, 1):
        plan = products.prepare(6, b[number])
        if plan not in made:
            made.append(plan)
    assert len(made) == 4 and products.prepare(6, b[0]) is made[0]


@pytest.mark.parametrize("error, kind, text", [
    (ListError.ADDRESS, AcceleratorError,
     ("a product: the list ended with error ADDRESS in job 1: an address lies outside of the memory"
      " that the list may use")),
    (TransportError("lost"), TransportError, "lost"),
])
def test_the_next_product_works_after_an_error(error, kind, text):
    rng = np.random.default_rng(5)
    runner, lists, _ = pair(TINY)
    a, b = operands(rng, (6, 9), (9, 5))
    lists.matmul(a, b)
    runner.error = error
    with rejects(kind, text):
        lists.matmul(a + 1, b)
    runner.memory[:] = 0x77
    runner._buffers.b[:] = 1
    assert (lists.matmul(a, b) == a.astype(int) @ b.astype(int)).all()


def test_counters_are_the_cycles_of_the_lists():
    rng = np.random.default_rng(6)
    _, lists, _ = pair(FIP)
    a, b = operands(rng, (3, 8), (8, 4))
    y, first = lists.matmul(a, b, record=True)
    y, stats = lists.matmul(a, b, record=True)
    # One panel of one tile of 2 words; without loads it is faster.
    assert (stats.active, stats.macs, stats.jobs) == (2, 96, 1)
    assert stats.starved == stats.cycles - 2
    assert 80 < stats.cycles < first.cycles < 300


def test_a_memory_that_is_too_small():
    config = network_core_config(2, 4, 4, 2, words=32, b_words=8, lines=8, read_vectors=2)
    rule = "a network core must have a memory and buffers for a product of one tile, not"
    with rejects(ValueError, f"{rule} 384 bytes and 8 lines"):
        ListTransport(GoldenRunner(config))


def test_an_accelerator_finds_a_core_for_networks_on_a_board():
    """Over frames, as on a serial port; the cycles are what the board reports."""
    board = PipedNetworkBoard(TINY)
    end = End(board)
    rng = np.random.default_rng(7)
    a, b = operands(rng, (2, 4), (4, 3))
    with Accelerator(BoardTransport(end, end, timeout=0.05), timeout=600) as lists:
        assert lists.config == product_config(TINY)
        y, stats = lists.matmul(a, b, record=True)
    assert (y == a.astype(int) @ b.astype(int)).all()
    assert stats.cycles == CYCLES


@pytest.mark.parametrize("runner", [3, "golden", None])
def test_rejects_a_runner_without_a_core(runner):
    with rejects(TypeError, (
        "runner must have a network core, as weft.host.network_driver.NetworkDriver has, not"
        f" {runner!r}"
    )):
        ListTransport(runner)


def test_a_runner_is_not_a_transport():
    runner = GoldenRunner(TINY)
    with rejects(TypeError, (
        f"transport must be a weft.host.transport.Transport, or the name of one, not {runner!r};"
        " ListTransport(runner) is one"
    )):
        Accelerator(runner)
    with rejects(TypeError, (
        "transport must be a weft.host.transport.Transport, or the name of one, not 7"
    )):
        Accelerator(7)
