"""The assembler of the micro engine: labels, names of registers, and constants."""

from weft.network_core.microcode.instructions import (
    HEAD_REGISTERS,
    PROGRAM_WORDS,
    REGISTERS,
    Condition,
    In,
    Kind,
    Op,
    Out,
    Strobe,
)

__all__ = ["Assembler"]

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
