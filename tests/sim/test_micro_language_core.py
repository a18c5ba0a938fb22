"""A microGPT on the simulated core with a microprogram: golden tokens, predicted cycles."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from language_models import MICROGPT
from language_programs import MICRO, golden_text, quantized_microgpt

import weft
from weft.cli import main
from weft.golden.language import IntegerModel
from weft.golden.language.sampling import GREEDY, sampling, start_state
from weft.language_core.descriptors import CoreError
from weft.models.language_core.program import compile_model
from weft.models.language_core.writer import CoreWriter
from weft.sim.language_core import LanguageSimulation

EXAMPLE = Path(__file__).parents[2] / "examples" / "names.weft"
# Two layers and heads of 8 channels; a dim of more than 16, whose values have two rows.
SHAPES = [
    replace(MICROGPT, layers=2, heads=2, kv_heads=2, vocab=30, positions=16),
    replace(MICROGPT, dim=24, heads=3, kv_heads=3, hidden=20, vocab=11, positions=16),
    replace(MICROGPT, dim=8, heads=1, kv_heads=1, hidden=4, vocab=3, positions=4),
]


@pytest.fixture(scope="module")
def core():
    with LanguageSimulation(MICRO) as simulation:
        yield simulation


def _loaded(core, weights):
    program = compile_model(weights, MICRO, weights.shape.positions)
    core.write(program.main)
    core.write_tables(program.tables)
    return program


def _check(core, weights, program, prompt, how=GREEDY, seed=1, stall=0, limit=None):
    """A text to the last position has the golden tokens, and each position its cycles."""
    state, limit = start_state(seed), limit or weights.shape.positions
    first, data = program.choice(how)
    core.write(data, first)
    text = core.run(prompt, limit, seed=state, stall=stall)
    assert (text.finished, text.error, text.position) == (True, CoreError.NONE, limit)
    assert text.tokens == golden_text(weights, prompt, limit, None, how, state)
    assert text.cycles == [
        program.token_cycles(how, n, emits=n + 1 >= len(prompt)) for n in range(limit)
    ]
    return text.tokens


def test_the_memory_keeps_the_program(core):
    program = _loaded(core, quantized_microgpt())
    assert core.read(0, len(program.main) // 8) == program.main


def test_greedy_texts(core):
    """From prompts of all lengths, one after the other, to the last position."""
    weights, rng = quantized_microgpt(), np.random.default_rng(4)
    program, tokens = _loaded(core, weights), []
    for length in (1, 2, 3, 4, 5, 8, 9, 15, 16):
        prompt = rng.integers(0, 27, length).tolist()
        tokens += _check(core, weights, program, prompt, stall=length % 3)
    assert len(set(tokens)) > 10


@pytest.mark.parametrize("temperature, min_p", [(0.5, 0), (1, 0.2), (3, 0)])
def test_sampled_texts(core, temperature, min_p):
    weights = quantized_microgpt()
    program, how = _loaded(core, weights), sampling(temperature, min_p, weights.logit_bits)
    found = {tuple(_check(core, weights, program, [26], how, seed)) for seed in range(1, 4)}
    assert len(found) > 1
    assert _check(core, weights, program, [26]) == golden_text(weights, [26], 16)  # greedy again


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"dim {shape.dim}")
def test_shapes(core, shape):
    weights = quantized_microgpt(shape, 3)
    program, how = _loaded(core, weights), sampling(2, 0, weights.logit_bits)
    for seed in (1, 2):
        _check(core, weights, program, [1])
        _check(core, weights, program, [1, 0, 2], how, seed)


def test_loud_maps_saturate_as_the_golden_model(core):
    """With shifts that are far too small, scaled sums saturate before the residual is added."""
    weights = quantized_microgpt()
    layers = tuple(
        replace(layer, **{name: replace(getattr(layer, name), shift=6) for name in ("o", "w2")})
        for layer in weights.layers
    )
    weights = replace(weights, layers=layers)
    program = _loaded(core, weights)
    model = IntegerModel(weights)
    logits = model.step(np.array([[26, 3, 4]]))
    assert len(np.unique(logits)) > 10
    for prompt in ([26], [3, 5], [1, 2, 3]):
        _check(core, weights, program, prompt)


@pytest.mark.parametrize("kind", ["equal", "last"])
def test_extreme_distributions(core, kind):
    """All logits equal; and one far above the others, the last one."""
    weights = quantized_microgpt()
    rows = np.zeros_like(weights.classifier.weights)
    if kind == "last":
        logits = IntegerModel(weights).step(np.array([[3]]))[0, -1]
        rows[-1] = weights.classifier.weights[logits.argmax()]
    multipliers = np.full(27, weights.classifier.multipliers.max(), np.int16)
    classifier = replace(weights.classifier, weights=rows, multipliers=multipliers)
    weights = replace(weights, classifier=classifier)
    program = _loaded(core, weights)
    how = sampling(0.02 if kind == "last" else 1, 1, weights.logit_bits)
    found = {_check(core, weights, program, [3], how, seed, limit=1)[0] for seed in range(1, 9)}
    assert found == {26} if kind == "last" else len(found) > 4


def test_a_stop_token_and_a_text_that_goes_on(core):
    weights = quantized_microgpt()
    _loaded(core, weights)
    whole = golden_text(weights, [3, 9], 16)
    stop = whole[6]
    first = core.run([3, 9], 16, stop_token=stop, stall=3)
    assert first.tokens == whole[: whole.index(stop) + 1]
    rest = core.run([stop], 16, first_position=first.position)
    assert first.tokens + rest.tokens == whole


def test_an_abort_in_any_cycle_and_a_text_after_it(core):
    weights = quantized_microgpt()
    _loaded(core, weights)
    for cycle in range(1, 4600, 511):
        text = core.run([3], 16, abort=cycle)
        assert (text.error, text.finished) == (CoreError.ABORTED, True)
        assert cycle <= text.simulated <= cycle + 40
        assert core.run([3], 3).tokens == golden_text(weights, [3], 3)
    text = core.run([3], 16, abort=9000, stall=1 << 30)  # a token waits for the host
    assert (text.error, text.tokens, text.simulated) == (CoreError.ABORTED, [], 9001)


@pytest.mark.parametrize("number", [0, 9, 15])
def test_an_unknown_instruction_is_an_error(core, number):
    _loaded(core, quantized_microgpt())
    core.write(number.to_bytes(8, "little"), first=500)
    text = core.run([3], 8)
    assert (text.finished, text.error, text.tokens) == (True, CoreError.KIND, [])


def test_the_names_of_the_examples(core):
    """A session on the core writes the golden names, and ends where they do."""
    program = weft.load(EXAMPLE)
    writer = CoreWriter(program.weights, core.config)
    writer.connect(core)
    session, golden = program.open(writer), program.open()
    ends, names = set(), set()
    for seed in range(6):
        how = {"temperature": 0.9, "seed": seed}
        for prompt in ("", "br"):
            name = "".join(session.generate(prompt, 16, **how))
            assert name == "".join(golden.generate(prompt, 16, **how))
            assert (session.tokens, session.ended) == (golden.tokens, golden.ended)
            ends.add(session.ended)
            names.add(prompt + name)
    assert len(names) > 8 and "stop token" in ends


def test_a_name_by_the_command(capsys):
    """The rate is that of the board whose core it is."""
    command = ["run", str(EXAMPLE), "--on", "sim", "--prompt", "br", "--temperature", "0.8"]
    assert main([*command, "--seed", "3"]) == 0
    said = capsys.readouterr()
    name = "".join(weft.load(EXAMPLE).open().generate("br", 16, temperature=0.8, seed=3))
    assert said.out == f"br{name}\n"
    assert "2,389 cycles for the token at position" in said.err
    assert "the clock of icebreaker-language; text equal to the golden model" in said.err
    assert "cycles as predicted" in said.err


@pytest.mark.slow
def test_names_on_a_simulated_board(capsys):
    """At the pins of the serial port: greedy, then with a temperature."""
    for how in ([], ["--temperature", "0.9", "--seed", "2"]):
        assert main(["run", str(EXAMPLE), "--on", "board", "--prompt", "da", *how]) == 0
        said = capsys.readouterr().err
        assert "text equal to the golden model, cycles as predicted" in said
