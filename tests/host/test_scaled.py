"""Tests of scaled products on the golden transport, against golden's functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import accelerator, check_equal, integers, run_counted
from rejects import rejects

from weft import Accelerator, Config
from weft.golden import activate, add_bias, matmul, requantize
from weft.host.emulated import GoldenTransport
from weft.host.transport import TransportTimeout
from weft.quantize import activation_table, quantize_multiplier, sigmoid

pytestmark = pytest.mark.usefixtures("fixed_cycles")
SMALL = {"rows": 3, "cols": 5, "depth": 2, "a_words": 64, "b_words": 64}
CONFIGS = [
    Config(requantize=mode, b_zero_point="column", **(SMALL | fields))
    for mode in ("tflite", "single", "onnx")
    for fields in (
        {}, {"lanes": 1, "bytes_out": 1, "bytes_in": 1}, {"lanes": 8, "cols": 9, "bytes_in": 64},
        {"rows": 1, "cols": 1, "depth": 1, "lanes": 2, "bytes_out": 32},
    )
]


def scaling(rng, config, shape):
    """Arguments that scale to a few hundred, as scalars or per column."""
    scale = 2.0 ** rng.uniform(-14, -6, shape)
    if config.requantize == "onnx":
        return {"scale": scale.astype(np.float32)}
    if rng.random() < 0.3:
        return {"scale": scale}
    multiplier, shift = quantize_multiplier(scale)
    return {"multiplier": multiplier, "shift": shift}


def expected(config, a, b, *, a_zero_point=None, b_zero_point=None, bias=0, activation=None,
             out_dtype=None, **options):
    acc = add_bias(matmul(a, b, a_zero_point=a_zero_point, b_zero_point=b_zero_point), bias)
    scale = options.pop("scale", None)
    if scale is not None and config.requantize != "onnx":
        options["multiplier"], options["shift"] = quantize_multiplier(scale)
        scale = None
    if out_dtype is None:
        out_dtype = np.int8 if activation is None else activation.dtype
    y = requantize(acc, scale=scale, mode=config.requantize, dtype=out_dtype, **options)
    return y if activation is None else activate(y, activation)


TYPE = st.sampled_from([np.int8, np.uint8])


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    config=st.sampled_from(CONFIGS), m=st.integers(1, 12), n=st.integers(1, 30),
    k=st.one_of(st.integers(1, 40), st.just(300)), types=st.tuples(TYPE, TYPE, TYPE),
    seed=st.integers(0, 2**32),
    each=st.tuples(*[st.booleans()] * 4), clamp=st.booleans(), table=st.booleans(),
)
def test_scales_any_product(config, m, n, k, types, seed, each, clamp, table):
    rng = np.random.default_rng(seed)
    a, b = integers(rng, types[0], m, k), integers(rng, types[1], k, n)
    shapes = [(n,) if of_column else () for of_column in each]
    limits = np.iinfo(types[2])
    options = scaling(rng, config, shapes[0]) | {
        "bias": rng.integers(-(1 << 18), 1 << 18, shapes[1]),
        "a_zero_point": int(integers(rng, types[0])) if each[3] else None,
        "b_zero_point": integers(rng, types[1], *shapes[2]),
        "zero_point": int(rng.integers(limits.min, limits.max + 1)), "out_dtype": types[2],
    }
    if clamp:
        options["low"], options["high"] = sorted(int(x) for x in integers(rng, types[2], 2))
    if table:
        options["activation"] = integers(rng, types[2], 256)
    acc, want = accelerator(config), expected(config, a, b, **options)
    check_equal(acc.matmul(a, b, **options), want)
    try:
        held = acc.load(b)
    except ValueError as error:
        assert "free" in str(error)
        return
    for _ in range(2):
        check_equal(acc.matmul(a, held, **options), want)


@pytest.mark.parametrize("config", CONFIGS[::4], ids=lambda config: config.requantize)
@pytest.mark.parametrize(
    "shapes",
    [
        ((7,), (7,)), ((7,), (7, 3)), ((3, 7), (7,)), ((4, 3, 7), (7,)), ((7,), (4, 7, 3)),
        ((4, 3, 7), (7, 6)), ((3, 7), (4, 7, 6)), ((4, 3, 7), (4, 7, 6)),
        ((2, 1, 3, 7), (4, 7, 6)), ((3, 7), (2, 2, 7, 6)), ((0, 7), (7, 3)), ((3, 7), (7, 0)),
    ],
)
def test_follows_the_shapes_of_numpy(config, shapes):
    rng = np.random.default_rng(1)
    a, b = integers(rng, np.uint8, *shapes[0]), integers(rng, np.int8, *shapes[1])
    n = b.shape[-1] if b.ndim > 1 else 1
    options = scaling(rng, config, n) | {
        "a_zero_point": 77, "b_zero_point": integers(rng, np.int8, n),
        "bias": rng.integers(-999, 999, n),
    }
    if b.ndim > 1:
        want = expected(config, a, b, **options)
    else:
        want = expected(config, a, b[:, None], **options)[..., 0]
    check_equal(accelerator(config).matmul(a, b, **options), want)


def test_gives_each_job_its_own_parameters():
    config = Config(**SMALL)
    rng = np.random.default_rng(2)
    acc = accelerator(config)
    weights = [integers(rng, np.int8, 20, n) for n in (5, 10)]
    held = [acc.load(w) for w in weights]
    layers = [
        scaling(rng, config, w.shape[1]) | {"bias": rng.integers(-99, 99, w.shape[1])}
        for w in weights
    ]
    other = scaling(rng, config, ())
    table = activation_table(sigmoid, 0.1, 3, 1 / 256, -128)
    for index in (0, 1, 0, 0, 1, 1, 0):
        a = integers(rng, np.int8, 5, 20)
        for options in (layers[index], other, layers[index] | {"activation": table}):
            want = expected(config, a, weights[index], **options)
            check_equal(acc.matmul(a, held[index], **options), want)
        check_equal(acc.matmul(a, held[index]), matmul(a, weights[index]))


def test_sends_unchanged_data_once():
    config = Config(**SMALL)
    rng = np.random.default_rng(3)
    a, b = integers(rng, np.int8, 3, 20), integers(rng, np.int8, 20, 7)
    acc = accelerator(config)
    held = acc.load(b)
    options = scaling(rng, config, 7) | {"activation": integers(rng, np.int8, 256)}
    want = expected(config, a, b, **options)
    raw, _ = run_counted(acc, a, held)
    # 2 panels of 2 words of 4 entries, and 16 words of 16 values; each after a header
    parameters, table = 32 + 2 * 2 * 64, 32 + 256
    first, y = run_counted(acc, a, held, **options)
    check_equal(y, want)
    assert first == raw + parameters + table
    again, y = run_counted(acc, a, held, **options)
    check_equal(y, want)
    assert again == raw
    changed, y = run_counted(acc, a, held, **options | {"zero_point": 1})
    check_equal(y, expected(config, a, b, **options | {"zero_point": 1}))
    assert changed == raw + parameters
    flipped = options | {"zero_point": 1, "activation": options["activation"][::-1]}
    other, y = run_counted(acc, a, held, **flipped)
    check_equal(y, expected(config, a, b, **flipped))
    assert other == raw + table
    held.free()  # the next data in its pages have other parameters
    c = integers(rng, np.int8, 20, 7)
    with acc.load(c) as held:
        later, y = run_counted(acc, a, held, **options, bias=5)
        check_equal(y, expected(config, a, c, **options, bias=5))
        assert later == raw + parameters + table


def test_sends_everything_again_after_a_failure():
    config = Config(**SMALL)
    rng = np.random.default_rng(4)
    a, b = integers(rng, np.int8, 3, 20), integers(rng, np.int8, 20, 7)
    transport = GoldenTransport(config)
    acc = Accelerator(transport, timeout=600)
    held = acc.load(b)
    options = scaling(rng, config, 7) | {"activation": integers(rng, np.int8, 256)}
    first, _ = run_counted(acc, a, held, **options)
    send, transport.send = transport.send, lambda commands: None  # all is lost
    with pytest.raises(TransportTimeout):
        acc.matmul(a, held, **options | {"bias": 4, "activation": options["activation"][::-1]})
    transport.send = send
    again, y = run_counted(acc, a, held, **options | {"bias": 4})
    check_equal(y, expected(config, a, b, **options | {"bias": 4}))
    assert again == first


def test_adds_a_bias_to_raw_sums():
    config = Config(**SMALL, requantize="none")
    rng = np.random.default_rng(5)
    a, b = integers(rng, np.uint8, 2, 3, 9), integers(rng, np.int8, 9, 7)
    zero = integers(rng, np.uint8, 3)
    for bias in (-5, rng.integers(-(1 << 30), 1 << 30, 7)):
        got = accelerator(config).matmul(a, b, a_zero_point=zero, bias=bias, out_dtype=np.int32)
        want = np.matmul(a.astype(int) - zero[:, None], b.astype(int)) + bias
        check_equal(got, want.astype(np.int32))
    with rejects(ValueError, "sums with bias must be in -2147483648..2147483647, not 2147483648"):
        accelerator(config).matmul(np.ones(1, np.int8), np.ones(1, np.int8), bias=(1 << 31) - 1)


def test_scaled_sums_with_bias_wrap():
    config = Config(**SMALL)
    y = accelerator(config).matmul(
        np.full((1, 1), 1, np.int8), np.full((1, 1), 1, np.int8), bias=(1 << 31) - 1, scale=2e-9
    )
    assert y.tolist() == [[-4]]


def test_bias_with_zero_points_wraps_to_itself():
    # bias less 127 * colsum leaves int32 on the way, and comes back with the sum
    config = Config(**SMALL, b_zero_point="column")
    a, b = np.full((1, 900), -128, np.int8), np.full((900, 1), 127, np.int8)
    for bias in (-(1 << 31), (1 << 31) - 1):
        options = {"bias": bias, "scale": 5e-8, "a_zero_point": 127, "b_zero_point": -128}
        check_equal(accelerator(config).matmul(a, b, **options), expected(config, a, b, **options))


def test_a_subnormal_scale_gives_zero():
    config = Config(**SMALL, requantize="onnx")
    a = np.full((1, 3000), -128, np.int8)
    options = {"bias": -(1 << 30), "scale": np.float32(1e-42), "zero_point": 3}
    check_equal(accelerator(config).matmul(a, a.T, **options), np.array([[3]], np.int8))
