"""`BoardWriter`: a language core on a board computes the tokens of a session."""

import time
from collections import deque
from collections.abc import Callable

from weft.golden.language.sampling import GREEDY, Sampling, draw
from weft.host.language_driver import NO_TOKEN, LanguageDriver
from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportError
from weft.language_core.config import GROUPS_OF_WORD, TEXT_TOKENS, WORD_BYTES, LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.language_core.register_map import TextState
from weft.models.errors import require
from weft.models.language.program import LanguageProgram
from weft.models.language_core.program import largest_program

__all__ = ["BoardWriter", "text_cycles"]

_REASONS = {
    CoreError.KIND: "a descriptor in its memory has an unknown kind: weft selftest tests the"
                    " memory, and the same command writes the model again",
    CoreError.ABORTED: "another program has aborted the text",
}
_NO_PROGRESS = 60.0  # seconds in which a token must come, also of a simulated board


def text_cycles(program, how: Sampling, first: int, prompt: int, end: int) -> int:
    """Cycles of a text on a board, from its start to the end of position ``end - 1``.

    ``program`` is what the core has; it chooses tokens by ``how``. The prompt has ``prompt`` tokens
    from position ``first`` on.
    """
    emits = [position + 1 >= first + prompt for position in range(first, end)]
    return sum(
        program.token_cycles(how, position, emits=emit)
        + (TOKEN_WAIT if position < first + prompt else TOKEN_NEXT)
        for position, emit in enumerate(emits, first)
    )


TOKEN_WAIT, TOKEN_NEXT = 6, 2


class BoardWriter:
    """A `weft.models.language.program.Writer` whose tokens come from a core on a board.

    The core chooses the tokens. It writes up to ``ahead`` of them without a wait for the host, and
    the host reads them as they come.

    Parameters
    ----------
    program : LanguageProgram
    config : LanguageCoreConfig
        Of the core.
    ahead : int
        Tokens that follow the prompt, at most.

    Attributes
    ----------
    program : LanguageCoreProgram or MicroProgram
        With as many positions as the memory of the core has space for.
    state : TextState or None
        At the end of the text; None before it was seen.
    how : Sampling
        How the core chooses tokens.

    Raises
    ------
    ModelError
        If the core cannot execute the model.
    """

    def __init__(self, program: LanguageProgram, config: LanguageCoreConfig, ahead: int):
        self.program = largest_program(program.weights, config)
        self.positions = min(self.program.positions, TEXT_TOKENS)
        self.position = 0
        self.state: TextState | None = None
        self.how = GREEDY
        self._ahead = ahead
        self._stop_token = min(program.tokenizer.stops, default=NO_TOKEN)
        self._forget()

    def _forget(self):
        self._first = self._prompt = self._limit = self._read = 0
        self._next: tuple | None = None  # the arguments of `write` that go on with the text
        self._new: deque[int] = deque()

    def connect(
        self, driver: LanguageDriver, watch: Callable[[float], None] | None = None
    ) -> None:
        """Write the model to the core; what its memory has is not sent.

        ``watch`` is called now and then with the part that the core has, from 0 to 1.
        """
        self._driver = driver
        data, parts = self.program.main, self.parts()
        done, size = 0, sum(end - start for start, end in parts) * WORD_BYTES

        def count(some):
            nonlocal done
            done += some
            if watch:
                watch(done / size)

        for start, end in parts:
            driver.write_main(
                start * GROUPS_OF_WORD, data[start * WORD_BYTES : end * WORD_BYTES], count
            )
        driver.write_tables(self.program.tables)
        self.how = GREEDY

    def parts(self) -> list[tuple[int, int]]:
        """Words of the main memory without the keys and values, which each text writes anew."""
        parts, start = [], 0
        for first, size in sorted(self._caches()):
            if first > start:
                parts.append((start, first))
            start = first + size
        return [*parts, (start, len(self.program.main) // WORD_BYTES)]

    def _caches(self):
        if not self.program.caches:
            return []
        words = self.program.words["cache"] // (2 * len(self.program.caches))
        return [(first, words) for pair in self.program.caches for first in pair]

    def check(self, how: Sampling) -> None:
        """Raise ModelError for a temperature, if the core has no memory for the logits."""
        self.program.list_of(how)

    def start(self) -> None:
        """Begin a text, at position 0."""
        self.position, self.state = 0, None
        self._forget()

    def write(self, tokens: list[int], how: Sampling, state: int) -> tuple[int, int]:
        """Return the token that follows, and the next state.

        Raises AcceleratorError if the core ends with an error, TransportError if the link breaks.
        """
        end = self.position + len(tokens)
        require(end <= self.positions, f"positions must be in 0..{self.positions}, not {end}")
        try:
            if (tokens, how, state) != self._next or end > self._limit:
                self._begin(tokens, end, how, state)
            while not self._new:
                self._poll()
        except TransportError as error:
            raise TransportError(
                f"the link broke at position {self.position}: {error}; run the same command again:"
                " the board keeps the model, and the text begins anew"
            ) from error
        self.position = end
        token, state = self._new.popleft(), state if how == GREEDY else draw(state)[1]
        self._next = [token], how, state
        return token, state

    def finish(self) -> TextState:
        """Return the state at the end of the text; the core is told to end it if it runs on."""
        if self.state is None:
            state = self._driver.state()
            if state.running and self._read < self._limit:
                self._driver.abort()
            deadline = time.monotonic() + _NO_PROGRESS
            while (state := self._driver.state()).running:
                if time.monotonic() > deadline:
                    raise AcceleratorError(f"the core did not stop within {_NO_PROGRESS:g} s")
            self.state = state
        return self.state

    def predicted(self) -> int | None:
        """Cycles of the text, which `finish` has ended; None if it was aborted."""
        if self.state is None or self.state.error != CoreError.NONE:
            return None
        return text_cycles(
            self.program, self.how, self._first, self._prompt, self.state.position
        )

    def _begin(self, tokens, end, how, state):
        if how != self.how:
            self._driver.abort()  # a text that runs reads the list
            first, data = self.program.choice(how)
            self._driver.write_main(first, data)
            self.how = how
        self._first, self._prompt = self.position, len(tokens)
        self._limit = min(self.positions, end + self._ahead - 1)
        self._driver.start(
            tokens, first_position=self.position, limit=self._limit, stop_token=self._stop_token,
            seed=state,
        )
        self._new.clear()
        self._read = end - 1  # the first position whose token is emitted
        self._progress = time.monotonic(), self.position

    def _poll(self):
        """Read the tokens that have come."""
        state = self._driver.state()
        if not state.started:
            raise AcceleratorError("the core was reset while it wrote a text; load the model again")
        if state.position > self._read:
            self._new += self._driver.tokens(self._read, state.position - self._read)
            self._read = state.position
        elif not state.running:
            reason = _REASONS.get(state.error, "it stopped before the text was over")
            raise AcceleratorError(
                f"the core stopped at position {state.position} with error {state.error.name}:"
                f" {reason}"
            )
        since, before = self._progress
        if state.position != before:
            self._progress = time.monotonic(), state.position
        elif time.monotonic() > since + _NO_PROGRESS:
            raise AcceleratorError(
                f"the core computes position {state.position} for over {_NO_PROGRESS:g} s; load the"
                " bitstream again"
            )
        if not state.running:
            self.state = state
