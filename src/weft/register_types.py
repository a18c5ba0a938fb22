"""Registers, their fields, and FIFO ports: what a register map consists of."""

from dataclasses import dataclass

__all__ = ["CORE_SPACE", "SPACE", "Field", "FifoPort", "Register", "word_register"]

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
