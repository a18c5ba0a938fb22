"""Delay lines: the value of a signal some cycles ago."""

from dataclasses import dataclass

from amaranth.hdl import Signal, Value

__all__ = ["MultiCycle", "pipeline"]


def pipeline(m, value, cycles, name):
    """``value``, ``cycles`` cycles later.

    The registers have no reset: use it for data whose ``valid`` travels with it.
    """
    shape = value.shape()
    for cycle in range(cycles):
        register = Signal(shape, name=f"{name}_{cycle + 1}", reset_less=True)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


@dataclass(frozen=True)
class MultiCycle:
    """A ``value`` that is stable for ``cycles`` cycles.

    A delay of less than ``cycles`` cycles needs no registers, but shortens the time in which the
    value is stable.
    """

    value: Value
    cycles: int

    def delay(self, m, cycles, name):
        """The value ``cycles`` cycles later, with as few registers as possible."""
        free = min(cycles, self.cycles - 1)
        return MultiCycle(pipeline(m, self.value, cycles - free, name), self.cycles - free)
