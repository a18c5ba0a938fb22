"""A `Config` from a TOML file, and each message for an invalid file."""

import dataclasses
import tomllib

import pytest
from rejects import refusal

from weft.config import Config

FIELDS = [field.name for field in dataclasses.fields(Config)]


@pytest.fixture
def toml(tmp_path):
    """A TOML file with this text."""

    def write(text):
        path = tmp_path / "my.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_from_toml(toml):
    path = toml('rows = 3  # of PEs\nmultiplier = "fip"\ndepth = 2\n')
    assert Config.from_toml(path) == Config(rows=3, multiplier="fip", depth=2)
    assert Config.from_toml(str(path)) == Config(rows=3, multiplier="fip", depth=2)
    assert Config.from_toml(toml("")) == Config()
    assert Config.from_toml(toml(b"\xef\xbb\xbfrows = 3\n")) == Config(rows=3)  # a byte order mark
    path = toml('dtype = "bf16"\nflush_subnormals = true\n')
    assert Config.from_toml(path) == Config(dtype="bf16", flush_subnormals=True)
    assert Config.from_toml(path, flush_subnormals=False) == Config(dtype="bf16")


def test_from_toml_with_overrides(toml):
    path = toml("rows = 3\ncols = 99\n")
    assert Config.from_toml(path, cols=4, jobs=2) == Config(rows=3, cols=4, jobs=2)


def test_from_toml_rejects_invalid_values(toml):
    path = toml("row = 3\n[cols]\nx = 1\n")
    assert refusal(Config.from_toml, path, jobs=3) == (
        f"{path}:\n"
        f"row is not a field of Config; the fields are {', '.join(FIELDS)}; did you mean rows?\n"
        "cols must be an integer, not {'x': 1}\n"
        "jobs must be a power of two in 2..16, not 3"
    )


def test_from_toml_rejects_a_missing_file(tmp_path):
    path = tmp_path / "none.toml"
    reason = f"[Errno 2] No such file or directory: '{path}'"
    assert refusal(Config.from_toml, path) == f"{path} must be a readable TOML file: {reason}"


def test_from_toml_rejects_a_folder(tmp_path):
    reason = f"[Errno 21] Is a directory: '{tmp_path}'"
    text = f"{tmp_path} must be a readable TOML file: {reason}"
    assert refusal(Config.from_toml, tmp_path) == text


@pytest.mark.parametrize("text", ["rows 3\n", "rows = 3\nrows = 4\n"])
def test_from_toml_rejects_invalid_toml(toml, text):
    path = toml(text)
    with pytest.raises(tomllib.TOMLDecodeError) as reason:
        tomllib.loads(text)
    said = refusal(Config.from_toml, path)
    assert said == f"{path} must be a readable TOML file: {reason.value}"


@pytest.mark.parametrize("text, reason", [
    ("rows = " + 20_000 * "[", "it is nested too deep"),
    ("rows = " + 5_000 * "9", "Exceeds the limit (4300 digits) for integer string conversion"),
])
def test_from_toml_rejects_deep_nesting_and_long_values(toml, text, reason):
    path = toml(text)
    said = refusal(Config.from_toml, path)
    assert said.startswith(f"{path} must be a readable TOML file: {reason}")


def test_from_toml_rejects_a_number_too_long_to_print(toml):
    path = toml("rows = 0x" + 5_000 * "f")
    assert refusal(Config.from_toml, path).startswith(f"{path}:\n")


def test_from_toml_rejects_bytes_that_are_not_text(toml):
    path = toml(b"rows = 3 # \xff\n")
    reason = "'utf-8' codec can't decode byte 0xff in position 11: invalid start byte"
    assert refusal(Config.from_toml, path) == f"{path} must be a readable TOML file: {reason}"
