"""``--shape``: inputs whose sizes the file leaves open."""

from pathlib import Path

import numpy as np
import pytest
from digits import CNN
from onnx_models import Builder, require

from weft.cli import main


@pytest.fixture
def network(tmp_path):
    require("onnx")
    b = Builder(seed=4, domains=())
    y = b.node("Conv", b.input("x", ["n", 3, "h", "w"]), b.weights(8, 3, 3, 3))
    path = tmp_path / "net.onnx"
    path.write_bytes(b.bytes(y))
    return str(path)


def test_a_shape_is_given(network, capsys):
    assert main(["report", network]) == 2
    error = capsys.readouterr().err
    assert "input x has the dynamic dimension 2 (h); give its shape in shapes (--shape)" in error
    assert main(["report", network, "--shape", "x=1,3,6,7"]) == 0
    # 4 x 5 results of 8 channels, each of 3 x 3 x 3 products.
    assert f"of {4 * 5 * 8 * 27:,} MAC)" in capsys.readouterr().out


@pytest.mark.parametrize("text, message", [
    ("1,3,6,7", "shape must be a name and sizes, as in x=1,3,224,224, not '1,3,6,7'"),
    ("x=1,3,-6,7", "shape must be a name and sizes"),
    ("y=1,3,6,7", "shapes must name inputs (x), not y"),
    ("x=1,4,6,7", "shape of input x must fit (None, 3, None, None), not (1, 4, 6, 7)"),
])
def test_a_wrong_shape_is_refused(network, capsys, text, message):
    try:
        status = main(["run", network, "--shape", text])
    except SystemExit as end:
        status = end.code
    assert status == 2 and message in capsys.readouterr().err


def test_other_files_have_fixed_shapes(tmp_path, capsys):
    (tmp_path / "net.tflite").write_bytes(b"    TFL3")
    assert main(["report", str(tmp_path / "net.tflite"), "--shape", "x=1"]) == 2
    assert "net.tflite: shapes must be for an .onnx file" in capsys.readouterr().err


@pytest.mark.parametrize("name, kind, message", [
    ("a.tflite", "onnx", "a.tflite: the file must be a TFLite file, and is an ONNX file; "),
    ("a.tflite", "empty", "a.tflite: the file must have a network, and is empty\n"),
    ("a.onnx", "empty", "a.onnx: must be an ONNX model, and the file is empty\n"),
    ("a.tflite", "text", "a.tflite: bytes 4..7 of a TFLite file must be TFL3 (54 46 4c 33), not "),
    ("a.onnx", "text", "a.onnx: must be an ONNX model, but cannot be parsed; the file is"),
    ("a.tflite", "cut", "inside the file (2000 bytes); the file is cut off or damaged\n"),
])
def test_a_wrong_file_is_named(network, tmp_path, capsys, name, kind, message):
    data = {
        "onnx": Path(network).read_bytes(), "empty": b"", "text": b"hello, world\n",
        "cut": CNN.read_bytes()[:2000],
    }
    (tmp_path / name).write_bytes(data[kind])
    assert main(["report", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1 and "b'" not in said


def test_weft_quantize_names_a_tflite_file(network, tmp_path, capsys):
    require("onnxruntime")
    np.savez(tmp_path / "x.npz", x=np.zeros(4, np.float32))
    command = ["quantize", str(CNN), "--data", str(tmp_path / "x.npz"), "-o", str(tmp_path / "q")]
    assert main(command) == 2
    assert "the file must be an ONNX file, and is a TFLite file" in capsys.readouterr().err
