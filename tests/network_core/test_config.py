"""Parameters of a network core: derived sizes, and values that are refused."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest
from rejects import rejects

from weft.config import Config, ConfigError
from weft.network_core.config import OPTIONS, NetworkCoreConfig, has_single_port

SMALL = dict(requantize="tflite", activation="none", lanes=2)


def config(rows, cols, depth, **fields):
    return NetworkCoreConfig(array=Config(rows=rows, cols=cols, depth=depth, **SMALL), **fields)


@pytest.mark.parametrize("rows, read_vectors, banks", [
    (8, 4, 9), (4, 2, 5), (3, 1, 3), (9, 4, 9), (2, 4, 5), (1, 4, 4), (16, 4, 17),
])
def test_banks(rows, read_vectors, banks):
    assert config(rows, 4, 4, read_vectors=read_vectors).banks == banks


def test_the_text_of_a_memory():
    assert config(2, 4, 4).size_text(4096) == "5 banks of 4,096 words of 4 bytes"
    assert config(1, 4, 4, read_vectors=1).size_text(64) == "1 bank of 64 words of 4 bytes"


def test_sizes():
    c = config(8, 8, 8, words=4096)
    assert c.memory_bytes == 9 * 4096 * 8
    assert c.line_vectors == 4  # 18 bytes are 3 vectors
    assert (c.row_chunks, c.phases) == (4, 1)
    assert config(1, 16, 4).phases == 4


@pytest.mark.parametrize("fields, text", [
    (dict(words=1000), "words must be a power of two in a network core, not 1000"),
    (dict(softmax=1), "softmax must be True or False, not 1"),
    (dict(read_vectors=3), r"read_vectors must be 1, 2, 4 or 8 and divide cols \(4\), not 3"),
    (dict(b_words=1), r"b_words must be in 2\.\.65536, not 1"),
    (dict(lines=4.0), "^lines must be an integer, not 4.0$"),
    (dict(words="1k"), "^words must be an integer, not '1k'$"),
    (dict(program_words=1000),
     "^program_words must be a power of two in a network core, not 1000$"),
    (dict(program_words=8), r"^program_words must be 0 or in 16\.\.4194304, not 8$"),
    (dict(program_words=-1), "program_words must be 0 or in 16"),
])
def test_wrong_values_are_named(fields, text):
    with pytest.raises(ConfigError, match=text):
        config(4, 4, 4, **fields)


@pytest.mark.parametrize("mode", ["single", "onnx"])
def test_softmax_has_a_rounding_mode(mode):
    array = Config(rows=4, cols=4, depth=4, **SMALL | {"requantize": mode})
    rule = f"^softmax must be False with requantize '{mode}', whose SOFTMAX is float32, not True$"
    with pytest.raises(ConfigError, match=rule):
        NetworkCoreConfig(array=array, softmax=True)


@pytest.mark.parametrize("fields, rule", [
    ({"requantize": "single"},
     "lstm must be False with requantize 'single', whose LSTM rounds in another way, not True"),
    ({"requantize": "onnx"},
     "lstm must be False with requantize 'onnx', whose LSTM rounds in another way, not True"),
    ({"depth": 2, "lanes": 1}, "depth must be at least 4 with lstm, not 2"),
])
def test_lstm_has_a_rounding_mode_and_whole_sums(fields, rule):
    array = Config(**{"rows": 4, "cols": 4, "depth": 4} | SMALL | fields)
    with pytest.raises(ConfigError, match=f"^{rule}$"):
        NetworkCoreConfig(array=array, lstm=True)


ANOTHER_WAY = "which computes values of 16 bits in another way, not True"


@pytest.mark.parametrize("fields, rules", [
    ({"lanes": 2}, ["lanes must be a multiple of 4 with int16, not 2"]),
    ({"requantize": "onnx", "lanes": 1}, [
        f"int16 must be False with requantize 'onnx', {ANOTHER_WAY}",
        "lanes must be a multiple of 4 with int16, not 1",
    ]),
    ({"target": "ice40hx", "lanes": 4, "scale_cycles": 4},
     ["scale_cycles must be at most 2 with int16 and target 'ice40hx', not 4"]),
])
def test_values_of_16_bits_need_lanes_for_all_digits(fields, rules):
    array = Config(**{"rows": 4, "cols": 4, "depth": 4} | SMALL | fields)
    with pytest.raises(ConfigError) as error:
        NetworkCoreConfig(array=array, int16=True)
    assert str(error.value).splitlines() == rules


@pytest.mark.parametrize("fields, options, rules", [
    ({"rows": 3}, {}, ["rows must be even with two_rows, not 3"]),
    ({"hop": 1}, {}, ["hop must be even with two_rows, not 1"]),
    ({"lanes": 2}, {}, ["lanes must be cols (4) with two_rows, not 2"]),
    ({}, {"int16": True}, [
        "int16 must be False with two_rows, whose lanes add no digits, not True"
    ]),
])
def test_two_rows_need_pairs_of_rows_and_whole_chunks(fields, options, rules):
    core = {"rows": 4, "cols": 4, "depth": 4, "lanes": 4, "hop": 2, "requantize": "tflite"}
    array = Config(**SMALL | core | fields)
    with pytest.raises(ConfigError) as error:
        NetworkCoreConfig(array=array, two_rows=True, **options)
    assert str(error.value).splitlines() == rules


@pytest.mark.parametrize("fields, sizes, rules", [
    ({}, {"read_vectors": 4}, ["read_vectors must be at most cols / 2 (2) with int4, not 4"]),
    ({"cols": 8, "depth": 2}, {"read_vectors": 1}, [(
        "cols must be at most 2 * read_vectors * depth (4) with int4, whose beats have the scales"
        " of whole words, not 8"
    )]),
    ({"rows": 1}, {"read_vectors": 1, "resident": True}, [
        "int4 must be False with resident, not True"
    ]),
])
def test_weights_of_int4_need_beats_of_two_groups(fields, sizes, rules):
    core = {"rows": 4, "cols": 4, "depth": 4, "lanes": 2, "requantize": "tflite"}
    array = Config(**SMALL | core | fields)
    with pytest.raises(ConfigError) as error:
        NetworkCoreConfig(array=array, int4=True, **sizes)
    assert str(error.value).splitlines() == rules


def test_vectors_of_weights_of_int4():
    array = Config(**SMALL | {"rows": 4, "cols": 8, "depth": 8, "lanes": 8})
    config = NetworkCoreConfig(array=array, read_vectors=2, int4=True)
    assert (config.code_beats, config.scaled_words) == (2, 4)
    # A beat of scales, and two of codes for each word.
    assert [config.packed_vectors(n) // 2 for n in (1, 4, 5, 8)] == [3, 9, 12, 18]


def test_rows_of_results():
    core = {"rows": 6, "cols": 4, "depth": 4, "lanes": 4, "hop": 2}
    one = NetworkCoreConfig(array=Config(**SMALL | core))
    two = dataclasses.replace(one, two_rows=True)
    assert [(c.drained_rows, c.tile_rows) for c in (one, two)] == [(1, 6), (2, 3)]


SINGLE_PORT = {  # what such a core must have
    "target": "ice40up", "rows": 1, "cols": 4, "depth": 4, "lanes": 1, "multiplier": "plain",
    "scale_cycles": 4, "activation": "none", "requantize": "tflite",
}


def single_port(read_vectors=1, **fields):
    names = (
        "words", "b_words", "lines", "program_words", "multiply_maps", "softmax", "lstm", "int16",
    )
    of_network_core = {n: fields.pop(n) for n in names if n in fields}
    return NetworkCoreConfig(
        array=Config(**SINGLE_PORT | fields), read_vectors=read_vectors, **of_network_core
    )


@pytest.mark.parametrize("fields, name, rule, value", [
    (dict(cols=8), "cols", "4", "8"),
    (dict(depth=2), "depth", "4", "2"),
    (dict(lanes=2), "lanes", "1", "2"),
    (dict(depth=2, multiplier="fip"), "multiplier", "'plain'", "'fip'"),
    (dict(requantize="single"), "requantize", "'tflite'", "'single'"),
    (dict(requantize="onnx"), "requantize", "'tflite'", "'onnx'"),
    (dict(scale_cycles=16), "scale_cycles", "4 or 8", "16"),
    (dict(read_vectors=2), "read_vectors", "1", "2"),
    (dict(program_words=64), "program_words", "0", "64"),
    (dict(softmax=True), "softmax", "False", "True"),
    (dict(lstm=True), "lstm", "False", "True"),
    (dict(multiply_maps=True), "multiply_maps", "False", "True"),
    (dict(int16=True), "int16", "False", "True"),
    (dict(words=65536), "words", "at most 32768", "65536"),
    (dict(b_words=32769), "b_words", "at most 32768", "32769"),
    (dict(lines=40000), "lines", "at most 32768", "40000"),
])
def test_the_rules_of_a_memory_with_one_port(fields, name, rule, value):
    with pytest.raises(ConfigError) as error:
        single_port(**fields)
    assert str(error.value).splitlines()[-1] == (
        f"{name} must be {rule} with target 'ice40up' and 1 row, whose memory has one port, not"
        f" {value}"
    )


def test_all_problems_of_a_memory_with_one_port_are_named():
    with pytest.raises(ConfigError) as error:
        single_port(read_vectors=2, cols=8, words=65536)
    assert [line.split()[0] for line in str(error.value).splitlines()] == [
        "cols", "read_vectors", "words"
    ]


def test_softmax_needs_the_mode_of_its_exponentials():
    array = Config(rows=2, cols=4, depth=4, **SMALL | {"requantize": "single"})
    with pytest.raises(ConfigError, match="softmax must be False with requantize 'single', whose"):
        NetworkCoreConfig(array=array, softmax=True)


def test_a_memory_with_one_port():
    assert single_port(words=32768, b_words=32768, lines=32768).vectors == 32768
    assert has_single_port(single_port().array) and single_port(scale_cycles=8)
    assert not has_single_port(single_port(rows=2).array)
    assert not has_single_port(config(1, 4, 4).array)


def test_the_peak():
    assert config(3, 4, 4).peak == 48 and single_port().peak == 16


def test_the_core_must_requantize():
    with pytest.raises(ConfigError, match="requantize must be 'tflite' or 'single' or 'onnx'"):
        NetworkCoreConfig(array=Config(rows=4, cols=4, depth=4, requantize="none"))


def test_the_core_must_be_a_config():
    with pytest.raises(ConfigError, match="^array must be a Config, not 3$"):
        NetworkCoreConfig(array=3)


def test_takes_the_integers_of_numpy():
    found = config(4, 4, 4, words=np.int64(2048))
    assert type(found.words) is int and found == config(4, 4, 4, words=2048)


def test_the_hash_depends_on_all_fields():
    assert len({
        config(4, 4, 4).hash, config(4, 4, 4, lines=256).hash, config(4, 4, 2).hash,
        config(4, 4, 4, program_words=64).hash, config(4, 4, 4, multiply_maps=True).hash,
    }) == 5


def test_an_option_that_is_off_is_no_part_of_the_hash():
    """The hash of a core from before its options: of its other fields."""
    c = config(4, 4, 4)
    fields = dataclasses.asdict(c)
    assert not any(fields.pop(name) for name in OPTIONS)
    text = json.dumps(fields, sort_keys=True)
    digest = hashlib.sha256(text.encode()).digest()
    assert c.hash == int.from_bytes(digest[:4], "little")


@pytest.mark.parametrize("value", [1, "true", None])
def test_an_option_is_true_or_false(value):
    with pytest.raises(ConfigError, match=f"^multiply_maps must be True or False, not {value!r}$"):
        config(4, 4, 4, multiply_maps=value)


def test_a_program_memory():
    c = config(8, 8, 8, words=1024, program_words=8192)
    assert (c.memory_bytes, c.program_bytes) == (9 * 1024 * 8, 9 * 8192 * 8)
    assert (c.beat_bytes, c.address_words) == (32, 8192)
    assert config(8, 8, 8, words=1024).address_words == 1024
    with pytest.raises(ConfigError, match=r"read_vectors \* depth must be at most 128 .* not 256"):
        config(8, 8, 64, read_vectors=4, program_words=16)



def without_loads(rows=1, cols=4, depth=4, **fields):
    return config(rows, cols, depth, **{"read_vectors": 1, "resident": True} | fields)


def test_the_regions_of_a_core_without_loads():
    """The addresses of its host: four memories, each from a multiple of the largest one on."""
    c = without_loads(words=1024, b_words=528, lines=100)
    assert c.line_vectors == 8  # 18 bytes are 5 vectors
    assert c.regions == (1024, 528 * 4, 100 * 8, 512)
    assert (c.region, c.address_words) == (4096, 4 * 4096)
    assert [c.loaded_vector(target, 3) for target in range(3)] == [4108, 8216, 12291]
    assert without_loads(depth=2).add_table_vectors == 2
    assert config(1, 4, 4, read_vectors=1).address_words == 1024


@pytest.mark.parametrize("fields, text", [
    (dict(rows=2), "rows must be 1 with resident, not 2"),
    (dict(read_vectors=2), "read_vectors must be 1 with resident, not 2"),
    (dict(program_words=64), "program_words must be 0 with resident, not 64"),
    (dict(softmax=True), "softmax must be False with resident, not True"),
    (dict(lstm=True), "lstm must be False with resident, not True"),
    (dict(cols=32, b_words=1 << 16),
     "b_words * cols must be at most 1048576 with resident, not 2097152"),
])
def test_what_needs_loads_is_refused(fields, text):
    with rejects(ConfigError, text):
        without_loads(**fields)
