"""Conversion of old operator sets, and what happens if onnx stops."""

import re

import numpy as np
import pytest
from onnx_models import Builder, require

from weft.models.errors import ModelError
from weft.models.onnx import load
from weft.models.onnx.reading import convert


@pytest.fixture(autouse=True)
def _onnx():
    require("onnx")


def old(build):
    b = Builder(opset=11, domains=())
    return b.bytes(build(b, b.input("x", [1, 2, 3, 3])))


def test_converts():
    import onnx

    data = old(lambda b, x: b.node("Squeeze", x, axes=[0]))
    model = onnx.ModelProto.FromString(convert(data, "net.onnx", 13))
    assert model.opset_import[0].version == 13
    assert len(model.graph.node[-1].input) == 2


def test_survives_an_abort_of_onnx():
    """The kernel is larger than the map, and onnx's converter asserts that no size is negative."""
    def build(b, x):
        y = b.node("Conv", x, b.weights(2, 2, 5, 5))
        return b.node("Slice", y, np.int64([1]), np.int64([2]), np.int64([2]))

    rule = "net.onnx: cannot be converted to operator set 13: onnx stopped (signal 6)"
    with pytest.raises(ModelError, match=re.escape(rule)):
        load(old(build), "net.onnx")


def test_rejects_a_conversion_that_changes_inputs():
    """Operator set 8 has a Scan with batches; onnx's converter removes the first axis."""
    import onnx.parser

    model = onnx.parser.parse_model("""
        <ir_version: 7, opset_import: ["" : 8]>
        net (float[1, 2] first, float[1, 3, 2] x) => (float[1, 2] y, float[1, 3, 2] z) {
            y, z = Scan <num_scan_inputs = 1, body = step (float[2] sum, float[2] next)
                => (float[2] total, float[2] out) {
                    total = Add(sum, next)
                    out = Identity(total)
                }
            > ("", first, x)
        }
    """)
    rule = "net.onnx: cannot be converted to operator set 13: input first would get another shape"
    with pytest.raises(ModelError, match=rule):
        load(model.SerializeToString(), "net.onnx")


def test_names_what_cannot_be_converted():
    data = old(lambda b, x: b.node("Relu", x))
    with pytest.raises(ModelError, match="net.onnx: cannot be converted to operator set 9999: "):
        convert(data, "net.onnx", 9999)
