"""The description that a core gives of itself, word by word, and what is refused as none."""

import pytest

from weft.config import Config
from weft.registers import COUNTERS, MAGIC, REGISTERS, VERSION, decode, describe

CONFIGS = [
    Config(),
    Config(rows=1, cols=1, depth=1, hop=1, a_words=32, b_words=32, lanes=1, requantize="none",
           activation="none", bytes_in=1, bytes_out=1, jobs=2),
    Config(rows=64, cols=64, depth=64, hop=64, a_words=65536, b_words=65536, bytes_in=64,
           bytes_out=64, jobs=16, multiplier="fip", lanes=64, requantize="single"),
    Config(rows=3, cols=5, depth=2, hop=7, multiplier="fip", a_words=64, b_words=128, lanes=2,
           requantize="onnx", activation="none", b_zero_point="column", bytes_in=4, bytes_out=2,
           jobs=4),
    Config(rows=3, cols=5, dtype="bf16", flush_subnormals=True, c_words=32, activation="none"),
    Config(dtype="bf16", c_words=0),
    Config(rows=4, cols=6, depth=4, target="ecp5", dsp_cols=3, drain="folded", scale_cycles=8),
]  # fmt: skip


def described(config=None, **changes):
    """The registers of a Config, with some words changed."""
    words = describe(config or Config())
    for name, word in changes.items():
        words[REGISTERS.index(name)] = word
    return words


def refusal(words):
    with pytest.raises(ValueError) as error:
        decode(words)
    return str(error.value)


def test_registers_are_in_the_order_of_the_page():
    assert REGISTERS == [
        "magic", "version", "hash",
        "rows", "cols", "depth", "hop", "target", "multiplier", "dsp_cols", "drain",
        "dtype", "flush_subnormals", "a_words", "b_words", "c_words", "lanes",
        "requantize", "scale_cycles", "activation", "b_zero_point",
        "bytes_in", "bytes_out", "jobs",
        "busy", "active", "starved", "stalled", "words_in", "words_out", "finished", "errors",
    ]
    assert REGISTERS[-len(COUNTERS) :] == list(COUNTERS)


def test_describes_every_field_in_a_word():
    config = CONFIGS[3]
    assert describe(config) == [
        int.from_bytes(b"WEFT", "little"), 3, config.hash,
        3, 5, 2, 7, 0, 2, 0, 0, 0, 0, 64, 128, 0, 2, 3, 1, 0, 1, 4, 2, 4,
    ]
    assert describe(CONFIGS[4])[3:] == [
        3, 5, 1, 4, 0, 1, 0, 0, 1, 1, 4096, 4096, 32, 4, 0, 1, 0, 0, 16, 16, 8,
    ]
    assert describe(CONFIGS[6])[3:] == [
        4, 6, 4, 4, 1, 2, 3, 1, 0, 0, 4096, 4096, 0, 4, 1, 8, 1, 0, 16, 16, 8,
    ]
    assert describe(Config(dtype="bf16"))[19] == 2  # activation: clamp
    assert (MAGIC, VERSION) == (0x54464557, 3)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_a_config_comes_back(config):
    words = describe(config)
    assert len(words) == len(REGISTERS) - len(COUNTERS)
    assert all(0 <= word < 1 << 32 for word in words)
    assert decode(words) == config
    assert decode([*words, *range(len(COUNTERS))]) == config


def test_rejects_another_magic():
    text = "register magic must be 0x54464557 ('WEFT'), not 0x00000bad"
    assert refusal(described(magic=0xBAD)) == text


def test_rejects_another_version():
    assert refusal(described(version=2)) == "register version must be 3, not 2"


def test_rejects_another_hash():
    text = f"register hash must be 0x{Config().hash:08x} for its own fields, not 0x00000001"
    assert refusal(described(hash=1)) == text
    # A field that is another one than the hash was made from.
    want, have = Config(rows=4).hash, Config().hash
    text = f"register hash must be 0x{want:08x} for its own fields, not 0x{have:08x}"
    assert refusal(described(rows=4)) == text


def test_rejects_a_choice_that_is_none():
    text = "register multiplier must be under 3, not 3"
    assert refusal(described(multiplier=3)) == text
    assert refusal(described(target=4)) == "register target must be under 4, not 4"
    assert refusal(described(drain=2)) == "register drain must be under 2, not 2"
    assert refusal(described(dtype=2)) == "register dtype must be under 2, not 2"
    text = "register flush_subnormals must be under 2, not 2"
    assert refusal(described(flush_subnormals=2)) == text
    assert refusal(described(requantize=4)) == "register requantize must be under 4, not 4"
    assert refusal(described(activation=3)) == "register activation must be under 3, not 3"


def test_rejects_fields_that_are_no_config():
    assert refusal(described(rows=0, jobs=3)) == (
        "rows must be in 1..64, not 0\njobs must be a power of two in 2..16, not 3"
    )
    assert refusal(described(bytes_out=2)) == (
        "lanes must be at most bytes_out (2) unless requantize is none, not 4"
    )


@pytest.mark.parametrize("count", [0, 3, 23])
def test_rejects_too_few_words(count):
    assert refusal(describe(Config())[:count]) == f"registers must be 24 or more, not {count}"
