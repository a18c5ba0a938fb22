"""The rules of `Config`: each message, all messages at once, and its properties."""

import dataclasses
import itertools

import pytest
from rejects import refusal, rejects

from weft.config import Config, ConfigError
from weft.dtypes import DTYPES
from weft.mac_cells import MULTIPLIERS
from weft.targets import TARGETS

FIELDS = {f.name: f for f in dataclasses.fields(Config)}
SIZES = dict.fromkeys(("rows", "cols", "depth", "hop"), (1, 64))
POWERS = {
    "a_words": (32, 65536), "b_words": (32, 65536), "lanes": (1, 64),
    "bytes_in": (1, 64), "bytes_out": (1, 64), "jobs": (2, 16), "scale_cycles": (1, 32),
}
ZERO_OR_POWERS = {"c_words": (32, 65536)}
CHOICES = {
    "target": ", ".join(TARGETS), "multiplier": ", ".join(MULTIPLIERS),
    "drain": "overlapped, folded", "dtype": ", ".join(DTYPES),
    "requantize": "none, tflite, single, onnx", "activation": "none, table, clamp",
    "b_zero_point": "none, column",
}
FLAGS = ("flush_subnormals",)
BF16 = {"dtype": "bf16"}
RAW = {"requantize": "none"}  # lanes and bytes_out of any size go together


def test_init_has_a_default_for_every_field():
    assert dataclasses.asdict(Config()) == {
        "rows": 8, "cols": 8, "depth": 1, "hop": 4, "target": "generic",
        "multiplier": "plain", "dsp_cols": 0, "ram_cols": 0, "drain": "overlapped",
        "dtype": "int8", "flush_subnormals": False,
        "a_words": 4096, "b_words": 4096, "c_words": 0, "lanes": 4,
        "requantize": "tflite", "scale_cycles": 1, "activation": "table", "b_zero_point": "none",
        "bytes_in": 16, "bytes_out": 16, "jobs": 8,
    }


def test_init_has_other_defaults_for_bf16():
    assert dataclasses.asdict(Config(dtype="bf16")) == dataclasses.asdict(Config()) | {
        "rows": 4, "cols": 4, "dtype": "bf16",
        "requantize": "none", "activation": "clamp", "c_words": 1024,
    }


@pytest.mark.parametrize("dtype, values", [
    ("int8", {
        "rows": 8, "cols": 8, "requantize": "tflite", "activation": "table", "c_words": 0,
    }),
    ("bf16", {
        "rows": 4, "cols": 4, "requantize": "none", "activation": "clamp", "c_words": 1024,
    }),
])
def test_none_selects_the_default_of_the_dtype(dtype, values):
    config = Config(dtype=dtype, **dict.fromkeys(values))
    assert {name: getattr(config, name) for name in values} == values
    assert config == Config(dtype=dtype)
    assert {name: FIELDS[name].metadata["by_dtype"][dtype] for name in values} == values


def test_init_accepts_every_value_in_range():
    for name, (low, high) in SIZES.items():
        assert [getattr(Config(**{name: n}), name) for n in (low, high)] == [low, high]
    for name, (low, high) in POWERS.items():
        powers = [1 << n for n in range(17) if low <= 1 << n <= high]
        assert [getattr(Config(**RAW, **{name: n}), name) for n in powers] == powers
    for name, (low, high) in ZERO_OR_POWERS.items():
        values = [0, *(1 << n for n in range(17) if low <= 1 << n <= high)]
        assert [getattr(Config(**BF16, **{name: n}), name) for n in values] == values
    for name, values in (
        ("requantize", ["none", "tflite", "single", "onnx"]), ("activation", ["none", "table"]),
        ("b_zero_point", ["none", "column"]), ("dtype", ["int8", "bf16"]),
    ):
        assert [getattr(Config(**{name: value}), name) for value in values] == values
    for value in ("none", "clamp"):
        assert Config(**BF16, activation=value).activation == value
    for value in (False, True):
        assert Config(**BF16, flush_subnormals=value).flush_subnormals is value
    assert Config(depth=2, multiplier="fip", bytes_in=2).multiplier == "fip"


def test_every_field_is_tested_here():
    columns = "dsp_cols", "ram_cols"
    assert {*SIZES, *POWERS, *ZERO_OR_POWERS, *CHOICES, *FLAGS, *columns} == set(FIELDS)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().rows = 4


@pytest.mark.parametrize("name", SIZES)
def test_rejects_a_size_out_of_range(name):
    low, high = SIZES[name]
    for value in (-1, low - 1, high + 1, 1 << 40):
        assert refusal(Config, **{name: value}) == f"{name} must be in {low}..{high}, not {value}"


@pytest.mark.parametrize("name", POWERS)
def test_rejects_a_number_that_is_not_a_power_of_two(name):
    low, high = POWERS[name]
    for value in (-low, 0, low // 2, 3 * low, high - 1, 2 * high):
        text = f"{name} must be a power of two in {low}..{high}, not {value}"
        assert refusal(Config, **RAW, **{name: value}) == text


@pytest.mark.parametrize("name", ZERO_OR_POWERS)
def test_rejects_neither_zero_nor_a_power_of_two(name):
    low, high = ZERO_OR_POWERS[name]
    for value in (-low, 1, low // 2, 3 * low, high - 1, 2 * high):
        text = f"{name} must be 0 or a power of two in {low}..{high}, not {value}"
        assert refusal(Config, **BF16, **{name: value}) == text


@pytest.mark.parametrize("name", [*SIZES, *POWERS, *ZERO_OR_POWERS])
@pytest.mark.parametrize("value", [True, False, 4.0, "4", None, [4]])
def test_rejects_a_type_that_is_not_an_integer(name, value):
    if value is None and "by_dtype" in FIELDS[name].metadata:
        return  # it asks for the default
    assert refusal(Config, **{name: value}) == f"{name} must be an integer, not {value!r}"


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("value", ["int4", 0, None, ["int8"]])
def test_rejects_an_unknown_choice(name, value):
    if value is None and "by_dtype" in FIELDS[name].metadata:
        return
    text = f"{name} must be one of {CHOICES[name]}, not {value!r}"
    assert refusal(Config, **{name: value}) == text


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [0, 1, "true", None, []])
def test_rejects_a_flag_that_is_not_a_bool(name, value):
    text = f"{name} must be True or False, not {value!r}"
    assert refusal(Config, **BF16, **{name: value}) == text


def test_rejects_values_that_int8_does_not_allow():
    assert refusal(Config, flush_subnormals=True, c_words=32, activation="clamp") == (
        "flush_subnormals must be False with dtype 'int8', not True\n"
        "c_words must be 0 with dtype 'int8', not 32\n"
        "activation must be none or table with dtype 'int8', not 'clamp'"
    )


def test_rejects_values_that_bf16_does_not_allow():
    assert refusal(
        Config, **BF16, depth=2, multiplier="fip", requantize="tflite", activation="table",
        b_zero_point="column", bytes_in=1, lanes=4, bytes_out=4,
    ) == (
        "depth must be 1 with dtype 'bf16', not 2\n"
        "multiplier must be plain with dtype 'bf16', not 'fip'\n"
        "requantize must be none with dtype 'bf16', not 'tflite'\n"
        "activation must be none or clamp with dtype 'bf16', not 'table'\n"
        "b_zero_point must be none with dtype 'bf16', not 'column'\n"
        "bytes_in must be 2 or more with dtype 'bf16', not 1\n"
        "bytes_in must be 2 or more with multiplier 'fip', not 1"
    )


def test_rejects_a_c_buffer_smaller_than_a_tile():
    assert Config(**BF16, rows=32, c_words=32).c_words == 32
    assert Config(**BF16, rows=64, c_words=0).c_words == 0
    for rows in (33, 64):
        text = f"c_words must be 0 or at least rows ({rows}), not 32"
        assert refusal(Config, **BF16, rows=rows, c_words=32) == text


def test_checks_the_dtype_rules_only_for_valid_values():
    assert refusal(Config, **BF16, depth="x", requantize="tflm", bytes_in=3) == (
        "depth must be an integer, not 'x'\n"
        "requantize must be one of none, tflite, single, onnx, not 'tflm'\n"
        "bytes_in must be a power of two in 1..64, not 3"
    )


def test_bf16_accepts_lanes_and_streams_of_any_size():
    for lanes, bytes_out in [(1, 1), (64, 1), (1, 64), (64, 64)]:
        assert Config(**BF16, lanes=lanes, bytes_out=bytes_out).lanes == lanes
    assert Config(**BF16, bytes_in=2).bytes_in == 2


def test_rejects_several_fast_inner_products_in_dsp_blocks_of_the_ice40up():
    fields = {"target": "ice40up", "multiplier": "fip", "cols": 2}
    with rejects(ConfigError, (
        "dsp_cols must be 0 with several products a PE, target 'ice40up' and multiplier 'fip',"
        " not 1"
    )):
        Config(**fields, depth=4, dsp_cols=1)
    assert Config(**fields, depth=2).dsp_cols == 2
    assert Config(**fields, depth=4).dsp_cols == 0
    assert Config(**fields | {"multiplier": "plain"}, depth=4).dsp_cols == 2


def test_rejects_columns_with_block_ram_that_the_mac_cell_or_the_array_does_not_have():
    for fields, cell in (
        ({}, "plain"), ({"target": "ice40up"}, "plain_ice40up"),
        ({"target": "ecp5", "dtype": "bf16", "dsp_cols": 0}, "bf16_ecp5"),
    ):
        assert refusal(Config, **fields, ram_cols=1) == (
            f"ram_cols must be 0 with MAC cell {cell!r}, not 1"
        )
    assert refusal(Config, target="ecp5", cols=4, dsp_cols=1, ram_cols=4) == (
        "ram_cols must be at most 3 with 4 columns, of which 1 use DSP blocks, not 4"
    )
    assert refusal(Config, target="ecp5", ram_cols=65) == "ram_cols must be in 0..64, not 65"


@pytest.mark.parametrize("cols, dsp_cols, ram_cols, kinds", [
    (5, 2, 0, "ddlll"), (4, 0, 4, "rrrr"), (3, 1, 1, "dlr"), (6, 2, 2, "dlrdlr"),
    (8, 4, 4, "drdrdrdr"), (14, 4, 4, "ldrldrlldrldrl"),
])
def test_columns_of_all_kinds_are_spread_evenly(cols, dsp_cols, ram_cols, kinds):
    config = Config(target="ecp5", cols=cols, dsp_cols=dsp_cols, ram_cols=ram_cols)
    found = [config.resource(col) for col in range(cols)]
    assert "".join(resource[0] for resource in found) == kinds
    assert (found.count("dsp"), found.count("ram")) == (dsp_cols, ram_cols)


def test_rejects_values_that_fip_does_not_allow():
    assert refusal(Config, multiplier="fip", depth=3, bytes_in=1) == (
        "depth must be even with multiplier 'fip', not 3\n"
        "bytes_in must be 2 or more with multiplier 'fip', not 1"
    )


@pytest.mark.parametrize("mode", ["tflite", "single", "onnx"])
def test_rejects_more_int8_lanes_than_bytes_out(mode):
    for lanes, bytes_out in [(1, 1), (4, 4), (64, 64), (1, 64)]:
        assert Config(requantize=mode, lanes=lanes, bytes_out=bytes_out).lanes == lanes
    for lanes, bytes_out in [(4, 2), (2, 1), (64, 32), (64, 1)]:
        assert refusal(Config, requantize=mode, lanes=lanes, bytes_out=bytes_out) == (
            f"lanes must be at most bytes_out ({bytes_out}) unless requantize is none, not {lanes}"
        )
        raw = Config(requantize="none", lanes=lanes, bytes_out=bytes_out)
        assert (raw.lanes, raw.bytes_out) == (lanes, bytes_out)


def test_checks_lanes_only_for_integers():
    assert refusal(Config, lanes="8", bytes_out=None) == (
        "lanes must be an integer, not '8'\nbytes_out must be an integer, not None"
    )
    assert refusal(Config, lanes=4, bytes_out=True) == "bytes_out must be an integer, not True"


def test_reports_all_problems_at_once():
    assert refusal(
        Config, rows=0, cols="x", depth=3, multiplier="fip", dtype="int4", a_words=33, lanes=32,
        flush_subnormals=2, c_words=-1, requantize="tflm", activation="relu", b_zero_point="row",
        bytes_in=0,
    ) == (
        "rows must be in 1..64, not 0\n"
        "cols must be an integer, not 'x'\n"
        "dtype must be one of int8, bf16, not 'int4'\n"
        "flush_subnormals must be True or False, not 2\n"
        "a_words must be a power of two in 32..65536, not 33\n"
        "c_words must be 0 or a power of two in 32..65536, not -1\n"
        "requantize must be one of none, tflite, single, onnx, not 'tflm'\n"
        "activation must be one of none, table, clamp, not 'relu'\n"
        "b_zero_point must be one of none, column, not 'row'\n"
        "bytes_in must be a power of two in 1..64, not 0\n"
        "depth must be even with multiplier 'fip', not 3\n"
        "bytes_in must be 2 or more with multiplier 'fip', not 0\n"
        "lanes must be at most bytes_out (16) unless requantize is none, not 32"
    )


def test_rejects_an_unknown_dtype_alone():
    # The defaults of the other fields depend on the dtype.
    assert refusal(Config, dtype="fp8") == "dtype must be one of int8, bf16, not 'fp8'"
    for given in ({"c_words": 32}, {"target": "ecp5"}, {"target": "ice40up", "dsp_cols": 1}):
        assert refusal(Config, dtype="fp8", **given) == refusal(Config, dtype="fp8")


def test_checks_fip_only_for_integers():
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


def test_from_dict_reports_unknown_names_with_all_problems():
    known = ", ".join(FIELDS)
    assert refusal(Config.from_dict, {"row": 1, "cols": 0, "": 2}) == (
        f"row is not a field of Config; the fields are {known}; did you mean rows?\n"
        f" is not a field of Config; the fields are {known}\n"
        "cols must be in 1..64, not 0"
    )


def test_peak_counts_all_pes():
    assert Config(rows=3, cols=5, depth=7).peak == 105


def test_name_has_the_shape_and_the_mac_cell():
    assert Config(rows=3, cols=5, depth=2).name == "3x5x2"
    assert Config(rows=3, cols=5, depth=2, multiplier="fip").name == "3x5x2_fip"
    assert Config(dtype="bf16").name == "4x4x1_bf16"
    assert Config(rows=4, cols=4, dtype="bf16", flush_subnormals=True).name == "4x4x1_bf16_ftz"
    assert Config(rows=4, cols=4, depth=2, target="ecp5").name == "4x4x2_fip_ecp5"


def test_mac_cell_is_the_multiplier_or_the_dtype():
    configs = Config(), Config(depth=2, multiplier="fip"), Config(dtype="bf16")
    assert [config.mac_cell for config in configs] == ["plain", "fip", "bf16"]


def test_hash_is_the_same_on_any_machine():
    # Bitstreams have this hash: if it changes, their version must change too.
    assert Config().hash == 0xBB0CFF22
    assert Config(dtype="bf16").hash == 0x41A09ABF


def test_hash_depends_on_every_field():
    others = {name: SIZES[name][1] for name in SIZES} | {name: POWERS[name][1] for name in POWERS}
    others |= {
        "target": "ice40hx", "drain": "folded",
        "multiplier": "fip", "requantize": "onnx", "activation": "none", "b_zero_point": "column",
    }
    base = {"depth": 2, **RAW}
    configs = [Config(**base), *(Config(**{**base, name: others[name]}) for name in others)]
    configs += [Config(**base | {"requantize": mode}) for mode in ("tflite", "single")]
    configs += [Config(target="ecp5", **base | {"dsp_cols": count}) for count in (None, 0, 1)]
    configs += [Config(target="ecp5", **base, dsp_cols=0, ram_cols=count) for count in (1, 2)]
    configs += [Config(**BF16 | other) for other in (
        {}, {"flush_subnormals": True}, {"c_words": 0}, {"c_words": 32}, {"activation": "none"},
    )]
    for one, other in itertools.combinations(configs, 2):
        assert one.hash != other.hash
    assert all(0 <= config.hash < 1 << 32 for config in configs)
