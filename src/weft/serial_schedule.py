"""When the serial requantizer reads each parameter: data for the hardware and the cycle model."""

from dataclasses import dataclass

from weft.latencies import MEMORY_READ, serial_digits, serial_product, tree

__all__ = ["SerialSchedule"]


@dataclass(frozen=True)
class SerialSchedule:
    """The cycles of a result, counted from the request of its chunk.

    Results follow each other by multiples of `cycles` while one is in the requantizer. So an event
    of a result never meets another use of the same part, if their cycles differ modulo `cycles`.

    Parameters
    ----------
    cycles : int
        Least cycles between two results: 4, 8, 16 or 32.
    sum_latency : int
        Cycles from a request to its sums.
    """

    cycles: int
    sum_latency: int

    @property
    def join(self) -> int:
        """The bias is added. The first read is 3 cycles before, when the chunk is known."""
        return max(self.sum_latency, 4)

    @property
    def steps(self) -> int:
        """Digits of a sum; the product takes one a cycle."""
        return serial_digits(self.cycles)

    @property
    def bits(self) -> int:
        """Bits of a digit."""
        return 32 // self.steps

    @property
    def levels(self) -> int:
        """Adder levels for the multiples of the multiplier that belong to a digit."""
        return tree(self.bits // 2)

    @property
    def shift_read(self) -> int:
        """Address of the shift, for the left shift of the sum."""
        return self.join - MEMORY_READ - 1

    @property
    def bias_read(self) -> int:
        """Address of the bias."""
        return self.join - MEMORY_READ

    @property
    def multiplier_read(self) -> int:
        """Address of the multiplier."""
        return self.join

    @property
    def product(self) -> int:
        """The product is valid; the right shift starts."""
        return self.join + serial_product(self.cycles)

    @property
    def right_shift_read(self) -> int:
        """Address of the shift, for the right shift of the product."""
        return self.product - MEMORY_READ

    @property
    def shifted(self) -> int:
        """The shifted product is valid."""
        return self.product + self.cycles

    @property
    def zero_read(self) -> int:
        """Address of the zero point; no other parameter of that half is read in its phase."""
        busy = self.shift_read, self.bias_read, self.right_shift_read
        return self._first_free(self.shifted + 1 - MEMORY_READ, 1, busy)

    @property
    def limits_read(self) -> int:
        """Address of the limits, for two cycles.

        The limits are registered before one cycle compares and the next one selects.
        """
        return self._first_free(self.zero_read, 2, (self.multiplier_read,))

    @property
    def latency(self) -> int:
        """The result is valid."""
        return self.limits_read + MEMORY_READ + 3

    def phase(self, cycle: int) -> int:
        """``cycle`` modulo `cycles`."""
        return cycle % self.cycles

    def age(self, cycle: int) -> int:
        """Periods of `cycles` cycles that are over in ``cycle``."""
        return (cycle - 1) // self.cycles

    def _first_free(self, cycle, count, busy):
        """The first of ``count`` cycles from ``cycle`` on whose phases are not ``busy``."""
        taken = {self.phase(other) for other in busy}
        while taken & {self.phase(cycle + n) for n in range(count)}:
            cycle += 1
        return cycle
