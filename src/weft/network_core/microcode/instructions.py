"""The instructions of the micro engine: 16 bits each, executed in one cycle or after a wait.

A word without bit 15 has an operation in bits 14..12, and its operand in bits 7..0: a register, a
port or a strobe. Bit 8 of ADD stores the sum in the register, too. A word with bit 15 tests a
condition: bits 14..12 select it, bit 11 inverts it, bits 10..9 have the `Kind`, and bits 8..0 the
target of a jump.
"""

from enum import IntEnum, IntFlag

__all__ = [
    "ADDED_READ", "CAPTURE", "Condition", "DRAIN", "FIRST_INSTRUCTION", "HEAD_REGISTERS", "In",
    "JUMP", "Kind", "LOAD_END", "LOAD_VECTOR", "Op", "Out", "PROGRAM_WORDS", "READ", "REGISTERS",
    "SLOT", "STEP", "STORE", "SUMS", "Strobe", "TILE_START", "WRITE", "Wait",
]

PROGRAM_WORDS = 512
REGISTERS = 256
HEAD_REGISTERS = 16  # the last ones: half of them belong to each head, which selects its own


class Op(IntEnum):
    """What an instruction does with the accumulator."""

    LD = 0  # accumulator = register
    ADD = 1  # accumulator += register; sets the carry
    SUB = 2  # accumulator -= register; sets the carry: no borrow
    AND = 3  # accumulator &= register
    ST = 4  # register = accumulator
    IN = 5  # accumulator = port
    OUT = 6  # port = accumulator; waits until the port accepts
    DO = 7  # a strobe; waits until it is done


class Kind(IntEnum):
    """What an instruction with a condition does."""

    JUMP = 0  # goes to its target if the condition holds
    BAD = 1  # the descriptor has a wrong field if the condition holds
    USED = 2  # the descriptor uses a bit that must be 0 if the condition holds


class Condition(IntEnum):
    """The conditions. Each one can be inverted."""

    ALWAYS = 0
    ZERO = 1  # the accumulator is 0
    CARRY = 2
    HEAD = 3  # the head of loads is selected
    IS_BAD = 4  # a field of the descriptor is wrong
    IS_USED = 5  # a bit of the descriptor that must be 0 is 1


class In(IntEnum):
    """The ports that an instruction reads. With READ it reads a vector first."""

    LOW = 0  # of the memory data: bits 15..0
    HIGH = 1  # bits 31..16
    ADDRESS = 2  # bits 23..8: the word of an address
    BASE = 3
    LIMIT = 4
    READ = 8  # memory data = vector; the address moves on; ADDRESS checks its bank


class Out(IntEnum):
    """The ports that an instruction writes."""

    MEMORY = 0  # the address of the next access
    WRITE_LOW = 1  # writes two bytes of a vector to the memory
    WRITE_HIGH = 2  # writes its other bytes; the address moves on
    STATE = 3  # state and error; the list ends
    JOB = 4
    RESULT = 5
    RESULT_BYTES = 6
    FLAGS = 7
    KERNEL = 8
    TAP_VECTORS = 9
    HEIGHT = 10
    WIDTH = 11
    DILATION = 12
    TAP_X = 13
    TAP_Y = 14
    LINE = 15
    ADD_LINE = 16
    OUTSIDE = 17  # and zero
    LIMITS = 18  # low and high
    SUM_ZERO = 19
    SUM_LIMITS = 20
    X = 21
    Y = 22
    ORIGIN = 23
    B = 24
    ADDED = 25  # the first vector of a pixel of the added map
    OUTPUT = 26  # the first vector of a pixel of the output map; waits for the one before
    TILE = 27  # starts a tile with so many columns to come; waits for the steps of the one before
    LOAD_FLAGS = 28
    LOAD_TARGET = 29
    LOAD_WORD = 30
    LOAD_WORDS = 31


class Strobe(IntFlag):
    """The strobes of DO."""

    ZEROS = 1  # read a vector: its bits must be 0; the address moves on
    CYCLES = 2  # memory data = cycles since the start of the list
    CLEAR = 4  # no field is wrong, and no bit is used
    JOBS = 8  # select the head of jobs
    LOADS = 16  # select the head of loads
    LOAD = 32  # execute the load
    DRAIN = 64  # wait for the last store of the job
    START = 128  # a job starts


class Wait(IntEnum):
    """What an instruction waits for, beside a read."""

    WRITE = 0  # WRITE_LOW and WRITE_HIGH: until the memory has taken the bytes
    OUTPUT = 1
    TILE = 2
    LOAD = 3
    DRAIN = 4


FIRST_INSTRUCTION = 2  # from the start of the list
JUMP = 1  # that a jump takes more than other instructions
READ = 2  # the same of a read of a vector
WRITE = 1  # the same of a write
LOAD_VECTOR = 2  # of a load, for each vector
LOAD_END = 1  # from the last write of a load to the end of its instruction

TILE_START = 2  # from the start of a tile to its first step
STEP = 2  # from a step to the next one
CAPTURE = 4  # from the last step of a tile to the cycle before its held sums
SLOT = 1  # from the start of a job to its first slot
SUMS = 1  # from the biased sums of a column to the output unit
STORE = 2  # from the last result of a tile to its store
DRAIN = 2  # from the last store of a job to the end of the instruction that waits for it
ADDED_READ = 2  # from the last byte of an added vector to the read of the next one
