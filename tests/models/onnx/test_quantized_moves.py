"""Moves of quantized values on their bytes, against onnxruntime."""

import numpy as np
import pytest
from onnx_models import Builder, equal_to_runtime, require

F32, I8, I64, U8 = np.float32, np.int8, np.int64, np.uint8


def between(dtype, kind, *constants, scale=0.03, zero=5, inputs=1, **attributes):
    """Kernels of the nodes of a move, after the result was compared."""
    require("onnx", "onnxruntime")
    b = Builder(seed=95)
    names = [b.input(f"x{i}", [1, 2, 4, 6], dtype) for i in range(inputs)]
    names = [b.node("DequantizeLinear", name, F32(0.03), dtype(5)) for name in names]
    y = b.node(kind, *names, *constants, **attributes)
    y = b.node("QuantizeLinear", y, F32(scale), dtype(zero))
    limits = np.iinfo(dtype)
    x = [b.rng.integers(limits.min, limits.max, (1, 2, 4, 6), dtype, endpoint=True)
         for _ in range(inputs)]
    return [node.kernel for node in equal_to_runtime(b, y, x, dtype).nodes]


@pytest.mark.parametrize("dtype", [I8, U8])
@pytest.mark.parametrize("kind, constants, attributes, kernel", [
    ("MaxPool", [], dict(kernel_shape=[2, 2], pads=[1, 1, 0, 0]), "onnx.max_pool"),
    ("Reshape", [I64([2, -1])], {}, "reshape"), ("Flatten", [], {}, "reshape"),
    ("Transpose", [], dict(perm=[0, 2, 3, 1]), "transpose"),
    ("Slice", [I64([1]), I64([3]), I64([2])], {}, "slice"),
    ("Resize", ["", F32([1, 1, 2, 2])], dict(mode="nearest"), "onnx.select"),
    ("Concat", [], dict(axis=1, inputs=3), "concatenation"),
])
def test_moves(dtype, kind, constants, attributes, kernel):
    assert between(dtype, kind, *constants, **attributes) == [kernel]


@pytest.mark.parametrize("scale, zero", [(0.031, 5), (0.03, 6)])
def test_another_scale_is_no_move(scale, zero):
    kernels = between(I8, "Flatten", scale=scale, zero=zero)
    assert kernels == ["onnx.dequantize", "reshape", "onnx.quantize"]


def test_a_function_is_no_move():
    assert between(I8, "Relu") == ["table"]
