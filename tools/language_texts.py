"""Compares texts of a simulated language core with the golden model, token by token.

    WEFT_NETWORKS=folder python -m tools.language_texts

The folder has stories260K.bin and tok512.bin of llama2.c. Texts that are done are kept in
``build/language-texts.json``: if you stop the command, it goes on there the next time. Exit code 1
if a token or the cycles of a position differ, or if a distribution is too far from softmax.
"""

import json
import os
import random
import sys
from pathlib import Path

import numpy as np

import weft
from tools import results
from tools.story_grammar import story
from weft.golden.language import IntegerModel
from weft.golden.language.sampling import sample, sampling, start_state, weigh
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import token_cycles
from weft.models.language_core.program import largest_program
from weft.sim.language_core import LanguageSimulation

MODEL = results.ROOT / "examples" / "stories.weft"
KEPT = results.ROOT / "build" / "language-texts.json"
OF = ["tools.language_texts"]
PROMPTS, FEWEST, TOKENS = 25, 3, 200  # FEWEST: words of a prompt
CHOICES = {"greedy": (0, 0), "0.8": (0.8, 0), "1.0, min-p 0.05": (1, 0.05)}
TEMPERATURES = 0.3, 0.5, 0.8, 1.0, 2.0
LIMIT = 1e-3  # of the divergence; that of the whole model in integers may be 0.002
ABOUT = f"""\
{PROMPTS} texts of {TOKENS} tokens for each choice of the next token, written by the simulated core
with `examples/stories.weft`. They begin with the first {FEWEST} to {FEWEST + PROMPTS - 1} words of
stories of `tools/story_grammar.py`, and go on after a token that ends texts. Each text is one start
of the core, with a seed of its own. The golden model computes the logits of each position of the
text, and chooses the next token from them. The command fails if a token differs, or if the cycles
of a position are not those of `weft.language_core.cycles`."""
DISTANCE = f"""\
The distribution of the integers, `p / sum(p)`, beside softmax of the same logits in float64: the
Kullback-Leibler divergence from it, and the total variation. They are means over the positions of
8 texts of {TOKENS} tokens that the golden model writes at temperature 1. The command fails if a
divergence is above {LIMIT:g}."""
TEXT_HEADS = """\
| temperature | texts | tokens | other tokens | other cycles | cycles at 128 positions |
|---|---:|---:|---:|---:|---:|
"""
DISTANCE_HEADS = """\
| model | temperature | KL | total variation |
|---|---:|---:|---:|
"""


def prompts() -> list[str]:
    """The first words of stories; each prompt has a word more than the one before."""
    stories = (story(random.Random(1000 + seed)) for seed in range(PROMPTS))
    return [" ".join(text.split()[: FEWEST + n]) for n, text in enumerate(stories)]


def differences(weights, prompt, tokens, how, state) -> int:
    """How many tokens after a prompt are not those that golden chooses after the ones before."""
    whole = np.array([[*prompt, *tokens]])
    logits = IntegerModel(weights).step(whole[:, :-1])[0, len(prompt) - 1 :]
    found = 0
    for row, token in zip(logits, tokens, strict=True):
        expected, state = sample(row, how, state)
        found += expected != token
    return found


def texts(core, language, program, choice, kept, say):
    """The sums over all prompts: tokens, other tokens, positions with other cycles."""
    weights = language.weights
    how = sampling(*CHOICES[choice], weights.logit_bits)
    first, data = program.choice(how)
    core.write(data, first)
    passes, sums = program.list_of(how), np.zeros(3, int)
    for seed, prompt in enumerate(prompts(), 1):
        key = f"{choice}: {prompt} {seed}"
        if key not in kept:
            start, state = language.tokenizer.encode(prompt), start_state(seed)
            text = core.run(start, len(start) + TOKENS - 1, seed=state)
            predicted = [
                token_cycles(passes, position, emits=position + 1 >= len(start))
                for position in range(len(start) + TOKENS - 1)
            ]
            found = len(text.tokens), differences(weights, start, text.tokens, how, state), sum(
                a != b for a, b in zip(text.cycles, predicted, strict=True)
            )
            kept[key] = [int(value) for value in found]
            say(f"{key}: {kept[key]}")
        sums += kept[key]
    return [*sums.tolist(), token_cycles(passes, 127)]


def distance(logits, temperature, bits) -> tuple[float, float]:
    """Divergence from softmax, and total variation, as means over the rows of logits."""
    how, found = sampling(temperature, 0, bits), []
    for row in logits:
        q = weigh(row, how).astype(float)
        q /= q.sum()
        log_p = (row - row.max()) / 2.0**bits / temperature
        log_p = log_p - np.log(np.exp(log_p).sum())
        used = q > 0
        divergence = (q[used] * (np.log(q[used]) - log_p[used])).sum()
        found.append((divergence, np.abs(q - np.exp(log_p)).sum() / 2))
    return tuple(np.mean(found, 0).tolist())


def written_logits(weights) -> np.ndarray:
    """Logits of texts that golden writes at temperature 1, [positions, vocab]."""
    model, how = IntegerModel(weights), sampling(1, 0, weights.logit_bits)
    states = [start_state(seed) for seed in range(8)]
    tokens, rows = np.ones((len(states), 1), int), []
    model.start(len(states))
    for _ in range(TOKENS):
        logits = model.step(tokens)[:, -1]
        rows.append(logits)
        for n, row in enumerate(logits):
            tokens[n, 0], states[n] = sample(row, how, states[n])
    return np.concatenate(rows).astype(np.int64)


def _kept(digest):
    """The texts that are done, if their sources are those of today."""
    if KEPT.exists():
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        if kept["digest"] == digest:
            return kept
    return {"digest": digest, "texts": {}}


def main() -> int:
    """Print and record the differences; return the exit code."""
    folder = os.environ.get("WEFT_NETWORKS")
    if not folder or not (Path(folder) / "stories260K.bin").exists():
        print("WEFT_NETWORKS must be a folder with stories260K.bin and tok512.bin", file=sys.stderr)
        return 2
    language, config = weft.load(MODEL), LanguageCoreConfig()
    program = largest_program(language.weights, config)
    kept, lines, wrong = _kept(results.digest(OF)), [TEXT_HEADS], False

    def say(line):
        print(line, flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept), encoding="utf-8")

    with LanguageSimulation(config) as core:
        core.write(program.main)
        core.write_tables(program.tables)
        for choice in CHOICES:
            tokens, other, cycles, at_128 = texts(
                core, language, program, choice, kept["texts"], say
            )
            wrong |= bool(other or cycles) or tokens != PROMPTS * TOKENS
            lines.append(
                f"| {choice} | {PROMPTS} | {tokens:,} | {other:,} | {cycles:,} | {at_128:,} |\n"
            )
    rows = [DISTANCE_HEADS]
    for name, weights in (
        ("stories260K", weft.load(Path(folder) / "stories260K.bin").compile().weights),
        ("examples/stories.weft", language.weights),
    ):
        logits = written_logits(weights)
        for temperature in TEMPERATURES:
            divergence, variation = distance(logits, temperature, weights.logit_bits)
            wrong |= not divergence <= LIMIT
            rows.append(f"| {name} | {temperature} | {divergence:.8f} | {variation:.6f} |\n")
    print("".join(lines + rows), end="")
    print(results.save(
        "language", [
            results.table("".join(lines)),
            results.table("".join(rows), title="Distance to softmax", about=DISTANCE),
        ], title="Texts of the language core", command="make language-texts", about=ABOUT, of=OF,
    ))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
