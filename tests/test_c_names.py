"""Names in generated C code."""

import pytest

from weft.ip import identifier, prefix_problems, renamed


@pytest.mark.parametrize("source, want", [
    ("weft_init(WEFT_OK); weft.h, Weft, softweft, weft2",
     "mm_init(MM_OK); mm.h, Weft, softweft, weft2"),
    ("WEFT__STATUS__BUSY_bm weft_t", "MM__STATUS__BUSY_bm mm_t"),
    ("a_weft_b", "a_weft_b"),
])
def test_names_are_renamed(source, want):
    assert renamed(source, "mm") == want
    assert renamed(source, "weft") == source


@pytest.mark.parametrize("name, want", [
    ("kws_int8", "kws_int8"), ("a b*/c", "a_b_c"), ("2x", "net_2x"), ("_x_", "x"),
    ("", "net"), ("\u00e9\u0661", "net"), ("int", "int"), ("A-1", "A_1"),
])
def test_any_name_becomes_an_identifier(name, want):
    assert identifier(name) == want


def test_a_prefix_has_one_rule():
    assert list(prefix_problems("mm_2")) == []
    assert list(prefix_problems("Mm")) == [(
        "prefix must be 1 to 24 lower-case letters, digits and _, a letter first, no _ last and no"
        " two side by side, not 'Mm'"
    )]
