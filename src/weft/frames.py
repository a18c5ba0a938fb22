"""The frames that carry the core's streams over a byte pipe; see ``docs/interfaces.md``."""

from enum import IntEnum

__all__ = [
    "CHECK_BITS", "MAX_CHECK", "MAX_DATA", "MAX_PAYLOAD", "MAX_WRITE", "PROGRAM_BIT", "SYNC",
    "WRITE_FIELDS", "FrameType",
]

SYNC = b"WF"  # the first two bytes of every frame
MAX_PAYLOAD = 256  # maximum payload of a frame to a board, and of results in a frame, in bytes
# Frames of a network core, in bytes. Two WRITE frames, each with the 6 bytes of its header
# that follow SYNC, fit in a block RAM of 2,048 bytes.
WRITE_FIELDS = 12  # payload of a WRITE before its data
MAX_WRITE = WRITE_FIELDS + 1000  # maximum payload of a WRITE
MAX_DATA = 1024  # maximum payload of DATA, and maximum result in DONE
# With a program memory. Bit of the address in WRITE and READ_MEMORY: it is one of this memory.
# Addresses have no such bit, because they are not negative. And of the count in READ_MEMORY: DATA
# has the CRC-32 of these bytes, at most `MAX_CHECK`, instead of the bytes.
PROGRAM_BIT = 31
MAX_CHECK = 1 << 16
CHECK_BITS = MAX_CHECK.bit_length()


class FrameType(IntEnum):
    """Third byte of a frame: the kind of its payload. The host sends types below 0x80."""

    COMMANDS = 1
    READ = 2
    ABORT = 3
    WRITE = 4  # from here on to a network core
    READ_MEMORY = 5
    START = 6
    RESULTS = 0x81
    REGISTERS = 0x82
    ABORTED = 0x83
    ACK = 0x84
    DATA = 0x85
    DONE = 0x86
    ERROR = 0xFF
