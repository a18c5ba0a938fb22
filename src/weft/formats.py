"""The number formats of an accelerator: what goes in, how it is summed, how results may leave."""

from dataclasses import dataclass

__all__ = ["FORMATS", "Format", "Number"]


@dataclass(frozen=True)
class Number:
    """A type of number: its ``name`` as numpy has it, and its ``bits``."""

    name: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8


@dataclass(frozen=True)
class Format:
    """The types of a core: of both operands, of its sums, and of results made narrow."""

    a: Number
    b: Number
    acc: Number
    narrow: Number


_INT8, _BFLOAT16 = Number("int8", 8), Number("bfloat16", 16)

# By the dtype of a Config.
FORMATS = {
    "int8": Format(a=_INT8, b=_INT8, acc=Number("int32", 32), narrow=_INT8),
    "bf16": Format(a=_BFLOAT16, b=_BFLOAT16, acc=Number("float32", 32), narrow=_BFLOAT16),
}
