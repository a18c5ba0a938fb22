"""``weft run`` and ``weft compile``: lines, files, checks and exit codes."""

import re

import numpy as np
import pytest
from tflite_files import T, build

from weft.cli import main

CONFIG = "rows = 2\ncols = 3\ndepth = 2\na_words = 64\nb_words = 64\nlanes = 1\njobs = 2\n"


def layers():
    """A fully connected layer, then a softmax."""
    rng = np.random.default_rng(1)
    w = rng.integers(-128, 128, (5, 12), np.int8)
    tensors = {
        "x": T((1, 12), scale=[0.1], zero=[4]), "w": T(data=w, scale=[0.02], zero=[0]),
        "b": T(data=np.arange(5, dtype=np.int32), scale=[0.002], zero=[0]),
        "h": T((1, 5), scale=[0.1], zero=[-3]), "y": T((1, 5), scale=[1 / 256], zero=[-128]),
    }
    operators = [
        ("FULLY_CONNECTED", ["x", "w", "b"], ["h"], ("FullyConnectedOptions", {})),
        ("SOFTMAX", ["h"], ["y"], ("SoftmaxOptions", {"beta": 1.0})),
    ]
    return build(tensors, operators, ["x"], ["y"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("tflite")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.tflite").write_bytes(layers())
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize("words", [
    "run --output net.tflite", "run --output a.npz --activations ./a.npz",
    "run --input x.npy --html x.npy", "compile -o net.tflite", "report --html net.tflite",
    "quantize --data x.npy -o net.tflite", "quantize --data x.npy -o x.npy",
])
def test_no_file_of_the_command_is_overwritten(folder, capsys, words):
    np.save("x.npy", np.zeros((1, 12), np.float32))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    command, *options = words.split()
    assert main([command, "net.tflite", *options]) == 2
    assert capsys.readouterr().err.startswith("weft: error: output must be a file of its own, not ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("words", [["--input", "no.npy"], ["--top", "2", "--labels", "no.npy"]])
def test_missing_files_are_errors_before_the_network_is_compiled(folder, capsys, words):
    assert main(["run", "net.tflite", "--config", "small.toml", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "weft: error: no.npy: No such file or directory\n")


def test_runs_and_checks_on_golden(folder, capsys):
    command = ["run", "net.tflite", "--on", "golden", "--config", "small.toml", "--layers"]
    files = ["--output", "y.npy", "--activations", "a.npz", "--check", "tflm"]
    assert main([*command, *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("net: 1 of 2 operators on Weft (100 % of 60 MAC), 1 on the host")
    assert any(line.split()[:2] == ["0", "FULLY_CONNECTED"] for line in lines)
    assert any(line.split()[:3] == ["1", "SOFTMAX", "host"] for line in lines)
    assert lines[-1].endswith("all 5 values equal TFLite Micro")
    with np.load("a.npz") as activations:
        assert sorted(activations.files) == ["out0", "out1"]
        np.testing.assert_array_equal(activations["out1"], np.load("y.npy"))


def test_says_which_part_the_host_computes_and_what_would_change_it(folder, capsys):
    (folder / "sums.toml").write_text(CONFIG + 'requantize = "none"\nactivation = "none"\n')
    assert main(["run", "net.tflite", "--config", "sums.toml"]) == 0  # on golden, by default
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("partly on the host: FULLY_CONNECTED: requantization in mode tflite")
    assert "; requantize=tflite in the Config changes this (saves " in line


def test_the_default_target_is_a_board(folder, capsys):
    assert main(["run", "net.tflite"]) == 0
    line, *_, cycles, _ = capsys.readouterr().out.splitlines()
    assert "; ulx3s-85f: " in line
    assert re.match(r"on the golden model: .* waiting for operands \(predicted [\d,]+\); ", cycles)


def test_a_batch_from_a_file(folder, capsys):
    np.save("x.npy", np.random.default_rng(2).integers(-128, 128, (3, 12), np.int8))
    command = ["run", "net.tflite", "--on", "golden", "--config", "small.toml"]
    assert main([*command, "--input", "x.npy", "--check", "tflm"]) == 0
    out = capsys.readouterr().out
    assert "int8 [3, 5]" in out and " for one); " in out


def test_tflite_micro_cannot_check_uint8(folder, capsys):
    w = np.arange(60, dtype=np.uint8).reshape(5, 12)
    tensors = {
        "x": T((1, 12), "uint8", scale=0.1, zero=130), "w": T(data=w, scale=0.02, zero=110),
        "y": T((1, 5), "uint8", scale=0.1, zero=125),
    }
    operator = "FULLY_CONNECTED", ["x", "w", None], ["y"], ("FullyConnectedOptions", {})
    (folder / "u8.tflite").write_bytes(build(tensors, [operator], ["x"], ["y"]))
    assert main(["run", "u8.tflite", "--config", "small.toml", "--check", "tflm"]) == 2
    expected = "u8: TFLite Micro has no products of uint8; check with litert"
    assert expected in capsys.readouterr().err


@pytest.mark.exit_code("run", 1)
def test_a_difference_is_exit_code_1(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        "weft.models.tflite.runtime.tflm", lambda *args: [[np.zeros((1, 5), np.int8)] * args[3]]
    )
    command = ["run", "net.tflite", "--on", "golden", "--config", "small.toml"]
    assert main([*command, "--check", "tflm"]) == 1
    assert "of 5 values differ from TFLite Micro, by at most" in capsys.readouterr().out


def test_compiles_c_code(folder, capsys):
    command = ["compile", "net.tflite", "--config", "small.toml", "-o", "net.weft"]
    assert main([*command, "--c", "firmware/net", "--prefix", "mm"]) == 0
    files = sorted(path.name for path in (folder / "firmware" / "net").iterdir())
    assert files == [
        "net.c", "net.h", "net_arithmetic.h", "net_bytes.h", "net_data.h", "net_layer.h",
        "net_softmax.h",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "firmware/net: net.c and net.h, with 5 other files"
    assert "mm_core *core" in (folder / "firmware" / "net" / "net.h").read_text()


@pytest.mark.parametrize("options, line", [
    (["--c", "c", "--prefix", "net_x"],
     "weft: error: prefix must not start with net, as names of the C code do, not net_x"),
    (["--c", "c", "--prefix", "Mm"],
     ("weft: error: prefix must be 1 to 24 lower-case letters, digits and _, a letter first, no _"
      " last and no two side by side, not 'Mm'")),
    (["--prefix", "mm"],
     "weft: error: --prefix must be with --c: it is the prefix of the driver in C"),
])
def test_writes_nothing_if_there_is_no_c_code(folder, capsys, options, line):
    command = ["compile", "net.tflite", "--config", "small.toml", "-o", "net.weft"]
    assert main([*command, *options]) == 2
    assert capsys.readouterr().err.splitlines() == [line]
    assert not (folder / "c").exists() and not (folder / "net.weft").exists()


def test_compiles_a_program_that_runs(folder, capsys):
    assert main(["compile", "net.tflite", "--config", "small.toml", "-o", "net.weft"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("net: 1 of 2 operators on Weft") and "net.weft: " in out
    command = ["--on", "golden", "--output"]
    assert main(["run", "net.weft", *command, "a.npy"]) == 0
    assert main(["run", "net.tflite", "--config", "small.toml", *command, "b.npy"]) == 0
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


@pytest.mark.parametrize("arguments, message", [
    ("missing.tflite --on golden", "missing.tflite: No such file or directory"),
    ("net.tflite --on golden --check ort", "onnxruntime runs .onnx files, not .tflite files"),
    ("net.tflite --input bad.npy", "bad.npy must be .npy, .npz, .png, .jpg, .bmp, .wav, a folder"),
    ("missing.tflite --on ttyUSB1", "transport must be a serial port (/dev/ttyUSB1, COM3), usb, "),
    ("net.tflite --baud 5", "--baud must be for a serial port, not for golden"),
    ("net.tflite --mean 3 --std 4", "--mean must be with a picture or a sound as --input"),
    ("net.tflite --labels names.txt", "--labels must be with --top, or with a .csv list as"),
    ("net.tflite --input bad.npz", " or a .csv list: File is not a zip file"),
    ("net.tflite --on golden --input wrong.npy",
     "net: input x must be of shape (1, 12), not (1, 13)"),
    ("net.tflite --on nowhere", "; a simulated core is board or sim"),
    ("net.txt --on golden",
     "net.txt must be a .tflite, .onnx, .gguf, .bin, .npz or .weft file, not one of .txt"),
    ("net.weft --on golden --check tflm", "--check needs the network, not the program net.weft"),
    ("net.weft --on golden --activations a.npz", "--activations needs the network"),
])
def test_errors_are_one_line(folder, capsys, arguments, message):
    (folder / "bad.npy").write_bytes(b"text")
    (folder / "bad.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    (folder / "net.txt").write_bytes(b"text of a file")
    np.save("wrong.npy", np.zeros((1, 13), np.int8))
    options = ["--config", "small.toml"]
    if "net.weft" in arguments:
        assert main(["compile", "net.tflite", *options, "-o", "net.weft"]) == 0
        options = []
    capsys.readouterr()
    assert main(["run", *arguments.split(), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_program_for_another_config(folder, capsys):
    assert main(["compile", "net.tflite", "--config", "small.toml", "-o", "net.weft"]) == 0
    (folder / "other.toml").write_text("rows = 4\n")
    assert main(["run", "net.weft", "--on", "golden", "--config", "other.toml"]) == 2
    assert "net.weft is compiled for small (" in capsys.readouterr().err


def test_refuses_fallbacks(folder, capsys):
    (folder / "bf16.toml").write_text('dtype = "bf16"\n')
    command = ["run", "net.tflite", "--on", "golden", "--fallback", "refuse", "--config"]
    assert main([*command, "small.toml"]) == 0
    assert main([*command, "bf16.toml"]) == 2
    error = capsys.readouterr().err
    assert "operator 0 (FULLY_CONNECTED h) must not run on the host" in error
    assert "dtype=int8 would change this" in error


def test_without_a_target_the_core_gives_its_config(folder, capsys, monkeypatch):
    from weft.config import Config
    from weft.host.emulated import GoldenTransport

    config = Config.from_toml("small.toml")
    monkeypatch.setattr(
        "weft.host.opening.open_transport", lambda *args, **options: GoldenTransport(config)
    )
    assert main(["run", "net.tflite", "--on", "/dev/ttyUSB1", "--check", "tflm"]) == 0
    assert "; 2x3x2: " in capsys.readouterr().out


def test_page_with_measured_cycles(folder, capsys):
    command = ["run", "net.tflite", "--on", "golden", "--config", "small.toml", "--html", "p.html"]
    assert main(command) == 0
    cycles = capsys.readouterr().out.splitlines()[2].split(": ")[1].split()[0]
    text = (folder / "p.html").read_text(encoding="utf-8")
    # Of the one layer on the core: predicted, then measured.
    assert "<th>measured</th>" in text and f"<td>{cycles}</td><td>{cycles}</td>" in text
    np.save("x.npy", np.zeros((3, 12), np.int8))
    assert main([*command, "--input", "x.npy"]) == 2
    assert capsys.readouterr().err == "weft: error: --html needs one inference, not 3\n"


def test_checks_float_inputs(folder, capsys):
    """Outputs of float inputs are floats, too, and those of the runtime are converted likewise."""
    np.save("x.npy", np.linspace(-9, 9, 12, dtype=np.float32)[None])
    command = ["run", "net.tflite", "--config", "small.toml", "--input", "x.npy"]
    assert main([*command, "--check", "tflm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "y: all 5 values equal TFLite Micro"
    assert lines[-2].startswith("y: float32 [1, 5]: ")


def test_another_runtime_than_the_one_of_the_mode_is_named(folder, capsys, monkeypatch):
    (folder / "single.toml").write_text(CONFIG + 'requantize = "single"\n')
    monkeypatch.setattr(
        "weft.models.tflite.runtime.tflm", lambda *args: [[np.zeros((1, 5), np.int8)] * args[3]]
    )
    assert main(["run", "net.tflite", "--config", "single.toml", "--check", "tflm"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "The Config rounds as LiteRT (mode single), as the first line says." in lines
