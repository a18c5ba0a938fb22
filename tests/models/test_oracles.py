"""Tests of the comparison with a runtime: integers by bytes, floats within a tolerance."""

from types import SimpleNamespace

import numpy as np
import pytest
from tflite_files import T, build

import weft
from weft.config import Config
from weft.models.errors import ModelError
from weft.models.exactness import Exactness
from weft.models.oracles import answers, compare


def program(absolute=0.0, relative=0.0, dtype="float32"):
    """A program whose output is tensor 0."""
    return SimpleNamespace(
        tensors=[SimpleNamespace(name="y", dtype=np.dtype(dtype))], outputs=(0,),
        exactness=Exactness("close to a runtime", (absolute,), (relative,)),
    )


def difference(kind, y, other):
    [found] = compare(kind, [y], [np.array(other, y.dtype)])
    return found


def test_a_byte_of_integers_is_a_difference():
    found = difference(program(), np.int8([1, 2, 3]), [1, 2, 4])
    assert (found.different, found.largest, found.is_allowed) == (1, 1, False)
    assert difference(program(), np.int8([1, 2]), [1, 2]).is_allowed


def test_floats_may_differ_by_a_part_of_the_largest_value():
    host = program(relative=1e-5)
    assert difference(host, np.float32([1, 100]), [1.0009, 100]).is_allowed
    assert not difference(host, np.float32([1, 100]), [1.0011, 100]).is_allowed


def test_integers_next_to_ties_may_differ_by_a_step():
    ties = program(absolute=1.0)
    assert difference(ties, np.int8([1, 2]), [1, 3]).is_allowed
    assert not difference(ties, np.int8([1, 2]), [1, 4]).is_allowed


def test_floats_of_integers_are_rounded():
    """Some neighbours among them are more than their step apart."""
    values = np.float32(0.1) * np.arange(20, dtype=np.float32)
    step = float(np.float32(0.1))
    assert np.abs(np.diff(values.astype(float))).max() > step
    assert difference(program(absolute=step), values[1:], values[:-1]).is_allowed
    assert not difference(program(absolute=step), values[2:], values[:-2]).is_allowed


@pytest.mark.parametrize(("y", "allowed"), [
    ([np.nan, 1], True), ([0, 1], False), ([np.inf, 1], False),
])
def test_nan_equals_nan_only(y, allowed):
    found = difference(program(relative=1 / 64), np.float32(y), [np.nan, 1])
    assert found.is_allowed is allowed


def test_infinities_of_other_signs_differ():
    found = difference(program(relative=1 / 64), np.float32([np.inf, 1]), [-np.inf, 1])
    assert not found.is_allowed


def test_an_error_of_a_runtime_names_the_file(tmp_path):
    """TFLite Micro does not have TILE."""
    pytest.importorskip("tflite_micro")
    tensors = {
        "x": T((1, 4), scale=0.1), "w": T(data=np.ones((5, 4), np.int8), scale=0.01),
        "m": T((1, 5), scale=0.1), "n": T(data=np.int32([1, 2])), "y": T((1, 10), scale=0.1),
    }
    (tmp_path / "tiled.tflite").write_bytes(build(tensors, [
        ("FULLY_CONNECTED", ["x", "w"], ["m"], ("FullyConnectedOptions", {})),
        ("TILE", ["m", "n"], ["y"], ("TileOptions", {})),
    ], ["x"], ["y"]))
    network = weft.load(tmp_path / "tiled.tflite")
    program = network.compile(Config(rows=2, cols=2))
    with pytest.raises(ModelError, match="^tiled: TFLite Micro reports: .* TILE"):
        answers("tflm", network, program, np.zeros((1, 4), np.int8))
