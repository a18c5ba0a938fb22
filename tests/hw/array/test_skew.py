"""The skew delays each element by its own number of cycles."""

import random

from verif.amaranth_bench import play
from weft.hw.array.edges import Skew


def test_each_element_is_delayed():
    rng = random.Random(1)
    delays = [0, 1, 3, 2]
    script = [{"i": [rng.randrange(256) for _ in delays]} for _ in range(30)]
    (out,) = play(Skew(shape=8, delays=delays), script, "o")
    for n, delay in enumerate(delays):
        inputs = [cycle["i"][n] for cycle in script]
        assert [word[n] for word in out] == [0] * delay + inputs[: 30 - delay]
