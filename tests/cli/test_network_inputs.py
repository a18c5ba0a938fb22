"""Pictures, sounds, lists and classes of ``weft run``, as a user gives and reads them."""

import wave

import numpy as np
import pytest
from tflite_files import T, build

from weft.cli import main

Image = pytest.importorskip("PIL.Image")
CONFIG = "rows = 2\ncols = 3\ndepth = 2\na_words = 256\nb_words = 256\nlanes = 1\njobs = 2\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network whose class is the brightest quarter of a grey picture of 4 x 4."""
    monkeypatch.chdir(tmp_path)
    tensors = {
        "x": T((1, 4, 4, 1), scale=1 / 255, zero=-128), "y": T((1, 4), scale=0.5, zero=-128),
        "w": T(data=_weights(), scale=1 / 64), "s": T(data=np.int32([1, 16])),
        "flat": T((1, 16), scale=1 / 255, zero=-128),
    }
    operators = [
        ("RESHAPE", ["x", "s"], ["flat"], None),
        ("FULLY_CONNECTED", ["flat", "w", None], ["y"], ("FullyConnectedOptions", {})),
    ]
    (tmp_path / "net.tflite").write_bytes(build(tensors, operators, ["x"], ["y"]))
    (tmp_path / "small.toml").write_text(CONFIG)
    (tmp_path / "names.txt").write_text("top left\ntop right\nbottom left\nbottom right\n")
    for quarter in range(4):
        Image.fromarray(_picture(quarter)).save(tmp_path / f"q{quarter}.png")
    return tmp_path


def _picture(quarter):
    row, column = divmod(quarter, 2)
    picture = np.zeros((4, 4), np.uint8)
    picture[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 255
    return picture


def _weights():
    return np.stack([(_picture(quarter) // 4).astype(np.int8).ravel() for quarter in range(4)])


def run(capsys, *arguments):
    code = main(["run", "net.tflite", "--config", "small.toml", *arguments])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


def test_a_picture_and_its_class(folder, capsys):
    options = "--top", "2", "--labels", "names.txt", "--check", "tflm"
    code, lines, _ = run(capsys, "--input", "q2.png", *options)
    assert code == 0
    assert "values 0..255 are the range of int8" in lines
    [line] = [line for line in lines if line.startswith("q2.png: top 2: ")]
    assert line.startswith("q2.png: top 2: 2 bottom left (4), ")
    assert lines[-1] == "y: all 4 values equal TFLite Micro"


def test_a_larger_picture_of_colours_is_scaled(folder, capsys):
    large = np.kron(_picture(3), np.ones((8, 8), np.uint8))
    Image.fromarray(np.stack([large] * 3, axis=-1)).save("large.jpg", quality=95)
    code, lines, _ = run(capsys, "--input", "large.jpg", "--top", "1")
    assert code == 0
    assert any(line.startswith("large.jpg: top 1: 3 (") for line in lines)


def test_mean_and_std_are_those_of_the_command(folder, capsys):
    """(255 - 0) / 255 = 1 is the highest value of the input, as without them."""
    code, lines, _ = run(capsys, "--input", "q1.png", "--mean", "0", "--std", "255", "--top", "1")
    assert code == 0
    assert "values are (value - 0) / 255" in lines
    assert "q1.png: top 1: 1 (4)" in lines
    code, lines, _ = run(capsys, "--input", "q1.png", "--mean", "0", "--std", "510", "--top", "1")
    assert "q1.png: top 1: 1 (2)" in lines


def test_a_list_has_an_accuracy(folder, capsys):
    (folder / "list.csv").write_text("file,label\nq0.png,top left\nq1.png,1\nq2.png,0\nq3.png,3\n")
    code, lines, _ = run(capsys, "--input", "list.csv", "--labels", "names.txt", "--top", "2")
    assert code == 0
    assert lines[-1].startswith("accuracy: 75.00% (3 of 4); in the top 2: ")


def test_a_folder_is_a_batch_and_repeats_have_times(folder, capsys):
    (folder / "photos").mkdir()
    for quarter in range(3):
        (folder / f"q{quarter}.png").rename(folder / "photos" / f"q{quarter}.png")
    code, lines, _ = run(capsys, "--input", "photos", "--top", "1", "--repeat", "3")
    assert code == 0
    assert [line.split(":")[0] for line in lines if ": top 1: " in line] == [
        "q0.png", "q1.png", "q2.png"
    ]
    [line] = [line for line in lines if line.startswith("3 runs: median ")]
    assert line.endswith(" an inference of the golden model, not of a core, host included")


def test_the_metadata_of_a_file_say_mean_and_std(folder, capsys, monkeypatch):
    from weft.models.media import Normalization
    from weft.models.tflite import file

    monkeypatch.setattr(file, "normalization_of", lambda data: Normalization((0,), (510,)))
    _, lines, _ = run(capsys, "--input", "q1.png", "--top", "1")
    assert "q1.png: top 1: 1 (2)" in lines


@pytest.mark.parametrize("arguments, message", [
    (["--input", "bad.png"], "bad.png: must be a picture: "),
    (["--input", "q0.png", "--mean", "1"], "--mean and --std must be given together"),
    (["--input", "q0.png", "--mean", "1,2", "--std", "3"],
     "q0.png: mean must be one number, or one for each of 1 channels, not 2"),
    (["--input", "q0.png", "--mean", "x", "--std", "3"], "mean must be numbers, not 'x'"),
    (["--input", "q0.png", "--mean", "1", "--std", "0"], "std must be numbers other than 0"),
    (["--input", "empty"], "empty: the folder must have files of "),
    (["--input", "bad.csv"], "bad.csv: row 1 must be file,label, not 3 columns"),
    (["--input", "far.csv", "--top", "1"], "class must be a number in 0..3, not '4'"),
    (["--input", "q0.png", "--top", "1", "--labels", "few.txt"],
     "few.txt: labels must be 4 lines, one for each class, not 2"),
    (["--input", "a.wav"], "a.wav: input x must be a row of samples for a sound, not (1, 4, 4, 1)"),
])
def test_wrong_input_is_one_line(folder, capsys, arguments, message):
    (folder / "bad.png").write_bytes(b"no picture")
    (folder / "bad.csv").write_text("a,b,c\n")
    (folder / "far.csv").write_text("q0.png,4\n")
    (folder / "few.txt").write_text("a\nb\n")
    (folder / "empty").mkdir()
    (folder / "a.wav").write_bytes(b"RIFF")
    try:
        code, _, error = run(capsys, *arguments)
    except SystemExit as end:
        code, error = end.code, capsys.readouterr().err
    assert code == 2
    assert message in error and error.count("\n") == 1


def test_a_sound_is_a_row_of_samples(folder, capsys):
    w = np.ones((1, 8), np.float32)
    tensors = {"x": T((1, 8), "float32"), "y": T((1, 1), "float32"), "w": T(data=w)}
    operator = "FULLY_CONNECTED", ["x", "w", None], ["y"], ("FullyConnectedOptions", {})
    (folder / "net.tflite").write_bytes(build(tensors, [operator], ["x"], ["y"]))
    with wave.open("a.wav", "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(np.int16([[16384, 0], [8192, 8192], [0, -16384]]).tobytes())
    code, lines, _ = run(capsys, "--input", "a.wav")
    assert code == 0  # the mean of both channels: 0.25 + 0.25 - 0.25, and silence
    assert lines[-1] == "y: float32 [1, 1]: 0.25"


def test_the_first_operator_that_differs_is_named(folder, capsys, monkeypatch):
    from weft.models import program_session

    real = program_session.ProgramSession._run_step

    def broken(self, step, *arguments):
        outcome = real(self, step, *arguments)
        if step.operators == ("FULLY_CONNECTED",):
            arguments[1][step.outputs[0]] = arguments[1][step.outputs[0]] ^ 1
        return outcome

    monkeypatch.setattr(program_session.ProgramSession, "_run_step", broken)
    code, lines, _ = run(capsys, "--input", "q2.png", "--check", "tflm")
    assert code == 1
    assert lines[-1] == (
        "first operator that differs: 1 (FULLY_CONNECTED y): 4 of 4 values differ from TFLite"
        " Micro, by at most 1"
    )
