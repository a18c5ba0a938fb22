"""Tests of the comparison with a runtime: integers by bytes, floats within a tolerance."""

from types import SimpleNamespace

import numpy as np
import pytest

from weft.network.oracles import compare, tolerance


def program(dtype, *, on_weft=True, macs=12):
    """A program with one product of ``dtype``, whose output is tensor 1."""
    kind = np.dtype(dtype)
    step = SimpleNamespace(macs=macs, inputs=(0,), placement=SimpleNamespace(on_weft=on_weft))
    tensors = [SimpleNamespace(name="x", dtype=kind), SimpleNamespace(name="y", dtype=kind)]
    return SimpleNamespace(steps=[step], tensors=tensors, outputs=(1,))


def difference(kind, y, other):
    [found] = compare(kind, [y], [np.array(other, y.dtype)])
    return found


@pytest.mark.parametrize(("kind", "expected"), [
    (program("int8"), 0), (program("float32", on_weft=False), 1e-5),
    (program("float32"), 1 / 64), (program("float32", macs=0), 0),
])
def test_tolerance(kind, expected):
    assert tolerance(kind) == expected


def test_a_byte_of_integers_is_a_difference():
    found = difference(program("int8"), np.int8([1, 2, 3]), [1, 2, 4])
    assert (found.different, found.largest, found.is_allowed) == (1, 1, False)
    assert difference(program("int8"), np.int8([1, 2]), [1, 2]).is_allowed


def test_floats_may_differ_by_a_part_of_the_largest_value():
    host = program("float32", on_weft=False)
    assert difference(host, np.float32([1, 100]), [1.0009, 100]).is_allowed
    assert not difference(host, np.float32([1, 100]), [1.0011, 100]).is_allowed


@pytest.mark.parametrize(("y", "allowed"), [
    ([np.nan, 1], True), ([0, 1], False), ([np.inf, 1], False),
])
def test_nan_equals_nan_only(y, allowed):
    found = difference(program("float32"), np.float32(y), [np.nan, 1])
    assert found.is_allowed is allowed


def test_infinities_of_other_signs_differ():
    assert not difference(program("float32"), np.float32([np.inf, 1]), [-np.inf, 1]).is_allowed
