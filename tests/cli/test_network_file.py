"""``--shape``: inputs whose sizes the file leaves open."""

import pytest
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
