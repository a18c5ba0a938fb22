"""Trains the microGPT of the examples on names of a grammar, and writes its file.

    python -m tools.train_names [--out FOLDER] [--steps N]

Writes ``names.npz`` into the folder, by default ``build/names``. ``weft compile
build/names/names.npz -o src/weft/demo/names.weft`` quantizes it. Prints the perplexity of held-out
names beside that of a trigram model of the same names.
Needs JAX in addition to Weft, and less than two minutes on one core. All seeds are fixed.
"""

import argparse
import math
import random
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tools.name_grammar import CHARS, name
from tools.train_stories import adamw, trigram_perplexity
from weft.golden.language import FloatModel, Shape, Weights
from weft.golden.language.shape import MICROGPT
from weft.models.language import microgpt

__all__ = ["SHAPE", "corpus", "encoded", "main", "perplexity", "train"]

OUT = Path(__file__).resolve().parent.parent / "build" / "names"
# The well-known microGPT: 4,192 weights.
SHAPE = Shape(
    dim=16, layers=1, heads=4, kv_heads=4, hidden=64, vocab=len(CHARS) + 1, positions=16,
    architecture=MICROGPT,
)
BOS = len(CHARS)  # starts a name, and ends it
NAMES, HELD_OUT, SEED = 20_000, 2_000, 1
STEPS, BATCH, RATE, WARM_UP = 6000, 64, 1e-2, 100


def corpus() -> tuple[list[str], list[str]]:
    """The names for training, and others that are held out."""
    rng = random.Random(SEED)
    names = [name(rng) for _ in range(NAMES)]
    seen, held_out = set(names), []
    while len(held_out) < HELD_OUT:
        text = name(rng)
        if text not in seen:
            held_out.append(text)
    return names, held_out


def encoded(names: list[str]) -> list[list[int]]:
    """The tokens of names, each with its start and its end."""
    return [[BOS, *map(CHARS.index, text), BOS] for text in names]


def _initial(rng):
    s = SHAPE

    def normal(*size, scale=1.0):
        return jnp.array(rng.standard_normal(size) * scale / np.sqrt(size[-1]), jnp.float32)

    n, last = s.layers, 1 / math.sqrt(2 * s.layers)
    return {
        "embedding": normal(s.vocab, s.dim), "position_embedding": normal(s.positions, s.dim),
        "wq": normal(n, s.dim, s.dim), "wk": normal(n, s.dim, s.dim), "wv": normal(n, s.dim, s.dim),
        "wo": normal(n, s.dim, s.dim, scale=last), "w1": normal(n, s.hidden, s.dim),
        "w2": normal(n, s.dim, s.hidden, scale=last), "classifier": normal(s.vocab, s.dim),
    }


def _logits(w, tokens):
    """As `weft.golden.language.FloatModel`, for whole texts."""
    s = SHAPE
    batch, n = tokens.shape

    def norm(x):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + s.epsilon)

    def heads(x):
        return x.reshape(batch, n, s.heads, s.head_dim)

    x = norm(w["embedding"][tokens] + w["position_embedding"][:n])
    for layer in range(s.layers):
        a = norm(x)
        q, k, v = (heads(a @ w[key][layer].T) for key in ("wq", "wk", "wv"))
        scores = jnp.einsum("bnhd,bthd->bhnt", q, k) / math.sqrt(s.head_dim)
        scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e9)
        mean = jnp.einsum("bhnt,bthd->bnhd", jax.nn.softmax(scores), v)
        x = x + mean.reshape(batch, n, s.dim) @ w["wo"][layer].T
        x = x + jax.nn.relu(norm(x) @ w["w1"][layer].T) @ w["w2"][layer].T
    return x @ w["classifier"].T


def _loss(w, tokens):
    log_p = jax.nn.log_softmax(_logits(w, tokens[:, :-1]))
    return -jnp.take_along_axis(log_p, tokens[:, 1:, None], -1).mean()


_update = adamw(_loss)


def train(names: list[list[int]], steps: int) -> Weights:
    """Train on windows that start with a name, and have those that follow it."""
    rng = np.random.default_rng(SEED)
    w = _initial(rng)
    first = second = jax.tree.map(jnp.zeros_like, w)
    # The end of a name is the start of the next one.
    stream = np.concatenate([text[:-1] for text in names] + [[BOS]]).astype(np.int32)
    length = SHAPE.positions + 1
    starts = np.flatnonzero(stream == BOS)
    starts = starts[starts + length <= len(stream)]
    begin = time.monotonic()
    for step in range(1, steps + 1):
        windows = stream[rng.choice(starts, BATCH)[:, None] + np.arange(length)]
        part = step / steps
        rate = RATE * min(step / WARM_UP, 0.02 + 0.49 * (1 + math.cos(math.pi * part)))
        w, first, second, loss = _update(w, first, second, windows, step, rate)
        if step % 500 == 0 or step == steps:
            seconds = time.monotonic() - begin
            print(f"step {step} of {steps}: loss {float(loss):.4f}, {seconds:.0f} s", flush=True)
    ones = np.ones((SHAPE.layers, SHAPE.dim), np.float32)
    return Weights(
        shape=SHAPE, attention_gain=ones, ffn_gain=ones, w3=None, final_gain=None,
        **{key: np.array(value) for key, value in w.items()},
    )


def perplexity(model, scale: float, names: list[list[int]]) -> float:
    """The perplexity of each token after the first one.

    ``model`` is a FloatModel or an IntegerModel, whose logits have the ``scale``.
    """
    total, count = 0.0, 0
    for text in names:
        model.start(1)
        logits = model.step(np.array([text[:-1]]))[0].astype(np.float64) / scale
        log_sum = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
        total += (log_sum - logits[np.arange(len(logits)), text[1:]]).sum()
        count += len(logits)
    return math.exp(total / count)


def main(argv=None) -> int:
    """Train, print both perplexities, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="default build/names")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default {STEPS}")
    args = parser.parse_args(argv)
    names, held_out = map(encoded, corpus())
    print(f"{len(names):,} names, {sum(map(len, names)):,} tokens", flush=True)
    print(f"trigram: perplexity {trigram_perplexity(names, held_out, SHAPE.vocab, BOS):.4f}")
    weights = train(names, args.steps)
    print(f"model: perplexity {perplexity(FloatModel(weights), 1, held_out):.4f}")
    args.out.mkdir(parents=True, exist_ok=True)
    microgpt.write(args.out / "names.npz", weights, CHARS)
    print(f"{args.out / 'names.npz'}: {weights.shape.vocab} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
