"""The driver when an interrupt, another job or a failure occurs between any two accesses."""

import ctypes

import numpy as np
import pytest
from tiers import quick

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
SMALL, DEEP = (3, 5, 5), (2, 300, 3)  # M, K, N; the second splits K
OK, BUSY = 0, 1
ERR_TIMEOUT, ERR_STRIDE, ERR_ABORTED, ERR_REJECTED, ERR_IN_USE, ERR_NULL = -2, -4, -6, -7, -11, -12
DONE, FAILED = 1, 2
buses = pytest.mark.parametrize("bus", ["axi", "dma"])


class ProductCase:
    """A product for the driver, and the expected C."""

    def __init__(self, driver, shape, seed=3):
        m, k, n = shape
        rng = np.random.default_rng(seed)
        a, b = (rng.integers(-128, 128, size, dtype=np.int8) for size in ((m, k), (k, n)))
        self.c = driver.alloc((m, -(-n // 16) * 16), np.int32)[:, :n]
        self.c[...] = 0x5A5A5A5A
        self.want = a.astype(np.int64) @ b.astype(np.int64)
        self.product = driver.product(driver.put(a), driver.put(b), self.c)
        self.pointer = ctypes.byref(self.product)

    @property
    def correct(self):
        """Whether C equals numpy's product."""
        return np.array_equal(self.c, self.want)


def record_done(driver):
    """Set the callback ``done``; a list of the errors that it is called with."""
    ends = []
    done = driver.DONE(lambda core, error, context: ends.append(error))
    driver._callbacks.append(done)
    driver.call("test_done", done)
    return ends


def wait(driver, ends):
    """End jobs and handle interrupts until the product ends."""
    for _ in range(500):
        if ends:
            return
        driver.device.end_job()
        if driver.device.irq:
            driver.call("weft_irq")


def start_and_wait(driver, case, ends):
    """The result of a product, from weft_start() or from exactly one call of ``done``."""
    ends.clear()
    state = driver.call("weft_start", case.pointer)
    if state == BUSY:
        wait(driver, ends)
        assert len(ends) == 1, "`done` must be called once for each product"
        return ends[0]
    assert ends == []
    return state


@buses
@pytest.mark.parametrize("shape", [SMALL, DEEP])
@pytest.mark.parametrize("seed", quick(2, [*range(4)]))
def test_interrupts_are_enabled_during_every_call(hooked, bus, shape, seed):
    """The handler runs whenever the line is high, also between two accesses of a call."""
    driver = hooked(Ip(config=CONFIG, bus=bus), seed)
    ends = record_done(driver)
    driver.call("weft_irq_enable", DONE)
    driver.device.hook = lambda count: driver.device.irq and driver.call("weft_irq")
    for _ in range(3):
        case = ProductCase(driver, shape)
        assert start_and_wait(driver, case, ends) == OK
        assert case.correct
    polled = ProductCase(driver, SMALL)
    assert driver.call("weft_matmul", polled.pointer) == OK
    assert polled.correct
    assert driver.device.values["irq_enable"] == DONE


def accesses(hooked, ip, name):
    """How many accesses a call makes for the small product."""
    driver = hooked(ip)
    driver.device.hook = lambda count: None
    assert driver.call(name, ProductCase(driver, SMALL).pointer) in (OK, BUSY)
    return driver.device.count


@buses
def test_handler_runs_at_any_access_of_a_start(hooked, bus):
    """As with a shared interrupt line: a job may have ended or not."""
    ip = Ip(config=CONFIG, bus=bus)
    for at in range(1, accesses(hooked, ip, "weft_start") + 1):
        driver = hooked(ip)
        ends = record_done(driver)
        driver.call("weft_irq_enable", DONE)

        def hook(count, at=at, driver=driver):
            if count == at:
                driver.device.end_job()
                driver.call("weft_irq")

        driver.device.hook = hook
        case = ProductCase(driver, SMALL)
        assert start_and_wait(driver, case, ends) == OK, at
        assert case.correct, at
        driver.device.hook = None
        case = ProductCase(driver, SMALL, seed=4)
        assert driver.call("weft_matmul", case.pointer) == OK, at
        assert case.correct, at


@buses
def test_interrupted_call_is_not_disturbed(hooked, bus):
    """The handler masks the interrupt, and every other call returns ERR_IN_USE."""
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.call("weft_irq_enable", DONE)
    case, other = ProductCase(driver, SMALL), ProductCase(driver, SMALL)
    found = []

    def hook(count):
        if not found:
            found.append(driver.call("weft_irq"))
            found.append(driver.device.values["irq_enable"])
            driver.call("weft_irq_enable", DONE | FAILED)  # takes effect after the call
            found.append(driver.device.values["irq_enable"])
            weights, table = driver.Weights(), np.zeros(256, np.uint8)
            found.extend([
                driver.call("weft_start", other.pointer), driver.call("weft_matmul", other.pointer),
                driver.call("weft_step"), driver.call("weft_reset"),
                driver.call("weft_load_b", ctypes.byref(weights), case.product.b, 5, 1, 5, 5),
                driver.call("weft_free_b", ctypes.byref(weights)),
                driver.call("weft_load_table", ctypes.c_void_p(table.ctypes.data)),
            ])

    driver.device.hook = hook
    assert driver.call("weft_matmul", case.pointer) == OK
    assert case.correct
    assert found == [0, 0, 0] + [ERR_IN_USE] * 7
    assert driver.device.values["irq_enable"] == DONE | FAILED


@buses
def test_callback_starts_the_next_product(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    cases = [ProductCase(driver, SMALL, seed) for seed in range(3)]
    states, ends, remaining = [], [], cases[1:]

    def start_next(core, error, context):
        ends.append(error)
        while remaining:
            states.append(driver.call("weft_start", remaining.pop(0).pointer))
            if states[-1] == BUSY:
                return
            ends.append(states[-1])

    done = driver.DONE(start_next)
    driver.call("test_done", done)
    driver.call("weft_irq_enable", DONE)
    assert driver.call("weft_start", cases[0].pointer) == BUSY
    for _ in range(500):
        driver.device.end_job()
        if driver.device.irq:
            driver.call("weft_irq")
    assert ends == [OK] * 3
    assert all(case.correct for case in cases)


@buses
def test_rejects_a_second_product_while_one_is_in_progress(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.device.jobs_stalled = True
    first, second = ProductCase(driver, SMALL), ProductCase(driver, SMALL, seed=4)
    weights = driver.Weights()
    assert driver.call("weft_start", first.pointer) == BUSY
    assert driver.call("weft_start", second.pointer) == ERR_IN_USE
    assert driver.call("weft_matmul", second.pointer) == ERR_IN_USE
    arguments = ctypes.byref(weights), second.product.b, 5, 1, 5, 5
    assert driver.call("weft_load_b", *arguments) == ERR_IN_USE
    assert driver.call("weft_free_b", ctypes.byref(weights)) == ERR_IN_USE
    driver.device.jobs_stalled = False
    state = BUSY
    while state == BUSY:
        state = driver.call("weft_step")
    assert (state, first.correct, second.correct) == (OK, True, False)
    assert driver.call("weft_matmul", second.pointer) == OK
    assert second.correct


@buses
def test_step_returns_the_last_result(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    assert driver.call("weft_step") == OK
    driver.device.jobs_stalled = True
    assert driver.call("weft_start", ProductCase(driver, SMALL).pointer) == BUSY
    assert driver.call("weft_reset") == OK
    assert driver.call("weft_step") == ERR_ABORTED
    driver.device.jobs_stalled = False
    assert driver.call("weft_matmul", ProductCase(driver, SMALL).pointer) == OK
    assert driver.call("weft_step") == OK


JOBS = (5, 60, 5)  # M, K, N of a product of six jobs


def failing(driver, job, status, at=None):
    """The result of a product whose job number ``job`` fails. The next product must be correct.

    With ``at``, no job ends before that access, and then all jobs end at once.
    """
    driver.device.jobs_stalled, driver.device.forced_status = at is not None, {job: status}

    def hook(count):
        if count == at:
            driver.device.jobs_stalled = False
            while driver.device.end_job():
                pass

    driver.device.hook = hook
    state = driver.call("weft_matmul", ProductCase(driver, JOBS).pointer)
    driver.device.hook, driver.device.forced_status = None, {}
    case = ProductCase(driver, SMALL)
    assert driver.call("weft_matmul", case.pointer) == OK
    assert case.correct
    return state


@buses
@pytest.mark.parametrize("status, error", [(1, ERR_ABORTED), (2, ERR_REJECTED)])
def test_reports_each_job_that_fails(hooked, bus, status, error):
    for job in range(6):
        driver = hooked(Ip(config=CONFIG, bus=bus), seed=job)
        state = failing(driver, job, status)
        assert state == error or (bus == "dma" and job < 5 and state == ERR_ABORTED)


def test_job_that_fails_between_two_accesses_is_not_missed(hooked):
    """All jobs end at once, and the last one or the one before it fails."""
    ip = Ip(config=CONFIG, bus="dma")
    driver = hooked(ip)
    driver.device.hook = lambda count: None
    assert driver.call("weft_matmul", ProductCase(driver, JOBS).pointer) == OK
    assert driver.device.values["jobs_done"] == 6
    for job in (4, 5):
        for at in range(340, 400):
            state = failing(hooked(ip), job, status=1, at=at)
            assert state == ERR_ABORTED, at


def test_waits_for_every_job(hooked):
    """All jobs are submitted; then they end one by one, and the product ends with the last."""
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    driver.device.jobs_stalled = True
    case = ProductCase(driver, JOBS)
    assert driver.call("weft_start", case.pointer) == BUSY
    for _ in range(40):
        assert driver.call("weft_step") == BUSY
    for _ in range(5):
        assert driver.device.end_job()
        assert driver.call("weft_step") == BUSY
    assert driver.device.end_job()
    assert (driver.call("weft_step"), case.correct) == (OK, True)


@buses
@pytest.mark.parametrize("status", quick(2, [0, 2, 1]))
@pytest.mark.parametrize("shape", [DEEP, pytest.param(SMALL, marks=pytest.mark.slow)])
def test_ignores_jobs_of_other_software(hooked, bus, status, shape):
    """A job whose tag is not of this product ends at any access."""
    ip = Ip(config=CONFIG, bus=bus)
    count = accesses(hooked, ip, "weft_matmul")
    for at in range(0, count, 1 if bus == "dma" else 3):
        driver = hooked(ip)
        driver.call("weft_matmul", ProductCase(driver, SMALL).pointer)  # tags do not start at 0

        def hook(count, at=at, device=driver.device):
            if count == at:
                device.end_foreign_job(0x8000, status, words=range(40))

        driver.device.hook = hook
        hook(0)
        case = ProductCase(driver, shape)
        state = driver.call("weft_matmul", case.pointer)
        # With bus dma, LAST_JOB may already show a later job when the driver reads it.
        assert state == OK or (bus == "dma" and status and state == ERR_ABORTED), at
        assert state != OK or case.correct, at


@buses
def test_old_interrupt_does_not_end_a_product(hooked, bus):
    """An old DONE bit, and a LAST_JOB with the tag of the next job, as after a reset."""
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.device.values["irq_status"] = DONE
    driver.device.jobs_stalled = True
    driver.call("weft_irq_enable", DONE)
    ends, case = record_done(driver), ProductCase(driver, SMALL)
    assert driver.device.values["last_job"] == 0  # the tag of the first job is 0 too
    assert driver.call("weft_start", case.pointer) == BUSY
    for _ in range(5):
        driver.call("weft_irq")
    assert ends == []
    driver.device.jobs_stalled = False
    wait(driver, ends)
    assert (ends, case.correct) == ([OK], True)


@pytest.mark.parametrize("call", ["weft_load_b", "weft_load_table"])
def test_load_that_times_out_leaves_no_partial_command(hooked, call):
    ip = Ip(config=CONFIG, bus="axi")
    for at in range(1, 30, 3):
        driver = hooked(ip)
        weights, b = driver.Weights(), driver.put(np.ones((20, 5), np.int8))
        table = driver.put(np.arange(256, dtype=np.uint8))
        arguments = {
            "weft_load_b": (ctypes.byref(weights), b.ctypes.data, *b.strides, 5, 20),
            "weft_load_table": (ctypes.c_void_p(table.ctypes.data),),
        }

        def hook(count, at=at, device=driver.device):
            device.never_ready |= count == at

        driver.device.hook = hook
        assert driver.call(call, *arguments[call]) == ERR_TIMEOUT
        driver.device.hook, driver.device.never_ready = None, False
        case = ProductCase(driver, SMALL)
        assert driver.call("weft_matmul", case.pointer) == OK, at
        assert case.correct, at


@pytest.mark.parametrize("bus", ["axi", "stream", "dma"])
def test_rejects_null_pointers(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    before, weights = driver.device.writes, driver.Weights()
    case = ProductCase(driver, SMALL)
    assert driver.call("weft_matmul", None) == ERR_NULL
    for name in ("a", "b", "c"):
        changed = type(case.product).from_buffer_copy(case.product)
        setattr(changed, name, None)
        assert driver.call("weft_matmul", ctypes.byref(changed)) == ERR_NULL
    assert driver.call("weft_load_b", ctypes.byref(weights), None, 5, 1, 5, 5) == ERR_NULL
    assert driver.call("weft_load_b", None, case.product.b, 5, 1, 5, 5) == ERR_NULL
    assert driver.call("weft_free_b", None) == ERR_NULL
    assert driver.call("weft_load_table", None) == ERR_NULL
    assert driver.device.writes == before


@pytest.mark.parametrize("bus", ["stream", "dma"])
def test_rejects_null_buffers(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.call("test_buffers", None, 4096, None, 4096, driver._callbacks[2])
    table = np.zeros(256, np.uint8)
    assert driver.call("weft_load_table", ctypes.c_void_p(table.ctypes.data)) == ERR_NULL
    case = ProductCase(driver, SMALL)
    assert driver.call("weft_matmul", case.pointer) == (ERR_NULL if bus == "stream" else OK)


@pytest.mark.parametrize("skew, columns", [(1, 4), (0, 5)])
def test_rejects_odd_addresses_and_strides_of_bf16_operands(hooked, skew, columns):
    """The driver writes no register."""
    config = Config(dtype="bf16", rows=2, cols=4, a_words=64, b_words=64)
    driver = hooked(Ip(config=config, bus="dma"))
    stride = 2 * columns - (columns == 5)
    b = driver.alloc((64,), np.uint8, skew=skew)
    a, weights = driver.put(np.zeros((2, 3), np.uint16)), driver.Weights()
    c = driver.alloc((2, 16), np.float32)[:, :4]
    before = driver.device.writes
    arguments = ctypes.byref(weights), b.ctypes.data, stride, 2, 4, 3
    assert driver.call("weft_load_b", *arguments) == ERR_STRIDE
    product = driver.product(a, None, c)
    product.b, product.b_k_stride, product.b_col_stride = b.ctypes.data, stride, 2
    assert driver.call("weft_matmul", ctypes.byref(product)) == ERR_STRIDE
    product.a, product.a_row_stride = a.ctypes.data + skew, 6 + (columns == 5)
    product.b, product.b_k_stride = a.ctypes.data, 8
    assert driver.call("weft_matmul", ctypes.byref(product)) == ERR_STRIDE
    assert driver.device.writes == before
