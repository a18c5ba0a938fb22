"""The C driver of a DMA: memory that the core cannot reach, or may not, is refused."""

import ctypes

import numpy as np
import pytest

from weft.config import Config
from weft.ip import Ip

CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
SPACE = 1 << 32
RANGE, IN_USE = -13, -11
M, K, N = 5, 7, 8


def operands(driver):
    rng = np.random.default_rng(3)
    a = driver.put(rng.integers(-128, 128, (M, K), dtype=np.int8))
    b = driver.put(rng.integers(-128, 128, (K, N), dtype=np.int8))
    return a, b, driver.room((M, N), np.int32)


def given(driver, **fields):
    """A product of which fields are changed; addresses are the core's."""
    product = driver.product(*operands(driver))
    for name, value in fields.items():
        start = driver.space.memory.ctypes.data if name in ("a", "b", "c") else 0
        setattr(product, name, start + value)
    return product


# The last byte is at 2^32 - 1, or the first one at 0; then it is not.
EDGES = {
    "a": ({"a": SPACE - M * K}, {"a": 1}),
    "b": ({"b": SPACE - K * N}, {"b": 1}),
    "c": ({"c": SPACE - 4 * M * N}, {"c": 16}),
    "a-backwards": ({"a": (M - 1) * K, "a_row": -K}, {"a": -1}),
    "b-backwards": ({"b": (K - 1) * N, "b_k": -N}, {"b": -1}),
    "c-backwards": ({"c": (M - 1) * N * 4, "c_row": -N * 4}, {"c": -16}),
    "a-long": ({"a": SPACE - (M - 1 << 28) - K, "a_row": 1 << 28}, {"a": 1}),
    "a-round": ({"a": SPACE - (M - 1 << 29) - K, "a_row": 1 << 29}, {"a_row": 1 << 29}),
}


@pytest.mark.parametrize("name", EDGES)
def test_nothing_beyond_the_addresses_is_asked_for(hooked, name):
    """Nothing but the bytes that are there counts: those alone are sent to the core."""
    inside, beyond = EDGES[name]
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    by = {field: inside[field] + value for field, value in beyond.items()}
    before = driver.space.writes
    assert driver.call("weft_matmul", ctypes.byref(given(driver, **inside | by))) == RANGE
    assert driver.space.writes == before
    driver.space.frozen = True  # what lies there is no memory of this test's
    driver.space._descriptor = seen = Seen()
    driver.call("weft_matmul", ctypes.byref(given(driver, **inside)))
    assert seen.count


class Seen:
    """Counts what it is called with."""

    count = 0

    def __call__(self, words):
        self.count += 1


def test_weights_beyond_the_addresses_are_refused(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma"))
    weights, before = driver.Weights(), driver.space.writes
    place = driver.space.memory.ctypes.data + SPACE - K * N + 1
    assert driver.call("weft_load_b", ctypes.byref(weights), place, N, 1, N, K) == RANGE
    assert driver.space.writes == before


def test_the_window_is_kept(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma", window=True))
    a, b, c = operands(driver)
    product = driver.product(a, b, c)
    where = {name: x.ctypes.data - driver.space.memory.ctypes.data for name, x in
             (("a", a), ("b", b), ("c", c))}
    last = where["c"] + c.nbytes - 1
    assert where["a"] < where["b"] < where["c"]
    for base, limit, result in (
        (where["a"], last, 0), (where["a"] + 16, last, RANGE), (where["a"], last - 16, RANGE),
        (0, SPACE - 1, 0),
    ):
        assert driver.call("weft_dma_window", base, limit) == 0
        c[...] = 0
        assert driver.call("weft_matmul", ctypes.byref(product)) == result
        assert np.array_equal(c, a.astype(int) @ b.astype(int)) == (result == 0)
    assert driver.call("weft_dma_window", 1, 0) == RANGE


def test_no_window_while_a_product_is_under_way(hooked):
    driver = hooked(Ip(config=CONFIG, bus="dma", window=True))
    driver.space.frozen = True
    product = driver.product(*operands(driver))
    assert driver.call("weft_start", ctypes.byref(product)) == 1
    assert driver.call("weft_dma_window", 0, SPACE - 1) == IN_USE


def test_what_the_core_drops_is_told(golden):
    """A driver that does not look: the core does."""
    change = "weft_dma.c", "end > last", "end + last == 0"
    driver = golden(Ip(config=CONFIG, bus="dma"), change)
    assert driver.call("weft_init", None) == 0
    driver.call("test_limit", 300)
    assert driver.call("weft_matmul", ctypes.byref(given(driver, c=SPACE - 4))) == RANGE
    weights, place = driver.Weights(), driver.space.memory.ctypes.data + SPACE - 1
    assert driver.call("weft_load_b", ctypes.byref(weights), place, N, 1, N, K) == RANGE
