"""Commands and results of a simulated Weft core, through its FIFO ports."""

import numpy as np
from weft_commands import CommandStream
from weft_packing import DESIGN

PORTS = DESIGN["fifo_ports"]


class DataPath(CommandStream):
    """The FIFO ports of a core."""

    RAISES_DONE = True  # the driver advances a product by interrupts

    def __init__(self, core):
        self.core = core

    def pause(self, seed, probability):
        """Nothing to do: the register master pauses."""

    def driver_memory(self, size):
        """Memory of the C driver for operands and results, in bytes."""
        return np.zeros(size, np.uint8)

    async def send(self, data):
        words, free = np.frombuffer(data, "<u4").tolist(), 0
        for word in words:
            while not free:
                free = await self.core.read("cmd_fifo_free")
            assert (await self.core.access(PORTS["cmd_fifo"], word))[1]
            free -= 1

    async def receive(self):
        core = self.core
        await core.until("result_level", "complete", 1)
        count, status, tag = [
            await core.read("result_level", "words"), await core.read("result_level", "status"),
            await core.read("result_tag", "tag"),
        ]
        data = b""
        for _ in range(count):
            value, ok = await core.access(PORTS["result_fifo"])
            assert ok
            data += value.to_bytes(4, "little")
        return data, tag, status
