"""``weft report``: first line, targets, JSON, page, and its messages."""

import json

import pytest
from digits import CNN

from weft.cli import main
from weft.models.loading import load

pytest.importorskip("tflite")
NETWORK = str(CNN)
START = (
    "digits_cnn: 4 of 6 operators on Weft (100 % of 24,960 MAC), 2 on the host (ADD,"
    " AVERAGE_POOL_2D); equal to TFLite Micro in mode tflite; "
)


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("rows = 4\ncols = 4\ndepth = 4\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def report(capsys, monkeypatch):
    """What ``weft report`` prints, where nothing sets the width of its lines."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments):
        assert main(["report", *arguments]) == 0
        said = capsys.readouterr()
        # On a busy machine a step takes over 3 seconds, and is shown.
        assert all(line.startswith("   ...  ") for line in said.err.splitlines())
        return said.out

    return run


def test_first_line_is_the_placement(report):
    lines = report(NETWORK, "--board", "icebreaker").splitlines()
    assert lines[0].startswith(START + "icebreaker: ")
    assert lines[0].endswith(" ms wire")
    row = next(line for line in lines if "DEPTHWISE_CONV_2D" in line)
    assert "6,912" in row and "drain" in row
    assert any(line.startswith("on the host: ADD: ") for line in lines)


def test_without_a_target_it_says_which_it_took(report):
    lines = report(NETWORK).splitlines()
    assert lines[0].startswith(START + "ulx3s-85f: ")


def test_json_of_a_toml_file_against_a_board(report, toml):
    found = json.loads(report(NETWORK, "--config", toml, "--against", "icebreaker", "--json"))
    assert (found["target"], found["against"]["target"]) == ("mine", "icebreaker")
    assert (found["clock"], found["ceilings"]["peak"]) == (None, 64)
    assert [layer["macs"] for layer in found["layers"]] == [6912, 6912, 9216, 0, 0, 1920]
    assert found["placement"].startswith(START + "mine: ")


def test_page(report, toml, tmp_path):
    page = tmp_path / "folder" / "page.html"
    lines = report(NETWORK, "--config", toml, "--html", str(page)).splitlines()
    assert lines[-1] == f"page: {page}"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.count("<svg") == 7


@pytest.mark.parametrize("arguments, message", [
    (["none.tflite"], "none.tflite: No such file or directory"),
    (["."], (
        "network must be a .tflite, .onnx, .gguf, .bin, .npz or .weft file, or a folder with"
        " config.json: . is"
    )),
    ([NETWORK, "--board", "icebraker"], "board must be one of "),
    ([NETWORK, "--against", "none.toml"], "none.toml must be a readable TOML file: "),
])
def test_rejects(arguments, message, capsys):
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"weft: error: {message}") and said.err.count("\n") == 1


def test_rejects_a_board_and_a_config(toml, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        main(["report", NETWORK, "--board", "icebreaker", "--config", toml])
    assert "not allowed with argument --board" in capsys.readouterr().err


def test_program_file_has_its_target(report, tmp_path, capsys):
    path = str(tmp_path / "digits.weft")
    load(NETWORK).compile("icebreaker").save(path)
    lines = report(path).splitlines()
    assert lines[0].startswith(START + "icebreaker: ")
    options = [
        ("board", "ulx3s-25f"), ("for", "networks"), ("against", "ulx3s-25f"), ("batch", "2"),
    ]
    for name, value in options:
        assert main(["report", path, f"--{name}", value]) == 2
        assert capsys.readouterr().err == (
            f"weft: error: --{name} must not be given for {path}: the program is compiled for"
            " icebreaker\n"
        )
