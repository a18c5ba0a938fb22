"""The registers of a language core on a board: constants that describe it, then its state.

Register n is the 32-bit word at address n.
"""

from dataclasses import dataclass

from weft import registers
from weft.design import LANGUAGE
from weft.language_core.config import TEXT_TOKENS, LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.targets import TARGETS

__all__ = [
    "LATENCY", "PROGRAM_WORDS", "REGISTERS", "STATE", "TextState", "decode", "describe",
    "describe_program",
]

LATENCY = 2  # cycles that an address must be stable before its register can be read

_SIZES = "words", "groups", "side_groups"
# The first two are in DONE, too.
STATE = ["text_status", "text_cycles", "token_cycles"]
REGISTERS = [*registers.IDENTITY, *_SIZES, "target", "text_tokens", "microprogram", *STATE]
# The first of `describe_program`; a register that is not there is 0.
PROGRAM_WORDS = len(REGISTERS)


def describe(config: LanguageCoreConfig) -> list[int]:
    """The constant registers of ``config`` before `STATE`."""
    return [
        *registers.identity(config), *(getattr(config, name) for name in _SIZES),
        list(TARGETS).index(config.target), TEXT_TOKENS, int(config.microprogram),
    ]


def describe_program(config: LanguageCoreConfig) -> list[int]:
    """The registers from PROGRAM_WORDS on: only of a core with a program memory."""
    if not config.program_words:
        return []
    return [config.program_words] + [1] * config.int4


def decode(words: list[int], program_words: int = 0, int4: int = 0) -> LanguageCoreConfig:
    """The LanguageCoreConfig that the constant registers ``words``, and those from PROGRAM_WORDS
    on, describe.

    Raises ValueError if the words are not from a language core of this version, or contradict
    each other.
    """
    registers.identify(words, LANGUAGE, len(REGISTERS) - len(STATE))
    values = dict(zip(REGISTERS, words, strict=False))
    targets = list(TARGETS)
    if values["target"] >= len(targets):
        raise ValueError(f"register target must be under {len(targets)}, not {values['target']}")
    if values["text_tokens"] != TEXT_TOKENS:
        raise ValueError(
            f"register text_tokens must be {TEXT_TOKENS}, not {values['text_tokens']}"
        )
    sizes = {name: values[name] for name in _SIZES}
    if values["microprogram"] > 1:
        raise ValueError(f"register microprogram must be 0 or 1, not {values['microprogram']}")
    if int4 > 1:
        raise ValueError(f"register int4 must be 0 or 1, not {int4}")
    config = LanguageCoreConfig(
        **sizes, program_words=program_words, int4=bool(int4), target=targets[values["target"]],
        microprogram=bool(values["microprogram"]),
    )
    registers.check_hash(words, config)
    return config


@dataclass(frozen=True)
class TextState:
    """What the registers of `STATE` say.

    Attributes
    ----------
    started : bool
        A text was started since the reset of the core.
    running : bool
    error : CoreError
        Of the text that has ended last.
    position : int
        The first position that has not been computed.
    cycles : int
        From the start of the text to now, or to its end.
    """

    started: bool
    running: bool
    error: CoreError
    position: int
    cycles: int

    @classmethod
    def of(cls, status: int, cycles: int) -> "TextState":
        """The state of the registers text_status and text_cycles."""
        return cls(
            bool(status & 2), bool(status & 1), CoreError(status >> 8 & 0xFF), status >> 16, cycles
        )
