"""The core's read-only registers: constants that describe its Config, then counters.

Register n is the 32-bit word at address n. The first registers of a core of any kind are
`IDENTITY`: they say which core it is, and of which version of Weft.
"""

import dataclasses
from dataclasses import dataclass

from weft.config import Config
from weft.design import LANGUAGE, NETWORK, PRODUCT, CoreDesign

__all__ = [
    "CORE_SPACE", "COUNTERS", "FIELDS", "IDENTITY", "LATENCY", "MAGIC", "REGISTERS", "SPACE",
    "VERSION", "Field", "FifoPort", "Register", "check_hash", "decode", "decode_fields", "describe",
    "describe_fields", "identify", "identity", "kind_of", "word_register",
]

SPACE = 0x1000  # bytes of a register space
CORE_SPACE = 0x400  # bytes at its start, for the registers of the core itself


@dataclass(frozen=True)
class Field:
    """A bit field of a register.

    ``access`` is ``ro``, ``rw``, ``wo``, ``pulse`` (one bit of a ``wo`` register: writing 1 acts
    once) or ``w1c`` (set by hardware, cleared by writing 1). ``reset`` is the value after a reset,
    if software writes it.
    """

    name: str
    low: int
    width: int
    access: str
    text: str
    reset: int = 0


@dataclass(frozen=True)
class Register:
    """A 32-bit register at a byte address; ``access`` is ``ro``, ``wo`` or ``rw``."""

    name: str
    address: int
    access: str
    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class FifoPort:
    """A range of ``size`` bytes in which every word is the same FIFO; ``wo`` or ``ro``."""

    name: str
    address: int
    size: int
    access: str
    text: str


def word_register(name: str, address: int, access: str, text: str, reset: int = 0) -> Register:
    """A register with one field of 32 bits, ``value``."""
    return Register(name, address, access, text, (Field("value", 0, 32, access, text, reset),))


MAGIC = int.from_bytes(b"WEFT", "little")
VERSION = 4  # of the registers of all kinds of core: another order, number or meaning is another

LATENCY = 20  # cycles that an address must be stable before its register can be read

_KINDS = PRODUCT, NETWORK, LANGUAGE
_FIELDS = dataclasses.fields(Config)

# The first registers of a core of any kind, with their meanings.
IDENTITY = {
    "magic": "the bytes WEFT",
    "version": "version of the core's registers",
    "kind": ", ".join(f"{n} {kind}" for n, kind in enumerate(_KINDS)),
    "hash": "hash of all parameters",
}
# The registers of a Config's fields, with their meanings.
FIELDS = {f.name: f.metadata["text"] for f in _FIELDS}
COUNTERS = {
    "busy": "cycles with an unfinished job, a command in progress or an arriving word",
    "active": "cycles in which the sequencer sent operands into the array",
    "starved": "cycles in which a job waited for its operands",
    "stalled": "cycles in which a job waited for space for its results",
    "words_in": "words accepted from the command stream",
    "words_out": "words sent to the result stream",
    "finished": "jobs that ended, with any status",
    "errors": "invalid command headers, which were dropped",
}
REGISTERS = [*IDENTITY, *FIELDS, *COUNTERS]


def describe(config: Config) -> list[int]:
    """The constant registers of ``config``, in the order of `REGISTERS`."""
    return [*identity(config), *describe_fields(config)]


def decode(words: list[int]) -> Config:
    """The Config that the constant registers ``words`` describe.

    Raises ValueError if the words are not from a product core of this version, or contradict each
    other.
    """
    identify(words, PRODUCT, len(REGISTERS) - len(COUNTERS))
    config = decode_fields(words[len(IDENTITY) :])
    check_hash(words, config)
    return config


def identity(design: CoreDesign) -> list[int]:
    """The first registers of the core of ``design``, in the order of `IDENTITY`."""
    return [MAGIC, VERSION, _KINDS.index(design.kind), design.hash]


_AGAIN = (
    "if Weft made the core, make it again with this version: weft build BOARD, then weft program"
    " BOARD; for an IP core weft generate"
)


def kind_of(words: list[int]) -> str:
    """The kind of the core whose first registers are ``words``, as in `weft.design`.

    Raises ValueError if they are not the registers of a core of this version of Weft.
    """
    magic, version, kind = words[:3]
    if magic != MAGIC:
        raise ValueError(
            f"register magic must be 0x{MAGIC:08x} ('WEFT'), not 0x{magic:08x}; {_AGAIN}"
        )
    if version != VERSION:
        raise ValueError(f"register version must be {VERSION}, not {version}; {_AGAIN}")
    if kind >= len(_KINDS):
        raise ValueError(f"register kind must be under {len(_KINDS)}, not {kind}")
    return _KINDS[kind]


def identify(words: list[int], kind: str, count: int) -> None:
    """Raise ValueError unless ``words`` are ``count`` or more registers of a core of ``kind``."""
    if len(words) < count:
        raise ValueError(f"registers must be {count} or more, not {len(words)}")
    if (found := kind_of(words)) != kind:
        raise ValueError(f"the core must be a {kind}, not a {found}")


def check_hash(words: list[int], design: CoreDesign) -> None:
    """Raise ValueError unless the hash in ``words`` is the one of the design that they describe."""
    found = words[[*IDENTITY].index("hash")]
    if design.hash != found:
        raise ValueError(
            f"register hash must be 0x{design.hash:08x} for its own fields, not 0x{found:08x}"
        )


def describe_fields(config: Config) -> list[int]:
    """The registers of the fields of ``config``, in the order of `FIELDS`.

    A choice is encoded as its index, False as 0, True as 1.
    """
    return [_encode(f, getattr(config, f.name)) for f in _FIELDS]


def decode_fields(words: list[int], prefix: str = "") -> Config:
    """The Config whose fields are in ``words``; the names of their registers have ``prefix``.

    Raises ValueError for a word that no Config has.
    """
    values = {}
    for f, word in zip(_FIELDS, words, strict=False):
        choices = _choices(f)
        if choices and word >= len(choices):
            raise ValueError(f"register {prefix}{f.name} must be under {len(choices)}, not {word}")
        values[f.name] = choices[word] if choices else word
    return Config.from_dict(values)


def _encode(f, value) -> int:
    choices = _choices(f)
    return choices.index(value) if choices else value


def _choices(f):
    """The choices of a field, in the order of their indices; None if the field is a number."""
    return (False, True) if "flag" in f.metadata else f.metadata.get("choices")
