"""The register space of an IP core: the one description of it, for hardware, drivers and documents.

4 KiB of 32-bit words. The lowest 1 KiB is the core's own block (`weft.registers`); behind it lie
what controls it, and the windows that commands and results pass through where the bus has no
streams. An access that the description does not know, a write of less than a word, a write to what
is read-only or a read of what is write-only is **refused**: answered by the bus's error, without
effect, and noted in IRQ_STATUS.
"""

import dataclasses
from dataclasses import dataclass

from weft.config import Config
from weft.ip import Ip
from weft.registers import COUNTERS, REGISTERS

__all__ = ["SPACE", "Field", "FifoPort", "Register", "fifo_ports", "interrupts", "registers"]

SPACE = 0x1000  # bytes
DESCRIPTOR_WORDS = 16


@dataclass(frozen=True)
class Field:
    """Some bits of a register.

    ``access`` is ``ro``, ``rw``, ``pulse`` (a 1 written acts once; reads as 0) or ``w1c`` (set by
    the hardware, cleared by writing a 1). ``reset`` is its value after a reset, where software
    writes it.
    """

    name: str
    low: int
    width: int
    access: str
    text: str
    reset: int = 0


@dataclass(frozen=True)
class Register:
    """A 32-bit word at a byte address; ``access`` is ``ro``, ``wo`` or ``rw``."""

    name: str
    address: int
    access: str
    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class FifoPort:
    """Words that lead to one place, whichever of them is accessed; ``wo`` or ``ro``."""

    name: str
    address: int
    size: int
    access: str
    text: str


def _word(name, address, access, text, reset=0):
    kind = "rw" if access == "rw" else "ro"
    return Register(name, address, access, text, (Field("value", 0, 32, kind, text, reset),))


def interrupts(ip: Ip) -> tuple[Field, ...]:
    """The bits of IRQ_STATUS and, at the same places, of IRQ_ENABLE."""
    all_of_them = (
        ("done", True, "a job has ended, and its results have left the core"),
        ("failed", True, "a job has ended with a status that is not 0"),
        ("refused", True, "an access was refused"),
        ("overflow", ip.bus != "stream", "more was written than there was room for, and dropped"),
        ("underflow", ip.windows, "a result was read where none may be"),
        ("fetch_error", ip.bus == "dma", "a read of memory was answered by an error"),
        ("store_error", ip.bus == "dma", "a write to memory was answered by an error"),
        ("bad_descriptor", ip.bus == "dma", "a descriptor asked for what is not done; dropped"),
        ("bad_address", ip.bus == "dma", "the descriptor would leave the address space or window"),
    )
    return tuple(
        Field(name, bit, 1, "w1c", text)
        for bit, (name, there, text) in enumerate(all_of_them) if there
    )


def registers(ip: Ip) -> tuple[Register, ...]:
    """All registers of ``ip``, in the order of their addresses."""
    texts = {
        "magic": "the bytes WEFT", "version": "of the core's register block",
        "hash": "of the Config",
        **{f.name: f"of the Config: {f.metadata['text']}" for f in dataclasses.fields(Config)},
        **COUNTERS,
    }
    found = [_word(name, 4 * n, "ro", texts[name]) for n, name in enumerate(REGISTERS)]
    irqs = interrupts(ip)
    status = [
        Field("busy", 0, 1, "ro", "a job or a command is under way in the core"),
        Field("resetting", 1, 1, "ro", "a soft reset is under way"),
    ]
    if ip.bus == "dma":
        status.append(Field("moving", 2, 1, "ro", "a descriptor or results are under way"))
    found += [
        Register("control", 0x400, "wo", "what is done once", (
            Field("reset", 0, 1, "pulse", "soft reset: all is forgotten but IRQ_ENABLE"),
            Field("abort", 1, 1, "pulse", "end the job at work"),
        )),
        Register("status", 0x404, "ro", "what goes on", tuple(status)),
        Register("irq_status", 0x408, "rw", "what has happened; write 1 to clear", irqs),
        Register("irq_enable", 0x40C, "rw", "what of it raises irq", tuple(
            dataclasses.replace(f, access="rw") for f in irqs
        )),
        _word("ended", 0x410, "ro", "jobs that have ended and whose results have left the core"),
        Register("last", 0x414, "ro", "the latest of them", (
            Field("tag", 0, 16, "ro", "its tag"),
            Field("status", 16, 8, "ro", "1 aborted, 2 rejected"
                  f"{', 4 read error, 8 write error' if ip.bus == 'dma' else ''}, 0 right"),
        )),
    ]
    if ip.windows:
        found += [
            _word("command_room", 0x418, "ro", "words that COMMANDS takes at once"),
            Register("result_level", 0x41C, "ro", "what RESULTS has", (
                Field("words", 0, 16, "ro", "that may be read at once, all of one job"),
                Field("complete", 16, 1, "ro", "the job's last word is among them"),
                Field("status", 24, 8, "ro", "how that job ended, where it is complete"),
            )),
            Register("result_tag", 0x420, "ro", "whose they are", (
                Field("tag", 0, 16, "ro", "the job's tag, where it is complete"),
            )),
        ]
    if ip.bus == "dma":
        found += [
            *(
                _word(f"descriptor_{n}", 0x440 + 4 * n, "rw", f"word {n} of the next descriptor")
                for n in range(DESCRIPTOR_WORDS)
            ),
            Register("submit", 0x480, "wo", "what is written is done", (
                Field("go", 0, 1, "pulse", "queue the descriptor"),
            )),
            _word("descriptor_room", 0x484, "ro", "descriptors that the queue takes"),
        ]
    if ip.window:
        beat = ip.config.bytes_in
        found += [
            _word("dma_base", 0x488, "rw", f"first address of the window, in whole {beat} bytes"),
            _word("dma_limit", 0x48C, "rw", f"last address of the window, in whole {beat} bytes",
                  reset=0xFFFFFFFF),
        ]
    return tuple(found)


def fifo_ports(ip: Ip) -> tuple[FifoPort, ...]:
    """The windows of ``ip``."""
    if not ip.windows:
        return ()
    return (
        FifoPort("commands", 0x800, 0x400, "wo", "a word written goes to the command stream"),
        FifoPort("results", 0xC00, 0x400, "ro", "a word read is the next of the results"),
    )
