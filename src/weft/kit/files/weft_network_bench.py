"""The memory of a simulated network core: transfers through its registers, and lists."""

import json
import struct
from pathlib import Path

import numpy as np
from weft_pauses import pauses

DESIGN = json.loads(Path(__file__).with_name("design.json").read_text(encoding="utf-8"))
PORTS, BANKS, DEPTH = DESIGN["fifo_ports"], DESIGN["banks"], DESIGN["depth"]
PROGRAM_BYTES = DESIGN["program_bytes"]  # of the program memory, if there is one
PROGRAM_AT = 1 << 12  # bus address of the program memory
END = struct.pack("<I", DESIGN["end"]).ljust(128, b"\0")  # a list without jobs


def address(vector):
    """The address of a vector, as registers and lists have it."""
    return vector // BANKS << 8 | vector % BANKS


class DataPath:
    """Transfers to the memory and from it, and the memory on the AXI4 master, if there is one."""

    def __init__(self, core):
        self.core, self.program = core, None
        if PROGRAM_BYTES:
            from cocotbext.axi import AxiBus, AxiRam

            self.program = AxiRam(
                AxiBus.from_prefix(core.dut, "m_axi"), core.clock, core.reset,
                reset_active_level=False, mem=bytearray(PROGRAM_AT + PROGRAM_BYTES),
            )

    def pause(self, seed, probability):
        """Pause each channel of the program memory at random; the register master pauses, too."""
        if self.program:
            write, read = self.program.write_if, self.program.read_if
            channels = [write.aw_channel, write.w_channel, write.b_channel, read.ar_channel,
                        read.r_channel]
            for n, channel in enumerate(channels):
                channel.set_pause_generator(pauses(seed + n, probability))

    async def write(self, vector, data, layout=0, row_step=0):
        """Write bytes from a vector on; ``layout`` is a word of MEMORY_LAYOUT."""
        core, free = self.core, 0
        await core.write("memory_address", address(vector))
        await core.write("memory_layout", layout)
        await core.write("memory_row_step", row_step)
        await core.write("memory_write", len(data))
        for word in np.frombuffer(data + bytes(-len(data) % 4), "<u4").tolist():
            while not free:
                free = await core.read("write_fifo_free")
            assert (await core.access(PORTS["write_fifo"], word))[1]
            free -= 1
        await core.until("status", "memory_busy", 0)

    async def read(self, vector, count):
        """Read bytes from a vector on."""
        core, data = self.core, b""
        await core.write("memory_address", address(vector))
        await core.write("memory_read", count)
        while len(data) < count:
            for _ in range(await core.read("read_fifo_level")):
                value, ok = await core.access(PORTS["read_fifo"])
                assert ok
                data += value.to_bytes(4, "little")
        return data[:count]

    async def write_list(self, vector, data):
        """Write a list, or what it loads, to the memory that has lists."""
        if self.program:
            first = PROGRAM_AT + vector * DEPTH
            self.program.mem[first : first + len(data)] = data
        else:
            await self.write(vector, data)

    async def read_log(self, vector, count):
        """Read bytes of the memory that has lists and their logs."""
        if not self.program:
            return await self.read(vector, count)
        first = PROGRAM_AT + vector * DEPTH
        return bytes(self.program.mem[first : first + count])

    async def start(self, vector, log):
        """Open the whole memory to lists, and start one."""
        core = self.core
        await core.write("base", 0)
        await core.write("limit", DESIGN["words"])
        if self.program:
            await core.write("program_base", PROGRAM_AT)
            await core.write("program_limit", PROGRAM_BYTES // (BANKS * DEPTH))
        await core.write("list_address", address(vector))
        await core.write("log_address", address(log))
        await core.write("control", start=1)

    async def run(self, vector, log):
        """Run a list: the state at its end, its error and its jobs."""
        await self.start(vector, log)
        await self.core.until("status", "list_busy", 0)
        return [await self.core.read("net_status", name) for name in ("state", "error", "jobs")]
