"""A grammar of names, for the model that `tools.train_names` trains."""

import random

__all__ = ["CHARS", "LONGEST", "name"]

CHARS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 15  # letters

# A house has the first letters of its names, and their ends. So an end depends on a letter far
# before it, which no model of three letters sees.
_HOUSES = (
    (("b", "d", "g", "br", "dr", "gr", "th"), ("n", "ric", "nd", "ld", "rim")),
    (("m", "l", "s", "n", "v", "sh"), ("a", "lla", "ia", "na", "ra")),
    (("t", "k", "p", "c", "f", "tr", "fl"), ("s", "x", "lo", "ck", "sto")),
    (("j", "w", "r", "h", "y", "z"), ("y", "wen", "ly", "th", "rie")),
)
# All vowels of a name are of one kind.
_VOWELS = ("a", "o", "u", "ai"), ("e", "i", "ea", "ee")
_SINGLE = "l", "r", "n", "d", "m", "s", "t", "v", "g", "b", "k"
_JOINED = "nn", "ll", "rr", "st", "nd", "lm", "tt", "rv", "lq", "rj"
_MIDDLES = 1, 0, 2  # vowels between the first one and the end


def name(rng: random.Random) -> str:
    """A random name: a first consonant, one to three vowels with consonants between them, an end.
    """
    def pick(items):
        """One of the items; each comes half as often as the one before, the last ones more."""
        return rng.choices(items, [0.5**n + 0.05 for n in range(len(items))])[0]

    while True:
        first, ends = pick(_HOUSES)
        vowels = pick(_VOWELS)
        parts = [pick(first), pick(vowels)]
        for _ in range(pick(_MIDDLES)):
            parts += [pick(_JOINED if rng.random() < 0.35 else _SINGLE), pick(vowels)]
        end = pick(ends)
        if end[0] in "aeiou":
            parts.append(pick(_SINGLE))
        found = "".join((*parts, end)).replace("lq", "lqu" if vowels[0] == "e" else "l")
        if 3 <= len(found) <= LONGEST:
            return found
