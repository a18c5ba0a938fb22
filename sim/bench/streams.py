"""A driver of the command stream, and a monitor that checks the result stream's protocol."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.types import LogicArray

from weft.sim.scenario import ResultWord

__all__ = ["CommandDriver", "ResultMonitor", "number", "on_icarus"]


def number(handle) -> int:
    """The value of a signal; AssertionError if a bit is X or Z."""
    text = str(handle.value)
    try:
        return int(text, 2)  # faster than the conversion of cocotb
    except ValueError:
        raise AssertionError(f"{handle._name} must be known in all its bits, not {text}") from None


def on_icarus() -> bool:
    """Whether the simulator is Icarus, which simulates X."""
    return cocotb.SIM_NAME.lower().startswith("icarus")


class CommandDriver:
    """Drives the command stream; each word stays valid until it is taken.

    Parameters
    ----------
    dut : handle
    rng : random.Random
    idle : int
        Percentage of cycles in which no new word becomes valid.

    Attributes
    ----------
    words : deque of int
        Words to send.
    taken : int
        Words that the core has taken.
    """

    def __init__(self, dut, rng, idle):
        self.idle = idle
        self.taken = 0
        self._dut = dut
        self._rng = rng
        self.words = deque()
        self._valid = False
        size = len(dut.cmd_data)
        # Between words the data is X on Icarus, and all ones on a simulator without X.
        self._no_data = LogicArray("X" * size) if on_icarus() else (1 << size) - 1

    @property
    def pending(self) -> int:
        """Number of words not taken yet."""
        return len(self.words)

    def clear(self):
        """Discard all words and clear ``cmd_valid``: for a reset."""
        self.words.clear()
        self._valid = False
        self._dut.cmd_valid.value = 0

    async def run(self):
        """Drive the stream, in an endless task."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        dut.cmd_valid.value = 0
        dut.cmd_data.value = self._no_data
        while True:
            await edge
            if self._valid:
                if not number(dut.cmd_ready):
                    continue
                self.words.popleft()
                self.taken += 1
                self._valid = False
                if not self._next_valid():
                    dut.cmd_valid.value = 0
                    dut.cmd_data.value = self._no_data
                    continue
            elif not self._next_valid():
                continue
            self._valid = True
            dut.cmd_valid.value = 1
            dut.cmd_data.value = self.words[0]

    def _next_valid(self):
        return self.words and self._rng.randrange(100) >= self.idle


class ResultMonitor:
    """Takes words of the result stream and checks its protocol.

    A valid word must stay, unchanged, until it is taken, and no bit may be X.

    Parameters
    ----------
    dut : handle
    rng : random.Random
    stall : int
        Percentage of cycles in which the monitor is not ready.
    deliver : callable
        Called with each `ResultWord` that is taken.

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
        self._pending = None

    def clear(self):
        """Forget the pending word: for a reset."""
        self._pending = None

    async def run(self):
        """Take and check words, in an endless task."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        reset, valid = dut.rst, dut.res_valid
        fields = dut.res_data, dut.res_last, dut.res_status, dut.res_tag
        ready = False
        dut.res_ready.value = 0
        while True:
            await edge
            if number(reset):
                continue
            if number(valid):
                word = ResultWord(*map(number, fields))
                if self._pending not in (None, word):
                    raise AssertionError(
                        f"a valid result word must not change until it is taken:"
                        f" {self._pending} became {word}"
                    )
                self._pending = word
                if ready:
                    self._pending = None
                    self.taken += 1
                    self._deliver(word)
            elif self._pending is not None:
                raise AssertionError(
                    f"a valid result word must stay until it is taken; {self._pending} did not"
                )
            next_ready = self._rng.randrange(100) >= self.stall
            if next_ready != ready:
                ready = next_ready
                dut.res_ready.value = int(ready)
