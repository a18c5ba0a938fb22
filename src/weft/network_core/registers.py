"""The registers of a network core: constants that describe its NetworkCoreConfig, then its state.

Register n is the 32-bit word at address n. The first ones are `weft.registers.IDENTITY`.
"""

import dataclasses

from weft import registers
from weft.config import ConfigError
from weft.design import NETWORK
from weft.network_core.config import NetworkCoreConfig

__all__ = ["LATENCY", "REGISTERS", "SIZES", "STATE", "decode", "describe"]

LATENCY = 4  # cycles that an address must be stable before its register can be read

_ARRAY = "array_"  # before the names of the fields of the array's Config
SIZES = [f.name for f in dataclasses.fields(NetworkCoreConfig) if f.name != "array"]
STATE = ["net_status", "net_cycles", "net_result", "net_result_bytes"]
REGISTERS = [
    *registers.IDENTITY, *(_ARRAY + name for name in registers.FIELDS), *SIZES, "vectors", *STATE,
]


def describe(config: NetworkCoreConfig) -> list[int]:
    """The constant registers of ``config``: all of `REGISTERS` before `STATE`."""
    return [
        *registers.identity(config), *registers.describe_fields(config.array),
        *(getattr(config, name) for name in SIZES), config.vectors,
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
        config = NetworkCoreConfig(array=array, **dict(zip(SIZES, words[sizes:], strict=False)))
    except ConfigError as error:
        raise ValueError(f"registers do not describe a NetworkCoreConfig: {error}") from error
    registers.check_hash(words, config)
    return config
