"""The calls that a network core takes, and the frames that carry them on a link."""

import struct
from dataclasses import dataclass
from typing import Protocol

from weft.frames import MAX_DATA, PROGRAM_BIT, FrameType
from weft.host.link import Frame
from weft.host.transport import TransportError
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListError, ListReport, NetworkState, split
from weft.sdram import SdramPhase

__all__ = ["REFUSED", "MemoryLayout", "NetworkFrames", "NetworkTransport", "status_of"]

REFUSED = "the core cannot start a list: another one runs, or the core was reset"

_WRITE = struct.Struct("<IBBHI")  # address and layout in front of the data of WRITE
_PAIR = struct.Struct("<II")  # payload of READ_MEMORY and of START; first words of DONE


@dataclass(frozen=True)
class MemoryLayout:
    """Where the vectors of a write lie; see ``docs/network-core.md``. The default: in a row.

    Attributes
    ----------
    run : int
        Bytes of a pixel; 0: whole vectors that follow each other.
    pitch : int
        Vectors from pixel to pixel.
    pixels : int
        Pixels of a row.
    row_step : int
        Address step from the last pixel of a row to the next row.
    """

    run: int = 0
    pitch: int = 0
    pixels: int = 0
    row_step: int = 0


class NetworkTransport(Protocol):
    """What `weft.host.network_driver.NetworkDriver` uses of a connection to a network core.

    Methods raise `TransportError` if the connection fails. One with a ``timeout`` raises
    `TransportTimeout` without an answer in that time.

    """

    def open_program(self, config: NetworkCoreConfig) -> int:
        """Return the bytes of the program memory that lists may use; 0 without one.

        It precedes the calls for this memory. ``config`` is the one of the core.
        """

    def write_program(self, offset: int, data: bytes, timeout: float) -> None:
        """Write bytes to the program memory; return when it has them."""

    def read_program(self, offset: int, size: int, timeout: float) -> bytes:
        """Return bytes of the program memory."""

    def program_crc(self, offset: int, size: int, timeout: float) -> int | None:
        """Return the CRC-32 of at most `weft.frames.MAX_CHECK` bytes of the program memory.

        None for a memory that the host writes itself, without a link.
        """

    def move_sdram_phase(self, steps: int, timeout: float) -> SdramPhase | None:
        """Make the clock of a board's SDRAM later by 0 or 1 steps, and return its phase.

        None without such a clock.
        """

    def restart_lists(self, timeout: float) -> None:
        """End a running list, and forget what the core has not accepted."""

    def write_memory(self, address: int, layout: MemoryLayout, data: bytes) -> None:
        """Queue a write of at most ``write_bytes`` of the core to its memory."""

    def flush(self, timeout: float) -> None:
        """Wait until the core has accepted all writes, and the start of a list."""

    def read_memory(self, address: int, count: int, timeout: float) -> bytes:
        """Return ``count`` bytes of the memory, at most `weft.frames.MAX_DATA`."""

    def start_list(self, list_address: int, log_address: int) -> None:
        """Queue the start of a list."""

    def list_end(self) -> ListReport | None:
        """Return how the list of the last `start_list` ended.

        Returns None if the answer does not come soon or is lost: registers have the state. Raises
        TransportError if the core did not start the list.
        """

    def read(self, address: int, count: int, timeout: float) -> list[int]:
        """Return the values of ``count`` registers, from word ``address`` on."""

    def abort(self, timeout: float) -> None:
        """End the running list, if any."""

    def close(self) -> None:
        """Release the core. Closing twice has no effect."""


class NetworkFrames:
    """The calls of a `NetworkTransport` as frames; base class of the links that carry them."""

    _list = 0  # number of the last START frame
    _core: NetworkCoreConfig  # after `open_program`

    def post(self, frame_type: FrameType, payload: bytes) -> int:
        """Queue a frame that the core acknowledges; return its sequence number."""
        raise NotImplementedError

    def request(
        self, frame_type: FrameType, payload: bytes, answer_type: FrameType, timeout: float
    ) -> bytes:
        """Send a frame; return the payload of its answer."""
        raise NotImplementedError

    def receive_list(self, number: int) -> Frame | None:
        """Return the answer to the START frame with this number: DONE, or an ERROR; or None."""
        raise NotImplementedError

    def write_memory(self, address: int, layout: MemoryLayout, data: bytes) -> None:
        """Queue a WRITE frame."""
        fields = layout.run, layout.pitch, layout.pixels, layout.row_step
        self.post(FrameType.WRITE, _WRITE.pack(address, *fields) + data)

    def read_memory(self, address: int, count: int, timeout: float) -> bytes:
        """Return the bytes that READ_MEMORY asks for."""
        payload = _PAIR.pack(address, count)
        data = self.request(FrameType.READ_MEMORY, payload, FrameType.DATA, timeout)
        if len(data) != count:
            raise TransportError(f"expected {count} bytes of the memory, received {len(data)}")
        return data

    def flush(self, timeout: float) -> None:
        """Wait until the core has accepted all frames."""
        raise NotImplementedError

    def open_program(self, config: NetworkCoreConfig) -> int:
        """Return the bytes of the program memory, which the board has for the core alone."""
        self._core = config
        return config.program_bytes

    def write_program(self, offset: int, data: bytes, timeout: float) -> None:
        """Send WRITE frames, and wait until the core has accepted them."""
        piece = self._core.write_bytes // self._core.array.depth * self._core.array.depth
        for start in range(0, len(data), piece):
            address = self._program_address(offset + start)
            self.write_memory(address, MemoryLayout(), data[start : start + piece])
        self.flush(timeout)

    def read_program(self, offset: int, size: int, timeout: float) -> bytes:
        """Return the bytes that READ_MEMORY asks for."""
        piece = MAX_DATA // self._core.array.depth * self._core.array.depth
        return b"".join(
            self.read_memory(
                self._program_address(offset + start), min(piece, size - start), timeout
            )
            for start in range(0, size, piece)
        )

    def program_crc(self, offset: int, size: int, timeout: float) -> int:
        """Return the CRC-32 that READ_MEMORY asks for."""
        payload = _PAIR.pack(self._program_address(offset), size | 1 << PROGRAM_BIT)
        data = self.request(FrameType.READ_MEMORY, payload, FrameType.DATA, timeout)
        if len(data) != 4:
            raise TransportError(f"expected 4 bytes of a CRC, received {len(data)}")
        return int.from_bytes(data, "little")

    def move_sdram_phase(self, steps: int, timeout: float) -> SdramPhase | None:
        """Write a byte behind the program memory; return what lies there, if it is a phase."""
        register = 1 << SdramPhase.place(self._core.program_bytes)
        if steps:
            self.write_program(register, bytes(1), timeout)
        # Two beats are equal, so that no word of a memory is taken for a phase.
        size = self._core.beat_bytes
        first, second = (self.read_program(register + n * size, 4, timeout) for n in range(2))
        return SdramPhase.of_word(int.from_bytes(first, "little")) if first == second else None

    def _program_address(self, offset):
        """Return the address, in a frame, of the vector with byte ``offset``."""
        return split(offset // self._core.array.depth, self._core.banks) | 1 << PROGRAM_BIT

    def start_list(self, list_address: int, log_address: int) -> None:
        """Queue a START frame."""
        self._list = self.post(FrameType.START, _PAIR.pack(list_address, log_address))

    def list_end(self) -> ListReport | None:
        """Return the report in DONE; None if it does not come soon."""
        frame = self.receive_list(self._list)
        if frame is None:
            return None
        if frame.type == FrameType.ERROR:
            raise TransportError(REFUSED)
        status, cycles = _PAIR.unpack_from(frame.payload)
        return status_of(status, cycles, frame.payload[_PAIR.size :])[1]


def status_of(status: int, cycles: int, result: bytes = b"") -> tuple[NetworkState, ListReport]:
    """Return what the registers NET_STATUS and NET_CYCLES say, which are in DONE, too."""
    report = ListReport(ListError(status >> 8 & 0xFF), status >> 16, result, cycles)
    return NetworkState(status & 0xFF), report
