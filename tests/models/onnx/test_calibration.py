"""Calibration data: files and arrays that fit a model, and those that do not."""

import re

import numpy as np
import pytest
from onnx_models import Builder, require

from weft.models.errors import ModelError
from weft.models.onnx.quantize import Feeds, read_arrays


def model(batch="n", names=("x",)):
    require("onnx")
    b = Builder()
    inputs = [b.input(name, [batch, 3, "width"]) for name in names]
    return b.bytes(b.node("Sum", *inputs))


def test_reads_npz_and_npy(tmp_path):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "a.npz", x=a, y=2 * a)
    np.save(tmp_path / "a.npy", a)
    arrays = read_arrays(tmp_path / "a.npz")
    assert np.array_equal(arrays["y"], 2 * arrays["x"])
    [(name, array)] = read_arrays(tmp_path / "a.npy").items()
    assert name == "" and np.array_equal(array, a)


@pytest.mark.parametrize("damage", ["text", "objects", "cut"])
def test_rejects_other_files(tmp_path, damage):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], object) if damage == "objects" else np.zeros(100))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    if damage == "text":
        path.write_text("no arrays")
    with pytest.raises(ModelError, match=re.escape(f"{path}: must be an .npz or .npy file of num")):
        read_arrays(path)


def test_batches_of_a_dynamic_batch():
    x = np.arange(12.0).reshape(4, 3, 1)
    feeds = Feeds({"": x}, model(), "calib.npy")
    assert (len(feeds), feeds.samples) == (4, 4)
    batches = list(feeds.batches(1, 3))
    assert [batch["x"].shape for batch in batches] == [(1, 3, 1)] * 2
    assert batches[0]["x"].dtype == np.float32
    assert np.array_equal(batches[1]["x"], x[2:3])


def test_batches_of_a_fixed_batch():
    arrays = {name: np.zeros((5, 3, 2), np.float32) for name in "xy"}
    feeds = Feeds(arrays, model(2, "xy"), "calib.npz")
    assert [batch["y"].shape for batch in feeds.batches()] == [(2, 3, 2)] * 2


@pytest.mark.parametrize("arrays, message", [
    (dict(y=np.zeros((2, 3, 1)), z=np.zeros(1)),
     "arrays must have the names of the inputs, x; not 'y', 'z'"),
    ({}, "arrays must have the names of the inputs, x; not none"),
    (dict(x=np.zeros((2, 4, 1))), "array x must have the shape (samples, 3, any), not (2, 4, 1)"),
    (dict(x=np.zeros((0, 3, 1))), "array x must have at least 1 samples, not 0"),
    (dict(x=np.zeros((1, 3, 1), complex)), "array x must be float32, not complex128"),
    (dict(x=np.full((1, 3, 1), np.nan)), "array x must have finite numbers only"),
])
def test_rejects(arrays, message):
    with pytest.raises(ModelError, match=re.escape(f"calib.npz: {message}")):
        Feeds(arrays, model(), "calib.npz")


def test_rejects_different_numbers_of_samples():
    arrays = dict(x=np.zeros((2, 3, 1)), y=np.zeros((3, 3, 1)))
    rule = "calib.npz: all arrays must have the same number of samples, not 2 (x), 3 (y)"
    with pytest.raises(ModelError, match=re.escape(rule)):
        Feeds(arrays, model(names="xy"), "calib.npz")
