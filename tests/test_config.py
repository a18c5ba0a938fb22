"""The rules of a `Config`: each message, all of them at once, files, and what follows from it."""

import dataclasses
import itertools
import tomllib

import pytest

from weft.config import Config, ConfigError

FIELDS = {f.name: f for f in dataclasses.fields(Config)}
SIZES = dict.fromkeys(("rows", "cols", "depth", "hop"), (1, 64))
POWERS = {
    "a_words": (32, 65536), "b_words": (32, 65536), "lanes": (1, 64),
    "bytes_in": (1, 64), "bytes_out": (1, 64), "jobs": (2, 16),
}
CHOICES = {
    "multiplier": "plain, fip", "a_type": "int8", "b_type": "int8", "acc_type": "int32",
    "requantize": "none, tflite, single, onnx", "activation": "none, table",
    "b_zero_point": "none, column",
}
RAW = {"requantize": "none"}  # lanes and bytes_out of any size go together


def refusal(make, *args, **kwargs):
    """The whole message with which a Config is refused."""
    with pytest.raises(ConfigError) as error:
        make(*args, **kwargs)
    return str(error.value)


def test_init_has_a_default_for_every_field():
    assert dataclasses.asdict(Config()) == {
        "rows": 8, "cols": 8, "depth": 1, "hop": 2, "multiplier": "plain",
        "a_type": "int8", "b_type": "int8", "acc_type": "int32",
        "a_words": 4096, "b_words": 4096, "lanes": 4,
        "requantize": "tflite", "activation": "table", "b_zero_point": "none",
        "bytes_in": 16, "bytes_out": 16, "jobs": 8,
    }


def test_init_takes_every_value_in_range():
    for name, (low, high) in SIZES.items():
        assert [getattr(Config(**{name: n}), name) for n in (low, high)] == [low, high]
    for name, (low, high) in POWERS.items():
        powers = [1 << n for n in range(17) if low <= 1 << n <= high]
        assert [getattr(Config(**RAW, **{name: n}), name) for n in powers] == powers
    for name in ("requantize", "activation", "b_zero_point"):
        values = CHOICES[name].split(", ")
        assert [getattr(Config(**{name: value}), name) for value in values] == values
    assert Config(depth=2, multiplier="fip", bytes_in=2).multiplier == "fip"


def test_every_field_has_its_rule_here():
    assert {*SIZES, *POWERS, *CHOICES} == set(FIELDS)


def test_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().rows = 4


@pytest.mark.parametrize("name", SIZES)
def test_rejects_a_size_out_of_range(name):
    low, high = SIZES[name]
    for value in (-1, low - 1, high + 1, 1 << 40):
        assert refusal(Config, **{name: value}) == f"{name} must be in {low}..{high}, not {value}"


@pytest.mark.parametrize("name", POWERS)
def test_rejects_no_power_of_two_in_range(name):
    low, high = POWERS[name]
    for value in (-low, 0, low // 2, 3 * low, high - 1, 2 * high):
        text = f"{name} must be a power of two in {low}..{high}, not {value}"
        assert refusal(Config, **RAW, **{name: value}) == text


@pytest.mark.parametrize("name", [*SIZES, *POWERS])
@pytest.mark.parametrize("value", [True, False, 4.0, "4", None, [4]])
def test_rejects_no_integer(name, value):
    assert refusal(Config, **{name: value}) == f"{name} must be an integer, not {value!r}"


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("value", ["int4", 0, None, ["int8"]])
def test_rejects_no_choice(name, value):
    text = f"{name} must be one of {CHOICES[name]}, not {value!r}"
    assert refusal(Config, **{name: value}) == text


def test_rejects_what_fip_cannot_have():
    assert refusal(Config, multiplier="fip", depth=3, bytes_in=1) == (
        "depth must be even with multiplier 'fip', not 3\n"
        "bytes_in must be 2 or more with multiplier 'fip', not 1"
    )


@pytest.mark.parametrize("mode", ["tflite", "single", "onnx"])
def test_rejects_more_int8_results_than_a_word_of_the_stream_holds(mode):
    for lanes, bytes_out in [(1, 1), (4, 4), (64, 64), (1, 64)]:
        assert Config(requantize=mode, lanes=lanes, bytes_out=bytes_out).lanes == lanes
    for lanes, bytes_out in [(4, 2), (2, 1), (64, 32), (64, 1)]:
        assert refusal(Config, requantize=mode, lanes=lanes, bytes_out=bytes_out) == (
            f"lanes must be at most bytes_out ({bytes_out}) unless requantize is none, not {lanes}"
        )
        raw = Config(requantize="none", lanes=lanes, bytes_out=bytes_out)
        assert (raw.lanes, raw.bytes_out) == (lanes, bytes_out)


def test_rejects_lanes_only_by_fields_that_are_integers():
    assert refusal(Config, lanes="8", bytes_out=None) == (
        "lanes must be an integer, not '8'\nbytes_out must be an integer, not None"
    )
    assert refusal(Config, lanes=4, bytes_out=True) == "bytes_out must be an integer, not True"


def test_rejects_with_all_problems_at_once():
    assert refusal(
        Config, rows=0, cols="x", depth=3, multiplier="fip", a_type="int4", a_words=33, lanes=32,
        requantize="tflm", activation="relu", b_zero_point="row", bytes_in=0,
    ) == (
        "rows must be in 1..64, not 0\n"
        "cols must be an integer, not 'x'\n"
        "a_type must be one of int8, not 'int4'\n"
        "a_words must be a power of two in 32..65536, not 33\n"
        "requantize must be one of none, tflite, single, onnx, not 'tflm'\n"
        "activation must be one of none, table, not 'relu'\n"
        "b_zero_point must be one of none, column, not 'row'\n"
        "bytes_in must be a power of two in 1..64, not 0\n"
        "depth must be even with multiplier 'fip', not 3\n"
        "bytes_in must be 2 or more with multiplier 'fip', not 0\n"
        "lanes must be at most bytes_out (16) unless requantize is none, not 32"
    )


def test_rejects_fip_only_by_fields_that_are_integers():
    assert refusal(Config, multiplier="fip", depth="3", bytes_in=None) == (
        "depth must be an integer, not '3'\nbytes_in must be an integer, not None"
    )
    assert refusal(Config, multiplier="fip", depth=True, bytes_in=True) == (
        "depth must be an integer, not True\nbytes_in must be an integer, not True"
    )


def test_from_dict():
    assert Config.from_dict({}) == Config()
    config = Config(rows=3, cols=5, depth=2, multiplier="fip")
    assert Config.from_dict(dataclasses.asdict(config)) == config


def test_from_dict_rejects_unknown_names_along_with_the_rest():
    known = ", ".join(FIELDS)
    assert refusal(Config.from_dict, {"row": 1, "cols": 0, "": 2}) == (
        f"row is no field of a Config; the fields are {known}\n"
        f" is no field of a Config; the fields are {known}\n"
        "cols must be in 1..64, not 0"
    )


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


def test_from_toml_with_overrides(toml):
    path = toml("rows = 3\ncols = 99\n")
    assert Config.from_toml(path, cols=4, jobs=2) == Config(rows=3, cols=4, jobs=2)


def test_from_toml_rejects_what_describes_no_config(toml):
    path = toml("row = 3\n[cols]\nx = 1\n")
    assert refusal(Config.from_toml, path, jobs=3) == (
        f"{path}:\n"
        f"row is no field of a Config; the fields are {', '.join(FIELDS)}\n"
        "cols must be an integer, not {'x': 1}\n"
        "jobs must be a power of two in 2..16, not 3"
    )


def test_from_toml_rejects_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "none.toml"
    reason = f"[Errno 2] No such file or directory: '{path}'"
    assert refusal(Config.from_toml, path) == f"{path} must be a readable TOML file: {reason}"


def test_from_toml_rejects_a_folder(tmp_path):
    reason = f"[Errno 21] Is a directory: '{tmp_path}'"
    text = f"{tmp_path} must be a readable TOML file: {reason}"
    assert refusal(Config.from_toml, tmp_path) == text


@pytest.mark.parametrize("text", ["rows 3\n", "rows = 3\nrows = 4\n"])
def test_from_toml_rejects_what_is_no_toml(toml, text):
    path = toml(text)
    with pytest.raises(tomllib.TOMLDecodeError) as reason:
        tomllib.loads(text)
    said = refusal(Config.from_toml, path)
    assert said == f"{path} must be a readable TOML file: {reason.value}"


def test_from_toml_rejects_what_is_no_text(toml):
    path = toml(b"rows = 3 # \xff\n")
    reason = "'utf-8' codec can't decode byte 0xff in position 11: invalid start byte"
    assert refusal(Config.from_toml, path) == f"{path} must be a readable TOML file: {reason}"


def test_peak_is_all_pes_at_work():
    assert Config(rows=3, cols=5, depth=7).peak == 105


def test_name_says_the_shape_and_the_leaf():
    assert Config(rows=3, cols=5, depth=2).name == "3x5x2"
    assert Config(rows=3, cols=5, depth=2, multiplier="fip").name == "3x5x2_fip"


def test_hash_is_the_same_on_any_machine():
    # That of bitstreams out there: if it changes, their version must, too.
    assert Config().hash == 0xFE2D091C


def test_hash_tells_every_field():
    others = {name: SIZES[name][1] for name in SIZES} | {name: POWERS[name][1] for name in POWERS}
    others |= {
        "multiplier": "fip", "requantize": "onnx", "activation": "none", "b_zero_point": "column",
    }
    base = {"depth": 2, **RAW}
    configs = [Config(**base), *(Config(**{**base, name: others[name]}) for name in others)]
    configs += [Config(**base | {"requantize": mode}) for mode in ("tflite", "single")]
    for one, other in itertools.combinations(configs, 2):
        assert one.hash != other.hash
    assert all(0 <= config.hash < 1 << 32 for config in configs)
