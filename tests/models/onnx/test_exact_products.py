"""Products of onnxruntime at both ends of their types, where a sum in 16 bits would saturate."""

import numpy as np
import pytest
from onnx_models import Builder

from weft.models.onnx.agreement import ort
from weft.models.onnx.fallback import with_exact_products

F32, U8, I8, I32 = np.float32, np.uint8, np.int8, np.int32
pytestmark = pytest.mark.usefixtures("onnxruntime")
M, K, N = 3, 40, 16
W = np.where(np.indices((K, N)).sum(axis=0) // 2 % 2, -128, 127).astype(I8)


def activations(rng):
    """Rows of 255 only, of 0 and 255, and of any values."""
    x = rng.integers(0, 256, (M, K), U8)
    x[0], x[1] = 255, 255 * (np.arange(K) // 2 % 2)
    return x


def products(x, x_zero, w_zero):
    return (x.astype(I32) - x_zero) @ (W.astype(I32) - w_zero)


def requantized(acc):
    return np.clip(np.rint(acc * F32(1e-4)) + 100, 0, 255).astype(U8)


def result(b, y, x, dtype):
    """The result of a model in onnxruntime; its product must have no int8 weights."""
    import onnx

    data = b.bytes(y, dtype=dtype)
    moved = with_exact_products(onnx.ModelProto.FromString(data))
    assert [node.op_type for node in moved.graph.node][-7:-1] == ["Cast", "Add", "Cast"] * 2
    [[z]] = ort(data, [[x]], optimized=False)
    return z


@pytest.mark.parametrize("w_zero", [None, -128, 5, 127])
@pytest.mark.parametrize("x_zero", [0, 200])
def test_matmul_integer(x_zero, w_zero):
    b = Builder(seed=101)
    x = activations(b.rng)
    zeros = [U8(x_zero)] if w_zero is None else [U8(x_zero), I8(w_zero)]
    y = b.node("MatMulInteger", b.input("x", [M, K], U8), W, *zeros)
    assert np.array_equal(result(b, y, x, I32), products(x, x_zero, w_zero or 0))


def test_matmul_integer_without_zero_points():
    b = Builder(seed=102)
    x = activations(b.rng)
    y = b.node("MatMulInteger", b.input("x", [M, K], U8), W)
    assert np.array_equal(result(b, y, x, I32), products(x, 0, 0))


def test_qlinear_matmul_with_a_zero_point_per_column():
    b = Builder(seed=103)
    x, zeros = activations(b.rng), b.rng.integers(-128, 128, N, I8)
    y = b.node("QLinearMatMul", b.input("x", [M, K], U8), F32(1e-2), U8(3), W,
               np.full(N, 1e-2, F32), zeros, F32(1), U8(100))
    assert np.array_equal(result(b, y, x, U8), requantized(products(x, 3, zeros)))


def qgemm(b):
    """A QGemm of the input ``x``; the name of its result."""
    return b.node("QGemm", b.input("x", [M, K], U8), F32(1e-2), U8(3), W, F32(1e-2), I8(-7),
                  np.zeros(N, I32), F32(1), U8(100), domain="com.microsoft", transB=0)


def test_qgemm():
    b = Builder(seed=104)
    x = activations(b.rng)
    y = qgemm(b)
    assert np.array_equal(result(b, y, x, U8), requantized(products(x, 3, -7)))


def test_a_model_without_the_standard_operators():
    import onnx

    b = Builder(seed=107)
    x = activations(b.rng)
    y = qgemm(b)
    model = b.model(y, dtype=U8)
    del model.opset_import[:]
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    [[z]] = ort(model.SerializeToString(), [[x]], optimized=False)
    assert np.array_equal(z, requantized(products(x, 3, -7)))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("opset", [1, 6, 9])
def test_a_model_of_an_old_operator_set(opset, relu):
    """Which has a Cast of another form, or no Add of integers."""
    b = Builder(seed=108, opset=opset)
    x = activations(b.rng)
    y = b.node("MatMulIntegerToFloat", b.input("x", [M, K], U8), W, F32(1), F32(1), U8(3), I8(5),
               domain="com.microsoft")
    y = b.node("Relu", y) if relu else y
    [[z]] = ort(b.bytes(y), [[x]], optimized=False)
    assert np.array_equal(z, products(x, 3, 5).clip(min=0 if relu else None))


def test_qlinear_conv():
    """A convolution of 1x1 is a product of matrices."""
    b = Builder(seed=105)
    x = activations(b.rng)
    y = b.node("QLinearConv", b.input("x", [1, K, M, 1], U8), F32(1e-2), U8(3),
               np.ascontiguousarray(W.T)[:, :, None, None], F32(1e-2), I8(-7), F32(1), U8(100))
    image = np.ascontiguousarray(x.T)[None, :, :, None]
    z = result(b, y, image, U8)[0, :, :, 0].T
    assert np.array_equal(z, requantized(products(x, 3, -7)))


@pytest.mark.parametrize("types", [(I8, I8), (U8, U8)])
def test_other_types_stay(types):
    import onnx

    b = Builder(seed=106)
    y = b.node("MatMulInteger", b.input("x", [M, K], types[0]), W.view(types[1]))
    model = onnx.ModelProto.FromString(b.bytes(y, dtype=I32))
    assert with_exact_products(model) == model
