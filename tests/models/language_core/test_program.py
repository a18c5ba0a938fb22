"""Programs of language models: what they need, and models that a core cannot compute."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from language_programs import CORE, SHAPE, program_of, quantized

from weft.golden.language import Shape
from weft.golden.language.operations import silu_table
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import pass_cycles, steps, token_cycles
from weft.language_core.descriptors import LEVELS, Blocks, Kind, Operand, Reduction
from weft.models.errors import ModelError

STORIES = Shape(dim=64, layers=5, heads=8, kv_heads=4, hidden=172, vocab=512, positions=256)


def test_a_model_of_stories260k_shape():
    """256 positions fit the largest ECP5, and a token at 128 positions takes 8,631 cycles."""
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    # By hand: 16 columns of q, k, v, 8 of o, 22 each of w1 and w3, with 4 words; 8 of 11 words.
    assert program.words["weights"] == 5 * (4 * (16 + 8 + 44) + 8 * 11)
    assert program.words["embedding"] == 64 * 4
    assert program.words["cache"] == 5 * 2 * 256 * 32 // 128
    assert sum(program.words.values()) == len(program.main) // 128 <= 3072
    assert token_cycles(program.passes, 127) == 8631


def test_the_page_has_the_cycles():
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    page = (Path(__file__).parents[3] / "docs/language-core.md").read_text(encoding="utf-8")
    assert f"needs {len(program.main) // 128:,} words" in page
    single = {f"count_{n}": 1 for n in range(LEVELS)} | {"blocks_0": 0, "blocks_1": 0, "heads": 1}
    added = [pass_cycles(dataclasses.replace(each, **single), 0) - 1 for each in program.passes]
    weights = sum(
        steps(each, 0) for each in program.passes
        if each.kind == Kind.PRODUCT and _part(each) == "weights"
    )
    assert f"multiplies weights in {weights:,} of these cycles" in page
    assert f"Each of the {len(added)} passes adds\n{min(added)} to {max(added)} cycles" in page
    for positions in (1, 128, 256):
        parts = dict.fromkeys(("weights", "scores", "exponentials", "values", "others"), 0)
        for each in program.passes:
            parts[_part(each)] += pass_cycles(each, positions - 1)
        total = token_cycles(program.passes, positions - 1)
        parts["others"] += total - sum(parts.values())
        cells = (f"{number:,}" for number in (positions, *parts.values(), total))
        assert f"| {' | '.join(cells)} |\n" in page


_WORDS = (
    "253 words (list 46, roots 16, reciprocals 16, angles 6, embedding 12, multipliers 21,"
    " weights 112, cache 24), but the core has 192"
)


def _program(positions=None, config=CORE, **given):
    shape = dataclasses.replace(SHAPE, **given)
    return program_of(quantized(shape), positions, config)


@pytest.mark.parametrize("given, message", [
    ({"dim": 16}, "head_dim must be 8 or a multiple of 16, not 4"),
    ({"dim": 40, "heads": 5, "kv_heads": 5}, "dim must be a multiple of 16, not 40"),
    ({"kv_heads": 1}, "kv_dim must be a multiple of 16, not 8"),
    ({"vocab": 50}, "vocab must be a multiple of 8, not 50"),
    ({"dim": 144, "heads": 18}, "heads must be in 1..16, not 18"),
    ({"positions": 40}, "positions must be a multiple of 16, not 40"),
])
def test_rejects_shapes(given, message):
    with pytest.raises(ModelError) as caught:
        _program(**given)
    assert str(caught.value) == message


def test_rejects_positions_beyond_the_model():
    with pytest.raises(ModelError) as caught:
        _program(positions=64)
    assert str(caught.value) == "positions must be in 16..48, not 64"


@pytest.mark.parametrize("config, message", [
    (dataclasses.replace(CORE, words=192), _WORDS),
    (dataclasses.replace(CORE, groups=64), "106 groups, but the core has 64"),
    (dataclasses.replace(CORE, side_groups=16), "20 side groups, but the core has 16"),
])
def test_rejects_a_small_core(config, message):
    with pytest.raises(ModelError) as caught:
        _program(config=config)
    assert str(caught.value) == (
        f"the model with 48 positions needs {message}; take fewer positions or a larger core"
    )


def test_rejects_two_tables_of_silu():
    weights = quantized()
    other = dataclasses.replace(weights.layers[1], silu=silu_table(3))
    changed = dataclasses.replace(weights, layers=(weights.layers[0], other))
    with pytest.raises(ModelError) as caught:
        program_of(changed)
    assert str(caught.value) == (
        "all layers must have the same bits for the input of SiLU, because the core has one table"
    )


def test_rejects_a_negative_scale_of_an_embedding():
    weights = quantized()
    rows = weights.embedding
    rows = dataclasses.replace(rows, multipliers=np.where(np.arange(48) == 5, -1, rows.multipliers))
    with pytest.raises(ModelError) as caught:
        program_of(dataclasses.replace(weights, embedding=rows))
    assert str(caught.value) == "the multipliers of the embedding must be at least 0"


def test_the_page_has_the_words_and_cycles_of_today():
    page = (Path(__file__).parents[3] / "docs" / "language-core.md").read_text(encoding="utf-8")
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    assert f"with 256 positions needs {sum(program.words.values()):,} words" in page
    # Of a layer of 20 passes; two of the embedding come before, four of the classifier after.
    places = {"weights": (2, 3, 4, 13, 16, 17, 19), "scores": (9,), "exp": (10,), "values": (12,)}
    for positions in (1, 128, 256):
        cycles = [pass_cycles(each, positions - 1) for each in program.passes]
        parts = {
            name: sum(sum(cycles[2 + place : -4 : 20]) for place in found)
            for name, found in places.items()
        }
        parts["weights"] += cycles[-1]  # the classifier
        total = token_cycles(program.passes, positions - 1)
        row = positions, *parts.values(), total - sum(parts.values()), total
        assert "| " + " | ".join(f"{number:,}" for number in row) + " |" in page


def _part(each):
    """The column of the page's table that counts a pass."""
    if each.kind == Kind.PRODUCT:
        values = each.blocks_0 == Blocks.SIXTEENTHS
        scores = each.reduction == Reduction.MAXIMUM
        return "scores" if scores else "values" if values else "weights"
    return "exponentials" if each.lane_operand == Operand.EXP else "others"
