"""The registers of a network core as docs/ip.md defines them, with the golden runner of lists.
"""

import random
import struct

import numpy as np
from golden_network_board import GoldenNetworkBoard

from weft.frames import FrameType
from weft.host.link import Frame
from weft.network_core.descriptors import NetworkState
from weft.network_core.ip import NetworkIp
from weft.network_core.register_map import REGISTERS
from weft.register_map import fifo_ports, registers

__all__ = ["NetworkRegisterModel"]

DONE, FAILED, REFUSED = 1, 2, 32
BUS_SPACE = 1 << 16  # bytes of the memory of the bus, beside two program memories


class SilentBoard(GoldenNetworkBoard):
    """A golden board whose frames nobody needs."""

    def say(self, frame):
        pass


class NetworkRegisterModel:
    """Registers whose FIFOs hold a few words, and whose lists and transfers take some reads.

    Attributes
    ----------
    board : GoldenNetworkBoard
        Memory and lists.
    stuck : str
        A field of STATUS that never becomes 0, or a FIFO that never has space or words.
    log : list of (name, value)
        All writes except of data.
    reads : int
        All reads.
    bus_memory : array of uint8
        The memory of the bus, from address 0 on, if the core has a program memory.
    """

    def __init__(self, config, *, bus="axi", seed=1, stuck=""):
        self.config, self.stuck, self.log, self.closed = config, stuck, [], 0
        self.board = SilentBoard(config)
        self.random = random.Random(seed)
        ip = NetworkIp(config=config, bus=bus)
        self.map = {item.address: item for item in (*registers(ip), *fifo_ports(ip))}
        self.values = dict.fromkeys((
            "irq_status", "irq_enable", "list_address", "log_address", "base", "limit",
            "memory_address", "memory_layout", "memory_row_step", "program_base", "program_limit",
        ), 0)
        self.bus_memory = np.full(2 * config.program_bytes + BUS_SPACE, 0x5A, np.uint8)
        self.free = self.level = self.reads = 0  # of the FIFOs, as read last; accesses
        self.reset()

    def reset(self):
        """The effect of a soft reset."""
        self.board.reset()
        self.busy = {"list_busy": 0, "reset_busy": 3, "memory_busy": 0}  # reads of STATUS
        self.missing, self.written, self.found = 0, b"", b""
        self.values["irq_status"] = 0

    def power_on(self):
        """The effect of a loss of power: no memory keeps its data."""
        self.values = dict.fromkeys(self.values, 0)
        self.board.memory[:] = 0xC3
        self.bus_memory[:] = 0xC3
        self.reset()

    @property
    def writes(self):
        """The names of the written registers, in order."""
        return [name for name, _ in self.log]

    def read(self, address):
        self.reads += 1
        name = self._item(address, "ro").name
        if address < 4 * len(REGISTERS):
            return self.board.registers()[address // 4]
        if name == "status":
            return self._status()
        if name == "write_fifo_free":
            self.free = 0 if self.stuck == "write_fifo" else self.random.randint(0, 20)
            return self.free
        if name == "read_fifo_level":
            most = min(-(-len(self.found) // 4), 20)
            self.level = 0 if self.stuck == "read_fifo" else self.random.randint(0, most)
            return self.level
        if name == "read_fifo":
            assert self.level > 0, "no word may be read from an empty FIFO"
            self.level -= 1
            word, self.found = self.found[:4], self.found[4:]
            return int.from_bytes(word, "little")
        return self.values[name]

    def write(self, address, value):
        assert 0 <= value < 1 << 32
        name = self._item(address, "wo").name
        if name == "write_fifo":
            return self._write_word(value)
        self.log.append((name, value))
        if name == "control":
            return self._control(value)
        if name == "irq_status":
            self.values[name] &= ~value
            return None
        if name in ("memory_write", "memory_read"):
            return self._transfer(name, value)
        self.values[name] = value
        return None

    def close(self):
        self.closed += 1

    def _item(self, address, access):
        item = next(
            (one for one in self.map.values()
             if one.address <= address < one.address + getattr(one, "size", 4)), None,
        )
        assert address % 4 == 0 and item and item.access in (access, "rw"), hex(address)
        return item

    def _status(self):
        value = 0
        for bit, name in enumerate(self.busy):
            if self.busy[name] and self.stuck != name:
                self.busy[name] -= 1
            value |= (self.busy[name] > 0) << bit
        if self.board.running and not self.busy["list_busy"]:
            self.board.finish()
            failed = self.board.state != NetworkState.DONE
            self.values["irq_status"] |= DONE | FAILED * failed
        if self.missing:
            value |= 4
        return value

    def _control(self, value):
        if value & 1:
            self.reset()
        if value & 2:
            self.values["irq_status"] |= (DONE | FAILED) * (self.board.running is not None)
            self.board.abort()
            self.busy["list_busy"] = 0
        if value & 4:
            # A driver has told of a memory that stays busy.
            if self.stuck != "memory_busy":
                assert not self.busy["memory_busy"], "a list must start after all writes"
            legal = self.values["base"] < self.values["limit"] <= self.config.words
            legal = legal and self._place_program()
            if self.board.running or not legal or self.busy["reset_busy"]:
                self.values["irq_status"] |= REFUSED
                return
            addresses = struct.pack("<2I", self.values["list_address"], self.values["log_address"])
            self.board.running = Frame(FrameType.START, 0, addresses)
            self.board.state = NetworkState.RUNNING
            self.busy["list_busy"] = 4

    def _place_program(self):
        """Give the board its program memory; whether its registers are legal."""
        base, limit = self.values["program_base"], self.values["program_limit"]
        if not self.config.program_words:
            return True
        if base % self.config.beat_bytes or not 0 < limit <= self.config.program_words:
            return False
        self.board.program = self.bus_memory[base : base + self.config.program_bytes]
        return True

    def _transfer(self, name, count):
        if self.missing or self.busy["memory_busy"] or self.found:
            self.values["irq_status"] |= REFUSED
        elif name == "memory_write":
            self.missing, self.written = count, b""
        else:
            self.found = self.board.bytes_at(self.values["memory_address"], count)

    def _write_word(self, value):
        assert self.free > 0, "no word may be written without space"
        self.free -= 1
        assert self.missing > 0, "no word may be written that no transfer expects"
        word = value.to_bytes(4, "little")[: self.missing]
        self.missing -= len(word)
        self.written += word
        if word and not self.missing:
            names = "memory_address", "memory_layout", "memory_row_step"
            fields = struct.pack("<3I", *(self.values[name] for name in names))
            self.board.write(fields + self.written)
            self.busy["memory_busy"] = 2
