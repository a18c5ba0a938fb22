"""The latencies of the blocks in cycles, and when the serial requantizer reads parameters.

They are data for the hardware and for the cycle model.
"""

from dataclasses import dataclass

__all__ = [
    "BF16_MAC", "CLAMP", "CORRECTION", "DIGIT_STAGES", "DSP_MULTIPLIER", "GOWIN_MULTIPLIER",
    "ICE40_DSP_ACCUMULATOR", "ICE40_SKEWED_QUAD",
    "LOGIC_MULTIPLIER", "MEMORY_READ", "OPERAND_SUMS_READ", "RELEASE", "ROW_SUM", "SCALER_STAGES",
    "STEP", "TABLE", "TWO_STAGE_MAC", "UNPACKER", "SerialSchedule", "bf16_join", "bf16_output",
    "requantizer", "requantizer_join", "scale_product", "scaler", "serial_digits", "serial_product",
    "serial_scaler", "tree",
]


STEP = 1  # from the sequencer's decision on a step to the registered step
RELEASE = 1  # from the last request of a pass to its release at the sequencer
MEMORY_READ = 2  # from an address to the word of a memory bank

# Arithmetic of the PE.
TWO_STAGE_MAC = 2  # the product, then the sum
DSP_MULTIPLIER = 3  # a DSP block of the ECP5 with all its registers
LOGIC_MULTIPLIER = 4  # a multiplier in the carry chains of the ECP5
GOWIN_MULTIPLIER = 5  # a DSP block of a Gowin FPGA, and a register on each side of it
ICE40_DSP_ACCUMULATOR = 4  # multiplier and accumulator in one SB_MAC16
ICE40_SKEWED_QUAD = 5  # operands, products, two sums in two SB_MAC16; the accumulator
BF16_MAC = 10
UNPACKER = 1  # decodes a floating-point number at the array's edge

# From a chunk request.
OPERAND_SUMS_READ = MEMORY_READ + 2  # from a page to the sum of one line of an operand
ROW_SUM = 1 + OPERAND_SUMS_READ  # the sum of the chunk's row of A
CORRECTION = ROW_SUM + 2  # the corrected sums of a fast inner product

# Stages of a scaler before and after its product, by requantization mode.
SCALER_STAGES = {"tflite": (2, 4), "single": (0, 5), "onnx": (5, 7)}
CLAMP = 5  # from a scaled sum to its int8 result
TABLE = MEMORY_READ + 1  # from a result to its entry of the activation table
# Registers between a digit of a scale and its product, by the cycles of a product: two multipliers,
# or two halves of the digit.
DIGIT_STAGES = {2: DSP_MULTIPLIER, 4: 1, 8: 1}


def tree(terms: int) -> int:
    """Latency of a tree that adds ``terms`` values, one cycle for each level."""
    return (terms - 1).bit_length()


def scale_product(cycles: int) -> int:
    """Latency of the product of a sum and its scale, one every ``cycles`` cycles."""
    return DSP_MULTIPLIER + 2 if cycles == 1 else cycles + 2 + DIGIT_STAGES.get(cycles, 0)


def scaler(mode: str, cycles: int) -> int:
    """Latency of a scaler that takes one sum every ``cycles`` cycles."""
    return sum(SCALER_STAGES[mode]) + scale_product(cycles)


def serial_digits(cycles: int) -> int:
    """Digits of a sum in a serial scaler that takes one every ``cycles`` cycles."""
    return min(cycles, 16)


def serial_product(cycles: int) -> int:
    """From a sum at a serial scaler to its product: its digits, and the tree of their multiples."""
    digits = serial_digits(cycles)
    return digits + tree(16 // digits) + 4


def serial_fine_shift(cycles: int) -> int:
    """From a sum that a serial scaler has shifted by whole digits to its shift by the rest.

    The rest of a digit of 8 bits takes a cycle of its own; a shorter one is shifted and rounded in
    one cycle.
    """
    return int(serial_digits(cycles) <= 4)


def serial_scaler(cycles: int) -> int:
    """Latency of a serial scaler: the product, its shift digit by digit, the rounding."""
    return serial_product(cycles) + serial_digits(cycles) + serial_fine_shift(cycles) + 1


def requantizer_join(sum_latency: int, zero_points: bool) -> int:
    """From a chunk request to the stage in which sums, parameters and row sums meet."""
    return max(sum_latency, 2 + MEMORY_READ, ROW_SUM * zero_points)


def requantizer(
    sum_latency: int, *, mode: str, cycles: int, zero_points: bool, table: bool
) -> int:
    """From a chunk request to the results of the int8 epilogue.

    The bias takes 1 cycle, zero points of B 1 more.
    """
    stages = 1 + zero_points + scaler(mode, cycles) + CLAMP + TABLE * table
    return requantizer_join(sum_latency, zero_points) + stages


def bf16_join(sum_latency: int, clamps: bool) -> int:
    """From a chunk request to the stage in which sums and limits meet."""
    return max(sum_latency, (1 + MEMORY_READ) * clamps)


def bf16_output(sum_latency: int, clamps: bool) -> int:
    """From a chunk request to the results of the BF16 epilogue: 2 cycles clamp, 1 rounds."""
    return bf16_join(sum_latency, clamps) + 2 * clamps + 1


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
