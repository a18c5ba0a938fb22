"""``weft quantize``: the file, the table and the exit codes."""

import numpy as np
import pytest
from onnx_models import Builder, require

from weft.cli import main
from weft.golden.int4 import scales_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a float network and its calibration data."""
    require("onnx", "onnxruntime")
    monkeypatch.chdir(tmp_path)
    b = Builder(seed=9)
    y = b.node("Gemm", b.input("x", ["n", 12]), b.weights(8, 12), b.weights(8), transB=1)
    y = b.node("MatMul", b.node("Relu", y), b.weights(8, 5))
    (tmp_path / "net.onnx").write_bytes(b.bytes(y))
    np.savez("calib.npz", x=b.rng.normal(size=(8, 12)).astype(np.float32))
    return tmp_path


def test_writes_a_network_and_a_table(folder, capsys):
    from weft.models.ir import Gemm
    from weft.models.onnx import load

    command = ["quantize", "net.onnx", "--data", "calib.npz", "-o", "out/net.int8.onnx"]
    assert main(command) == 0
    text = capsys.readouterr().out
    for part in (
        "net.onnx: float against int8, 8 samples", "SQNR (dB)", "Relu", "MatMul",
        "top-1 agrees in 100.0% of the results", "out/net.int8.onnx: ",
    ):
        assert part in text
    graph = load((folder / "out/net.int8.onnx").read_bytes(), "net.int8.onnx")
    products = [node for node in graph.nodes if isinstance(node, Gemm)]
    assert [node.operator for node in products] == ["Gemm", "MatMul"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["net.int8.onnx"]


def test_weights_in_another_file(folder, capsys):
    """The sizes that it prints are those of the whole models."""
    import onnx

    size = (folder / "net.onnx").stat().st_size
    onnx.save(onnx.load("net.onnx"), "net.onnx", save_as_external_data=True, location="net.data",
              size_threshold=0)
    assert (folder / "net.onnx").stat().st_size < size
    command = ["quantize", "net.onnx", "--data", "calib.npz", "-o"]
    assert main([*command, "a.onnx"]) == 0
    assert f"(net.onnx: {size:,} bytes)" in capsys.readouterr().out
    (folder / "net.data").unlink()
    assert main([*command, "b.onnx"]) == 2
    assert "its data file 'net.data' must be beside the model" in capsys.readouterr().err


@pytest.mark.exit_code("quantize", 1)
def test_missing_data_is_an_error_before_any_work(folder, capsys, monkeypatch):
    monkeypatch.setattr("weft.models.onnx.quantize.prepare", None)
    assert main(["quantize", "net.onnx", "--data", "no.npz", "-o", "out.onnx"]) == 2
    assert capsys.readouterr().err == "weft: error: no.npz: No such file or directory\n"


def test_too_little_agreement_is_exit_code_1(folder, monkeypatch):
    from weft.models.onnx import agreement

    low = agreement.Agreement((), 0.5)
    monkeypatch.setattr("weft.models.onnx.agreement.compare", lambda *args, **options: low)
    command = ["quantize", "net.onnx", "--data", "calib.npz", "-o", "a.onnx", "--min-top1"]
    assert [main([*command, share]) for share in ("0.5", "0.51")] == [0, 1]


@pytest.mark.parametrize("network, data, message", [
    ("none.onnx", "calib.npz", "none.onnx: No such file or directory"),
    ("calib.npz", "calib.npz", "calib.npz: must be an ONNX model"),
    ("net.onnx", "none.npz", "none.npz: No such file or directory"),
    ("net.onnx", "net.onnx", "net.onnx: must be an .npz or .npy file of numbers"),
])
def test_wrong_input_is_exit_code_2(folder, capsys, network, data, message):
    assert main(["quantize", network, "--data", data, "-o", "a.onnx"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (folder / "a.onnx").exists()


def test_calibrates_with_a_folder_of_pictures(folder, capsys):
    from onnx_models import Builder
    from PIL import Image

    b = Builder(seed=3)
    x = b.input("x", ["batch", 3, 8, 8])
    y = b.node("Conv", x, b.weights(4, 3, 3, 3))
    (folder / "conv.onnx").write_bytes(b.bytes(b.node("Relu", y)))
    (folder / "photos").mkdir()
    for n in range(3):
        pixels = b.rng.integers(0, 256, (20, 30, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{n}.png")
    command = ["quantize", "conv.onnx", "--data", "photos", "-o", "c.onnx"]
    assert main([*command, "--mean", "127.5", "--std", "127.5"]) == 0
    assert "float against int8, 3 samples" in capsys.readouterr().out
    assert main([*command, "--mean", "1"]) == 2
    assert capsys.readouterr().err == "weft: error: --mean and --std must be given together\n"


def test_weights_of_int4(folder, capsys):
    from weft.models.ir import Gemm
    from weft.models.onnx import load

    command = ["quantize", "net.onnx", "--data", "calib.npz", "--weights", "int4", "-o", "a.onnx"]
    assert main(command) == 0
    text = capsys.readouterr().out
    for part in (
        "net.onnx: float against int8 with weights of int4, 8 samples",
        "weights of int4: 136 of 136; the others stay int8",
    ):
        assert part in text
    graph = load((folder / "a.onnx").read_bytes(), "a.onnx")
    weights = [node.weights[0].T for node in graph.nodes if isinstance(node, Gemm)]
    assert [scales_of(matrix, 8) is not None for matrix in weights] == [True, True]
