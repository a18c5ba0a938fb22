"""Delay: a value as it was some cycles ago."""

from dataclasses import dataclass

from amaranth.hdl import Signal, Value

__all__ = ["MultiCycle", "pipeline"]


def pipeline(m, value, cycles, name):
    """``value``, ``cycles`` cycles later; it need not be reset, for what it means comes with it."""
    shape = value.shape()
    for cycle in range(cycles):
        register = Signal(shape, name=f"{name}_{cycle + 1}", reset_less=True)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


@dataclass(frozen=True)
class MultiCycle:
    """A ``value`` that stays for ``cycles`` cycles: as long, it is late without a register."""

    value: Value
    cycles: int

    def later(self, m, cycles, name):
        """It, ``cycles`` cycles later, for as long as it then still stays."""
        free = min(cycles, self.cycles - 1)
        return MultiCycle(pipeline(m, self.value, cycles - free, name), self.cycles - free)
