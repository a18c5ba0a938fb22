"""A language core whose tokens are golden and whose cycles are predicted, without a simulation."""

from types import SimpleNamespace

import numpy as np

from weft.golden.language import IntegerModel
from weft.golden.language.sampling import GREEDY, sample
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.cycles import token_cycles
from weft.language_core.descriptors import CoreError
from weft.models.language_core.program import largest_program
from weft.sim.sdram import simulated_memory

__all__ = ["GoldenLanguageCore"]

END = 2  # of a text, in the tokens of llama2.c


class GoldenLanguageCore:
    """In place of a `weft.sim.language_core.LanguageSimulation`.

    It writes another token at the position ``wrong``, and one that ends a text at ``ends``. Each
    token takes ``late`` cycles more. It chooses tokens by ``how`` when it has got this choice.
    """

    def __init__(self, weights, *, config=None, wrong=None, ends=None, late=0, how=GREEDY):
        self._weights, self._wrong, self._ends, self._late = weights, wrong, ends, late
        self._config = config or LanguageCoreConfig()
        self._program = largest_program(weights, self._config)
        self._offered, self._how = how, None

    def write(self, data, first=0):
        if first:
            assert (first, data) == self._program.choice(self._offered)
            self._how = self._offered
        else:
            assert data == self._program.main
            self._how = GREEDY

    def write_program(self, data, first):
        assert (first, data) == (self._program.program_first, self._program.program)

    def write_tables(self, entries):
        assert len(entries) == 1024

    def run(self, tokens, limit, *, first_position, seed):
        if first_position == 0:
            self._model = IntegerModel(self._weights)
        token, _ = sample(self._model.step(np.array([tokens]))[0, -1], self._how, seed)
        passes = self._program.list_of(self._how)
        cycles = [
            self._late + token_cycles(
                passes, n, emits=n + 1 == limit, memory=simulated_memory(self._config)
            )
            for n in range(first_position, limit)
        ]
        token = {self._wrong: token ^ 1, self._ends: END}.get(limit - 1, token)
        return SimpleNamespace(
            finished=True, error=CoreError.NONE, cycles=cycles, tokens=[token],
        )
