"""The instructions of a microGPT: their cycles, their memory, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from language_models import MICROGPT
from language_programs import CORE, MICRO, SHAPE, quantized, quantized_microgpt

import weft
from weft.golden.language import Shape
from weft.golden.language.sampling import GREEDY, sampling
from weft.language_core.microcode import DRAIN, Lane, Setup
from weft.models.errors import ModelError
from weft.models.language_core.program import compile_model, default_config, largest_program

EXAMPLE = Path(__file__).parents[3] / "examples" / "names.weft"


def test_the_example_on_the_core_of_the_icebreaker():
    """The figures of docs/language-core.md."""
    weights = weft.load(EXAMPLE).weights
    program = largest_program(weights, default_config(weights))
    how = sampling(0.8, 0, weights.logit_bits)
    assert program.positions == 16 and default_config(weights) == MICRO
    assert {program.token_cycles(GREEDY, n) for n in range(16)} == {2223}
    assert program.token_cycles(how, 3) == 2389
    assert program.token_cycles(how, 3, emits=False) == 2038
    assert program.words == {"instructions": 149, "embeddings": 43}
    assert len(program.main) == 128 * (149 + 43)


def test_a_setup_comes_when_no_result_is_on_its_way():
    weights = quantized_microgpt()
    program = compile_model(weights, MICRO, 16)
    how = sampling(1, 0, weights.logit_bits)
    time, last, setups = 0, -DRAIN, 0
    for each in program.list_of(how):
        if isinstance(each, Setup):
            assert time >= last + DRAIN
            setups += 1
        last = time if isinstance(each, Lane) else last
        time += each.CYCLES
    assert setups > 30


def test_a_choice_replaces_the_end():
    weights = quantized_microgpt()
    program = compile_model(weights, MICRO, 16)
    first, end = program.choice(GREEDY)
    assert program.main[8 * first :][: len(end)] == end
    same, sampler = program.choice(sampling(1, 0.1, weights.logit_bits))
    assert same == first and len(sampler) > 8 * 3 * 27
    assert not any(program.main[8 * (first + 1) : len(sampler)])


@pytest.mark.parametrize("change, text", [
    ({"layers": 3}, "with 16 positions needs 384 side groups, but the core has 256"),
    ({"heads": 8, "kv_heads": 8}, "head_dim must be a multiple of 4 in 4..64, not 2"),
    ({"dim": 128}, "dim must be a multiple of 4 in 4..64, not 128"),
    ({"kv_heads": 2}, "each head must have keys of its own"),
    ({"hidden": 440}, "needs 137 groups, but the core has 128"),
    ({"positions": 80}, "with 80 positions needs 640 side groups, but the core has 256"),
])
def test_models_that_do_not_fit_are_refused(change, text):
    weights = quantized_microgpt()
    shape = replace(MICROGPT, **change)
    if change.get("kv_heads") == 2:
        weights = replace(weights, shape=shape)
    else:
        weights = quantized_microgpt(shape)
    with pytest.raises(ModelError, match=text):
        compile_model(weights, MICRO, shape.positions)


def test_a_memory_that_is_too_small_is_named():
    with pytest.raises(ModelError, match=(
        r"needs 192 words \(instructions 149, embeddings 43\), but the core has 160"
    )):
        compile_model(quantized_microgpt(), replace(MICRO, words=160), 16)


def test_positions_are_limited_by_the_side_memory():
    weights = quantized_microgpt(replace(MICROGPT, positions=64))
    assert largest_program(weights, MICRO).positions == 32
    with pytest.raises(ModelError, match="positions must be a multiple of 4 in 4..64, not 10"):
        compile_model(weights, MICRO, 10)


def test_each_architecture_has_its_core():
    with pytest.raises(ModelError, match=(
        "the model must be a llama for a core without a microprogram, not a microgpt"
    )):
        largest_program(quantized_microgpt(), CORE)
    with pytest.raises(ModelError, match=(
        "the model must be a microgpt for a core with a microprogram, not a llama"
    )):
        compile_model(quantized(), MICRO, 16)
    assert isinstance(SHAPE, Shape) and default_config(quantized()).microprogram is False
