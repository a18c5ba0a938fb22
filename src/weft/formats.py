"""Number formats of an accelerator: operands, sums and narrow results."""

from dataclasses import dataclass

__all__ = ["FORMATS", "Format", "Number"]


@dataclass(frozen=True)
class Number:
    """A number format: ``name`` as in numpy, and width in ``bits``."""

    name: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8


@dataclass(frozen=True)
class Format:
    """The formats of a core: operands A and B, sums, and narrow results."""

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
