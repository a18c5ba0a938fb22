"""The frames that carry a core's streams over bytes; ``docs/interfaces.md`` tells the story."""

from enum import IntEnum

__all__ = ["FRAME", "MARK", "FrameType"]

MARK = b"WF"  # what a frame starts with
FRAME = 256  # bytes of payload, at most, of a frame to a board


class FrameType(IntEnum):
    """Third byte of a frame: what its payload is."""

    COMMANDS = 1
    READ = 2
    ABORT = 3
    RESULTS = 0x81
    REGISTERS = 0x82
    ABORTED = 0x83
    TAKEN = 0x84
    ERROR = 0xFF
