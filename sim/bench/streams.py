"""Both ends of the core: a driver of commands, a monitor of results that checks the protocol."""

from collections import deque
from typing import NamedTuple

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.types import LogicArray

__all__ = ["CommandDriver", "ResultMonitor", "ResultWord", "number", "on_icarus"]


class ResultWord(NamedTuple):
    """A word of the result stream."""

    data: int
    last: int
    status: int
    tag: int


def number(handle) -> int:
    """The value of a signal, which must be known in all its bits."""
    value = handle.value
    if not value.is_resolvable:
        raise AssertionError(f"{handle._name} must be known in all its bits, not {value}")
    return int(value)


def on_icarus() -> bool:
    """Whether this simulator knows X."""
    return cocotb.SIM_NAME.lower().startswith("icarus")


class CommandDriver:
    """Offers words on the command stream, and keeps each there until it is taken.

    Parameters
    ----------
    dut : handle
    rng : random.Random
    idle : int
        Percentage of cycles in which no new word is offered.

    Attributes
    ----------
    taken : int
        Words that the core took.
    """

    def __init__(self, dut, rng, idle):
        self.idle = idle
        self.taken = 0
        self._dut = dut
        self._rng = rng
        self._words = deque()
        self._offered = False
        size = len(dut.cmd_data)
        self._bytes = size // 8
        # Between words the data are worth nothing; only Icarus can say so.
        self._nothing = LogicArray("X" * size) if on_icarus() else (1 << size) - 1

    @property
    def pending(self) -> int:
        """Words not taken yet."""
        return len(self._words)

    def send(self, data: bytes):
        """Queue ``data``, padded with zeros to whole words."""
        for start in range(0, len(data), self._bytes):
            self._words.append(int.from_bytes(data[start : start + self._bytes], "little"))

    def drop(self):
        """Forget all words, and withdraw the one on offer: for a reset."""
        self._words.clear()
        self._offered = False
        self._dut.cmd_valid.value = 0

    async def run(self):
        """Drive, for ever."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        dut.cmd_valid.value = 0
        dut.cmd_data.value = self._nothing
        while True:
            await edge
            if self._offered:
                if not number(dut.cmd_ready):
                    continue
                self._words.popleft()
                self.taken += 1
                self._offered = False
                if not self._go():
                    dut.cmd_valid.value = 0
                    dut.cmd_data.value = self._nothing
                    continue
            elif not self._go():
                continue
            self._offered = True
            dut.cmd_valid.value = 1
            dut.cmd_data.value = self._words[0]

    def _go(self):
        return self._words and self._rng.randrange(100) >= self.idle


class ResultMonitor:
    """Takes words of the result stream, and checks how they are offered.

    A word on offer stays, and stays the same, until it is taken; all its bits are known.

    Parameters
    ----------
    dut : handle
    rng : random.Random
    stall : int
        Percentage of cycles in which it is not ready.
    deliver : callable
        Given each `ResultWord` that is taken.

    Attributes
    ----------
    taken : int
    """

    def __init__(self, dut, rng, stall, deliver):
        self.stall = stall
        self.taken = 0
        self._dut = dut
        self._rng = rng
        self._deliver = deliver
        self._waiting = None

    def drop(self):
        """Forget the word on offer: for a reset."""
        self._waiting = None

    async def run(self):
        """Take and check, for ever."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        ready = False
        dut.res_ready.value = 0
        while True:
            await edge
            if number(dut.rst):
                continue
            if number(dut.res_valid):
                word = ResultWord(
                    number(dut.res_data), number(dut.res_last),
                    number(dut.res_status), number(dut.res_tag),
                )
                if self._waiting not in (None, word):
                    raise AssertionError(
                        f"a result word on offer must stay the same until it is taken:"
                        f" {self._waiting} became {word}"
                    )
                self._waiting = word
                if ready:
                    self._waiting = None
                    self.taken += 1
                    self._deliver(word)
            elif self._waiting is not None:
                raise AssertionError(
                    f"a result word on offer must stay until it is taken: {self._waiting} did not"
                )
            now = self._rng.randrange(100) >= self.stall
            if now != ready:
                ready = now
                dut.res_ready.value = int(ready)
