"""What the tests of `weft.jax` and `weft.torch` share: golden cores, random numbers."""

import numpy as np
import pytest

from weft import Accelerator, Config
from weft.commands import Load, Region
from weft.host import GoldenTransport
from weft.host.transport import TransportError

__all__ = ["INT8", "CountingTransport", "bf16", "int8", "rng"]

INT8 = Config(rows=4, cols=4, depth=2, lanes=1)


class CountingTransport(GoldenTransport):
    """A golden core that notes the bytes that it gets, and fails or is interrupted when told.

    Attributes
    ----------
    loads : list of int
        Bytes of each load of B.
    sent : int
        Bytes of all commands.
    fails : bool
        Whether the next commands are lost.
    stops : int
        1: the user interrupts the next commands; 2: those after them.
    """

    def __init__(self, config):
        super().__init__(config)
        self.loads, self.sent, self.fails, self.stops = [], 0, False, 0

    def send(self, commands):
        if self.fails:
            raise TransportError("the cable is out")
        if self.stops:
            self.stops -= 1
            if not self.stops:
                raise KeyboardInterrupt
        self.sent += len(commands.encode())
        self.loads += [len(data) for load, data in commands
                       if isinstance(load, Load) and load.operand == Region.B]
        super().send(commands)

    def taken(self):
        """The loads of B since the last call."""
        loads, self.loads = self.loads, []
        return loads


@pytest.fixture
def bf16():
    return Accelerator(GoldenTransport(Config(dtype="bf16", rows=4, cols=4, lanes=1)))


@pytest.fixture
def int8():
    return Accelerator(GoldenTransport(INT8))


@pytest.fixture
def rng():
    return np.random.default_rng(54)
