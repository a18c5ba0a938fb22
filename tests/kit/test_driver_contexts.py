"""The driver where a handler, another job or a failure comes between any two of its accesses."""

import ctypes

import numpy as np
import pytest

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
SMALL, DEEP = (3, 5, 5), (2, 300, 3)  # M, K, N; of the second K is split
OK, BUSY, TIMEOUT, ABORTED, REJECTED, IN_USE, NULL = 0, 1, -2, -6, -7, -11, -12
DONE, FAILED = 1, 2
buses = pytest.mark.parametrize("bus", ["axi", "dma"])


class Product:
    """Operands, a C, and numpy's product of them."""

    def __init__(self, driver, shape, seed=3):
        m, k, n = shape
        rng = np.random.default_rng(seed)
        a, b = (rng.integers(-128, 128, size, dtype=np.int8) for size in ((m, k), (k, n)))
        self.c = driver.room((m, -(-n // 16) * 16), np.int32)[:, :n]
        self.c[...] = 0x5A5A5A5A
        self.want = a.astype(np.int64) @ b.astype(np.int64)
        self.given = driver.product(driver.put(a), driver.put(b), self.c)
        self.place = ctypes.byref(self.given)

    @property
    def right(self):
        """Whether C is numpy's."""
        return np.array_equal(self.c, self.want)


def told(driver):
    """What ``done`` is called with."""
    said = []
    done = driver.DONE(lambda core, error, context: said.append(error))
    driver._kept.append(done)
    driver.call("test_done", done)
    return said


def wait(driver, said):
    """Time passes, and interrupts come, until the product has ended."""
    for _ in range(500):
        if said:
            return
        driver.space.work()
        if driver.space.irq:
            driver.call("weft_irq")


def begin_and_wait(driver, product, said):
    """The end of a product that is begun; ``done`` must tell it once, or weft_start() does."""
    said.clear()
    state = driver.call("weft_start", product.place)
    if state == BUSY:
        wait(driver, said)
        assert len(said) == 1, "a product that was begun must end once"
        return said[0]
    assert said == []
    return state


@buses
@pytest.mark.parametrize("shape", [SMALL, DEEP])
@pytest.mark.parametrize("seed", range(4))
def test_interrupts_are_open_as_a_product_begins(hooked, bus, shape, seed):
    """The handler runs whenever the line is high, between any two accesses of a call."""
    driver = hooked(Ip(config=CONFIG, bus=bus), seed)
    said = told(driver)
    driver.call("weft_enable", DONE)
    driver.space.hook = lambda count: driver.space.irq and driver.call("weft_irq")
    for _ in range(3):
        product = Product(driver, shape)
        assert begin_and_wait(driver, product, said) == OK
        assert product.right
    polled = Product(driver, SMALL)
    assert driver.call("weft_matmul", polled.place) == OK
    assert polled.right
    assert driver.space.values["irq_enable"] == DONE


def accesses(hooked, ip, name):
    """The accesses of a call for the small product."""
    driver = hooked(ip)
    driver.space.hook = lambda count: None
    assert driver.call(name, Product(driver, SMALL).place) in (OK, BUSY)
    return driver.space.count


@buses
def test_handler_is_called_at_any_access_of_a_start(hooked, bus):
    """As another device does that shares the line; work has been done by then, or not."""
    ip = Ip(config=CONFIG, bus=bus)
    for at in range(1, accesses(hooked, ip, "weft_start") + 1):
        driver = hooked(ip)
        said = told(driver)
        driver.call("weft_enable", DONE)

        def hook(count, at=at, driver=driver):
            if count == at:
                driver.space.work()
                driver.call("weft_irq")

        driver.space.hook = hook
        product = Product(driver, SMALL)
        assert begin_and_wait(driver, product, said) == OK, at
        assert product.right, at
        driver.space.hook = None
        product = Product(driver, SMALL, seed=4)
        assert driver.call("weft_matmul", product.place) == OK, at
        assert product.right, at


@buses
def test_interrupted_call_is_not_disturbed(hooked, bus):
    """The handler masks the interrupt, and every other call it may try is refused."""
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.call("weft_enable", DONE)
    product, other = Product(driver, SMALL), Product(driver, SMALL)
    found = []

    def hook(count):
        if not found:
            found.append(driver.call("weft_irq"))
            found.append(driver.space.values["irq_enable"])
            driver.call("weft_enable", DONE | FAILED)  # that it is to have afterwards
            found.append(driver.space.values["irq_enable"])
            weights, table = driver.Weights(), np.zeros(256, np.uint8)
            found.extend([
                driver.call("weft_start", other.place), driver.call("weft_matmul", other.place),
                driver.call("weft_step"), driver.call("weft_reset"),
                driver.call("weft_load_b", ctypes.byref(weights), product.given.b, 5, 1, 5, 5),
                driver.call("weft_free_b", ctypes.byref(weights)),
                driver.call("weft_load_table", ctypes.c_void_p(table.ctypes.data)),
            ])

    driver.space.hook = hook
    assert driver.call("weft_matmul", product.place) == OK
    assert product.right
    assert found == [0, 0, 0] + [IN_USE] * 7
    assert driver.space.values["irq_enable"] == DONE | FAILED


@buses
def test_callback_starts_the_next_product(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    products = [Product(driver, SMALL, seed) for seed in range(3)]
    states, ends, left = [], [], products[1:]

    def chain(core, error, context):
        ends.append(error)
        while left:
            states.append(driver.call("weft_start", left.pop(0).place))
            if states[-1] == BUSY:
                return
            ends.append(states[-1])

    done = driver.DONE(chain)
    driver.call("test_done", done)
    driver.call("weft_enable", DONE)
    assert driver.call("weft_start", products[0].place) == BUSY
    for _ in range(500):
        driver.space.work()
        if driver.space.irq:
            driver.call("weft_irq")
    assert ends == [OK] * 3
    assert all(product.right for product in products)


@buses
def test_rejects_a_second_product_while_one_is_under_way(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.space.frozen = True
    first, second = Product(driver, SMALL), Product(driver, SMALL, seed=4)
    weights = driver.Weights()
    assert driver.call("weft_start", first.place) == BUSY
    assert driver.call("weft_start", second.place) == IN_USE
    assert driver.call("weft_matmul", second.place) == IN_USE
    place = ctypes.byref(weights), second.given.b, 5, 1, 5, 5
    assert driver.call("weft_load_b", *place) == IN_USE
    assert driver.call("weft_free_b", ctypes.byref(weights)) == IN_USE
    driver.space.frozen = False
    state = BUSY
    while state == BUSY:
        state = driver.call("weft_step")
    assert (state, first.right, second.right) == (OK, True, False)
    assert driver.call("weft_matmul", second.place) == OK
    assert second.right


@buses
def test_step_tells_how_a_product_ended(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    assert driver.call("weft_step") == OK
    driver.space.frozen = True
    assert driver.call("weft_start", Product(driver, SMALL).place) == BUSY
    assert driver.call("weft_reset") == OK
    assert driver.call("weft_step") == ABORTED
    driver.space.frozen = False
    assert driver.call("weft_matmul", Product(driver, SMALL).place) == OK
    assert driver.call("weft_step") == OK


JOBS = (5, 60, 5)  # M, K, N of a product of six jobs


def failing(mock, job, status, at=None):
    """How the product ends whose ``job`` fails; at one access all end that can, and none before.

    The next product must be right.
    """
    mock.space.frozen, mock.space.verdicts = at is not None, {job: status}

    def hook(count):
        if count == at:
            mock.space.frozen = False
            while mock.space.work():
                pass

    mock.space.hook = hook
    state = mock.call("weft_matmul", Product(mock, JOBS).place)
    mock.space.hook, mock.space.verdicts = None, {}
    product = Product(mock, SMALL)
    assert mock.call("weft_matmul", product.place) == OK
    assert product.right
    return state


@buses
@pytest.mark.parametrize("status, error", [(1, ABORTED), (2, REJECTED)])
def test_tells_of_each_job_that_fails(hooked, bus, status, error):
    for job in range(6):
        driver = hooked(Ip(config=CONFIG, bus=bus), seed=job)
        state = failing(driver, job, status)
        assert state == error or (bus == "dma" and job < 5 and state == ABORTED)


def test_job_that_fails_between_two_accesses_is_not_missed(hooked):
    """All jobs end at the same time: the last one right, the one before it not; or the last."""
    ip = Ip(config=CONFIG, bus="dma")
    driver = hooked(ip)
    driver.space.hook = lambda count: None
    assert driver.call("weft_matmul", Product(driver, JOBS).place) == OK
    assert driver.space.values["jobs_done"] == 6
    for job in (4, 5):
        for at in range(340, 400):
            state = failing(hooked(ip), job, status=1, at=at)
            assert state == ABORTED, at


def test_every_job_is_waited_for(hooked):
    """All are submitted; then one after the other ends, and the product with the last."""
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    driver.space.frozen = True
    product = Product(driver, JOBS)
    assert driver.call("weft_start", product.place) == BUSY
    for _ in range(40):
        assert driver.call("weft_step") == BUSY
    for _ in range(5):
        assert driver.space.work()
        assert driver.call("weft_step") == BUSY
    assert driver.space.work()
    assert (driver.call("weft_step"), product.right) == (OK, True)


@buses
@pytest.mark.parametrize("status", [0, 1, 2])
@pytest.mark.parametrize("shape", [SMALL, DEEP])
def test_results_of_other_jobs_are_told_apart(hooked, bus, status, shape):
    """A job of a tag that is not this product's ends, whenever it does."""
    ip = Ip(config=CONFIG, bus=bus)
    count = accesses(hooked, ip, "weft_matmul")
    for at in range(0, count, 1 if bus == "dma" else 3):
        driver = hooked(ip)
        driver.call("weft_matmul", Product(driver, SMALL).place)  # tags do not begin at 0

        def hook(count, at=at, space=driver.space):
            if count == at:
                space.foreign(0x8000, status, words=range(40))

        driver.space.hook = hook
        hook(0)
        product = Product(driver, shape)
        state = driver.call("weft_matmul", product.place)
        # A DMA's LAST_JOB may have been that of a later job by the time that it is looked at.
        assert state == OK or (bus == "dma" and status and state == ABORTED), at
        assert state != OK or product.right, at


@buses
def test_old_interrupt_ends_nothing(hooked, bus):
    """DONE of jobs from before, and a LAST_JOB of the tag that comes next, as after a reset."""
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.space.values["irq_status"] = DONE
    driver.space.frozen = True
    driver.call("weft_enable", DONE)
    said, product = told(driver), Product(driver, SMALL)
    assert driver.space.values["last_job"] == 0  # as is the tag of the first job
    assert driver.call("weft_start", product.place) == BUSY
    for _ in range(5):
        driver.call("weft_irq")
    assert said == []
    driver.space.frozen = False
    wait(driver, said)
    assert (said, product.right) == ([OK], True)


@pytest.mark.parametrize("call", ["weft_load_b", "weft_load_table"])
def test_load_that_timed_out_leaves_no_half_of_a_command(hooked, call):
    ip = Ip(config=CONFIG, bus="axi")
    for at in range(1, 30, 3):
        driver = hooked(ip)
        weights, b = driver.Weights(), driver.put(np.ones((20, 5), np.int8))
        table = driver.put(np.arange(256, dtype=np.uint8))
        places = {
            "weft_load_b": (ctypes.byref(weights), b.ctypes.data, *b.strides, 5, 20),
            "weft_load_table": (ctypes.c_void_p(table.ctypes.data),),
        }

        def hook(count, at=at, space=driver.space):
            space.silent |= count == at

        driver.space.hook = hook
        assert driver.call(call, *places[call]) == TIMEOUT
        driver.space.hook, driver.space.silent = None, False
        product = Product(driver, SMALL)
        assert driver.call("weft_matmul", product.place) == OK, at
        assert product.right, at


@pytest.mark.parametrize("bus", ["axi", "stream", "dma"])
def test_rejects_pointers_that_are_null(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    before, weights = driver.space.writes, driver.Weights()
    product = Product(driver, SMALL)
    assert driver.call("weft_matmul", None) == NULL
    for name in ("a", "b", "c"):
        wrong = type(product.given).from_buffer_copy(product.given)
        setattr(wrong, name, None)
        assert driver.call("weft_matmul", ctypes.byref(wrong)) == NULL
    assert driver.call("weft_load_b", ctypes.byref(weights), None, 5, 1, 5, 5) == NULL
    assert driver.call("weft_load_b", None, product.given.b, 5, 1, 5, 5) == NULL
    assert driver.call("weft_free_b", None) == NULL
    assert driver.call("weft_load_table", None) == NULL
    assert driver.space.writes == before


@pytest.mark.parametrize("bus", ["stream", "dma"])
def test_rejects_a_buffer_that_is_null(hooked, bus):
    driver = hooked(Ip(config=CONFIG, bus=bus))
    driver.call("test_buffer", None, 4096, None, 4096, driver._kept[2])
    table = np.zeros(256, np.uint8)
    assert driver.call("weft_load_table", ctypes.c_void_p(table.ctypes.data)) == NULL
    product = Product(driver, SMALL)
    assert driver.call("weft_matmul", product.place) == (NULL if bus == "stream" else OK)


@pytest.mark.parametrize("skew, columns", [(1, 4), (0, 5)])
def test_rejects_odd_places_of_bf16_operands(hooked, skew, columns):
    """An odd address, or an odd stride: nothing is written."""
    config = Config(dtype="bf16", rows=2, cols=4, a_words=64, b_words=64)
    driver = hooked(Ip(config=config, bus="dma"))
    stride = 2 * columns - (columns == 5)
    b = driver.room((64,), np.uint8, skew=skew)
    a, weights = driver.put(np.zeros((2, 3), np.uint16)), driver.Weights()
    c = driver.room((2, 16), np.float32)[:, :4]
    before = driver.space.writes
    place = ctypes.byref(weights), b.ctypes.data, stride, 2, 4, 3
    assert driver.call("weft_load_b", *place) == -4
    product = driver.product(a, None, c)
    product.b, product.b_k, product.b_col = b.ctypes.data, stride, 2
    assert driver.call("weft_matmul", ctypes.byref(product)) == -4
    product.a, product.a_row = a.ctypes.data + skew, 6 + (columns == 5)
    product.b, product.b_k = a.ctypes.data, 8
    assert driver.call("weft_matmul", ctypes.byref(product)) == -4
    assert driver.space.writes == before
