"""`CoreWriter`: a language core computes the tokens of a session."""

from weft.golden.language import IntegerWeights
from weft.golden.language.sampling import GREEDY, Sampling, draw
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.models.language_core.program import largest_program

__all__ = ["CoreWriter"]


class CoreWriter:
    """A `weft.models.language.program.Writer` whose tokens come from a core.

    A session finds wrong arguments before `connect`.

    Parameters
    ----------
    weights : IntegerWeights
    config : LanguageCoreConfig

    Attributes
    ----------
    program : LanguageCoreProgram or MicroProgram
        With as many positions as the memory of the core has space for.
    how : Sampling
        How the core chooses tokens.
    cycles : list of int
        Of each position of the text.

    Raises
    ------
    ModelError
        If the core cannot execute the model.
    """

    def __init__(self, weights: IntegerWeights, config: LanguageCoreConfig):
        self.program = largest_program(weights, config)
        self.positions = self.program.positions
        self.position = 0
        self.how = GREEDY
        self.cycles: list[int] = []

    def connect(self, core) -> None:
        """Write the program to a core, a `weft.sim.language_core.LanguageSimulation`."""
        self._core = core
        core.write(self.program.main)
        core.write_tables(self.program.tables)
        self.how = GREEDY

    def check(self, how: Sampling) -> None:
        """Raise ModelError for a temperature, if the core has no memory for the logits."""
        self.program.list_of(how)

    def start(self) -> None:
        """Begin a text, at position 0."""
        self.position, self.cycles = 0, []

    def write(self, tokens: list[int], how: Sampling, state: int) -> tuple[int, int]:
        """Return the token that follows, and the next state.

        Raises RuntimeError if the core ends with an error.
        """
        if how != self.how:
            first, data = self.program.choice(how)
            self._core.write(data, first)
            self.how = how
        end = self.position + len(tokens)
        text = self._core.run(tokens, end, first_position=self.position, seed=state)
        if not text.finished or text.error != CoreError.NONE or len(text.tokens) != 1:
            raise RuntimeError(
                f"the core must write a token after position {end - 1}; it wrote"
                f" {len(text.tokens)}, with the error {text.error.name}"
            )
        self.position = end
        self.cycles += text.cycles
        return text.tokens[0], state if how == GREEDY else draw(state)[1]
