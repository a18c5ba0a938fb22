"""`CoreWriter`: a language core computes the tokens of a session."""

from weft.golden.language import IntegerWeights
from weft.golden.language.sampling import GREEDY, Sampling
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.models.errors import ModelError
from weft.models.language_core.program import largest_program

__all__ = ["CoreWriter"]


class CoreWriter:
    """A `weft.models.language.program.Writer` whose tokens come from a core.

    The core chooses the most probable token. A session finds wrong arguments before `connect`.

    Parameters
    ----------
    weights : IntegerWeights
    config : LanguageCoreConfig

    Attributes
    ----------
    program : LanguageCoreProgram
        With as many positions as the memory of the core has space for.
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
        self.cycles: list[int] = []

    def connect(self, core) -> None:
        """Write the program to a core, a `weft.sim.language_core.LanguageSimulation`."""
        self._core = core
        core.write(self.program.main)
        core.write_tables(self.program.tables)

    def check(self, how: Sampling) -> None:
        """Raise ModelError for a temperature."""
        if how != GREEDY:
            raise ModelError(
                "temperature must be 0 on the core, which takes the most probable token; --on"
                " golden takes others, too"
            )

    def start(self) -> None:
        """Begin a text, at position 0."""
        self.position, self.cycles = 0, []

    def write(self, tokens: list[int], how: Sampling, state: int) -> tuple[int, int]:
        """Return the token that follows, and the state unchanged.

        Raises RuntimeError if the core ends with an error.
        """
        end = self.position + len(tokens)
        text = self._core.run(tokens, end, first_position=self.position)
        if not text.finished or text.error != CoreError.NONE or len(text.tokens) != 1:
            raise RuntimeError(
                f"the core must write a token after position {end - 1}; it wrote"
                f" {len(text.tokens)}, with the error {text.error.name}"
            )
        self.position = end
        self.cycles += text.cycles
        return text.tokens[0], state
