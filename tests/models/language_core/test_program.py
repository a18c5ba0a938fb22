"""Programs of language models: what they need, and models that a core cannot compute."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from language_programs import CORE, SHAPE, program_of, quantized

from weft.golden.language import Shape
from weft.golden.language.operations import silu_table
from weft.golden.language.sampling import GREEDY, sampling
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import pass_cycles, steps, token_cycles
from weft.language_core.descriptors import LEVELS, Blocks, Kind, Operand, Reduction
from weft.models.errors import ModelError
from weft.models.language_core.writer import CoreWriter

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
    "257 words (list 50, roots 16, reciprocals 16, angles 6, embedding 12, multipliers 21,"
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
    (dataclasses.replace(CORE, groups=64), "104 groups, but the core has 64"),
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


# The choice of tokens

def test_a_temperature_changes_the_end_of_the_list_alone():
    program = program_of(quantized())
    how = sampling(0.7, 0.1, 9)
    first, data = program.choice(how)
    assert first == 16 * (len(program.passes) - 1) and len(data) == 5 * 128
    classifier, *others = program.list_of(how)[len(program.passes) - 1 :]
    assert classifier == dataclasses.replace(program.passes[-1], last=0)
    assert [each.last for each in others] == [0, 0, 0, 1]
    assert [data[128 * n :][:64] for n in range(5)] == [
        each.pack() for each in (classifier, *others)
    ]
    # The multipliers, negative, where the second pass reads them.
    place = 8 * (others[0].parameter - first)
    assert np.frombuffer(data[place : place + 8], "<i2").tolist() == 4 * [-how.multiplier]
    assert others[0].shift == how.shift
    assert others[1].addend == others[3].addend == how.least == 3277  # 0.1 of 32,767
    assert program.choice(GREEDY) == (first, program.main[8 * first :][:128])


def test_the_page_has_the_cycles_of_a_sampled_token():
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    page = (Path(__file__).parents[3] / "docs/language-core.md").read_text(encoding="utf-8")
    added = {
        token_cycles(program.list_of(sampling(1, 0, 9)), n) - token_cycles(program.passes, n)
        for n in (0, 127, 255)
    }
    assert f"A temperature adds {added.pop()} cycles to a token" in page and not added
    sizes = (len(program.choice(how)[1]) for how in (sampling(1, 0, 9), GREEDY))
    assert "writes {} bytes for a temperature and {} for".format(*sizes) in page


@pytest.mark.parametrize("vocab, fits", [(2016, True), (2024, False)])
def test_logits_need_memory(vocab, fits):
    """512 groups: the logits lie behind the residual and the operand of the classifier."""
    shape = Shape(dim=16, layers=1, heads=2, kv_heads=2, hidden=16, vocab=vocab, positions=16)
    writer = CoreWriter(quantized(shape, seed=2), CORE)
    assert bool(writer.program.sampler) == fits
    writer.check(GREEDY)
    if fits:
        writer.check(sampling(1, 0, 9))
        return
    with pytest.raises(ModelError) as caught:
        writer.check(sampling(1, 0, 9))
    assert str(caught.value) == (
        "temperature must be 0 on this core: with the 2,024 logits of a token the maps need 514"
        " groups, but the core has 512"
    )
