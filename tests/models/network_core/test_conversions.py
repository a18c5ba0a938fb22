"""Tables that scale and clamp (QUANTIZE, RELU, RELU6) are layers of a network core."""

import numpy as np
import pytest
from network_cores import network_core_config
from tflite_files import T, build, micro

import weft
from weft.models.network_core.pools import conversion_scale
from weft.models.network_core.refusal import Refusal
from weft.models.target import target_of

I8, U8 = np.int8, np.uint8


def network(operator, kinds, scales, zeros):
    """A convolution of int8, then an operator of a table."""
    rng = np.random.default_rng(4)
    of = dict(zip(("h", "y"), zip(kinds, scales, zeros, strict=True), strict=True))
    tensors = {
        "x": T((1, 6, 6, 3), scale=0.1, zero=4),
        "w": T(data=rng.integers(-128, 128, (8, 3, 3, 3), I8), scale=0.02),
        **{name: T((1, 4, 4, 8), kind, scale=scale, zero=zero)
           for name, (kind, scale, zero) in of.items()},
    }
    options = {"strideH": 1, "strideW": 1, "padding": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    operators = [
        ("CONV_2D", ["x", "w", None], ["h"], ("Conv2DOptions", options)),
        (operator, ["h"], ["y"], None),
    ]
    return build(tensors, operators, ["x"], ["y"]), rng.integers(-128, 128, (1, 6, 6, 3), I8)


@pytest.mark.parametrize("operator, kinds, scales, zeros, on_core", [
    ("QUANTIZE", ("int8", "int8"), (0.05, 0.13), (-3, 20), True),
    ("QUANTIZE", ("int8", "int8"), (0.13, 0.05), (-3, 20), True),
    ("QUANTIZE", ("int8", "uint8"), (0.05, 0.05), (-3, 125), True),
    ("RELU", ("int8", "int8"), (0.05, 0.08), (-3, -128), True),
    ("RELU6", ("int8", "int8"), (0.05, 0.05), (-3, -3), True),
    ("LOGISTIC", ("int8", "int8"), (0.05, 1 / 256), (-3, -128), False),
])
def test_equal_to_tflite_micro(operator, kinds, scales, zeros, on_core):
    data, x = network(operator, kinds, scales, zeros)
    config = network_core_config(3, 4, 4, 2)
    program = weft.load(data, "net").compile(target_of(config))
    layers = [layer.operators for layer in program.layers]
    assert layers == [("CONV_2D",), (operator,)][: 1 + on_core]
    if not on_core:
        [step] = program.host
        assert step.placement.reason == "a network core has no lookup tables"
        return
    with program.open("golden") as session:
        y = session(x)
    np.testing.assert_array_equal(y, micro(data, [x])[0])


def test_refuses_another_function():
    x = np.arange(-128, 128)
    table = np.where(x < 0, x // 2, x).astype(I8)  # LEAKY_RELU
    with pytest.raises(Refusal, match="a network core has no lookup tables"):
        conversion_scale(table, 1.0, (0, 0), "tflite")
    found, low, high = conversion_scale(x.astype(I8), 1.0, (0, 0), "tflite")
    assert (low, high) == (-128, 127) and found.weight >= 1
