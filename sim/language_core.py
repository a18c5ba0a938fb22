"""A simulated language core: its memories, and texts that it writes."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.language_core.latencies import SELECTED
from weft.sim import build, verilated
from weft.sim.model_process import ModelProcess

__all__ = ["LanguageSimulation", "SimulatedText", "language_model"]

HARNESS = Path(__file__).with_name("language.cpp")
_LIMIT = 50_000_000  # cycles in which a text must end
NO_TOKEN = 0xFFFF  # stops no text


@dataclass(frozen=True)
class SimulatedText:
    """What a core wrote.

    Attributes
    ----------
    finished : bool
        False if the simulation reached its limit of cycles.
    error : CoreError
    position : int
        The first one that has not been computed.
    simulated : int
        Cycles from the start to the end.
    cycles : list of int
        Of each position.
    tokens : list of int
        The emitted ones.
    """

    finished: bool
    error: CoreError
    position: int
    simulated: int
    cycles: list[int]
    tokens: list[int]


def language_model(config: LanguageCoreConfig) -> Path:
    """The executable model of ``config``, from the cache or newly built.

    Raises weft.sim.tools.ToolError if a tool is missing or does not compile the model.
    """
    def verilog():
        from weft.hw import export
        from weft.hw.language_core.core import language_core

        return export.to_verilog(language_core(config), name="language", model=True)

    return verilated.executable(
        "language", config.name, *build.design(verilog, repr(config)), HARNESS,
        top="language", defines=[f"READ_LATENCY={SELECTED}"],
    )


class LanguageSimulation(ModelProcess):
    """A Verilated language core. It is a context manager; the simulation ends with it.

    Parameters
    ----------
    config : LanguageCoreConfig
    """

    def __init__(self, config: LanguageCoreConfig):
        super().__init__(language_model(config))
        self.config = config

    def write(self, data: bytes, first: int = 0):
        """Write parameter groups of the main memory, 8 bytes each, from group ``first`` on."""
        self._write(0, first, data)

    def read(self, first: int, count: int) -> bytes:
        """The bytes of ``count`` parameter groups from group ``first`` on."""
        self._send(b"R" + struct.pack("<2I", first, count))
        return self._receive(8 * count)

    def write_tables(self, entries):
        """Write the entries of the tables: bases and slopes, [entries, 2]."""
        padded = np.pad(np.asarray(entries).astype(np.int64) & 0xFFFF, ((0, 0), (0, 2)))
        self._write(1, 0, padded.astype("<u2").tobytes())

    def run(
        self, prompt, limit: int, *, first_position: int = 0, list_word: int = 0,
        stop_token: int = NO_TOKEN, seed: int = 1, cycles: int = _LIMIT, abort: int = 0,
        stall: int = 0,
    ) -> SimulatedText:
        """Write a text.

        Parameters
        ----------
        prompt : list of int
            At least one token.
        limit : int
            The first position that is not computed.
        first_position : int
            That of the first token of the prompt.
        list_word : int
            Word of the list.
        stop_token : int
            The text ends after it.
        seed : int
            The state of the register of random numbers, 1 to 2**32 - 1.
        cycles : int
            Cycles after which the simulation gives up.
        abort : int
            Cycle after the start in which it is aborted; 0: no abort.
        stall : int
            Cycles in which each token waits for the host.
        """
        numbers = (
            list_word, first_position, limit, stop_token, seed, len(prompt), cycles, abort, stall,
        )
        self._send(b"S" + struct.pack(f"<{len(numbers) + len(prompt)}I", *numbers, *prompt))
        finished, error, position, simulated, *counts = struct.unpack("<6I", self._receive(24))
        per_position, tokens = (
            list(struct.unpack(f"<{count}I", self._receive(4 * count))) for count in counts
        )
        return SimulatedText(
            bool(finished), CoreError(error), position, simulated, per_position, tokens
        )

    def _write(self, table, first, data):
        count, rest = divmod(len(data), 8)
        if rest:
            raise ValueError(f"data must be whole groups of 8 bytes, not {len(data)} bytes")
        self._send(b"W" + struct.pack("<3I", table, first, count) + data)
