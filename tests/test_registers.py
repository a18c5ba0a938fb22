"""Tests of the core registers that describe the Config: encoding, decoding, wrong words."""

import pytest
from network_cores import small_network_core

from weft.config import Config
from weft.dtypes import DTYPES
from weft.mac_cells import MULTIPLIERS
from weft.network_core import register_map as network_core_registers
from weft.registers import (
    COUNTERS,
    IDENTITY,
    MAGIC,
    REGISTERS,
    VERSION,
    decode,
    describe,
    identity,
    kind_of,
)
from weft.targets import TARGETS

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
    Config(cols=64, target="ecp5", dsp_cols=1, ram_cols=63),
]  # fmt: skip


def words_of(config=None, **changes):
    """The constant registers of a Config, some of them changed."""
    words = describe(config or Config())
    for name, word in changes.items():
        words[REGISTERS.index(name)] = word
    return words


def message(words):
    with pytest.raises(ValueError) as error:
        decode(words)
    return str(error.value)


def test_order_of_the_registers():
    assert REGISTERS == [
        "magic", "version", "kind", "hash",
        "rows", "cols", "depth", "hop", "target", "multiplier", "dsp_cols", "ram_cols", "drain",
        "dtype", "flush_subnormals", "a_words", "b_words", "c_words", "lanes",
        "requantize", "scale_cycles", "activation", "b_zero_point",
        "bytes_in", "bytes_out", "jobs",
        "busy", "active", "starved", "stalled", "words_in", "words_out", "finished", "errors",
    ]
    assert REGISTERS[-len(COUNTERS) :] == list(COUNTERS)


def test_each_field_is_a_word():
    config = CONFIGS[3]
    assert describe(config) == [
        int.from_bytes(b"WEFT", "little"), 4, 0, config.hash,
        3, 5, 2, 7, 0, 2, 0, 0, 0, 0, 0, 64, 128, 0, 2, 3, 1, 0, 1, 4, 2, 4,
    ]
    assert describe(CONFIGS[4])[4:] == [
        3, 5, 1, 4, 0, 1, 0, 0, 0, 1, 1, 4096, 4096, 32, 4, 0, 1, 0, 0, 16, 16, 8,
    ]
    assert describe(CONFIGS[6])[4:] == [
        4, 6, 4, 4, 1, 2, 3, 0, 1, 0, 0, 4096, 4096, 0, 4, 1, 8, 1, 0, 16, 16, 8,
    ]
    assert describe(CONFIGS[7])[REGISTERS.index("dsp_cols") :][:2] == [1, 63]
    assert describe(Config(dtype="bf16"))[21] == 2  # activation: clamp
    assert (MAGIC, VERSION) == (0x54464557, 4)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_decode_inverts_describe(config):
    words = describe(config)
    assert len(words) == len(REGISTERS) - len(COUNTERS)
    assert all(0 <= word < 1 << 32 for word in words)
    assert decode(words) == config
    assert decode([*words, *range(len(COUNTERS))]) == config


def test_rejects_another_magic():
    text = "register magic must be 0x54464557 ('WEFT'), not 0x00000bad; if Weft made the core, "
    assert message(words_of(magic=0xBAD)).startswith(text)


def test_rejects_another_version():
    assert message(words_of(version=3)) == (
        "register version must be 4, not 3; if Weft made the core, make it again with this version:"
        " weft build BOARD, then weft program BOARD; for an IP core weft generate"
    )


def test_rejects_the_other_kind_of_core():
    assert message(words_of(kind=1)) == "the core must be a product core, not a network core"
    assert message(words_of(kind=2)) == "the core must be a product core, not a language core"
    assert message(words_of(kind=3)) == "register kind must be under 3, not 3"


def test_identity_is_the_same_for_both_kinds_of_core():
    network = small_network_core(2, 4, 4)
    assert [*IDENTITY] == REGISTERS[:4] == network_core_registers.REGISTERS[:4]
    for design, kind in ((Config(), 0), (network, 1)):
        words = identity(design)
        assert words == [MAGIC, VERSION, kind, design.hash]
        assert kind_of(words) == design.kind


def test_rejects_another_hash():
    text = f"register hash must be 0x{Config().hash:08x} for its own fields, not 0x00000001"
    assert message(words_of(hash=1)) == text
    # The hash belongs to another value of the field.
    want, have = Config(rows=4).hash, Config().hash
    text = f"register hash must be 0x{want:08x} for its own fields, not 0x{have:08x}"
    assert message(words_of(rows=4)) == text


def test_the_number_of_a_choice_changes_with_the_version_only():
    """A core of the same version has the same numbers: new ones come last."""
    assert MULTIPLIERS[:3] == ["auto", "plain", "fip"]
    assert list(TARGETS)[:5] == ["generic", "ecp5", "ice40hx", "ice40up", "gowin"]
    assert list(DTYPES)[:2] == ["int8", "bf16"]


def test_rejects_an_unknown_choice():
    for name, choices in {"multiplier": MULTIPLIERS, "target": TARGETS, "dtype": DTYPES}.items():
        count = len(choices)
        text = f"register {name} must be under {count}, not {count}"
        assert message(words_of(**{name: count})) == text
    assert message(words_of(drain=2)) == "register drain must be under 2, not 2"
    text = "register flush_subnormals must be under 2, not 2"
    assert message(words_of(flush_subnormals=2)) == text
    assert message(words_of(requantize=4)) == "register requantize must be under 4, not 4"
    assert message(words_of(activation=3)) == "register activation must be under 3, not 3"


def test_rejects_an_invalid_config():
    assert message(words_of(rows=0, jobs=3)) == (
        "rows must be in 1..64, not 0\njobs must be a power of two in 2..16, not 3"
    )
    assert message(words_of(bytes_out=2)) == (
        "lanes must be at most bytes_out (2) unless requantize is none, not 4"
    )


@pytest.mark.parametrize("count", [0, 3, 25])
def test_rejects_too_few_words(count):
    assert message(describe(Config())[:count]) == f"registers must be 26 or more, not {count}"
