"""The frames that carry the core's streams over a byte pipe; see ``docs/interfaces.md``."""

from enum import IntEnum

__all__ = ["MAX_PAYLOAD", "SYNC", "FrameType"]

SYNC = b"WF"  # the first two bytes of every frame
MAX_PAYLOAD = 256  # maximum payload of a frame to a board, and of results in a frame, in bytes


class FrameType(IntEnum):
    """Third byte of a frame: the kind of its payload. The host sends the first three."""

    COMMANDS = 1
    READ = 2
    ABORT = 3
    RESULTS = 0x81
    REGISTERS = 0x82
    ABORTED = 0x83
    ACK = 0x84
    ERROR = 0xFF
