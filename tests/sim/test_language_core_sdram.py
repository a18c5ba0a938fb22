"""Language models whose weights come from a simulated SDRAM: golden tokens, predicted cycles."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from language_programs import (
    INT4_CORE,
    SDRAM_CORE,
    SHAPE,
    cache_of,
    golden_text,
    program_of,
    quantized,
)
from tiers import quick

import weft
from weft.golden.language import IntegerModel, Shape
from weft.golden.language.sampling import GREEDY, sampling, start_state
from weft.language_core.config import WORD_BYTES
from weft.language_core.cycles import as_predicted, steps, token_cycles
from weft.language_core.descriptors import CoreError, Transfer
from weft.models.language_core.program import compile_model
from weft.sim.language_core import LanguageSimulation
from weft.sim.sdram import simulated_memory

pytestmark = pytest.mark.slow  # the model of the core takes 15 CPU seconds to build

MEMORY = simulated_memory(SDRAM_CORE)


@pytest.fixture(scope="module")
def core():
    with LanguageSimulation(SDRAM_CORE) as simulation:
        yield simulation


def _load(core, program):
    core.write(program.main)
    core.write_tables(program.tables)
    core.write_program(program.program, program.program_first)


def _check(core, weights, program, prompt, limit, how=GREEDY, seed=1):
    """A text has the golden tokens and the golden cache, and about the predicted cycles."""
    state, model = start_state(seed), IntegerModel(weights)
    if how != GREEDY:
        first, data = program.choice(how)
        core.write(data, first)
    text = core.run(prompt, limit, seed=state)
    assert (text.finished, text.error, text.position) == (True, CoreError.NONE, limit)
    assert text.tokens == golden_text(weights, prompt, limit, model, how, state)
    cache = cache_of(program, weights.shape, core.read_program)
    golden = np.array([model._k, model._v])[:, :, 0, :limit]
    np.testing.assert_array_equal(cache[:, :, :limit], golden.reshape(cache[:, :, :limit].shape))
    for position, cycles in enumerate(text.cycles):
        emits = position + 1 >= len(prompt)
        predicted = token_cycles(program.list_of(how), position, emits=emits, memory=MEMORY)
        assert as_predicted(cycles, predicted, MEMORY)
    return text


def test_texts(core):
    """To the last position of the cache; then others without a reset, one at a temperature."""
    weights = quantized()
    program = program_of(weights, config=SDRAM_CORE)
    streamed = [each for each in program.passes if each.transfer == Transfer.STREAM]
    assert sum(steps(each, 0) for each in streamed) * WORD_BYTES == len(program.program)
    _load(core, program)
    _check(core, weights, program, [3], 48)
    _check(core, weights, program, [5, 2, 40, 17, 9], 6)
    tokens = _check(core, weights, program, [7, 1], 20, sampling(6, 0.02, weights.logit_bits), 3)
    assert len(set(tokens.tokens)) > 5


@pytest.mark.parametrize("shape, tied", [
    # Its embedding has more vectors than there are heads with a scale of their own.
    (Shape(dim=288, layers=1, heads=6, kv_heads=2, hidden=40, vocab=24, positions=16), True),
    pytest.param(
        Shape(dim=64, layers=2, heads=2, kv_heads=2, hidden=33, vocab=16, positions=48), False,
        marks=pytest.mark.long,
    ),
])
def test_shapes(core, shape, tied):
    weights = quantized(shape, seed=3, tied=tied)
    program = program_of(weights, config=SDRAM_CORE)
    _load(core, program)
    _check(core, weights, program, [5, 2, shape.vocab - 1], min(shape.positions, 16))


def test_a_memory_that_fails_ends_the_text_with_its_error(core):
    """A load, a stream and a store beyond the chip; then a whole text."""
    weights = quantized()
    program = program_of(weights, config=SDRAM_CORE)
    for transfer in (Transfer.LOAD, Transfer.STREAM, Transfer.STORE):
        _load(core, program)
        place = next(n for n, each in enumerate(program.passes) if each.transfer == transfer)
        wrong = replace(program.passes[place], program=SDRAM_CORE.program_words)
        core.write(wrong.pack(), 16 * place)
        text = core.run([3], 48)
        assert (text.finished, text.error, text.tokens) == (True, CoreError.MEMORY, [])
        assert text.simulated < token_cycles(program.passes, 0, memory=MEMORY)
    _load(core, program)
    _check(core, weights, program, [3], 2)


def test_an_abort_of_a_text(core):
    """In all kinds of passes of the first token; then a whole text."""
    weights = quantized()
    program = program_of(weights, config=SDRAM_CORE)
    _load(core, program)
    for cycle in range(50, 3000, 311):
        text = core.run([3], 48, abort=cycle)
        assert (text.error, text.tokens) == (CoreError.ABORTED, [])
    _check(core, weights, program, [3], 2)


@pytest.fixture(scope="module")
def int4_core():
    with LanguageSimulation(INT4_CORE) as simulation:
        yield simulation


# The words of a tile fill its beats of scales, or not: 2 and 3, 18 and 3, 4 and 3 words.
@pytest.mark.parametrize("shape, tied, limit", quick(2, [
    (SHAPE, True, 48),
    (Shape(dim=64, layers=2, heads=2, kv_heads=2, hidden=33, vocab=16, positions=48), False, 16),
    (Shape(dim=288, layers=1, heads=6, kv_heads=2, hidden=40, vocab=24, positions=16), True, 16),
]))
def test_weights_of_int4(int4_core, shape, tied, limit):
    """Products read packed words; but ``wo`` does not where heads of 8 channels change places."""
    weights = quantized(shape, 3, tied, "int4")
    program = program_of(weights, config=INT4_CORE)
    streamed = [each for each in program.passes if each.transfer == Transfer.STREAM]
    plain = shape.layers if shape.head_dim == 8 and shape.group > 1 else 0
    assert sum(not each.packed for each in streamed) == plain
    _load(int4_core, program)
    _check(int4_core, weights, program, [5, 2, shape.vocab - 1], limit)


@pytest.mark.long
def test_weights_of_int8_on_a_core_that_unpacks(int4_core):
    weights = quantized()
    program = program_of(weights, config=INT4_CORE)
    assert not any(each.packed for each in program.passes)
    _load(int4_core, program)
    _check(int4_core, weights, program, [5, 2, 40, 17, 9], 12)


@pytest.mark.long
def test_a_memory_that_fails_while_weights_of_int4_come(int4_core):
    weights = quantized(weight_type="int4")
    program = program_of(weights, config=INT4_CORE)
    for transfer in (Transfer.LOAD, Transfer.STREAM):
        _load(int4_core, program)
        place = next(n for n, each in enumerate(program.passes) if each.transfer == transfer)
        wrong = replace(program.passes[place], program=INT4_CORE.program_words)
        int4_core.write(wrong.pack(), 16 * place)
        text = int4_core.run([3], 48)
        assert (text.finished, text.error, text.tokens) == (True, CoreError.MEMORY, [])
    _load(int4_core, program)
    _check(int4_core, weights, program, [3], 2)


@pytest.mark.long
def test_the_model_of_the_examples(core):
    """All of its positions, on the core of a board."""
    model = weft.load(Path(__file__).parents[2] / "examples/stories.weft")
    config = replace(SDRAM_CORE, groups=2048, side_groups=512, words=3072)
    program = compile_model(model.weights, config, 256)
    with LanguageSimulation(config) as large:
        _load(large, program)
        prompt = model.tokenizer.encode("One day, a girl")
        _check(large, model.weights, program, prompt, 20)
