"""The assembler: its words, computed by hand, and its errors."""

import pytest

from weft.network_core.microcode import Assembler
from weft.network_core.microcode.instructions import PROGRAM_WORDS

STORED = "ST x; ST y; LD =0\n"  # the first three words


@pytest.mark.parametrize("text, word", [
    ("LD x", 0x0000), ("ADD y", 0x1001), ("INC y", 0x1101), ("SUB x", 0x2000), ("AND y", 0x3001),
    ("ST y", 0x4001), ("IN LOW", 0x5000), ("IN ADDRESS", 0x5002), ("IN LIMIT", 0x5004),
    ("GET LOW", 0x5008), ("GET ADDRESS", 0x500A),
    ("OUT MEMORY", 0x6000), ("OUT TILE", 0x6019), ("OUT LOAD_WORDS", 0x601D),
    ("DO ZEROS", 0x7001), ("DO CYCLES START", 0x7082),
    ("J end", 0x8004), ("J Z end", 0x9004), ("J NZ end", 0x9804), ("J C end", 0xA004),
    ("J NC end", 0xA804), ("J LOADS end", 0xB004), ("J ISBAD end", 0xC004),
    ("J ISUSED end", 0xD004), ("BAD Z", 0x9200), ("BAD NC", 0xAA00), ("USED NZ", 0x9C00),
])
def test_words(text, word):
    assert Assembler(f"{STORED}{text}\nend: LD =0").words[3] == word


def test_labels_and_comments():
    found = Assembler("""
    # A loop over nothing.
    first: second: ST x; LD =1  # two names
    third:
            J Z first; J third
    """)
    assert found.labels == {"first": 0, "second": 0, "third": 2}
    assert [word & 0x1FF for word in found.words[2:]] == [0, 2]


def test_a_constant_has_one_register_with_its_value():
    found = Assembler("ST x; ADD =0xFF; ADD =-4; ADD =0xFF; ADD =65535")
    assert found.words == [0x4000, 0x1001, 0x1002, 0x1001, 0x1003]
    assert found.constants == {1: 0xFF, 2: 0xFFFC, 3: 0xFFFF}


def test_registers_of_heads_are_the_last_ones():
    found = Assembler("ST head_a; ST x; ST head_b; LD head_a")
    assert found.words == [0x40F0, 0x4000, 0x40F1, 0x00F0]
    text = "; ".join(f"ST head_{n}" for n in range(9))
    with pytest.raises(ValueError, match="^a head has at most 8 registers: head_8$"):
        Assembler(text)


@pytest.mark.parametrize("text, error", [
    ("LD x", "x is read, but never stored"),
    ("LD =1; INC x", "x is read, but never stored"),
    ("ADD head_x", "head_x is read, but never stored"),
    ("ST x; LD x", "x is read right after its store"),
    ("ST x; LD =1; INC x; AND x", "x is read right after its store"),
    ("ST x; INC x", "x is read right after its store"),
    ("ST head_x; DO LOADS; LD head_x", "head_x is read right after its head was selected"),
    ("ST head_x; DO CLEAR JOBS; AND head_x", "head_x is read right after its head was selected"),
    ("JUMP x", r"a name must be one of LD, ADD, .*, DO, not JUMP"),
    ("IN STATE", "a name must be one of LOW, HIGH, ADDRESS, BASE, LIMIT, READ, not STATE"),
    ("GET STATE", "a name must be one of LOW, .*, not STATE"),
    ("OUT LOW", "a name must be one of MEMORY, .*, not LOW"),
    ("DO ZEROS LOW", "a name must be one of ZEROS, .*, not LOW"),
    ("here: J there", "a name must be one of here, not there"),
    ("here: J BAD here", "a name must be one of Z, NZ, C, NC, LOADS, ISBAD, ISUSED, not BAD"),
    ("; ".join(f"ST x{n}" for n in range(241)), "no register is left for x240"),
    ("LD =0\n" * (PROGRAM_WORDS + 1), "a microprogram must have at most 512 words, not 513"),
])
def test_wrong_programs_are_refused(text, error):
    with pytest.raises(ValueError, match=f"^{error}$"):
        Assembler(text)


@pytest.mark.parametrize("text", [
    "ST x; ST y; LD x", "ST x; OUT MEMORY; LD x", "ST x; LD =0", "ST head_x; DO CLEAR; LD head_x",
    "LD =0\n" * PROGRAM_WORDS,
    "; ".join(f"ST x{n}" for n in range(240)),
])
def test_accepts_programs_at_the_limits(text):
    assert Assembler(text).words
