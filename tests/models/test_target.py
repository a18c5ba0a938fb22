"""Targets: boards, Configs and TOML files."""

from pathlib import Path

import pytest
from rejects import rejects

from weft.config import Config, ConfigError
from weft.models.errors import ModelError
from weft.models.target import NetworkTarget, target_of


def test_a_board_has_a_clock_and_a_baud_rate():
    target = target_of("ulx3s-85f")
    assert (target.name, target.clock, target.baud) == ("ulx3s-85f", 125, 3_000_000)
    assert target.array.rows == 8


def test_a_core_for_networks_of_a_board():
    target = target_of("ulx3s-85f", "networks")
    assert (target.name, target.clock, target.config.banks) == ("ulx3s-85f-networks", 75, 9)
    assert target.array == target.config.array
    message = (
        "--for of ulx3s-85f must be networks or networks-fast or networks-sdram or batch1 or"
        " networks-onnx or language or language-sdram, not 'nothing'"
    )
    with rejects(ModelError, message):
        target_of("ulx3s-85f", "nothing")
    with rejects(ModelError, "'networks' must be for a board, not for another target"):
        target_of(Config(), "networks")


def test_a_core_for_networks_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('''rows = 2
lanes = 1
requantize = "tflite"
activation = "none"
[network_core]
words = 64
''')
    target = target_of(path)
    assert (target.name, target.config.words) == ("mine", 64)
    assert target_of(target.config).config == target.config


def test_a_config_and_a_file(tmp_path):
    config = Config(rows=2)
    assert target_of(config) == NetworkTarget("2x8x1", config)
    path = tmp_path / "mine.toml"
    path.write_text("rows = 2\n")
    assert target_of(path) == target_of(str(path)) == NetworkTarget("mine", config)
    assert target_of(target_of(path)).name == "mine"


def test_a_board_file(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "my_board.py"
    target = target_of(path)
    assert (target.name, target.clock, target.array.rows) == ("myboard", 125, 4)
    other = tmp_path / "net.tflite"
    other.write_bytes(b"")
    rule = "the name of a board, a board file (.py) or a file of Config fields (.toml)"
    with rejects(ModelError, f"board must be {rule}, not the file {str(other)!r}"):
        target_of(other)


def test_seconds():
    target = NetworkTarget("t", Config(), 100, 1_000_000)
    assert target.core_seconds(5000) == 5e-5
    assert target.wire_seconds(2000, 700) == 0.02  # ten bits a byte; both directions at once
    unclocked = NetworkTarget("t", Config())
    assert unclocked.core_seconds(1) is unclocked.wire_seconds(1, 1) is None


@pytest.mark.parametrize("target, error, message", [
    ("ulx3s-85g", ModelError, "board must be one of .* not 'ulx3s-85g'"),
    (7, ModelError, "target must be a board, a Config, a NetworkCoreConfig or a TOML file, not 7"),
    ("missing.py", ModelError, "board file not found: missing.py"),
    ("missing.toml", ConfigError, "missing.toml must be a readable TOML file"),
])
def test_rejects_other_targets(target, error, message):
    with pytest.raises(error, match=message):
        target_of(target)
