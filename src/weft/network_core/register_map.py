"""The register space of a network core behind a bus; ``docs/ip.md`` describes it."""

import contextlib
import dataclasses
import itertools

from weft import registers
from weft.config import ConfigError
from weft.design import NETWORK
from weft.network_core.config import OPTIONS, SIZES, TEXTS, NetworkCoreConfig
from weft.registers import FIELDS, IDENTITY, Field, FifoPort, Register, word_register

__all__ = [
    "LATENCY", "REGISTERS", "STATE", "constants", "decode", "describe",
    "network_fifo_ports", "network_interrupts", "network_registers",
]


# The registers of a network core: constants that describe its NetworkCoreConfig, then its state.
# Register n is the 32-bit word at address n. The first ones are `weft.registers.IDENTITY`.

LATENCY = 4  # cycles that an address must be stable before its register can be read

_HASH = [*registers.IDENTITY].index("hash")
_ARRAY = "array_"  # before the names of the fields of the array's Config
# Options need no registers: the hash tells which ones are on. So a new option changes no core
# without it.
STATE = ["net_status", "net_cycles", "net_result", "net_result_bytes"]
REGISTERS = [
    *registers.IDENTITY, *(_ARRAY + name for name in registers.FIELDS), *SIZES, "vectors", *STATE,
]


def describe(config: NetworkCoreConfig) -> list[int]:
    """The constant registers of ``config``: all of `REGISTERS` before `STATE`."""
    return [
        *registers.identity(config), *registers.describe_fields(config.array),
        *(int(getattr(config, name)) for name in SIZES), config.vectors,
    ]


def decode(words: list[int]) -> NetworkCoreConfig:
    """The NetworkCoreConfig that the constant registers ``words`` describe.

    Raises ValueError if the words are not from a network core of this version, or contradict
    each other.
    """
    registers.identify(words, NETWORK, len(REGISTERS) - len(STATE))
    sizes = REGISTERS.index(SIZES[0])
    array = registers.decode_fields(words[len(registers.IDENTITY) : sizes], _ARRAY)
    try:
        config = NetworkCoreConfig.from_dict(array, dict(zip(SIZES, words[sizes:], strict=False)))
    except ConfigError as error:
        raise ValueError(f"registers do not describe a NetworkCoreConfig: {error}") from error
    config = next((c for c in _with_options(config) if c.hash == words[_HASH]), config)
    registers.check_hash(words, config)
    return config


def _with_options(config):
    """Yield the config with each set of options."""
    for chosen in itertools.product((False, True), repeat=len(OPTIONS)):
        with contextlib.suppress(ConfigError):  # no core has these options
            yield dataclasses.replace(config, **dict(zip(OPTIONS, chosen, strict=True)))


# The register space of an IP core: these registers, and those of its bus.

_TEXTS = {
    **{name: TEXTS[name] for name in SIZES},
    "vectors": "vectors that the memory holds",
}


def constants(config) -> dict[str, int]:
    """The values of the constant registers of a NetworkCoreConfig, by name."""
    return dict(zip(REGISTERS, describe(config), strict=False))


def network_interrupts() -> tuple[Field, ...]:
    """The bits of IRQ_STATUS; IRQ_ENABLE has the same bits."""
    return tuple(Field(name, bit, 1, "w1c", text) for bit, (name, text) in enumerate((
        ("done", "a list ended"),
        ("failed", "a list ended with an error, or was aborted"),
        ("access_error", "the bus answered an access with an error"),
        ("overflow", "a word for WRITE_FIFO was dropped: no space, or no transfer that expects it"),
        ("underflow", "READ_FIFO was read while it was empty"),
        ("refused", "a start of a list or of a transfer was ignored"),
    )))


def network_registers(*, program: bool = False) -> tuple[Register, ...]:
    """All registers, in the order of their addresses; ``program``: with a program memory."""
    return (
        *_core_registers(), *_control_registers(), *_memory_registers(),
        *(_program_registers() if program else ()),
    )


def network_fifo_ports() -> tuple[FifoPort, ...]:
    """The FIFO ports: data of transfers to the memory and from it."""
    return (
        FifoPort("write_fifo", 0x800, 0x400, "wo", "appends a word to the data of a memory_write"),
        FifoPort("read_fifo", 0xC00, 0x400, "ro", "removes the next word of the data read"),
    )


def _core_registers():
    """The registers of `weft.network_core.register_map`."""
    texts = {
        **IDENTITY,
        **{f"array_{name}": f"field of the array: {text}" for name, text in FIELDS.items()},
        **_TEXTS,
    }
    state = {
        "net_status": ("state of the core, and of its running or last list", (
            Field("state", 0, 8, "ro", "0 idle, 1 running, 2 done, 3 aborted, 4 error"),
            Field("error", 8, 8, "ro",
                  "0 none, 1 opcode, 2 field, 3 address, 4 deadlock, 5 aborted, 6 bus, 7 timeout"),
            Field("jobs", 16, 16, "ro", "number of jobs that have ended"),
        )),
        "net_result": ("address of the result that END named; valid in state done", (
            Field("bank", 0, 8, "ro", "bank of its first vector"),
            Field("word", 8, 24, "ro", "word of its first vector"),
        )),
    }
    words = texts | {
        "net_cycles": "cycles since START, or of the last list",
        "net_result_bytes": "bytes of the result that END named; valid in state done",
    }
    return [
        Register(name, 4 * n, "ro", *state[name]) if name in state
        else word_register(name, 4 * n, "ro", words[name])
        for n, name in enumerate(REGISTERS)
    ]


def _control_registers():
    irqs = network_interrupts()
    return [
        Register("control", 0x400, "wo", "starts a soft reset, an abort or a list", (
            Field("reset", 0, 1, "pulse",
                  "soft reset: ends list and transfer, and clears IRQ_STATUS; the memory stays"),
            Field("abort", 1, 1, "pulse", "aborts the running list"),
            Field("start", 2, 1, "pulse",
                  "starts the list at LIST_ADDRESS; refused while list_busy or reset_busy is 1, and"
                  " unless all bases and limits are legal"),
        )),
        Register("status", 0x404, "ro", "activity of the core and its wrapper", (
            Field("list_busy", 0, 1, "ro", "a list was started and has not ended"),
            Field("reset_busy", 1, 1, "ro", "a soft reset is in progress"),
            Field("memory_busy", 2, 1, "ro", "a transfer is in progress"),
        )),
        Register("irq_status", 0x408, "rw", "events that happened; write 1 to clear", irqs),
        Register("irq_enable", 0x40C, "rw", "events that raise irq", tuple(
            dataclasses.replace(f, access="rw") for f in irqs
        )),
        word_register("list_address", 0x410, "rw", "address of the list that START starts"),
        word_register("log_address", 0x414, "rw", "address of its log"),
    ]


def _memory_registers():
    return [
        word_register("write_fifo_free", 0x418, "ro", "words that WRITE_FIFO has space for"),
        word_register("read_fifo_level", 0x41C, "ro", "words in READ_FIFO"),
        word_register("base", 0x420, "rw", "first word of each bank that a list may use"),
        word_register("limit", 0x424, "rw", "first word of each bank that a list may not use"),
        word_register("memory_address", 0x428, "rw", "address of the first vector of a transfer"),
        Register("memory_layout", 0x42C, "rw", "layout of the data to write", (
            Field("run", 0, 8, "rw", "bytes of a pixel; 0: whole vectors that follow each other"),
            Field("pitch", 8, 8, "rw", "vectors from pixel to pixel"),
            Field("pixels", 16, 16, "rw", "pixels of a row"),
        )),
        word_register("memory_row_step", 0x430, "rw",
                      "address step from the last pixel of a row to the next row"),
        word_register("memory_write", 0x434, "wo",
                      "starts to write so many bytes, which come through WRITE_FIFO"),
        word_register("memory_read", 0x438, "wo",
                      "starts to read so many bytes, which go to READ_FIFO"),
    ]


def _program_registers():
    return [
        word_register("program_base", 0x43C, "rw",
                      "address of the program memory: a multiple of the bytes of a beat"),
        word_register("program_limit", 0x440, "rw",
                      "first word of each bank of the program memory that a list may not use"),
    ]
