"""Programs of language models: what they need, and models that a core cannot compute."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from language_programs import CORE, SDRAM_CORE, SHAPE, blank, program_of, quantized

from weft.boards.catalog import BOARDS
from weft.golden.language import Shape
from weft.golden.language.operations import silu_table
from weft.golden.language.sampling import GREEDY, sampling
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import (
    as_predicted,
    last_step,
    pass_cycles,
    steps,
    token_bytes,
    token_cycles,
)
from weft.language_core.descriptors import LEVELS, Blocks, Kind, Operand, Reduction
from weft.language_core.latencies import CONTROL
from weft.models.errors import ModelError
from weft.models.language_core.writer import CoreWriter
from weft.network_core.cycles.memory import PERIOD, ProgramTiming
from weft.sdram import SDRAM_CHIPS

STORIES = Shape(dim=64, layers=5, heads=8, kv_heads=4, hidden=172, vocab=512, positions=256)


def test_a_model_of_stories260k_shape():
    """256 positions fit the largest ECP5, and a token at 128 positions takes 7,327 cycles."""
    program = program_of(quantized(STORIES), config=LanguageCoreConfig())
    # By hand: 16 columns of q, k, v, 8 of o, 22 each of w1 and w3, with 4 words; 8 of 11 words.
    assert program.words["weights"] == 5 * (4 * (16 + 8 + 44) + 8 * 11)
    assert program.words["embedding"] == 64 * 4
    assert program.words["cache"] == 5 * 2 * 256 * 32 // 128
    assert sum(program.words.values()) == len(program.main) // 128 <= 3072
    assert token_cycles(program.passes, 127) == 7327


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
        apart = [dataclasses.replace(each, follow=0) for each in program.passes]
        saved = token_cycles(apart, positions - 1) - total
        assert f"would take {saved:,} cycles more\nwithout an overlap, at each position" in page
    microseconds = token_cycles(program.passes, 127) / BOARDS["ulx3s-85f"].languages[
        "language"
    ].clock
    assert f"a token at 128 positions takes {microseconds:.0f} us" in page
    stored = {last_step(each) - CONTROL - 1 for each in program.passes if each.kind != Kind.SCALAR}
    assert f"stored {min(stored)} to {max(stored)} cycles after its last step" in page
    q, k, _ = program.passes[4:7]
    scores = next(each for each in program.passes if _part(each) == "scores")
    assert q.follow == k.follow and f"each other after {q.follow} cycles" in page
    assert f"Exponentials follow the scores after {scores.follow} cycles" in page


LARGE = Shape(dim=288, layers=6, heads=6, kv_heads=6, hidden=768, vocab=32000, positions=256)
LARGE_CORE = LanguageCoreConfig(program_words=1 << 18)
# The chip of the ULX3S, at the clock of its language cores.
MHZ = 81.25  # of the board
MEMORY = ProgramTiming.of_sdram(
    dataclasses.replace(SDRAM_CHIPS["IS42S16160G-7"], rcd=21, rp=21), MHZ, 16
)


@pytest.fixture(scope="module")
def large():
    return program_of(blank(LARGE), config=LARGE_CORE)


def test_a_model_of_stories15m_shape(large):
    """256 positions fit a core with an SDRAM of 32 MiB; sizes by hand."""
    words = 4 * 36 * 18 + 2 * 96 * 18 + 36 * 48  # of a layer: q, k, v, o; w1 and w3; w2
    assert large.program_words == {
        "cache": 6 * 2 * 288 * 256 // 128, "embedding": 4000 * 18, "weights": 6 * words,
    }
    assert len(large.program) == 128 * (4000 * 18 + 6 * words) == LARGE.parameters - 288 * 13
    assert large.words["cache"] == 2 * 288 * 256 // 128
    assert sum(large.words.values()) == len(large.main) // 128 == 2913
    for position in (0, 127, 255):
        blocks = 18 * (position // 8 + 1) + 36 * (position // 16 + 1)  # of keys, of values
        moved = 18 + 4000 * 18 + 6 * (words + blocks + 18 + 36)  # the row, all weights, the caches
        assert token_bytes(large.passes, position) == 128 * moved


@pytest.fixture(scope="module")
def large_int4():
    """Zeros are weights of int4, too."""
    return program_of(blank(LARGE), config=dataclasses.replace(LARGE_CORE, int4=True))


def test_weights_of_int4_take_about_half_of_the_memory(large_int4):
    """Sizes by hand: tiles of 18 words have 5 beats of scales and 72 of codes, those of 48 words 12
    and 192. Memory has whole words of 8 beats, and no more beats move.
    """
    tiles = {18: 4 * 36 + 2 * 96, 48: 36}  # of a layer: q, k, v, o, w1 and w3; w2
    words = {18: 10, 48: 26}
    assert large_int4.program_words == {
        "cache": 6 * 2 * 288 * 256 // 128, "embedding": 4000 * 10,
        "weights": 6 * sum(count * words[size] for size, count in tiles.items()),
    }
    beats = 77 * 4000 + 6 * (77 * tiles[18] + 204 * tiles[48])
    for position in (0, 127, 255):
        blocks = 18 * (position // 8 + 1) + 36 * (position // 16 + 1)
        moved = 16 * (77 + beats) + 128 * 6 * (blocks + 18 + 36)
        assert token_bytes(large_int4.passes, position) == moved


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_the_page_has_the_cycles_with_a_program_memory(large, large_int4, weights):
    large = large if weights == "int8" else large_int4
    page = (Path(__file__).parents[3] / "docs/language-core.md").read_text(encoding="utf-8")
    of_caches = {first for pair in large.caches for first in pair}
    for positions in (1, 128, 256):
        moves = [each for each in large.passes if each.transfer and each.kind != Kind.VECTOR]
        caches = 128 * sum(
            steps(each, positions - 1) for each in moves if each.program in of_caches
        )
        cycles = sum(pass_cycles(each, positions - 1, MEMORY) for each in moves)
        total = token_cycles(large.passes, positions - 1, memory=MEMORY)
        cells = (f"{number:,}" for number in (
            positions, token_bytes(large.passes, positions - 1) - caches, caches, cycles,
            total - cycles, total,
        ))
        bound = MHZ * 1e6 / (token_bytes(large.passes, positions - 1) / 16 * MEMORY.period / PERIOD)
        rates = f"{MHZ * 1e6 / total:.2f} | {bound:.2f}"
        assert f"| {weights} | {' | '.join(cells)} | {rates} |\n" in page
    moved = f"{large.words['cache']:,} of its {len(large.main) // 128:,} words"
    assert moved in page.replace("\n", " ")


def test_a_transfer_needs_the_timing_of_its_memory(large):
    with pytest.raises(ValueError, match="must have the timing of its memory"):
        token_cycles(large.passes, 0)


@pytest.mark.parametrize("cycles, exact, within", [(1000, 1, 1), (1010, 0, 1), (1011, 0, 0)])
def test_predictions_with_a_program_memory_are_right_to_1_percent(cycles, exact, within):
    for count in (cycles, 2000 - cycles):
        assert as_predicted(count, 1000, None) == exact
        assert as_predicted(count, 1000, MEMORY) == within


def test_rejects_what_a_program_memory_has_no_space_for():
    program = program_of(quantized(), config=SDRAM_CORE)
    needed = sum(program.program_words.values())
    config = dataclasses.replace(SDRAM_CORE, program_words=needed // 16 * 16)
    with pytest.raises(ModelError) as caught:
        program_of(quantized(), config=config)
    assert str(caught.value) == (
        f"the model with 48 positions needs {needed} words of program memory (cache 24, embedding"
        f" 12, weights 112), but the core has {config.program_words}; take fewer positions or a"
        " larger core"
    )
    for given, message in (
        ({"dim": 1024, "heads": 16, "kv_heads": 1}, "dim must be in 1..1008, not 1024"),
        ({"vocab": 32768}, "vocab must be in 1..32760, not 32768"),
    ):
        with pytest.raises(ModelError) as caught:
            program_of(blank(dataclasses.replace(SHAPE, **given)), config=LARGE_CORE)
        assert str(caught.value) == message


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
        f"the model with 48 positions needs {message}; take fewer positions or a core that is"
        " larger or has an SDRAM"
    )


def test_rejects_a_model_whose_addresses_are_too_large():
    """A large model on a core without a program memory."""
    with pytest.raises(ModelError) as caught:
        program_of(blank(LARGE), 16, LanguageCoreConfig())
    assert str(caught.value) == (
        "the model with 16 positions needs at least 72670 words (list 126, roots 16, reciprocals"
        " 16, angles 12, embedding 72000, multipliers 500), but the core has 3072; take fewer"
        " positions or a core that is larger or has an SDRAM"
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
