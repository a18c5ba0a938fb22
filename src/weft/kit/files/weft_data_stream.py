"""Commands and results of a simulated Weft core, through AXI4-Stream."""

import numpy as np
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from weft_commands import CommandStream
from weft_pauses import pauses


class DataPath(CommandStream):
    """The two streams of a core."""

    RAISES_DONE = False  # the driver computes a whole product at once

    def __init__(self, core):
        reset = {"reset": core.reset, "reset_active_level": False}
        source, sink = (AxiStreamBus.from_prefix(core.dut, name) for name in ("s_axis", "m_axis"))
        self.source = AxiStreamSource(source, core.clock, **reset)
        self.sink = AxiStreamSink(sink, core.clock, **reset)

    def pause(self, seed, probability):
        """Pause each stream at random."""
        for n, end in enumerate((self.source, self.sink)):
            end.set_pause_generator(pauses(seed + n, probability))

    def driver_memory(self, size):
        """Memory of the C driver for operands and results, in bytes."""
        return np.zeros(size, np.uint8)

    async def send(self, data):
        await self.source.send(AxiStreamFrame(data))

    async def receive(self):
        frame = await self.sink.recv()
        frame.normalize()
        return bytes(frame.tdata), frame.tid[-1], frame.tuser[-1]
