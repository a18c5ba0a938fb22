"""The digits network on an accelerator in numpy, and files without a valid network."""

import dataclasses
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest
from rejects import rejects

from weft import Accelerator, Config
from weft.demo import Network, NetworkError
from weft.host.golden import GoldenTransport


class PlainAccelerator:
    """``matmul`` in int64; checks the types and shapes of its arguments."""

    config = Config(requantize="none")

    def __init__(self):
        self.jobs = []

    def matmul(self, a, b, a_zero_point=None, record=False):
        assert a.dtype == b.dtype == np.int8 and record
        self.jobs.append((a.shape, b.shape, a_zero_point))
        sums = (a.astype(np.int64) - a_zero_point) @ b.astype(np.int64)
        return sums.astype(np.int32), SimpleNamespace(cycles=len(self.jobs))


@pytest.fixture(scope="module")
def network():
    return Network.load()


@pytest.fixture
def arrays():
    with (resources.files("weft.demo") / "digits.npz").open("rb") as file, np.load(file) as npz:
        return dict(npz)


def test_file_is_small():
    assert len((resources.files("weft.demo") / "digits.npz").read_bytes()) < 200_000


def test_digits_network(network):
    assert [(layer.k, layer.n) for layer in network.layers] == [(64, 64), (64, 32), (32, 10)]
    assert network.images.shape == (450, 64)
    assert set(network.labels.tolist()) == set(range(10))
    assert network.float_accuracy >= 0.97
    assert abs(network.int8_accuracy - network.float_accuracy) <= 0.005


def test_run_has_the_recorded_accuracy(network):
    accelerator = PlainAccelerator()
    predictions, runs = network.run(network.images, accelerator)
    assert network.accuracy(predictions) == network.int8_accuracy
    assert accelerator.jobs == [
        ((450, 64), (64, 64), -128), ((450, 64), (64, 32), -128), ((450, 32), (32, 10), -128)
    ]  # fmt: skip
    assert [(run.name, run.m, run.k, run.n, run.record.cycles) for run in runs] == [
        ("layer 1", 450, 64, 64, 1), ("layer 2", 450, 64, 32, 2), ("layer 3", 450, 32, 10, 3)
    ]  # fmt: skip
    assert all(run.sums.dtype == np.int32 and run.sums.shape == (run.m, run.n) for run in runs)


def test_run_gives_equal_results_with_whole_layers_on_the_core(network):
    config = Config()
    plain, sums = network.run(network.images, PlainAccelerator())
    predictions, runs = network.run(network.images, Accelerator(GoldenTransport(config), config))
    assert predictions.tolist() == plain.tolist()
    for ours, theirs in zip(runs, sums, strict=True):
        assert np.array_equal(ours.y, theirs.y)
        assert ours.sums is None
        # one byte per result, in tiles of 8 columns and whole words of 16 bytes
        size = ours.m * -(-ours.n // 4) * 4
        assert ours.record.bytes_out == size + -size % 16


def test_run_float_has_the_recorded_accuracy(network):
    assert network.accuracy(network.run_float(network.images)) == network.float_accuracy


def test_run_is_near_the_float_model_in_every_output(network):
    """Each logit is within 5 % of their span, so that a wrong layer cannot hide."""
    _, runs = network.run(network.images, PlainAccelerator())
    last = network.layers[-1]
    ours = (runs[-1].y.astype(float) - last.y_zero_point) * last.y_scale
    x = network.images / np.float32(network.image_max)
    for layer in network.layers:
        x = layer.run_float(x, relu=layer is not last)
    assert np.abs(ours - x).max() <= 0.05 * np.ptp(x)


def test_run_takes_any_number_of_images_and_reports_each_layer(network):
    seen = []
    whole, _ = network.run(network.images, PlainAccelerator())
    predictions, runs = network.run(network.images[7:8], PlainAccelerator(), on_layer=seen.append)
    assert predictions.tolist() == [whole[7]]
    assert seen == runs and [run.m for run in runs] == [1, 1, 1]


def test_run_uses_the_sums_of_the_accelerator(network):
    class Wrong(PlainAccelerator):
        def matmul(self, *args, **kwargs):
            sums, record = super().matmul(*args, **kwargs)
            return sums[::-1], record

    predictions, _ = network.run(network.images, Wrong())
    assert network.accuracy(predictions) < 0.3


def test_encode_spans_int8(network):
    ramp = np.resize(np.arange(17, dtype=np.uint8), (1, 64))
    steps = network.encode(ramp)[0, :17]
    assert steps.dtype == np.int8
    assert (steps[0], steps[16]) == (-128, 127)
    assert np.abs(steps - (np.arange(17) * 255 / 16 - 128)).max() <= 0.5


def test_multipliers_match_the_scales(network):
    for layer in network.layers:
        real = layer.x_scale * layer.w_scale.astype(float) / layer.y_scale
        assert np.allclose(layer.multiplier * 2.0 ** (layer.shift - 31), real, rtol=2**-30)
        assert np.abs(layer.weights * layer.w_scale[:, None] - layer.float_weights).max() <= (
            layer.w_scale.max() * 0.501
        )


@pytest.mark.parametrize("images, error, message", [
    ([[0] * 64], TypeError, "images must be a numpy array, not list"),
    (np.zeros((1, 64), np.int8), ValueError,
     "images must be uint8 of shape [M, 64], not int8 of shape (1, 64)"),
    (np.zeros((1, 63), np.uint8), ValueError,
     "images must be uint8 of shape [M, 64], not uint8 of shape (1, 63)"),
    (np.zeros((0, 64), np.uint8), ValueError,
     "images must be uint8 of shape [M, 64], not uint8 of shape (0, 64)"),
    (np.full((1, 64), 17, np.uint8), ValueError, "images must be in 0..16, not 17"),
])  # fmt: skip
def test_rejects_bad_images(network, images, error, message):
    for use in (network.encode, network.run_float):
        with rejects(error, message):
            use(images)


def test_rejects_predictions_of_other_images(network):
    with rejects(ValueError, "predictions must be of shape (450,), not (3,)"):
        network.accuracy(np.zeros(3))


def write(path, content):
    path.write_bytes(content)
    return path


def flagged(good, flag):
    """The archive with ``flag`` set for its first member."""
    at = good.index(b"PK\x01\x02") + 8
    return good[:at] + bytes([good[at] | flag]) + good[at + 1 :]


@pytest.mark.parametrize("damage, message", [
    (lambda good: good[: len(good) // 2], "it is no zip archive"),
    (lambda good: b"", "it is no zip archive"),
    (lambda good: good.replace(b"PK\x01\x02", b"PK\x01\x03"), "Bad magic number"),
    (lambda good: flagged(good, 1), "is encrypted"),
    (lambda good: flagged(good, 32), "compressed patched data"),
    (lambda good: good[:100] + bytes([good[100] ^ 1]) + good[101:], ""),
])  # fmt: skip
def test_rejects_a_damaged_file(tmp_path, damage, message):
    good = (resources.files("weft.demo") / "digits.npz").read_bytes()
    path = write(tmp_path / "damaged.npz", damage(good))
    with pytest.raises(NetworkError) as caught:
        Network.load(path)
    assert str(caught.value).startswith(f"{path} must be a readable npz file: ")
    assert message in str(caught.value)


def test_rejects_a_missing_file(tmp_path):
    with pytest.raises(
        NetworkError, match=r"none\.npz must be a readable npz file: .*No such file"
    ):
        Network.load(tmp_path / "none.npz")


def test_rejects_pickles(tmp_path, arrays):
    np.savez(tmp_path / "pickled.npz", **arrays | {"images": np.array([{}], object)})
    with pytest.raises(NetworkError, match="must be a readable npz file: Object arrays"):
        Network.load(tmp_path / "pickled.npz")


@pytest.mark.parametrize("key", [
    "format", "n_layers", "images", "labels", "float_accuracy", "L0_weights", "L2_shift", "L1_low",
])  # fmt: skip
def test_rejects_a_missing_key(tmp_path, arrays, key):
    del arrays[key]
    path = tmp_path / "lacking.npz"
    np.savez(path, **arrays)
    with rejects(NetworkError, f"{path}: key {key} is missing"):
        Network.load(path)


@pytest.mark.parametrize("key, change, message", [
    ("format", lambda v: v + 1, "format must be 1, not 2"),
    ("format", lambda v: v * 1.0, "format must be an integer, not float64 of shape ()"),
    ("n_layers", lambda v: v * 0, "layers must not be empty"),
    ("n_layers", lambda v: v + 1, "key L3_weights is missing"),
    ("L0_weights", lambda v: v[0], "L0_weights must be of shape [N, K], not (64,)"),
    ("L0_weights", lambda v: v.astype(np.int16), "L0_weights must be int8, not int16"),
    ("L1_bias", lambda v: v[:-1], "L1_bias must be of shape (32,), not (31,)"),
    ("L1_bias", lambda v: v.astype(np.int64), "L1_bias must be int32, not int64"),
    ("L1_multiplier", lambda v: -v - 1, "L1_multiplier must be in 0..2147483647, not -"),
    ("L2_shift", lambda v: v - 99, "L2_shift must be in -31..31, not "),
    ("L0_x_zero_point", lambda v: v - 1, "L0_x_zero_point must be in -128..127, not -129"),
    ("L1_x_zero_point", lambda v: v + 1, "layer 2 must have the zero point and scale that layer 1"),
    ("L2_low", lambda v: v * 0 + 200, "L2_low must be in -128..127, not 200"),
    ("L2_low", lambda v: np.zeros(2, int), "L2_low must be an integer, not int64 of shape (2,)"),
    ("L0_w_scale", lambda v: v * 0, "L0_w_scale must be positive and finite, not 0.0"),
    ("L0_x_scale", lambda v: v * np.nan, "L0_x_scale must be positive and finite, not nan"),
    ("L0_float_bias", lambda v: v / 0, "L0_float_bias must be finite, not "),
    ("images", lambda v: v + 1, "images must be in 0..16, not 17"),
    ("images", lambda v: v[:, 1:], "images must be uint8 of shape [M, 64], not uint8 of shape"),
    ("labels", lambda v: v + 1, "labels must be under 10, not 10"),
    ("labels", lambda v: v[1:], "labels must be uint8 of shape (450,), not uint8 of shape (449,)"),
    ("image_max", lambda v: v * 0, "image_max must be in 1..255, not 0"),
    ("int8_accuracy", lambda v: v + 1, "int8_accuracy must be in 0..1, not 1.97"),
])  # fmt: skip
def test_rejects_a_corrupt_array(arrays, key, change, message):
    with np.errstate(all="ignore"):
        arrays[key] = np.asarray(change(arrays[key]))
    with pytest.raises(NetworkError) as caught:
        Network.from_arrays(arrays)
    assert str(caught.value).startswith(message)


def test_rejects_layers_that_do_not_fit_together(network):
    first, _, last = network.layers
    with rejects(ValueError, "layer 3 must take the 64 values of layer 1, not 32"):
        dataclasses.replace(network, layers=(first, last))
