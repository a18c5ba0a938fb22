"""The network in BF16: on the golden core, finished by the host, and wrong attributes."""


import numpy as np
import pytest
from ml_dtypes import bfloat16
from rejects import rejects

from weft import Accelerator, Config
from weft.demo import Bf16Layer, Bf16Network, Network, NetworkError
from weft.golden import clamp, matmul_bf16, to_bfloat16
from weft.host.golden import GoldenTransport

FLOAT32, BFLOAT16 = np.dtype(np.float32), np.dtype(bfloat16)
WITHOUT_EPILOGUE = [{"c_words": 0}, {"activation": "none"}]  # cores that cannot finish a layer


def layer(**changes):
    """Two inputs, three outputs."""
    return Bf16Layer(**{
        "name": "layer 1",
        "weights": np.array([[1, 2], [3, -4], [-0.5, 0.25]], bfloat16),
        "bias": np.array([0.5, 1, -2**-20], np.float32),
        "relu": True, "results": BFLOAT16,
    } | changes)


def accelerator(**fields):
    config = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, **fields)
    return Accelerator(GoldenTransport(config), config)


@pytest.fixture(scope="module")
def network():
    return Bf16Network.load()


X = np.array([[1, 2], [-3, 0.5]], bfloat16)
SUMS = [[5.5, -4, -2**-20], [-1.5, -10, 1.625 - 2**-20]]


def test_run_computes_the_whole_layer_on_the_core():
    run = layer().run(X, accelerator())
    assert run.sums is None
    assert (run.name, run.m, run.k, run.n) == ("layer 1", 2, 2, 3)
    assert run.x is X and run.record.macs == 12
    # two tiles across: chunks of 4 bfloat16, two rows each, in two words
    assert run.record.bytes_out == 32
    assert run.y.dtype == bfloat16 and run.y.tolist() == [[5.5, 0, 0], [0, 0, 1.625]]


def test_run_without_a_relu_in_float32():
    run = layer(relu=False, results=FLOAT32).run(X, accelerator())
    assert run.y.dtype == np.float32 and run.y.tolist() == SUMS
    assert run.record.bytes_out == 64


@pytest.mark.parametrize("fields", WITHOUT_EPILOGUE)
def test_run_finishes_sums_if_the_core_cannot(fields):
    run = layer().run(X, accelerator(**fields))
    assert run.sums.dtype == np.float32
    assert run.sums.tolist() == [[5, -5, 0], [-2, -11, 1.625]]
    assert run.record.bytes_out == 64
    assert run.y.dtype == bfloat16 and run.y.tolist() == [[5.5, 0, 0], [0, 0, 1.625]]


def test_a_bias_added_last_rounds_differently():
    big = layer(weights=np.array([[1, 1]], bfloat16), bias=np.array([2**24], np.float32),
                relu=False, results=FLOAT32)
    x = np.array([[1, 1]], bfloat16)
    assert big.run(x, accelerator()).y.tolist() == [[2**24]]  # each 1 is lost, in a tie
    assert big.run(x, accelerator(c_words=0)).y.tolist() == [[2**24 + 2]]


def test_finish_gives_no_negative_zero():
    y = layer(bias=np.zeros(3, np.float32)).finish(np.array([[-0.0, -1, 0]], np.float32))
    assert y.view(np.uint16).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("fields", [{}, *WITHOUT_EPILOGUE, {"flush_subnormals": True}])
def test_accuracy_is_near_the_float_model(network, fields):
    config = Config(dtype="bf16", **fields)
    predictions, runs = network.run(network.images, Accelerator(GoldenTransport(config), config))
    assert network.accuracy(predictions) == 440 / 450
    assert abs(440 / 450 - network.float_accuracy) < 0.005
    assert [run.y.dtype for run in runs] == [BFLOAT16, BFLOAT16, FLOAT32]
    assert [run.sums is None for run in runs] == [fields not in WITHOUT_EPILOGUE] * 3
    x = (network.images / np.float32(16)).astype(bfloat16)
    for run, one in zip(runs, network.layers, strict=True):
        assert np.array_equal(run.x, x)
        last = one is network.layers[-1]
        if run.sums is None:
            y = matmul_bf16(x, one.weights.T, start=one.bias)
        else:
            y = matmul_bf16(x, one.weights.T) + one.bias
        x = y if last else to_bfloat16(clamp(y, low=np.float32(0)))
        assert run.y.tobytes() == x.tobytes()


def test_run_is_near_the_float_model_in_every_output(network):
    """Each logit is within 1 % of their span, so that a wrong layer cannot hide."""
    config = Config(dtype="bf16")
    _, runs = network.run(network.images, Accelerator(GoldenTransport(config), config))
    trained = Network.load()
    x = trained.scaled(trained.images)
    for one in trained.layers:
        x = one.run_float(x, relu=one is not trained.layers[-1])
    assert np.abs(runs[-1].y - x).max() <= 0.01 * np.ptp(x)


def test_digits_have_the_trained_weights(network):
    trained = Network.load()
    assert [one.name for one in network.layers] == ["layer 1", "layer 2", "layer 3"]
    assert [one.relu for one in network.layers] == [True, True, False]
    for ours, theirs in zip(network.layers, trained.layers, strict=True):
        assert np.array_equal(ours.weights, to_bfloat16(theirs.float_weights))
        assert np.array_equal(ours.bias, theirs.float_bias)
    assert np.array_equal(network.images, trained.images)
    assert network.float_accuracy == trained.float_accuracy


def test_encode_is_exact_for_digits(network):
    ramp = np.resize(np.arange(17, dtype=np.uint8), (1, 64))
    x = network.encode(ramp)
    assert x.dtype == bfloat16
    assert x[0, :17].tolist() == [n / 16 for n in range(17)]


def test_rejects_bad_images(network):
    text = "images must be in 0..16, not 17"
    with rejects(ValueError, text):
        network.encode(np.full((1, 64), 17, np.uint8))


def test_rejects_a_file_without_a_network(tmp_path):
    with pytest.raises(NetworkError, match=r"none\.npz must be a readable npz file"):
        Bf16Network.load(tmp_path / "none.npz")


def test_rejects_an_int8_core():
    config = Config()
    with pytest.raises(TypeError):
        layer().run(X, Accelerator(GoldenTransport(config), config))


@pytest.mark.parametrize("changes, error, message", [
    ({"weights": np.zeros((3, 2), np.float32)}, TypeError, "weights must be bfloat16, not float32"),
    ({"bias": np.zeros(3)}, TypeError, "bias must be float32, not float64"),
    ({"bias": np.array([1, np.nan, 1], np.float32)}, ValueError, "bias must be finite, not nan"),
    ({"results": np.dtype(np.int8)}, TypeError, "results must be bfloat16 or float32, not int8"),
])
def test_rejects_wrong_attributes(changes, error, message):
    with rejects(error, message):
        layer(**changes)
