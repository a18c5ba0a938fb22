"""The C driver, compiled for this machine, on models of cores with every bus."""

import ctypes

import numpy as np
import pytest
from ml_dtypes import bfloat16
from products import exact, integers
from tiers import quick, tiers

from weft.buses import BUSES
from weft.commands import JobFlag
from weft.config import Config
from weft.golden import add_bias, clamp, matmul_bf16, scaled, to_bfloat16
from weft.host.packing import ENTRY, LIMITS
from weft.ip import Ip

SMALL = dict(a_words=64, b_words=64)
CONFIGS = {
    "2x4x1": dict(rows=2, cols=4, **SMALL),
    "3x8x4": dict(rows=3, cols=8, depth=4, bytes_in=8, bytes_out=8, **SMALL),
    "4x4x2": dict(rows=4, cols=4, depth=2, lanes=2, bytes_in=4, bytes_out=4, **SMALL),
    "16x8x1": dict(rows=16, cols=8, bytes_in=64, bytes_out=64, a_words=128, b_words=64),
}
SHAPES = [(1, 1, 1), (5, 7, 9), (33, 20, 64), (2, 50, 3), (40, 1, 17), (5, 13, 300), (2, 1, 1999)]
# The C code for wishbone and apb differs from the one for axi only in names.
buses = pytest.mark.parametrize("bus", tiers({bus: bus for bus in BUSES}, "axi"))
OK, BUSY = 0, 1
ERR_ID, ERR_TIMEOUT, ERR_SHAPE, ERR_STRIDE, ERR_NO_SPACE = -1, -2, -3, -4, -5
ERR_STALE, ERR_EPILOGUE = -9, -10


def started(golden, bus, config):
    """An initialized driver."""
    driver = golden(Ip(config=config, bus=bus))
    assert driver.call("weft_init", None) == OK
    return driver


def run(driver, a, b, dtype=np.int32, **options):
    """Return code and C of a product; the rows of C have gaps between them."""
    c = driver.alloc((a.shape[0], -(-b.shape[1] // 16) * 16 + 16), dtype)[:, : b.shape[1]]
    product = driver.product(a, None if "weights" in options else b, c, **options)
    state = driver.call("weft_matmul", ctypes.byref(product))
    return state, c


def check(driver, a, b, **options):
    """Check that a product is exact."""
    state, c = run(driver, a, b, **options)
    assert state == OK
    assert np.array_equal(c, exact(a, b))


@buses
@pytest.mark.parametrize("name", [
    "2x4x1", "16x8x1",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("3x8x4", "4x4x2")),
])
def test_multiplies_any_shape(golden, bus, name):
    driver = started(golden, bus, Config(**CONFIGS[name]))
    rng = np.random.default_rng(7)
    for m, n, k in SHAPES:
        a, b = driver.put(integers(rng, np.int8, m, k)), driver.put(integers(rng, np.int8, k, n))
        check(driver, a, b)
    assert driver.device.access_errors == 0


@buses
def test_accepts_transposed_matrices_and_slices(golden, bus):
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(8)
    a = driver.put(integers(rng, np.int8, 11, 40), order="F")[2:9, 3:33]
    b = driver.put(integers(rng, np.int8, 50, 12), order="F", skew=3)[5:35, 1:11]
    for x, y in ((a, b), (a[:, ::-1], b[:, ::-1])):  # negative strides too
        check(driver, x, y)
    c = driver.alloc((7, 16), np.int32)[::-1, :10]
    product = driver.product(a, b, c)
    assert driver.call("weft_matmul", ctypes.byref(product)) == OK
    assert np.array_equal(c, exact(a, b))


@buses
def test_splits_a_product_that_does_not_fit(golden, bus):
    """With K = 60 each buffer holds one panel."""
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(9)
    a, b = driver.put(integers(rng, np.int8, 9, 60)), driver.put(integers(rng, np.int8, 60, 13))
    check(driver, a, b)


@buses
def test_weights_stay_resident(golden, bus):
    driver = started(golden, bus, Config(rows=2, cols=4, a_words=64, b_words=128))
    rng = np.random.default_rng(10)
    first, second = (driver.put(integers(rng, np.int8, k, n)) for k, n in ((20, 7), (9, 5)))
    resident = [driver.Weights(), driver.Weights()]
    for b, weights in zip((first, second), resident, strict=True):
        size = b.shape[1], b.shape[0]
        args = ctypes.byref(weights), b.ctypes.data, *b.strides, *size
        assert driver.call("weft_load_b", *args) == OK
    for b, weights in ((first, resident[0]), (second, resident[1]), (first, resident[0])):
        a = driver.put(integers(rng, np.int8, 6, b.shape[0]))
        check(driver, a, b, weights=weights)
    assert driver.call("weft_free_b", ctypes.byref(resident[0])) == ERR_STALE  # not the last one
    assert driver.call("weft_free_b", ctypes.byref(resident[1])) == OK
    assert driver.call("weft_free_b", ctypes.byref(resident[0])) == OK
    big = driver.put(integers(rng, np.int8, 20, 20))
    args = ctypes.byref(resident[0]), big.ctypes.data, *big.strides, 20, 20
    assert driver.call("weft_load_b", *args) == ERR_NO_SPACE
    tall = driver.put(integers(rng, np.int8, 65, 1))
    tall_args = ctypes.byref(resident[0]), tall.ctypes.data, *tall.strides, 1, 65
    assert driver.call("weft_load_b", *tall_args) == ERR_NO_SPACE
    assert driver.call("weft_load_b", *args[:-2], 8, 20) == OK
    # One page is free, so K is split.
    a, b = driver.put(integers(rng, np.int8, 5, 100)), driver.put(integers(rng, np.int8, 100, 9))
    check(driver, a, b)
    assert driver.call("weft_reset") == OK
    a = driver.put(integers(rng, np.int8, 3, 20))
    assert run(driver, a, big[:, :8], weights=resident[0])[0] == ERR_STALE


def entries(rng, n):
    columns = np.zeros(n, ENTRY)
    columns["bias"] = rng.integers(-(1 << 12), 1 << 12, n)
    columns["multiplier"] = rng.integers(1 << 30, 1 << 31, n)
    columns["shift"] = rng.integers(-10, -4, n)
    columns["zero"], columns["low"], columns["high"] = 3, -100, 90
    return columns


@buses
@pytest.mark.parametrize("k", [20, 200])  # 200 exceeds a panel
def test_requantizes_to_int8(golden, bus, k):
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(11)
    a, b = driver.put(integers(rng, np.int8, 7, k)), driver.put(integers(rng, np.int8, k, 21))
    columns = driver.put(entries(rng, 21))
    acc = add_bias(exact(a, b).astype(np.int32), columns["bias"])
    want = scaled(acc, multiplier=columns["multiplier"], shift=columns["shift"], mode="tflite")
    want = np.clip(want.astype(np.int64) + 3, -100, 90).astype(np.int8)
    options = {"epilogue": JobFlag.REQUANTIZE, "columns": columns, "dtype": np.int8}
    state, c = run(driver, a, b, **options)
    assert state == OK
    assert np.array_equal(c, want)
    table = driver.put(rng.permutation(256).astype(np.uint8))
    assert driver.call("weft_load_table", _pointer(table)) == OK
    options["epilogue"] |= JobFlag.TABLE
    state, c = run(driver, a, b, **options)
    assert state == OK
    assert np.array_equal(c.view(np.uint8), table[want.view(np.uint8)])


@buses
@pytest.mark.parametrize("k", quick(1, [21, 201]))
def test_multiplies_floats(golden, bus, k):
    config = Config(dtype="bf16", rows=2, cols=4, c_words=32, **SMALL)
    driver = started(golden, bus, config)
    rng = np.random.default_rng(12)
    a = driver.put(rng.standard_normal((9, k)).astype(bfloat16))
    b = driver.put(rng.standard_normal((k, 38)).astype(bfloat16))
    state, c = run(driver, a, b, np.float32)
    assert state == OK
    assert c.tobytes() == matmul_bf16(a, b).tobytes()
    bias = driver.put(rng.standard_normal(38).astype(np.float32))
    limits = np.zeros(38, LIMITS)
    limits["low"], limits["high"] = 0, rng.uniform(1, 3, 38)
    columns = driver.put(limits)
    state, c = run(
        driver, a, b, bfloat16, bias=bias, columns=columns, epilogue=JobFlag.CLAMP | JobFlag.ROUND
    )
    sums = matmul_bf16(a, b, start=np.broadcast_to(bias, (9, 38)))
    want = to_bfloat16(clamp(sums, limits["low"].copy(), limits["high"].copy()))
    assert state == OK
    assert c.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "bus", tiers({bus: bus for bus in BUSES if bus != "stream"}, "axi", "dma")
)
def test_interrupts_advance_a_product(golden, bus):
    """Interrupts advance the product; at its end the callback is called once."""
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(13)
    a, b = driver.put(integers(rng, np.int8, 40, 9)), driver.put(integers(rng, np.int8, 9, 40))
    c = driver.alloc((40, 40), np.int32)
    results = []
    done = driver.DONE(lambda core, error, context: results.append(error))
    driver.call("test_done", done)
    driver.call("weft_irq_enable", 3)
    assert driver.device.values["irq_enable"] == 3
    product = driver.product(a, b, c)
    assert driver.call("weft_start", ctypes.byref(product)) == BUSY
    for _ in range(1000):
        if results:
            break
        driver.call("weft_irq")
    assert results == [OK]
    assert np.array_equal(c, exact(a, b))
    driver.call("weft_irq")
    assert results == [OK]


@pytest.mark.parametrize("register", ["magic", "version", "kind", "hash"])
def test_rejects_another_core(golden, register):
    driver = golden(Ip(config=Config(**CONFIGS["2x4x1"]), bus="axi"))
    read = driver.device.read
    changed = {name: address for address, name in driver.device.names.items()}[register]
    driver.device.read = lambda address: read(address) ^ (address == changed)
    hook = driver.READ(driver.device.read)
    driver.variable("test_read").value = ctypes.cast(hook, ctypes.c_void_p).value
    assert driver.call("weft_init", None) == ERR_ID


@pytest.mark.parametrize(
    "bus", tiers({bus: bus for bus in BUSES if bus != "stream"}, "axi", "dma")
)
def test_waits_time_out(golden, bus):
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    driver.call("test_poll_limit", 50)
    rng = np.random.default_rng(14)
    a, b = driver.put(integers(rng, np.int8, 4, 9)), driver.put(integers(rng, np.int8, 9, 4))
    driver.device.never_ready = True
    assert run(driver, a, b)[0] == ERR_TIMEOUT
    driver.device.never_ready = False
    driver.call("test_poll_limit", 1000)
    check(driver, a, b)


@buses
def test_rejects_invalid_products(golden, bus):
    driver = started(golden, bus, Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(15)
    a, b = driver.put(integers(rng, np.int8, 4, 9)), driver.put(integers(rng, np.int8, 9, 4))
    long = driver.put(np.zeros((1, 131072), np.int8))  # 131072 * 128 * 128 does not fit 32 bits
    assert run(driver, long, long.T)[0] == ERR_SHAPE
    assert run(driver, a[:0], b)[0] == ERR_SHAPE
    assert run(driver, a, b, epilogue=JobFlag.CLAMP)[0] == ERR_EPILOGUE
    assert run(driver, a, b, epilogue=JobFlag.REQUANTIZE)[0] == ERR_EPILOGUE  # columns is NULL
    bias = driver.put(np.zeros(4, np.float32))
    assert run(driver, a, b, bias=bias)[0] == ERR_EPILOGUE
    check(driver, a, b)


def test_rejects_strides_that_the_dma_does_not_support(golden):
    driver = started(golden, "dma", Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(16)
    a, b = driver.put(integers(rng, np.int8, 8, 18)), driver.put(integers(rng, np.int8, 9, 4))
    assert run(driver, a[::2, ::2], b)[0] == ERR_STRIDE
    assert run(driver, a[:, 8::-1], b)[0] == ERR_STRIDE
    c = driver.alloc((8, 4), np.int32, skew=2)
    product = driver.product(a[:, :9], b, c)
    assert driver.call("weft_matmul", ctypes.byref(product)) == ERR_STRIDE
    assert run(driver, a[:, :9], b)[0] == OK


def test_rejects_a_buffer_that_is_too_small(golden):
    driver = started(golden, "stream", Config(**CONFIGS["2x4x1"]))
    rng = np.random.default_rng(17)
    a, b = driver.put(integers(rng, np.int8, 8, 60)), driver.put(integers(rng, np.int8, 60, 8))
    driver.buffers(256, 64)
    assert run(driver, a, b)[0] == ERR_NO_SPACE
    driver.buffers(1024, 64)
    check(driver, a, b)


def _pointer(array):
    return ctypes.c_void_p(array.ctypes.data)
