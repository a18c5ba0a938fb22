"""The instructions of the micro engine, 16 bits each, and their assembler."""

from enum import IntEnum, IntFlag

__all__ = [
    "ADDED_READ", "DRAIN", "FIRST_INSTRUCTION", "HEAD_REGISTERS", "JUMP", "LOAD_END",
    "PROGRAM_WORDS", "READ", "REGISTERS", "SLOT", "STORE", "SUMS",
    "TILE_START", "WRITE", "Assembler", "Condition", "In", "Kind", "Op", "Out", "Strobe", "Wait",
]


# The instructions of the micro engine: 16 bits each, executed in one cycle or after a wait.
#
# A word without bit 15 has an operation in bits 14..12, and its operand in bits 7..0: a register, a
# port or a strobe. Bit 8 of ADD stores the sum in the register, too. A word with bit 15 tests a
# condition: bits 14..12 select it, bit 11 inverts it, bits 10..9 have the `Kind`, and bits 8..0 the
# target of a jump.

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
    X = 5  # waits for the steps before; when the list ends, the vector of its result
    Y = 6  # when the list ends, the bytes of its result
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
    ORIGIN = 21
    B = 22
    ADDED = 23  # the first vector of a pixel of the added map
    OUTPUT = 24  # the first vector of a pixel of the output map; waits for the one before
    TILE = 25  # starts a tile; the columns behind its first one; waits likewise
    LOAD_FLAGS = 26
    LOAD_TARGET = 27
    LOAD_WORD = 28
    LOAD_WORDS = 29


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
LOAD_END = 1  # from the last write of a load to the end of its instruction

TILE_START = 1  # from the start of a tile to its first step
SLOT = 1  # from the start of a job to its first slot
SUMS = 1  # from the biased sums of a column to the output unit
STORE = 2  # from the last result of a tile to its store
DRAIN = 2  # from the last store of a job to the end of the instruction that waits for it
ADDED_READ = 2  # from the last byte of an added vector to the read of the next one


# The assembler: labels, names of registers, and constants.

_CONDITIONS = {
    "Z": (Condition.ZERO, 0), "NZ": (Condition.ZERO, 1),
    "C": (Condition.CARRY, 0), "NC": (Condition.CARRY, 1),
    "LOADS": (Condition.HEAD, 0),
    "ISBAD": (Condition.IS_BAD, 0), "ISUSED": (Condition.IS_USED, 0),
}
_HEADS = {"JOBS", "LOADS"}
_READS = "LD", "ADD", "SUB", "AND", "INC"


class Assembler:
    """Translates the text of a microprogram.

    A line has a label with a colon, or an instruction, or both; ``;`` separates instructions of a
    line, and ``#`` begins a comment. A register has a name, and exists from its first use on. A
    name that begins with ``head_`` stands for a register of the selected head. ``=5`` is a register
    with the constant 5. ``GET`` is IN after a read. ``INC x`` adds the accumulator to x, and both
    get the sum.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    words : list of int
        The program.
    labels : dict
        The word of each label, by name.
    registers : dict
        The number of each register, by name.
    constants : dict
        The value of each register that has a constant, by number.

    Raises
    ------
    ValueError
        For an unknown name, a register that is read but never stored, or right after its store or
        its selection, and a program or a set of registers that is too large.
    """

    def __init__(self, text):
        self.registers, self.constants, self.labels = {}, {}, {}
        self._heads = {}
        source = []
        for line in text.splitlines():
            for part in line.partition("#")[0].split(";"):
                words = part.split()
                while words and words[0].endswith(":"):
                    self.labels[words.pop(0)[:-1]] = len(source)
                if words:
                    source.append(words)
        if len(source) > PROGRAM_WORDS:
            raise ValueError(f"a microprogram must have at most {PROGRAM_WORDS} words, not"
                             f" {len(source)}")
        self.words = [self._word(*words) for words in source]
        self._check_reads(source)

    def _word(self, name, *operands):
        """The word of an instruction."""
        if name in ("J", "BAD", "USED"):
            kind = Kind.JUMP if name == "J" else Kind[name]
            *test, target = operands if kind == Kind.JUMP else (*operands, None)
            condition, inverted = (
                _named(_CONDITIONS, test[0]) if test else (Condition.ALWAYS, 0)
            )
            at = _named(self.labels, target) if target else 0
            return 1 << 15 | condition << 12 | inverted << 11 | kind << 9 | at
        if name == "GET":
            return Op.IN << 12 | In.READ | _named(In.__members__, operands[0])
        if name == "INC":
            return Op.ADD << 12 | 1 << 8 | self._register(operands[0])
        op = _named(Op.__members__, name)
        if op == Op.IN:
            operand = _named(In.__members__, operands[0])
        elif op == Op.OUT:
            operand = _named(Out.__members__, operands[0])
        elif op == Op.DO:
            operand = sum(_named(Strobe.__members__, strobe) for strobe in operands)
        else:
            operand = self._register(operands[0])
        return op << 12 | operand

    def _register(self, name):
        """The number of a register."""
        if name.startswith("head_"):
            first = REGISTERS - HEAD_REGISTERS
            number = self._heads.setdefault(name, first + len(self._heads))
            if number >= first + HEAD_REGISTERS // 2:
                raise ValueError(f"a head has at most {HEAD_REGISTERS // 2} registers: {name}")
            return number
        number = self.registers.setdefault(name, len(self.registers))
        if number >= REGISTERS - HEAD_REGISTERS:
            raise ValueError(f"no register is left for {name}")
        if name.startswith("="):
            self.constants[number] = int(name[1:], 0) & 0xFFFF
        return number

    def _check_reads(self, source):
        """A register has a value; a store and a head hold from the instruction after the next on.
        """
        stored = {second for first, *rest in source if first == "ST" for second in rest}
        for name, *operands in source:
            if name in _READS and not operands[0].startswith("=") and operands[0] not in stored:
                raise ValueError(f"{operands[0]} is read, but never stored")
        for first, second in zip(source, source[1:], strict=False):
            if second[0] not in _READS:
                continue
            if first[0] in ("ST", "INC") and second[1] == first[1]:
                raise ValueError(f"{second[1]} is read right after its store")
            if first[0] == "DO" and second[1].startswith("head_") and _HEADS & {*first[1:]}:
                raise ValueError(f"{second[1]} is read right after its head was selected")


def _named(members, name):
    """The value of a name."""
    if name not in members:
        raise ValueError(f"a name must be one of {', '.join(members)}, not {name}")
    return members[name]
