"""How close a program is to its model in float32: perplexity, KL, equal greedy tokens."""

import dataclasses
import math

import numpy as np

from weft.golden.language import FloatModel, IntegerModel
from weft.models.language.model import LanguageModel
from weft.models.language.program import LanguageProgram
from weft.models.language.quantization import logits_of, sampled_texts

__all__ = ["Agreement", "agreement", "compared"]

# Other texts than those of the calibration.
_SEED = 2
_PROMPT = 8  # tokens that are sampled before a greedy text; fewer in a model of few positions
MAX_INCREASE, MAX_DIVERGENCE, MIN_GREEDY = 0.003, 0.002, 0.98  # of `Agreement.problems`


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The integers beside float32, on the same tokens.

    Attributes
    ----------
    float_perplexity, perplexity : float
        Of texts that the float model wrote at temperature 1.
    divergence : float
        Mean Kullback-Leibler divergence of the next token's probabilities on these texts, in nats.
    greedy : float
        Part of the positions with equal largest logits, on texts that the float model wrote
        greedily.
    """

    float_perplexity: float
    perplexity: float
    divergence: float
    greedy: float

    @property
    def increase(self) -> float:
        """Part by which the integers' perplexity is larger."""
        return self.perplexity / self.float_perplexity - 1

    def problems(self) -> list[str]:
        """The limits that are broken, with the values."""
        found = []
        if self.increase > MAX_INCREASE:
            found.append(
                f"perplexity must rise by at most {MAX_INCREASE:.1%}, not {self.increase:.2%}"
            )
        if self.divergence > MAX_DIVERGENCE:
            found.append(f"KL must be at most {MAX_DIVERGENCE}, not {self.divergence:.5f}")
        if self.greedy < MIN_GREEDY:
            found.append(
                f"equal greedy tokens must be at least {MIN_GREEDY:.0%}, not {self.greedy:.2%}"
            )
        return found


def _log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def compared(exact, found, tokens) -> tuple[float, float, float, float]:
    """Perplexity of both logits [texts, length, vocab], divergence, and part of equal largest."""
    exact, found = _log_softmax(exact[:, :-1]), _log_softmax(found[:, :-1])
    perplexities = [
        math.exp(-np.take_along_axis(part, tokens[:, 1:, None], -1).mean())
        for part in (exact, found)
    ]
    divergence = float((np.exp(exact) * (exact - found)).sum(-1).mean())
    return *perplexities, divergence, float((exact.argmax(-1) == found.argmax(-1)).mean())


def agreement(model: LanguageModel, program: LanguageProgram) -> Agreement:
    """Compare a program with its model on 16 sampled and 16 greedy texts of 256 tokens; on more
    texts, if the model has fewer positions.
    """
    prompt = min(_PROMPT, model.weights.shape.positions // 2)
    weights, first = model.weights, model.tokenizer.bos
    models = FloatModel(weights), IntegerModel(program.weights)

    def logits(tokens):
        exact, found = (logits_of(one, tokens) for one in models)
        return exact, found / 2.0**program.weights.logit_bits

    sampled = sampled_texts(weights, first, _SEED)
    exact, perplexity, divergence, _ = compared(*logits(sampled), sampled)
    greedy = sampled_texts(weights, first, _SEED + 1, greedy_from=prompt)
    after = slice(prompt - 1, None)
    *_, equal = compared(*(part[:, after] for part in logits(greedy)), greedy[:, after])
    return Agreement(exact, perplexity, divergence, equal)
