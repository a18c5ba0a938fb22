"""Number formats: of operands, sums and results."""

from dataclasses import dataclass

__all__ = ["Number"]


@dataclass(frozen=True)
class Number:
    """A number format: ``name`` as in numpy, and width in ``bits``."""

    name: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8
