"""Options for every field of a Config; they override the file, which overrides the defaults."""

import argparse
import dataclasses
import re

import pytest

from weft.cli import main
from weft.cli.options import add_config, config_of
from weft.config import Config
from weft.mac_cells import MULTIPLIERS

FIELDS = dataclasses.fields(Config)
OTHERS = {
    "rows": 3, "cols": 5, "depth": 2, "hop": 1, "multiplier": "fip", "a_words": 64, "b_words": 128,
    "lanes": 2, "requantize": "onnx", "activation": "none", "b_zero_point": "column",
    "bytes_in": 4, "bytes_out": 2, "jobs": 4,
}


def parser():
    parser = argparse.ArgumentParser(prog="x")
    add_config(parser)
    return parser


def parsed(*arguments):
    return config_of(parser().parse_args(arguments))


@pytest.fixture
def toml(tmp_path):
    """The path of a TOML file with this text."""

    def write(text):
        path = tmp_path / "my.toml"
        path.write_text(text)
        return str(path)

    return write


def test_no_option_gives_the_default():
    assert parsed() == Config()


def test_every_field_has_an_option():
    flags = [
        part for name, value in OTHERS.items()
        for part in ("--" + name.replace("_", "-"), str(value))
    ]
    assert parsed(*flags) == Config(**OTHERS)
    assert parsed("--dtype=int8", "--c-words=0") == Config()
    bf16 = "--dtype=bf16", "--c-words=64"
    assert parsed(*bf16) == Config(dtype="bf16", c_words=64)
    assert parsed(*bf16, "--flush-subnormals") == Config(
        dtype="bf16", c_words=64, flush_subnormals=True
    )


def test_a_flag_can_be_cleared(toml):
    path = toml('dtype = "bf16"\nflush_subnormals = true\n')
    assert parsed("--config", path).flush_subnormals
    assert parsed("--config", path, "--no-flush-subnormals") == Config(dtype="bf16")


def test_an_option_overrides_the_file(toml):
    path = toml("rows = 3\ncols = 5\n")
    assert parsed("--config", path, "--cols", "4") == Config(rows=3, cols=4)


def test_help_says_what_a_field_means(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = re.sub(r"\s+", " ", parser().format_help())
    for f in FIELDS:
        assert re.search(f"--{f.name.replace('_', '-')}[ ,]", said)
        assert f.metadata["text"] in said
    assert (
        "--rows INT rows of processing elements; rows of C in a tile; 1 to 64; "
        "default 8 for int8, 4 for bf16"
    ) in said
    assert (
        "--bytes-in INT bytes per cycle of the command stream; a power of two, 1 to 64; default 16"
    ) in said
    [text] = (f.metadata["text"] for f in FIELDS if f.name == "multiplier")
    assert (
        f"--multiplier STR {text}; one of"
        f" {', '.join(MULTIPLIERS)}; default auto"
    ) in said
    assert (
        "--dsp-cols INT columns of PEs, from the left, that use DSP blocks; the other columns use"
        " logic; 0 to 64; default all columns if the target has DSP blocks"
    ) in said
    assert (
        "--c-words INT size of the C buffer in words; a word has cols sums. 0: no buffer, sums"
        " start from 0; 0 or a power of two, 32 to 65536; default 0 for int8, 1024 for bf16"
    ) in said
    assert "one of none, table, clamp; default table for int8, clamp for bf16" in said
    assert (
        "--flush-subnormals, --no-flush-subnormals replace subnormal operands, sums and results by"
        " zero; default no"
    ) in said


@pytest.mark.parametrize("verb", ["sim", "generate", "info"])
def test_every_command_takes_a_design(verb, capsys):
    with pytest.raises(SystemExit, match="^0$"):
        main([verb, "--help"])
    said = capsys.readouterr().out
    assert all(re.search(f"--{f.name.replace('_', '-')}[ ,]", said) for f in FIELDS)
    assert "--config FILE" in said


def test_rejects_a_word_for_an_integer(capsys):
    with pytest.raises(SystemExit, match="^2$"):
        parsed("--rows", "four")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "x: error: argument --rows: rows must be an integer, not 'four'"


def test_rejects_an_empty_path(capsys):
    """It must not mean the default."""
    with pytest.raises(SystemExit, match="^2$"):
        parsed("--config", "")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "x: error: argument --config: config must be a path, not ''"
