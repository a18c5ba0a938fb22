"""The core's read-only registers: constants that describe its Config, then counters."""

import dataclasses

from weft.config import Config

__all__ = ["COUNTERS", "FIELDS", "LATENCY", "MAGIC", "REGISTERS", "VERSION", "decode", "describe"]

MAGIC = int.from_bytes(b"WEFT", "little")
VERSION = 3

LATENCY = 20  # cycles that an address must be stable before its register can be read

_RAM_COLS = 16  # bit of register dsp_cols: above it ram_cols
_FIELDS = [f for f in dataclasses.fields(Config) if f.name != "ram_cols"]

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
# The registers of a Config's fields, with their meanings.
FIELDS = {f.name: f.metadata["text"] for f in _FIELDS}
FIELDS["dsp_cols"] += ". Bits 16 and up: ram_cols"
# Register n is the 32-bit word at address n.
REGISTERS = ["magic", "version", "hash", *FIELDS, *COUNTERS]


def describe(config: Config) -> list[int]:
    """The constant registers of ``config``, in the order of `REGISTERS`.

    A choice is encoded as its index, False as 0, True as 1. The upper half of ``dsp_cols`` is
    ``ram_cols``.
    """
    words = [MAGIC, VERSION, config.hash, *(_encode(f, getattr(config, f.name)) for f in _FIELDS)]
    words[REGISTERS.index("dsp_cols")] |= config.ram_cols << _RAM_COLS
    return words


def decode(words: list[int]) -> Config:
    """The Config that the constant registers ``words`` describe.

    Raises ValueError if the words are not from a core of this version, or contradict each other.
    """
    count = len(REGISTERS) - len(COUNTERS)
    if len(words) < count:
        raise ValueError(f"registers must be {count} or more, not {len(words)}")
    if words[0] != MAGIC:
        raise ValueError(f"register magic must be 0x{MAGIC:08x} ('WEFT'), not 0x{words[0]:08x}")
    if words[1] != VERSION:
        raise ValueError(f"register version must be {VERSION}, not {words[1]}")
    values = {}
    for f, word in zip(_FIELDS, words[3:], strict=False):
        choices = _choices(f)
        if choices and word >= len(choices):
            raise ValueError(f"register {f.name} must be under {len(choices)}, not {word}")
        values[f.name] = choices[word] if choices else word
    values["ram_cols"] = values["dsp_cols"] >> _RAM_COLS
    values["dsp_cols"] &= (1 << _RAM_COLS) - 1
    config = Config.from_dict(values)
    if config.hash != words[2]:
        raise ValueError(
            f"register hash must be 0x{config.hash:08x} for its own fields, not 0x{words[2]:08x}"
        )
    return config


def _encode(f, value) -> int:
    choices = _choices(f)
    return choices.index(value) if choices else value


def _choices(f):
    """The choices of a field, in the order of their indices; None if the field is a number."""
    return (False, True) if "flag" in f.metadata else f.metadata.get("choices")
