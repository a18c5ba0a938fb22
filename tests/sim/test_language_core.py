"""Whole language models on the simulated core: golden tokens and caches, predicted cycles."""

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from language_models import SMALL, pieces, random_weights
from language_programs import CORE, SHAPE, cache_of, golden_text, program_of, quantized

import weft
from weft.golden.language import IntegerModel, Shape
from weft.golden.language.sampling import GREEDY, sampling, start_state, weigh
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import token_cycles
from weft.language_core.descriptors import CoreError
from weft.language_core.latencies import LIST_END
from weft.models.errors import ModelError
from weft.models.language.model import LanguageModel
from weft.models.language_core.program import compile_model, largest_program
from weft.models.language_core.stages import token_stages
from weft.models.language_core.writer import CoreWriter
from weft.sim.language_core import LanguageSimulation

# Heads of 16 channels, and of 32; one key head for all heads; more than one word in each tile.
SHAPES = [
    Shape(dim=64, layers=1, heads=8, kv_heads=4, hidden=20, vocab=24, positions=32),
    Shape(dim=48, layers=1, heads=3, kv_heads=1, hidden=64, vocab=16, positions=32),
    Shape(dim=64, layers=1, heads=2, kv_heads=2, hidden=33, vocab=16, positions=48),
]


@pytest.fixture(scope="module")
def core():
    with LanguageSimulation(CORE) as simulation:
        yield simulation


def _load(core, program):
    core.write(program.main)
    core.write_tables(program.tables)


def _choose(core, program, how):
    """How the core chooses the tokens of the next texts."""
    first, data = program.choice(how)
    core.write(data, first)


def _check(core, weights, program, prompt, limit, how=GREEDY, seed=1, stall=0):
    """A text has the golden tokens and the golden cache, and its positions the predicted cycles."""
    state, model = start_state(seed), IntegerModel(weights)
    text = core.run(prompt, limit, seed=state, stall=stall)
    assert text.finished
    assert (text.error, text.position) == (CoreError.NONE, limit)
    assert text.tokens == golden_text(weights, prompt, limit, model, how, state)
    cache = cache_of(
        program, weights.shape, lambda first, count: core.read(16 * first, 16 * count)
    )
    golden = np.array([model._k, model._v])[:, :, 0, :limit]
    np.testing.assert_array_equal(cache[:, :, :limit], golden.reshape(cache[:, :, :limit].shape))
    assert text.cycles == [
        token_cycles(program.list_of(how), position, emits=position + 1 >= len(prompt))
        for position in range(limit)
    ]
    return text


def test_texts(core):
    """To the last position of the cache; then shorter texts, without a reset."""
    weights, rng = quantized(), np.random.default_rng(4)
    program = program_of(weights)
    _load(core, program)
    _check(core, weights, program, [3], 48)
    tokens = []
    for length in (1, 3, 7, 8, 9, 16, 17, 30):
        prompt = rng.integers(0, SHAPE.vocab, length).tolist()
        tokens += _check(core, weights, program, prompt, length + 1).tokens
    assert len(set(tokens)) > 5


def test_sums_of_a_residual_that_leave_int16(core):
    """With scales that are too large, wo and w2 saturate, and the residual after them."""
    weights = quantized()
    weights = replace(weights, layers=tuple(
        replace(layer, o=replace(layer.o, shift=10), w2=replace(layer.w2, shift=10))
        for layer in weights.layers
    ))
    program = program_of(weights)
    _load(core, program)
    _check(core, weights, program, [3], SHAPE.positions)


@pytest.mark.parametrize("temperature, min_p, seed", [
    pytest.param(3, 0, 1, marks=pytest.mark.slow), pytest.param(6, 0, 2, marks=pytest.mark.slow),
    (6, 0.3, 2),
])
def test_sampled_texts(core, temperature, min_p, seed):
    """From the first position of the cache to the last one, and from prompts of several lengths."""
    weights, rng = quantized(), np.random.default_rng(seed)
    program, how = program_of(weights), sampling(temperature, min_p, weights.logit_bits)
    _load(core, program)
    _choose(core, program, how)
    tokens = _check(core, weights, program, [3], 48, how, seed).tokens
    assert len(set(tokens)) > 5 and tokens != golden_text(weights, [3], 48)
    for length in (2, 8, 17, 47):
        prompt = rng.integers(0, SHAPE.vocab, length).tolist()
        _check(core, weights, program, prompt, min(length + 4, 48), how, length)


@pytest.mark.slow
def test_texts_in_a_row_depend_on_their_seeds_alone(core):
    """With stalls of the host, and with a greedy text between them."""
    weights = quantized()
    program, how = program_of(weights), sampling(5, 0.01, weights.logit_bits)
    _load(core, program)
    found = []
    for seed, chosen, stall in (
        (7, how, 0), (7, how, 3), (8, how, 0), (9, GREEDY, 0), (7, how, 60), (10, GREEDY, 1),
    ):
        _choose(core, program, chosen)
        text = _check(core, weights, program, [3, 9], 20, chosen, seed, stall)
        found.append(tuple(text.tokens))
    assert found[0] == found[1] == found[4] != found[2]
    assert found[3] == found[5] not in found[:3]


def test_an_abort_of_a_sampled_text(core):
    """In each of the passes that choose the first token; then a whole text."""
    weights = quantized()
    program, how = program_of(weights), sampling(5, 0, weights.logit_bits)
    _load(core, program)
    _choose(core, program, how)
    ends = token_cycles(program.list_of(how), 0)
    for cycle in range(ends - 165, ends, 15):
        text = core.run([3], 48, abort=cycle, seed=start_state(1))
        assert (text.error, text.tokens) == (CoreError.ABORTED, [])
        assert cycle < text.simulated < cycle + 70
        assert core.run([3], 5, seed=start_state(2)).tokens == golden_text(
            weights, [3], 5, None, how, start_state(2)
        )


def _with_logits(weights, rows):
    """A model whose classifier has other rows of weights."""
    rows = np.asarray(rows, np.int8)
    multipliers = np.full(len(rows), weights.classifier.multipliers.max(), np.int16)
    classifier = replace(weights.classifier, weights=rows, multipliers=multipliers)
    return replace(weights, classifier=classifier)


@pytest.mark.parametrize("kind, least", [("equal", 0), ("equal", 1), ("last", 0), ("last", 1)])
def test_extreme_distributions(core, kind, least):
    """All logits equal; and one far above the others, the last one."""
    weights = quantized()
    rows = np.zeros_like(weights.classifier.weights)
    if kind == "last":
        logits = IntegerModel(weights).step(np.array([[3]]))[0, -1]
        rows[-1] = weights.classifier.weights[logits.argmax()]
    weights = _with_logits(weights, rows)
    how = sampling(0.02 if kind == "last" else 1, least, weights.logit_bits)
    logits = IntegerModel(weights).step(np.array([[3]]))[0, -1]
    expected = [32767] * 48 if kind == "equal" else [0] * 47 + [32767]
    assert weigh(logits, how).tolist() == expected
    program = program_of(weights)
    _load(core, program)
    _choose(core, program, how)
    firsts = set()
    for seed in range(1, 9):
        text = _check(core, weights, program, [3], 1, how, seed)
        firsts |= {*text.tokens}
    assert firsts == {47} if kind == "last" else len(firsts) > 4


@pytest.mark.parametrize("vocab", [8, 2016])
def test_the_smallest_and_the_largest_vocabulary(core, vocab):
    """The logits of the larger one fill the activation memory."""
    shape = Shape(dim=16, layers=1, heads=2, kv_heads=2, hidden=16, vocab=vocab, positions=16)
    weights = quantized(shape, seed=2)
    program = program_of(weights)
    assert bool(program.sampler)
    _load(core, program)
    tokens = []
    for temperature, seed in ((30, 1), (0.5, 2), (30, 3)):
        how = sampling(temperature, 0, weights.logit_bits)
        _choose(core, program, how)
        tokens += _check(core, weights, program, [vocab - 1, 0], 16, how, seed).tokens
    assert max(tokens) > 3 * vocab // 4 and min(tokens) < vocab // 4


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"heads of {shape.head_dim}")
def test_shapes(core, shape):
    """Other models on the same core, with weights of their own for the classifier."""
    weights = quantized(shape, seed=3, tied=False)
    program = program_of(weights)
    _load(core, program)
    _check(core, weights, program, [5, 2], shape.positions)


def test_goes_on_after_a_stop_token(core):
    weights = quantized()
    _load(core, program_of(weights))
    whole = golden_text(weights, [3, 9], 30)
    stop = whole[6]
    first = core.run([3, 9], 30, stop_token=stop, stall=3)
    assert first.tokens == whole[: whole.index(stop) + 1]
    rest = core.run([stop], 30, first_position=first.position)
    assert first.tokens + rest.tokens == whole
    assert rest.simulated < sum(rest.cycles) + 3 * len(rest.cycles)


def test_abort_and_a_text_after_it(core):
    weights = quantized()
    _load(core, program_of(weights))
    stopped = core.run([3], 48, abort=5000)
    assert (stopped.finished, stopped.error) == (True, CoreError.ABORTED)
    assert stopped.tokens == golden_text(weights, [3], 48)[: len(stopped.tokens)]
    # A pass takes some 100 cycles at most.
    assert 5000 < stopped.simulated < 5200
    assert core.run([3], 8).tokens == golden_text(weights, [3], 8)


def test_abort_while_passes_overlap(core):
    """In the first layer; the results on their way do not reach the text that starts after it."""
    weights = quantized()
    _load(core, program_of(weights))
    expected = golden_text(weights, [3], 2)
    for cycle in range(20, 420, 5):
        stopped = core.run([3], 48, abort=cycle)
        assert (stopped.error, stopped.tokens) == (CoreError.ABORTED, [])
        assert cycle < stopped.simulated < cycle + 60  # after one pass, and its results
        assert core.run([3], 2).tokens == expected, cycle


def test_abort_while_a_token_waits(core):
    _load(core, program_of(quantized()))
    stopped = core.run([3], 48, abort=9000, stall=1 << 30)
    assert (stopped.error, stopped.tokens, stopped.simulated) == (CoreError.ABORTED, [], 9001)


@pytest.mark.parametrize("word", [4, 6, 9])
def test_a_word_without_a_descriptor_is_an_error(core, word):
    """Also while a pass before it is not done, as before all of these words; then a text."""
    weights = quantized()
    program = program_of(weights)
    assert program.passes[word - 1].follow
    _load(core, program)
    core.write(bytes(8), first=16 * word)
    text = core.run([3], 8)
    assert (text.finished, text.error, text.tokens) == (True, CoreError.KIND, [])
    core.write(program.passes[word].pack(), first=16 * word)
    assert core.run([3], 8).tokens == golden_text(weights, [3], 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_models_of_random_shapes(core, seed):
    """Each has other numbers of steps, so its passes overlap in another way."""
    rng = np.random.default_rng(seed)
    head = int(rng.choice([8, 16, 32]))
    kv_heads = int(rng.choice([n for n in (1, 2, 3, 4) if n * head % 16 == 0 and n * head <= 64]))
    heads = kv_heads * int(rng.choice([n for n in (1, 2, 3, 4) if n * kv_heads * head <= 96]))
    shape = Shape(
        dim=heads * head, layers=int(rng.integers(1, 3)), heads=heads, kv_heads=kv_heads,
        hidden=int(rng.integers(1, 90)), vocab=8 * int(rng.integers(1, 10)),
        positions=16 * int(rng.integers(1, 4)),
    )
    weights = quantized(shape, seed, tied=bool(seed % 2))
    program = program_of(weights)
    _load(core, program)
    prompt = rng.integers(0, shape.vocab, 2).tolist()
    _check(core, weights, program, prompt, shape.positions)
    how = sampling(5, 0, weights.logit_bits)
    _choose(core, program, how)
    _check(core, weights, program, prompt, shape.positions, how, seed + 1)


WORDS = replace(SMALL, vocab=304)  # a multiple of the columns; `pieces` needs 286


@pytest.fixture(scope="module")
def text_program():
    return LanguageModel("small", "llama2.c", random_weights(WORDS, 5), pieces(304), 48).compile()


def _connected(program, core):
    writer = CoreWriter(program.weights, core.config)
    writer.connect(core)
    return writer


@pytest.mark.parametrize("prompt", ["", "the sand", "ö"])
def test_a_session_on_the_core_writes_the_golden_text(core, text_program, prompt):
    writer = _connected(text_program, core)
    assert writer.positions == WORDS.positions
    session, golden = text_program.open(writer), text_program.open()
    for tokens in (1, 12, 100):
        assert [*session.generate(prompt, tokens)] == [*golden.generate(prompt, tokens)]
        assert (session.tokens, session.ended) == (golden.tokens, golden.ended)
        assert writer.cycles == [
            token_cycles(writer.program.passes, n, emits=n + 1 >= session.prompt_tokens)
            for n in range(writer.position)
        ]
    assert session.ended == "cache"


@pytest.mark.parametrize("how", [
    pytest.param({"temperature": 0.8, "seed": 1}, marks=pytest.mark.slow),
    pytest.param({"temperature": 5, "seed": 4, "min_p": 0.02}, marks=pytest.mark.slow),
    {"temperature": 5, "seed": 5, "stop": "d"},
])
def test_a_session_on_the_core_samples_the_golden_text(core, text_program, how):
    """Then a greedy text, and the same one again."""
    writer = _connected(text_program, core)
    session, golden = text_program.open(writer), text_program.open()
    for prompt, given in (("the ants", how), ("the sand", {}), ("", how), ("the ants", how)):
        assert [*session.generate(prompt, 14, **given)] == [*golden.generate(prompt, 14, **given)]
        assert (session.tokens, session.ended) == (golden.tokens, golden.ended)
        assert writer.cycles == [
            writer.program.token_cycles(writer.how, n, emits=n + 1 >= session.prompt_tokens)
            for n in range(writer.position)
        ]


def test_a_text_ends_where_the_memory_does(text_program):
    """A model whose cache has fewer positions than it could have."""
    config = replace(CORE, words=352)
    program = largest_program(text_program.weights, config)
    assert program.positions == 32
    with pytest.raises(ModelError, match=r"with 48 positions needs 361 words"):
        compile_model(text_program.weights, config, 48)
    with pytest.raises(ModelError, match="with 16 positions needs"):
        largest_program(text_program.weights, replace(CORE, words=256))


def test_an_error_of_the_core_ends_a_session(core, text_program):
    session = text_program.open(_connected(text_program, core))
    core.write(bytes(8), first=16 * 4)  # of the fifth word, a descriptor
    with pytest.raises(RuntimeError, match="it wrote 0, with the error KIND"):
        [*session.generate("the", 3)]


def test_stages_are_all_passes_of_a_token(text_program):
    program = CoreWriter(text_program.weights, CORE).program
    for position in (0, 20, 47):
        stages = token_stages(program, position)
        assert [stage.name for stage in stages[:4]] == ["embedding", "norm", "q, k, v", "rope"]
        assert all(a.end == b.start for a, b in itertools.pairwise(stages))
        assert stages[-1].end + LIST_END == token_cycles(program.passes, position)
    how = sampling(1, 0, text_program.weights.logit_bits)
    *others, sampled = token_stages(program, 47, how)
    assert others == stages and sampled.name == "sampling"
    assert sampled.end + LIST_END == token_cycles(program.list_of(how), 47)


@pytest.fixture(scope="module")
def large():
    """The default core, which holds a model of the shape of stories260K with 256 positions."""
    with LanguageSimulation(LanguageCoreConfig()) as simulation:
        yield simulation


def _check_file(core, path, prompt, limit):
    """A text of the model of a file."""
    model = weft.load(path)
    weights = getattr(model, "compile", lambda: model)().weights
    program = compile_model(weights, core.config, 256)
    _load(core, program)
    return _check(core, weights, program, model.tokenizer.encode(prompt), limit)


@pytest.mark.slow
def test_the_model_of_the_examples(large):
    path = Path(__file__).parents[2] / "examples/stories.weft"
    text = _check_file(large, path, "One day, a girl named Mia", 140)
    assert text.cycles[127] <= 10_000


@pytest.mark.slow
def test_stories260k(large):
    """The smallest public model, 200 tokens."""
    path = Path(os.environ.get("WEFT_NETWORKS", ""), "stories260K.bin")
    if "WEFT_NETWORKS" not in os.environ or not path.exists():
        pytest.skip("WEFT_NETWORKS must name a folder with stories260K.bin")
    _check_file(large, path, "", 200)
