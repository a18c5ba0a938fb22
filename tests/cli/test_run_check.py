"""``weft run --check ort``: equal to either way that onnxruntime runs, and the line names it."""

import numpy as np
import pytest
from onnx_models import Builder, require
from products import integers

from weft.cli import main

F32, I8, U8, I32 = np.float32, np.int8, np.uint8, np.int32


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run ``--check ort`` on a file: the exit code, and the lines."""
    require("onnx", "onnxruntime")
    monkeypatch.chdir(tmp_path)

    def run(b, y, x, dtype):
        (tmp_path / "net.onnx").write_bytes(b.bytes(y, dtype=dtype))
        np.save("x.npy", x)
        code = main(["run", "net.onnx", "--check", "ort", "--input", "x.npy"])
        return code, capsys.readouterr().out.splitlines()

    return run


def gemm(bias_scale, seed=3):
    """A Gemm of uint8 and int8 between DequantizeLinear and QuantizeLinear, and its input."""
    b = Builder(seed=seed)
    x = b.input("x", [16, 30], U8)
    bias = b.rng.integers(-3000, 3000, 20).astype(I32)
    y = b.node(
        "Gemm", b.node("DequantizeLinear", x, F32(0.05), U8(3)),
        b.node("DequantizeLinear", integers(b.rng, I8, 30, 20), F32(0.02), I8(0)),
        b.node("DequantizeLinear", bias, F32(bias_scale), I32(0)),
    )
    y = b.node("QuantizeLinear", y, F32(0.9), U8(120))
    return b, y, integers(b.rng, U8, 16, 30)


def test_a_product_that_onnxruntime_fuses(check):
    b, y, x = gemm(0.001)
    code, lines = check(b, y, x, U8)
    assert code == 0
    assert "; equal to onnxruntime in mode onnx; " in lines[0]
    assert f"{y}: all 320 values equal onnxruntime with its optimizations" in lines


def test_a_bias_of_another_scale_is_a_known_fault_of_onnxruntime(check):
    b, y, x = gemm(0.05)
    code, lines = check(b, y, x, U8)
    assert code == 0
    assert any("a known fault of onnxruntime (issue 24711)" in line for line in lines)
    assert f"{y}: all 320 values equal onnxruntime without optimizations" in lines
    assert lines[-1].startswith("the closer answer counts: ")
    assert lines[-1].endswith(" of 320 values differ from onnxruntime with its optimizations")


def test_a_product_that_onnxruntime_computes_in_floats(check):
    """int8 activations: 9,216 values, some of them ties."""
    b = Builder(seed=5)
    x = b.input("x", [1, 4, 26, 26], I8)
    y = b.node(
        "Conv", b.node("DequantizeLinear", x, F32(0.05), I8(3)),
        b.node("DequantizeLinear", integers(b.rng, I8, 16, 4, 3, 3), F32(0.02), I8(0)),
    )
    y = b.node("QuantizeLinear", y, F32(0.25), I8(3))
    code, lines = check(b, y, integers(b.rng, I8, 1, 4, 26, 26), I8)
    assert code == 0
    assert ", but values of Conv next to ties may differ by 1; " in lines[0]
    [line] = [line for line in lines if line.startswith(f"{y}: ") and "onnxruntime" in line]
    start = f"{y}: passed, within the allowed 1 of onnxruntime with its optimizations; "
    assert line.startswith(start) and line.endswith(" values differ, by at most 1")


def test_float_results_of_integer_products(check):
    b = Builder(seed=6)
    x = b.input("x", [4, 30], U8)
    y = b.node(
        "Gemm", b.node("DequantizeLinear", x, F32(0.05), U8(3)),
        b.node("DequantizeLinear", integers(b.rng, I8, 30, 20), F32(0.002), I8(0)),
    )
    y = b.node("Softmax", y, axis=-1)
    code, lines = check(b, y, integers(b.rng, U8, 4, 30), F32)
    assert code == 0
    assert "equal to onnxruntime in mode onnx, but float32 results of Gemm, Softmax are close" in (
        lines[0]
    )


@pytest.mark.parametrize("bias_scale", [0.001, 0.05])
def test_a_wrong_value_is_found_in_both_ways(check, monkeypatch, bias_scale):
    from weft.models import oracles

    compare = oracles.compare
    monkeypatch.setattr(
        oracles, "compare", lambda program, outputs, wanted: compare(
            program, [np.where(np.arange(y.size).reshape(y.shape) == 7, y ^ 2, y) for y in outputs],
            wanted,
        ),
    )
    b, y, x = gemm(bias_scale)
    code, lines = check(b, y, x, U8)
    assert code == 1
    assert any(line.startswith(f"{y}: ") and "FAILED: allowed are " in line for line in lines)
