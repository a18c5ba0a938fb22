"""The transport to a network core behind a bus: calls become accesses to registers."""

import time

from weft.design import NETWORK
from weft.host.dma import DmaMemory
from weft.host.mmio import RegisterNames, RegisterTransport, progress
from weft.host.network_frames import REFUSED, MemoryLayout
from weft.host.transport import TransportError
from weft.network_core.register_map import REGISTERS, decode, network_fifo_ports, network_registers

__all__ = ["NetworkMmioTransport"]

_POLL = 0.2  # seconds in which `list_end` looks for the end of a list
_WRITE_STUCK = "the core wrote no data to its memory"
_READ_STUCK = "the core read no data of its memory"


class NetworkMmioTransport(RegisterTransport):
    """A `weft.host.network_frames.NetworkTransport` that polls registers.

    It begins with a soft reset, and lets lists use the whole memory. It has the parameters of
    `RegisterTransport`; ``timeout`` also limits the time without progress while data are written.

    Parameters
    ----------
    program : weft.host.dma.DmaMemory, optional
        The area that is the program memory, if the core has one. Its address is a multiple of the
        bytes of a beat, and no list reads or writes outside it.

    Raises
    ------
    ValueError
        If the core has a program memory and ``program`` is absent, too small or not aligned, or if
        it has none and ``program`` is given.
    """

    KIND = "a network core"
    NAMES = RegisterNames(network_registers(program=True), network_fifo_ports())
    CORE_REGISTERS = len(REGISTERS)
    DECODE = decode

    def __init__(self, access, timeout: float = 10.0, *, program: DmaMemory | None = None):
        self._timeout = timeout
        self._program = program
        super().__init__(access, timeout)

    def _describe(self, timeout):
        config = super()._describe(timeout)
        if config.program_words:
            _check_program(config, self._program)
        elif self._program is not None:
            raise ValueError("program must be absent: the core has no program memory")
        return config

    def kind_of_core(self, timeout: float) -> str:
        """Return `NETWORK` of `weft.design`: the registers are of no other core."""
        return NETWORK

    def write_program(self, offset: int, data: bytes) -> None:
        """Write bytes of the program memory."""
        self._program_memory().write(offset, data)

    def read_program(self, offset: int, size: int) -> bytes:
        """Return bytes of the program memory."""
        return self._program_memory().read(offset, size)

    def _program_memory(self):
        self._check()
        if self._program is None:
            raise ValueError("the core must have a program memory")
        return self._program

    @property
    def program_bytes(self) -> int:
        """Bytes of the program memory that lists may use; 0 without one."""
        if not self._config.program_words:
            return 0
        return _program_limit(self._config, self._program) * _row(self._config)

    def close(self) -> None:
        """Release the registers and the program memory."""
        super().close()
        if self._program is not None:
            self._program.close()

    def restart_lists(self, timeout: float) -> None:
        """Reset the core, but not its memory."""
        self._check()
        self._reset(timeout)

    def _reset(self, timeout):
        super()._reset(timeout)
        self._write("base", 0)
        self._write("limit", self._config.words)
        if self._config.program_words:
            self._write("program_base", self._program.address)
            self._write("program_limit", _program_limit(self._config, self._program))

    def write_memory(self, address: int, layout: MemoryLayout, data: bytes) -> None:
        """Write bytes to the memory; the core may still store the last ones."""
        self._check()
        if data:
            self._transfer("memory_write", address, layout, len(data))
            self._write_words(data)

    def flush(self, timeout: float) -> None:
        """Wait until the memory has all data."""
        self._wait("memory_busy", timeout, _WRITE_STUCK)

    def read_memory(self, address: int, count: int, timeout: float) -> bytes:
        """Return ``count`` bytes of the memory."""
        self._transfer("memory_read", address, MemoryLayout(), count)
        found = bytearray()
        last_move = time.monotonic()
        while len(found) < count:
            level = self._read("read_fifo_level")
            for _ in range(level):
                found += self._read("read_fifo").to_bytes(4, "little")
            last_move = progress(level > 0, last_move, timeout, _READ_STUCK)
        return bytes(found[:count])

    def start_list(self, list_address: int, log_address: int) -> None:
        """Start a list when the memory has the data of all writes."""
        self._check()
        self.flush(self._timeout)
        self._write("list_address", list_address)
        self._write("log_address", log_address)
        self._write("irq_status", self.NAMES.bits("irq_status", "refused"))
        self._write("control", self.NAMES.bits("control", "start"))

    def list_end(self) -> None:
        """Return when the list has ended, or does not end soon: `NetworkDriver` reads its state.

        Raises TransportError if the core did not start it.
        """
        deadline = time.monotonic() + _POLL
        while self._read("status") & self.NAMES.bits("status", "list_busy"):
            if time.monotonic() > deadline:
                return
        if self._read("irq_status") & self.NAMES.bits("irq_status", "refused"):
            raise TransportError(REFUSED)

    def _transfer(self, register, address, layout, count):
        """Start a transfer, when the one before has ended."""
        self._wait("memory_busy", self._timeout, _WRITE_STUCK)
        self._write("memory_address", address)
        self._write("memory_layout", layout.run | layout.pitch << 8 | layout.pixels << 16)
        self._write("memory_row_step", layout.row_step)
        self._write(register, count)

    def _write_words(self, data):
        """Write the data of a transfer, as WRITE_FIFO has space."""
        words = [
            int.from_bytes(data[start : start + 4], "little") for start in range(0, len(data), 4)
        ]
        first, last_move = 0, time.monotonic()
        while first < len(words):
            count = min(self._read("write_fifo_free"), len(words) - first)
            for word in words[first : first + count]:
                self._write("write_fifo", word)
            first += count
            last_move = progress(count > 0, last_move, self._timeout, _WRITE_STUCK)


def _row(config):
    """Return the bytes of a word of all banks."""
    return config.banks * config.array.depth


def _program_limit(config, program):
    """Return the words of each bank that ``program`` holds."""
    return min(config.program_words, program.size // _row(config))


def _check_program(config, program):
    """Raise ValueError if ``program`` cannot be the program memory."""
    if program is None:
        raise ValueError(
            "program must be the memory of lists and weights, since the core has a program memory:"
            " NetworkMmioTransport(registers, program=...)"
        )
    if program.address % config.beat_bytes:
        raise ValueError(
            f"address of program must be a multiple of {config.beat_bytes}, not"
            f" {program.address:#x}"
        )
    if program.address + program.size > 1 << 32:
        raise ValueError(
            f"program must lie below 0x100000000, not {program.size:#x} bytes from"
            f" {program.address:#x}"
        )
    if program.size < _row(config):
        raise ValueError(f"program must have at least {_row(config)} bytes, not {program.size}")
