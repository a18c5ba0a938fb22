"""Register accesses to a simulated Weft core over AMBA APB3."""

import logging
import random

from cocotb.triggers import ClockCycles
from cocotbext.apb import Apb3Bus, ApbHost


class RegisterMaster:
    """A master on the core's register slave."""

    def __init__(self, dut, clock, reset):
        self.clock, self.error, self.rng = clock, dut.pslverr, None
        # The bus is given without pslverr: the model would raise an exception for each error.
        self.master = ApbHost(Apb3Bus(dut, None), clock, seednum=1)
        self.master.log.setLevel(logging.WARNING)

    def pause(self, seed, probability):
        """Wait some cycles before each access."""
        self.rng = random.Random(seed)

    async def access(self, address, value=None):
        """Read a word, or write ``value``: the word read (or None), and whether no error came."""
        if self.rng:
            await ClockCycles(self.clock, 1 + self.rng.randrange(4))
        if value is None:
            word = int.from_bytes(await self.master.read(address), "little")
        else:
            word = await self.master.write(address, value)
        # The model returns in the last cycle of the transfer.
        return word, not int(self.error.value)
