"""Trains the language model of the examples on stories of a grammar, and writes its files.

    python -m tools.train_stories [--out FOLDER] [--steps N]

Writes ``stories.bin`` and ``tok512.bin``, files of llama2.c, into the folder, by default
``build/stories``. They are quantized by ``weft compile build/stories/stories.bin -o
src/weft/demo/stories.weft``. Prints the perplexity of held-out stories beside that of a trigram
model of the same corpus.
Needs JAX in addition to Weft, and some minutes on one core. All seeds are fixed.
"""

import argparse
import collections
import math
import random
import re
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tools.llama2c_writer import model_file, tokenizer_file
from tools.story_grammar import story
from weft.golden.language import Shape, Weights
from weft.models.language.tokenizer import PieceTokenizer

__all__ = [
    "SHAPE", "adamw", "corpus", "main", "perplexity", "tokenizer_of", "train",
    "trigram_perplexity",
]

OUT = Path(__file__).resolve().parent.parent / "build" / "stories"
# That of stories260K, the smallest public model of its kind; it has 512 positions.
SHAPE = Shape(dim=64, layers=5, heads=8, kv_heads=4, hidden=172, vocab=512, positions=256)
STORIES, HELD_OUT, SEED = 20_000, 200, 1
STEPS, BATCH, WINDOW = 450, 8, 160  # of the training; texts of a step; tokens of a text
RATE, WARM_UP, DECAY = 5e-3, 40, 0.05  # largest learning rate; steps up to it; decay of weights
BOS, EOS = 1, 2
_WORD = re.compile(r" ?[A-Za-z]+| ?[^A-Za-z ]+")


def corpus() -> tuple[list[str], list[str]]:
    """The stories for training, and others that are held out."""
    rng = random.Random(SEED)
    texts = [story(rng) for _ in range(STORIES)]
    seen, held_out = set(texts), []
    while len(held_out) < HELD_OUT:
        text = story(rng)
        if text not in seen:
            held_out.append(text)
    return texts, held_out


def tokenizer_of(texts: list[str], vocab: int) -> PieceTokenizer:
    """Byte pair encoding of the words of texts: the most frequent pair becomes a piece."""
    counts = collections.Counter(word for text in texts for word in _WORD.findall(" " + text))
    # Only printable ASCII has tokens, not each of 256 bytes: 512 tokens are few. The names of the
    # first three are those of llama2.c.
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(bytes([code]) for code in range(32, 127))]
    scores = [0.0] * len(pieces)
    words = {word: [c.encode() for c in word] for word in sorted(counts)}
    while len(pieces) < vocab:
        pairs: collections.Counter = collections.Counter()
        for word, parts in words.items():
            for pair in zip(parts, parts[1:], strict=False):
                pairs[pair] += counts[word]
        (left, right), _ = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        scores.append(-float(len(pieces)))  # an encoder merges the pair with the highest score
        pieces.append(left + right)
        for word, parts in words.items():
            words[word] = _merged(parts, left, right)
    return PieceTokenizer(tuple(pieces), np.array(scores, np.float32), BOS, (BOS, EOS))


def _merged(parts, left, right):
    """The parts of a word, with each ``left`` before a ``right`` joined to it."""
    joined: list[bytes] = []
    for part in parts:
        if part == right and joined and joined[-1] == left:
            joined[-1] = left + right
        else:
            joined.append(part)
    return joined


def encoded(tokenizer: PieceTokenizer, texts: list[str]) -> list[list[int]]:
    """The tokens of texts; no piece has parts of two words, so that each word is encoded once."""
    plain = PieceTokenizer(
        tokenizer.pieces, tokenizer.scores, tokenizer.bos, tokenizer.stops, prefix_space=False
    )
    known: dict[str, list[int]] = {}

    def tokens(word):
        if word not in known:
            known[word] = plain.encode(word)[1:]
        return known[word]

    return [
        [BOS, *(token for word in _WORD.findall(" " + text) for token in tokens(word))]
        for text in texts
    ]


def _initial(rng):
    s = SHAPE

    def normal(*size, scale=1.0):
        return jnp.array(rng.standard_normal(size) * scale / np.sqrt(size[-1]), jnp.float32)

    n, last = s.layers, 1 / math.sqrt(2 * s.layers)
    return {
        "embedding": normal(s.vocab, s.dim), "attention_gain": jnp.ones((n, s.dim)),
        "wq": normal(n, s.dim, s.dim), "wk": normal(n, s.kv_dim, s.dim),
        "wv": normal(n, s.kv_dim, s.dim), "wo": normal(n, s.dim, s.dim, scale=last),
        "ffn_gain": jnp.ones((n, s.dim)), "w1": normal(n, s.hidden, s.dim),
        "w2": normal(n, s.dim, s.hidden, scale=last), "w3": normal(n, s.hidden, s.dim),
        "final_gain": jnp.ones(s.dim),
    }


def _logits(w, tokens):
    """As `weft.golden.language.FloatModel`, for whole texts: [batch, n] to [batch, n, vocab]."""
    s = SHAPE
    batch, n = tokens.shape
    cos, sin = (jnp.array(part[:n, None]) for part in s.angles())

    def norm(x, gain):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + s.epsilon) * gain

    def rotate(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    def layer(x, w):
        a = norm(x, w["attention_gain"])
        q = rotate((a @ w["wq"].T).reshape(batch, n, s.heads, s.head_dim))
        k = rotate((a @ w["wk"].T).reshape(batch, n, s.kv_heads, s.head_dim))
        v = (a @ w["wv"].T).reshape(batch, n, s.kv_heads, s.head_dim)
        k, v = jnp.repeat(k, s.group, 2), jnp.repeat(v, s.group, 2)
        scores = jnp.einsum("bnhd,bthd->bhnt", q, k) / math.sqrt(s.head_dim)
        scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e9)
        mean = jnp.einsum("bhnt,bthd->bnhd", jax.nn.softmax(scores), v)
        x = x + mean.reshape(batch, n, s.dim) @ w["wo"].T
        a = norm(x, w["ffn_gain"])
        return x + (jax.nn.silu(a @ w["w1"].T) * (a @ w["w3"].T)) @ w["w2"].T, None

    of_layers = {key: value for key, value in w.items() if key not in ("embedding", "final_gain")}
    x, _ = jax.lax.scan(layer, w["embedding"][tokens], of_layers)
    return norm(x, w["final_gain"]) @ w["embedding"].T


def _loss(w, tokens):
    logits = _logits(w, tokens[:, :-1])
    picked = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def adamw(loss_of):
    """A step of AdamW for a loss of weights and tokens; gradients have a norm of at most 1."""

    @jax.jit
    def update(w, first, second, tokens, step, rate):
        loss, gradient = jax.value_and_grad(loss_of)(w, tokens)
        size = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(gradient)))
        gradient = jax.tree.map(lambda g: g / jnp.maximum(size, 1), gradient)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.98 * v + 0.02 * g * g, second, gradient)

        def moved(p, m, v):
            m, v = m / (1 - 0.9**step), v / (1 - 0.98**step)
            return p - rate * (m / (jnp.sqrt(v) + 1e-8) + DECAY * p)

        return jax.tree.map(moved, w, first, second), first, second, loss

    return update


_update = adamw(_loss)


def train(texts: list[list[int]], steps: int) -> Weights:
    """Train on windows that start with a story, and have the beginning of the next one."""
    rng = np.random.default_rng(SEED)
    w = _initial(rng)
    first = second = jax.tree.map(jnp.zeros_like, w)
    stream = np.concatenate([*texts, [BOS]]).astype(np.int32)
    starts = np.cumsum([0, *map(len, texts)])[:-1]
    length = WINDOW + 1
    starts = starts[starts + length <= len(stream)]
    begin = time.monotonic()
    for step in range(1, steps + 1):
        windows = np.stack([stream[s:s + length] for s in rng.choice(starts, BATCH)])
        # The rate grows for WARM_UP steps; then a half cosine leads from all of it to 2 % of it.
        cosine = math.cos(math.pi * step / steps)
        rate = RATE * min(step / WARM_UP, 0.02 + 0.49 * (1 + cosine))
        w, first, second, loss = _update(w, first, second, windows, step, rate)
        if step % 25 == 0 or step == steps:
            seconds = time.monotonic() - begin
            print(f"step {step} of {steps}: loss {float(loss):.4f}, {seconds:.0f} s", flush=True)
    arrays = {name: np.array(value) for name, value in w.items()}
    return Weights(shape=SHAPE, classifier=arrays["embedding"], **arrays)


def perplexity(weights: Weights, texts: list[list[int]]) -> float:
    """The perplexity of each token after the first, in float32."""
    w = {
        name: jnp.array(value) for name, value in vars(weights).items()
        if name not in ("shape", "classifier")
    }
    total, count = 0.0, 0
    logits = jax.jit(_logits)
    for text in texts:
        tokens = np.zeros((1, SHAPE.positions), np.int32)
        tokens[0, :len(text)] = text[:SHAPE.positions]
        log_p = jax.nn.log_softmax(logits(w, tokens))[0]
        n = min(len(text), SHAPE.positions) - 1
        total -= float(log_p[np.arange(n), tokens[0, 1:n + 1]].sum())
        count += n
    return math.exp(total / count)


def trigram_perplexity(
    texts: list[list[int]], held_out: list[list[int]], vocab: int, bos: int = BOS
) -> float:
    """The perplexity of a trigram model of texts, interpolated with shorter contexts.

    The weight of a context is its count over the count plus the number of tokens that follow it
    (Witten and Bell, IEEE Transactions on Information Theory 37, 1991).
    """
    counts = [collections.defaultdict(collections.Counter) for _ in range(3)]
    for text in texts:
        padded = [bos, *text]
        for i in range(2, len(padded)):
            for order in range(3):
                counts[order][tuple(padded[i - order:i])][padded[i]] += 1
    total, number = 0.0, 0
    for text in held_out:
        padded = [bos, *text]
        for i in range(2, len(padded)):
            p = 1 / vocab
            for order in range(3):
                after = counts[order].get(tuple(padded[i - order:i]))
                if after:
                    seen = after.total()
                    p = (after[padded[i]] + len(after) * p) / (seen + len(after))
            total -= math.log(p)
            number += 1
    return math.exp(total / number)


def main(argv=None) -> int:
    """Train, print both perplexities, write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="default build/stories")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default {STEPS}")
    args = parser.parse_args(argv)
    texts, held_out = corpus()
    tokenizer = tokenizer_of(texts, SHAPE.vocab)
    tokens, held_tokens = (encoded(tokenizer, part) for part in (texts, held_out))
    print(f"{len(texts):,} stories, {sum(map(len, tokens)):,} tokens", flush=True)
    print(f"trigram: perplexity {trigram_perplexity(tokens, held_tokens, SHAPE.vocab):.4f}")
    weights = train(tokens, args.steps)
    print(f"model: perplexity {perplexity(weights, held_tokens):.4f}")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "stories.bin").write_bytes(model_file(weights))
    (args.out / "tok512.bin").write_bytes(tokenizer_file(tokenizer))
    print(f"{args.out}: stories.bin and tok512.bin")
    return 0


if __name__ == "__main__":
    sys.exit(main())
