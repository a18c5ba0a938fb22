"""The C driver with bus dma rejects memory beyond the core's addresses or outside its window."""

import ctypes

import numpy as np
import pytest

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
SPACE = 1 << 32
ERR_RANGE, ERR_IN_USE = -13, -11
M, K, N = 5, 7, 8


def operands(driver):
    rng = np.random.default_rng(3)
    a = driver.put(rng.integers(-128, 128, (M, K), dtype=np.int8))
    b = driver.put(rng.integers(-128, 128, (K, N), dtype=np.int8))
    return a, b, driver.alloc((M, N), np.int32)


def changed(driver, **fields):
    """A product with changed fields; addresses are bus addresses."""
    product = driver.product(*operands(driver))
    for name, value in fields.items():
        start = driver.device.memory.ctypes.data if name in ("a", "b", "c") else 0
        setattr(product, name, start + value)
    return product


# First fields with which the last byte is at 2^32 - 1 or the first at 0; then a change beyond it.
EDGES = {
    "a": ({"a": SPACE - M * K}, {"a": 1}),
    "b": ({"b": SPACE - K * N}, {"b": 1}),
    "c": ({"c": SPACE - 4 * M * N}, {"c": 16}),
    "a-backwards": ({"a": (M - 1) * K, "a_row_stride": -K}, {"a": -1}),
    "b-backwards": ({"b": (K - 1) * N, "b_k_stride": -N}, {"b": -1}),
    "c-backwards": ({"c": (M - 1) * N * 4, "c_row_stride": -N * 4}, {"c": -16}),
    "a-long": ({"a": SPACE - (M - 1 << 28) - K, "a_row_stride": 1 << 28}, {"a": 1}),
    "a-wraps": (
        {"a": SPACE - (M - 1 << 29) - K, "a_row_stride": 1 << 29}, {"a_row_stride": 1 << 29}
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_rejects_a_product_beyond_32_bit_addresses(hooked, name):
    """A rejected product sends nothing; a product up to the limit submits descriptors."""
    inside, change = EDGES[name]
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    beyond = {field: inside[field] + value for field, value in change.items()}
    before = driver.device.writes
    product = changed(driver, **inside | beyond)
    assert driver.call("weft_matmul", ctypes.byref(product)) == ERR_RANGE
    assert driver.device.writes == before
    driver.device.jobs_stalled = True  # the model has no memory at these addresses
    driver.device._descriptor = descriptors = Counter()
    driver.call("weft_matmul", ctypes.byref(changed(driver, **inside)))
    assert descriptors.count


class Counter:
    """Counts its calls."""

    count = 0

    def __call__(self, words):
        self.count += 1


def test_rejects_weights_beyond_32_bit_addresses(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    weights, before = driver.Weights(), driver.device.writes
    address = driver.device.memory.ctypes.data + SPACE - K * N + 1
    assert driver.call("weft_load_b", ctypes.byref(weights), address, N, 1, N, K) == ERR_RANGE
    assert driver.device.writes == before


def test_rejects_memory_outside_the_window(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma", window=True))
    a, b, c = operands(driver)
    product = driver.product(a, b, c)
    address = {name: x.ctypes.data - driver.device.memory.ctypes.data for name, x in
               (("a", a), ("b", b), ("c", c))}
    first, last = address["a"], address["c"] + c.nbytes - 1
    assert first < address["b"] < address["c"]
    for base, limit, result in (
        (first, last, 0), (first + 16, last, ERR_RANGE), (first, last - 16, ERR_RANGE),
        (0, SPACE - 1, 0),
    ):
        assert driver.call("weft_dma_window", base, limit) == 0
        c[...] = 0
        assert driver.call("weft_matmul", ctypes.byref(product)) == result
        assert np.array_equal(c, a.astype(int) @ b.astype(int)) == (result == 0)
    assert driver.call("weft_dma_window", 1, 0) == ERR_RANGE


def test_rejects_a_window_while_a_product_is_in_progress(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma", window=True))
    driver.device.jobs_stalled = True
    product = driver.product(*operands(driver))
    assert driver.call("weft_start", ctypes.byref(product)) == 1
    assert driver.call("weft_dma_window", 0, SPACE - 1) == ERR_IN_USE


def test_reports_an_address_that_the_core_rejects(golden):
    """The driver's own check is disabled; the core detects the bad address."""
    change = "weft_dma.c", "end > last", "end + last == 0"
    driver = golden(Ip(config=CONFIG, bus="dma"), change)
    assert driver.call("weft_init", None) == 0
    driver.call("test_poll_limit", 300)
    product = changed(driver, c=SPACE - 4)
    assert driver.call("weft_matmul", ctypes.byref(product)) == ERR_RANGE
    weights, address = driver.Weights(), driver.device.memory.ctypes.data + SPACE - 1
    assert driver.call("weft_load_b", ctypes.byref(weights), address, N, 1, N, K) == ERR_RANGE
