"""The registers of a network core: constants that describe its NetworkCoreConfig, then its state.

Register n is the 32-bit word at address n.
"""

from weft import registers
from weft.config import ConfigError
from weft.network_core.config import NetworkCoreConfig

__all__ = ["LATENCY", "MAGIC", "REGISTERS", "VERSION", "decode", "describe"]

MAGIC = int.from_bytes(b"WNET", "little")
VERSION = 2

LATENCY = 4  # cycles that an address must be stable before its register can be read

_CORE = registers.REGISTERS[: -len(registers.COUNTERS)]
_SIZES = ["words", "b_words", "lines", "read_vectors"]
_PROGRAM = 16  # bit of register read_vectors: above it log2 of program_words, or 0
_STATE = ["NET_MEMORY", "NET_STATUS", "NET_CYCLES", "NET_RESULT", "NET_RESULT_BYTES"]
# The registers of `weft.registers` describe the Config of the array.
REGISTERS = ["magic", "version", "hash", *(f"core_{name}" for name in _CORE), *_SIZES, *_STATE]


def describe(config: NetworkCoreConfig) -> list[int]:
    """The constant registers of ``config``: all of `REGISTERS` up to NET_MEMORY."""
    sizes = [getattr(config, name) for name in _SIZES]
    if config.program_words:
        sizes[-1] |= (config.program_words.bit_length() - 1) << _PROGRAM
    return [MAGIC, VERSION, config.hash, *registers.describe(config.array), *sizes, config.vectors]


def decode(words: list[int]) -> NetworkCoreConfig:
    """The NetworkCoreConfig that the constant registers ``words`` describe.

    Raises ValueError if the words are not from a network core of this version, or contradict
    each other.
    """
    count = REGISTERS.index("NET_STATUS")
    if len(words) < count:
        raise ValueError(f"registers must be {count} or more, not {len(words)}")
    if words[0] == registers.MAGIC:
        raise ValueError("the core must be a network core, not one for matrix products")
    if words[0] != MAGIC:
        raise ValueError(f"register magic must be 0x{MAGIC:08x} ('WNET'), not 0x{words[0]:08x}")
    if words[1] != VERSION:
        raise ValueError(f"register version must be {VERSION}, not {words[1]}")
    core = registers.decode(words[3 : 3 + len(_CORE)])
    sizes = dict(zip(_SIZES, words[3 + len(_CORE) :], strict=False))
    program = sizes["read_vectors"] >> _PROGRAM
    sizes["read_vectors"] &= (1 << _PROGRAM) - 1
    sizes["program_words"] = 1 << program if program else 0
    try:
        config = NetworkCoreConfig(array=core, **sizes)
    except ConfigError as error:
        raise ValueError(f"registers do not describe a NetworkCoreConfig: {error}") from error
    if config.hash != words[2]:
        raise ValueError(
            f"register hash must be 0x{config.hash:08x} for its own fields, not 0x{words[2]:08x}"
        )
    return config
