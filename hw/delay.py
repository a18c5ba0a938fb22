"""Delays: a value some cycles later, with registers or without."""

from dataclasses import dataclass

from amaranth.hdl import Signal, Value

__all__ = ["MultiCycle", "pipeline"]


def pipeline(m, value, cycles, name):
    """``value``, ``cycles`` cycles later.

    The registers have no reset: the value counts only with a flag that comes with it.
    """
    shape = value.shape()
    for cycle in range(cycles):
        register = Signal(shape, name=f"{name}_{cycle + 1}", reset_less=True)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


@dataclass(frozen=True)
class MultiCycle:
    """A ``value`` that is stable for ``cycles`` cycles: within these it needs no register."""

    value: Value
    cycles: int

    def delay(self, m, cycles, name):
        """The value ``cycles`` cycles later, and for how long it is stable from then on."""
        free = min(cycles, self.cycles - 1)
        return MultiCycle(pipeline(m, self.value, cycles - free, name), self.cycles - free)
