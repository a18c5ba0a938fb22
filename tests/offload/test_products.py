"""Products on an accelerator against the golden models, in both data types."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ml_dtypes import bfloat16
from offload_cores import INT8, CountingTransport

from weft import Accelerator, Config
from weft.commands import Region
from weft.geometry import memories
from weft.golden import matmul, matmul_bf16
from weft.host import GoldenTransport
from weft.host.transport import TransportError
from weft.offload import OffloadError, Operator, Products, Quantized, Window, products
from weft.offload.quantization import quantized

DOT = Operator("dot_general", "here")
CONV = Operator("conv", "there")


def on(dtype, **fields):
    return Products(Accelerator(GoldenTransport(Config(dtype=dtype, **fields))), dtype)


def floats(rng, *shape, dtype=np.float32):
    """Values of both signs and of many magnitudes, with zeros of both signs."""
    values = rng.normal(size=shape) * np.exp2(rng.integers(-8, 9, shape))
    values[rng.random(shape) < 0.1] = -0.0
    return values.astype(dtype)


def bits(array):
    return array.view(f"u{array.itemsize}").tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_bf16_products_are_chains_of_fma(dtype):
    rng = np.random.default_rng(1)
    p = on("bf16", rows=3, cols=5, lanes=1)
    for count, m, k, n in ((1, 1, 1, 1), (2, 7, 33, 6), (3, 4, 5, 11)):
        a, b = floats(rng, count, m, k, dtype=dtype), floats(rng, count, k, n, dtype=dtype)
        y = p.matmul(DOT, a, b)
        assert y.dtype == np.float32
        want = matmul_bf16(*(x.astype(np.float32).astype(bfloat16) for x in (a, b)))
        assert bits(y) == bits(want)


def test_special_values_of_bf16():
    values = np.float32([np.inf, -np.inf, np.nan, 3e38, 1e-40, -0.0, 0.0, 1])
    a, b = values.reshape(1, -1, 1), values.reshape(1, 1, -1)
    with np.errstate(invalid="ignore"):
        y = on("bf16").matmul(DOT, a, b)
    assert bits(y) == bits(matmul_bf16(a.astype(bfloat16), b.astype(bfloat16)))


def test_int8_products_have_a_scale_of_each_row_and_column():
    rng = np.random.default_rng(2)
    p = on("int8", rows=3, cols=4, depth=2, lanes=1)
    a, b = floats(rng, 2, 5, 19), floats(rng, 2, 19, 6)
    qa, qb = quantized(a, (2,)), quantized(b, (1,))
    want = np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale)
    assert want.dtype == np.float32
    for left, right in ((a, b), (qa, b), (a, qb), (a, p.static_columns()(b)),
                        (p.static_rows()(a), b)):
        assert bits(p.matmul(DOT, left, right)) == bits(want)


def test_int8_operands_give_exact_sums():
    rng = np.random.default_rng(3)
    p = on("int8")
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((2, 5, 300), (2, 300, 4)))
    y = p.matmul(DOT, a, b)
    assert y.dtype == np.int32 and np.array_equal(y, matmul(a, b))


def window(**given):
    fields = {"strides": (2, 1), "padding": ((1, 0), (2, -1)), "x_dilation": (1, 2),
              "w_dilation": (1, 1)}
    return Window(**fields | given)


def convolved(window, x, w, product):
    """The convolution with ``product(a, b)`` of [count, m, k] and [count, k, n]."""
    kind, results = f"u{x.itemsize}", len(x) // window.batch_groups
    y = np.zeros((results, *window.size(x.shape, w.shape), w.shape[-1]), np.float32)
    for phase in window.phases(x.shape, w.shape):
        rows = np.zeros(phase.shape[:3], kind)
        patches = phase.patches(x.shape, kind)
        patches.write(x.view(kind))
        rows.reshape(patches.rows.shape)[...] = patches.rows
        part = product(rows.view(x.dtype), phase.columns(w).swapaxes(1, 2))
        y = y.astype(part.dtype)
        y[(slice(None), *phase.results)] = phase.unfolded(part)
    return y


GROUPS = [{}, {"groups": 2}, {"batch_groups": 2}]


@pytest.mark.parametrize("given", GROUPS)
def test_bf16_convolutions_are_chains_of_fma(given, monkeypatch):
    rng = np.random.default_rng(4)
    w = window(**given)
    x, kernel = floats(rng, 4, 5, 4, 4), floats(rng, 2, 3, 4 // w.groups, 6)
    want = convolved(w, x.astype(bfloat16), kernel.astype(bfloat16), matmul_bf16)
    p = on("bf16")
    assert bits(p.convolution(CONV, x, kernel, w)) == bits(want)
    monkeypatch.setattr(products, "_PART", 1)  # each image alone
    assert bits(p.convolution(CONV, x, kernel, w)) == bits(want)


@pytest.mark.parametrize("given", GROUPS)
def test_int8_convolutions_have_a_scale_of_each_image_and_group_and_channel(given):
    rng = np.random.default_rng(5)
    w = window(**given)
    x, kernel = floats(rng, 4, 5, 4, 4), floats(rng, 2, 3, 4 // w.groups, 6)
    qx, qw = quantized(x.reshape(4, 5, 4, w.groups, -1), (1, 2, 4)), quantized(kernel, (0, 1, 2))
    maps = qx.values.reshape(x.shape)
    sums = convolved(w, maps, qw.values, matmul)
    images = len(x) // w.batch_groups
    scale = np.zeros(sums.shape, np.float32)
    for n in range(images):
        for o in range(6):
            image = o // (6 // w.batch_groups) * images + n
            group = o // (6 // w.groups)
            scale[n, ..., o] = qx.scale[image, 0, 0, group, 0] * qw.scale.ravel()[o]
    p = on("int8")
    for given_kernel in (kernel, qw, p.static_kernel()(kernel)):
        y = p.convolution(CONV, x, given_kernel, w)
        assert bits(y) == bits(np.float32(sums) * scale)
    exact = p.convolution(CONV, maps, qw.values, w)
    assert exact.dtype == np.int32 and np.array_equal(exact, sums)


def test_large_products_are_cut_into_parts(monkeypatch):
    rng = np.random.default_rng(6)
    a, b = floats(rng, 2, 11, 9), floats(rng, 2, 9, 5)
    p = on("bf16")
    want = p.matmul(DOT, a, b)
    p.record.clear()
    monkeypatch.setattr(products, "_PART", 2 * 9 * 2 * 4)  # 4 rows of both products
    assert bits(p.matmul(DOT, a, b)) == bits(want)
    streams = {sent.shape: times for sent, times in p.record.tallies()[DOT].streams.items()}
    assert streams == {(2, 4, 9, 5): 2, (2, 3, 9, 5): 1}


def test_streams_follow_operands_that_the_user_loads():
    rng = np.random.default_rng(7)
    p = on("bf16")
    a, b = floats(rng, 1, 6, 64), floats(rng, 1, 64, 300)  # B fills the buffer
    want = p.matmul(DOT, a, b)
    loaded = floats(rng, 64, 8, dtype=bfloat16)
    with p.accelerator.load(loaded) as weights:
        assert bits(p.matmul(DOT, a, b)) == bits(want)
        y = p.accelerator.matmul(a[0].astype(bfloat16), weights)
        assert bits(y) == bits(matmul_bf16(a[0].astype(bfloat16), loaded))
    assert bits(p.matmul(DOT, a, b)) == bits(want)


def test_kept_streams_are_limited(monkeypatch):
    monkeypatch.setattr(products, "_KEPT", 5000)
    p = on("bf16")
    for k in (40, 80, 120, 40):
        a = np.ones((1, 4, k), np.float32)
        assert p.matmul(DOT, a, a.swapaxes(1, 2)).tolist() == [[[k] * 4] * 4]
        assert 0 < p._bytes == sum(stream.nbytes for stream in p._kept.values()) < 5000
    assert len(p._kept) < 3


@pytest.fixture
def switches():
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("kept", [1, 1 << 20])
def test_threads_share_products(kept, switches, monkeypatch):
    monkeypatch.setattr(products, "_KEPT", kept)
    rng = np.random.default_rng(8)
    p = on("bf16", rows=2, cols=2, lanes=1)
    cases = [
        (floats(rng, 1, m, 40), floats(rng, 1, 40, 3)) for m in (5, 6, 7) * 20
    ]
    start = threading.Barrier(4)

    def work(part):
        start.wait()
        return [p.matmul(DOT, a, b) for a, b in cases[part::4]]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for part in range(4):
        for (a, b), y in zip(cases[part::4], found[part], strict=True):
            assert bits(y) == bits(matmul_bf16(a.astype(bfloat16), b.astype(bfloat16)))
    assert p.record.tallies()[DOT].calls == len(cases)


def test_the_kept_streams_are_used_under_the_lock(monkeypatch):
    p = on("bf16")
    take, owned = p._keep, []
    monkeypatch.setattr(p, "_keep", lambda *given: (
        owned.append(p.accelerator.lock._is_owned()), take(*given))[1])
    p.matmul(DOT, np.ones((1, 2, 3), np.float32), np.ones((1, 3, 4), np.float32))
    assert owned == [True]


def test_an_error_names_the_operator():
    p = on("int8")
    with pytest.raises(OffloadError) as caught:
        p.matmul(DOT, np.float32([[[np.nan]]]), np.float32([[[1]]]))
    assert str(caught.value) == (
        "dot_general at here failed on Weft: operands must be finite to become int8, not nan"
    )
    p.accelerator.close()
    with pytest.raises(OffloadError) as caught:
        p.convolution(CONV, np.ones((1, 2, 1), np.float32), np.ones((1, 1, 1), np.float32),
                      Window((1,), ((0, 0),), (1,), (1,)))
    assert str(caught.value) == "conv at there failed on Weft: the transport is closed"
    assert p.record.tallies() == {}


FLOATS_ONLY = "the core computes products of float32, float16 and bfloat16"


@pytest.mark.parametrize("core, types, product, reason", [
    ("bf16", (np.float32, np.float32, np.float32), (1, 2, 3, 4), ""),
    ("bf16", (bfloat16, np.float16, np.float32), (1, 2, 1 << 20, 4), ""),
    ("bf16", (np.float64, np.float32, np.float64), (1, 2, 3, 4),
     f"float64 x float32 -> float64: {FLOATS_ONLY}"),
    ("bf16", (np.int8, np.int8, np.int32), (1, 2, 3, 4), f"int8 x int8 -> int32: {FLOATS_ONLY}"),
    ("bf16", (np.float32, np.float32, np.float32), (1, 2, 0, 4), "the product is empty"),
    ("int8", (np.float32, bfloat16, np.float16), (1, 2, 131_071, 4), ""),
    ("int8", (np.float32, np.float32, np.float32), (1, 2, 131_072, 4),
     "K must be at most 131071 with int8, not 131072"),
    ("int8", (np.int8, np.int8, np.int32), (1, 2, 3, 4), ""),
    ("int8", (np.int8, np.int8, np.int8), (1, 2, 3, 4),
     f"int8 x int8 -> int8: {FLOATS_ONLY}, and of int8 with a sum of int32"),
])
def test_refusals(core, types, product, reason):
    assert on(core).refusal(*types, (product,)) == reason


def test_rejects_another_type_or_no_accelerator():
    accelerator = Accelerator(GoldenTransport(Config()))
    with pytest.raises(ValueError, match="dtype must be 'int8', the type of the core, not 'bf16'"):
        Products(accelerator)
    with pytest.raises(ValueError, match="dtype must be bf16 or int8, not 'fp8'"):
        Products(accelerator, "fp8")
    with pytest.raises(TypeError, match="accelerator must be a weft.Accelerator, not 'golden'"):
        Products("golden", "int8")


@pytest.mark.parametrize("operand, message", [
    (Quantized(np.ones((1, 1, 1), np.int8), np.ones((1, 1, 1), np.float32)),
     "an operand of a bf16 core must be an array of floats, not Quantized"),
    (np.ones((1, 1, 1), np.int8), "operands must be bfloat16, or float32 with cast=True, not int8"),
])
def test_a_bf16_core_takes_no_int8(operand, message):
    with pytest.raises(OffloadError) as caught:
        on("bf16").matmul(DOT, operand, np.ones((1, 1, 1), np.float32))
    assert str(caught.value) == f"dot_general at here failed on Weft: {message}"


def staying():
    transport = CountingTransport(INT8)
    return transport, Products(Accelerator(transport), "int8")


def test_quantized_weights_are_sent_once():
    rng = np.random.default_rng(9)
    transport, p = staying()
    x, w = floats(rng, 2, 5, 19), floats(rng, 2, 19, 6)
    free = p.accelerator.free_pages()
    cache = p.static_columns()
    want = bits(p.matmul(DOT, x, w))
    transport.taken()
    for loads in ([2 * 10 * 8] * 2, [], []):  # panels of 4 columns, 10 words of 8 bytes each
        assert bits(p.matmul(DOT, x, cache(w))) == want
        assert transport.taken() == loads
    # Operands that change go around them.
    a, b = floats(rng, 1, 6, 64), floats(rng, 1, 64, 300)
    qa, qb = quantized(a, (2,)), quantized(b, (1,))
    assert bits(p.matmul(DOT, a, b)) == bits(
        np.float32(matmul(qa.values, qb.values)) * (qa.scale * qb.scale))
    transport.taken()
    # Other weights take their place.
    kept = p.accelerator.free_pages()
    assert kept[1] != free[1]
    other = floats(rng, 2, 19, 6)
    want = bits(p.matmul(DOT, x, other))
    transport.taken()
    assert bits(p.matmul(DOT, x, cache(other))) == want
    assert transport.taken() == [2 * 10 * 8] * 2
    assert p.accelerator.free_pages() == kept
    del cache
    p.matmul(DOT, x, p.static_columns()(other))  # the pages of the first ones are free again
    assert p.accelerator.free_pages()[1][1] >= kept[1][1]


def integers(rng, *shape):
    return rng.integers(-128, 128, shape, np.int8)


def test_weights_of_int8_are_sent_once():
    """A matrix, and a kernel with two phases; their sums are exact."""
    rng = np.random.default_rng(13)
    transport, p = staying()
    x, w = integers(rng, 2, 5, 19), integers(rng, 2, 19, 6)
    columns = p.static_columns()
    for loads in ([2 * 10 * 8] * 2, [], []):
        y = p.matmul(DOT, x, columns(w))
        assert y.dtype == np.int32 and np.array_equal(y, matmul(x, w))
        assert transport.taken() == loads
    w[0, 0, 0] ^= 1  # in the caller's own array
    kept, want = columns(w), matmul(x, w)
    w[0, 0, 0] ^= 1
    assert np.array_equal(p.matmul(DOT, x, kept), want)
    assert transport.taken() == [2 * 10 * 8] * 2
    where = window()
    x, kernel = integers(rng, 2, 5, 4, 3), integers(rng, 2, 3, 3, 5)
    want, cache = convolved(where, x, kernel, matmul), p.static_kernel()
    sent = []
    for _ in range(3):
        y = p.convolution(CONV, x, cache(kernel), where)
        assert y.dtype == np.int32 and np.array_equal(y, want)
        sent.append(sum(transport.taken()))
    assert sent[0] > 0 == sent[1] == sent[2]


def test_an_operand_without_a_scale_has_the_scale_1():
    rng = np.random.default_rng(14)
    p = on("int8")
    x, w, where = floats(rng, 2, 5, 4, 3), integers(rng, 2, 3, 3, 5), window()
    qx = quantized(x, (1, 2, 3))
    want = bits(np.float32(convolved(where, qx.values, w, matmul)) * qx.scale)
    for kernel in (w, Quantized(w, None)):
        assert bits(p.convolution(CONV, x, kernel, where)) == want
    a, b = floats(rng, 1, 5, 9), integers(rng, 1, 9, 4)
    qa = quantized(a, (2,))
    want = bits(np.float32(matmul(qa.values, b)) * qa.scale)
    for operand in (b, Quantized(b, None)):
        assert bits(p.matmul(DOT, a, operand)) == want


def test_kernels_are_sent_once():
    """Each phase of a dilated map has its own part of the kernel."""
    rng = np.random.default_rng(10)
    transport, p = staying()
    w = window(groups=2)
    x, kernel = floats(rng, 4, 5, 4, 4), floats(rng, 2, 3, 2, 6)
    want, cache = bits(p.convolution(CONV, x, kernel, w)), p.static_kernel()
    sent = transport.taken()
    assert bits(p.convolution(CONV, x, cache(kernel), w)) == want
    assert sum(transport.taken()) == sum(sent)
    for _ in range(2):
        assert bits(p.convolution(CONV, x, cache(kernel), w)) == want
        assert transport.taken() == []


def test_weights_are_sent_again_after_a_failure():
    rng = np.random.default_rng(11)
    transport, p = staying()
    x, w = floats(rng, 1, 5, 19), floats(rng, 1, 19, 6)
    cache = p.static_columns()
    want, free = bits(p.matmul(DOT, x, cache(w))), p.accelerator.free_pages()
    transport.taken()
    transport.fails = True
    with pytest.raises(OffloadError, match="dot_general at here failed on Weft: the cable is out"):
        p.matmul(DOT, x, cache(w))
    transport.fails = False
    assert bits(p.matmul(DOT, x, cache(w))) == want
    assert transport.taken() == [2 * 10 * 8] and p.accelerator.free_pages() == free


def test_weights_are_sent_again_after_a_failure_of_another_call():
    """Of the user, of other products on the same core; or an interrupt, which is no Exception."""
    rng = np.random.default_rng(15)
    transport, p = staying()
    other = Products(p.accelerator, "int8")
    x, w = integers(rng, 1, 5, 19), integers(rng, 1, 19, 6)
    first, second = p.static_columns(), other.static_columns()
    assert np.array_equal(p.matmul(DOT, x, first(w)), matmul(x, w))
    assert np.array_equal(other.matmul(DOT, x, second(w)), matmul(x, w))
    free = p.accelerator.free_pages()
    assert transport.taken() == [2 * 10 * 8] * 2

    def again():
        for products_, cache in ((p, first), (other, second)):
            assert np.array_equal(products_.matmul(DOT, x, cache(w)), matmul(x, w))
            assert transport.taken() == [2 * 10 * 8]
            assert np.array_equal(products_.matmul(DOT, x, cache(w)), matmul(x, w))
            assert transport.taken() == []
        assert p.accelerator.free_pages() == free

    transport.fails = True
    with pytest.raises(TransportError, match="the cable is out"):
        p.accelerator.matmul(x[0], w[0])
    transport.fails = False
    transport.taken()
    again()
    transport.receive, kept = None, transport.receive
    with pytest.raises(OffloadError):
        other.matmul(DOT, x, second(w))
    transport.receive = kept
    transport.taken()
    again()
    transport.stops = 1
    with pytest.raises(KeyboardInterrupt):
        p.matmul(DOT, x, first(w))
    assert transport.stops == 0
    again()


def test_weights_stay_if_the_core_is_not_to_blame():
    rng = np.random.default_rng(16)
    transport, p = staying()
    x, w = floats(rng, 1, 5, 19), floats(rng, 1, 19, 6)
    cache = p.static_columns()
    want = bits(p.matmul(DOT, x, cache(w)))
    with pytest.raises(OffloadError, match="operands must be finite"):
        p.matmul(DOT, np.full_like(x, np.inf), cache(w))
    transport.taken()
    assert bits(p.matmul(DOT, x, cache(w))) == want and transport.taken() == []


def test_an_interrupted_load_leaves_nothing():
    rng = np.random.default_rng(17)
    transport, p = staying()
    x, w = integers(rng, 2, 5, 19), integers(rng, 2, 19, 6)
    cache, free = p.static_columns(), p.accelerator.free_pages()
    transport.stops = 2  # in the load of the second B
    with pytest.raises(KeyboardInterrupt):
        p.matmul(DOT, x, cache(w))
    assert transport.stops == 0
    assert p.accelerator.free_pages() == free
    assert np.array_equal(p.matmul(DOT, x, cache(w)), matmul(x, w))


def test_threads_share_weights_that_stay(switches):
    """Two models on one core, one model on two cores; each thread changes the weights, too."""
    rng = np.random.default_rng(18)
    (_, p), (transport, q) = staying(), staying()
    models = [p, q, Products(q.accelerator, "int8")]
    caches = [[model.static_columns() for _ in range(2)] for model in models]
    x = integers(rng, 1, 3, 19)
    weights = [integers(rng, 1, 19, n) for n in (4, 4, 6, 6)]
    want = [matmul(x, w) for w in weights]
    start = threading.Barrier(4)

    def work(thread):
        start.wait()
        for turn in range(24):
            model = (thread + turn) % 3
            number = (thread * 5 + turn // 4) % 4
            w = caches[model][number // 2](weights[number])
            if not np.array_equal(models[model].matmul(DOT, x, w), want[number]):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [True] * 4
    assert sum(model.record.tallies()[DOT].calls for model in models) == 4 * 24
    # What no cache keeps leaves its pages: fresh weights fill the same half of the buffer again.
    for model in models:
        for number in range(4):
            assert np.array_equal(
                model.matmul(DOT, x, model.static_columns()(weights[number])), want[number])
    transport.taken()
    last = caches[1][0](weights[0])
    for loads in (True, False):
        assert np.array_equal(q.matmul(DOT, x, last), want[0])
        assert bool(transport.taken()) <= loads


def test_weights_without_room_are_sent_with_each_call():
    rng = np.random.default_rng(12)
    transport, p = staying()
    operand = memories(INT8)[Region.B]
    k, n = operand.page * operand.depth, operand.pages // 2 * operand.edge
    x, cache = floats(rng, 1, 2, k), [p.static_columns() for _ in range(2)]
    for part, w in ((0, floats(rng, 1, k, n)), (1, floats(rng, 1, k, 4))):
        want = bits(p.matmul(DOT, x, w))
        transport.taken()
        for loads in (True, bool(part)):  # the first ones fill half of the buffer
            assert bits(p.matmul(DOT, x, cache[part](w))) == want
            assert bool(transport.taken()) == loads
