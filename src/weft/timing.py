"""Pipeline latencies, and the buffer depths that full rate needs, for hardware and cycle model."""

from dataclasses import dataclass

from weft.commands import epilogue_flags
from weft.config import Config
from weft.formats import Number

__all__ = [
    "CORRECTION_LATENCY", "MAC_LATENCY", "READ_LATENCY", "ROW_SUM_LATENCY", "SLOTS",
    "STEP_LATENCY", "Latencies", "mac_latency", "scale_latency",
]

STEP_LATENCY = 1  # cycles from the sequencer's decision on a step to the registered step
READ_LATENCY = 2  # cycles from an operand address to its word at the array's edge
MAC_LATENCY = {  # cycles of the MAC cell and its operand decoder, with one product
    "plain": 2, "fip": 2, "bf16": 11, "bf16_ftz": 11, "plain_ecp5": 5, "fip_ecp5": 5,
    "plain_ice40hx": 4, "fip_ice40hx": 4, "plain_ice40up": 5, "fip_ice40up": 5,
}
SLOTS = {"int8": 1, "bf16": 8}  # sums in a PE, by dtype; a pass computes so many tiles
CORRECTION_LATENCY = 7  # cycles from a chunk request to its corrected sums
ROW_SUM_LATENCY = 5  # cycles from a chunk request to the sum of its row of A
_SCALE_STAGES = {"tflite": 6, "single": 5, "onnx": 12}  # before and after the product


def scale_latency(mode: str, cycles: int) -> int:
    """Latency of a scaler that takes one sum every ``cycles`` cycles."""
    return _SCALE_STAGES[mode] + (5 if cycles == 1 else cycles + 2 + (cycles in (4, 8)))


def mac_latency(config: Config) -> int:
    """Latency of the Config's MAC cell and operand decoder.

    A cell for a device adds its products in a tree: one cycle for each level.
    """
    products = config.depth // 2 if config.multiplier == "fip" else config.depth
    tree = (products - 1).bit_length() if config.target != "generic" else 0
    return MAC_LATENCY[config.mac_cell] + tree


@dataclass(frozen=True)
class Latencies:
    """Cycles between the stages of a core, and the buffer depths that follow from them.

    A *chunk request* is the cycle in which the result scheduler starts a chunk.

    Parameters
    ----------
    config : Config
    mac_latency : int
        Cycles of the MAC cell and its operand decoder.
    slots : int
        Sums in a PE.
    """

    config: Config
    mac_latency: int
    slots: int = 1

    @classmethod
    def of(cls, config: Config) -> "Latencies":
        """The latencies with the Config's own MAC cell."""
        return cls(config, mac_latency(config), SLOTS[config.dtype])

    @property
    def drain_latency(self) -> int:
        """From the last registered step of a pass to the first cycle of its drain."""
        c = self.config
        edge_register, result_register = c.target == "ecp5", c.drain == "overlapped"
        hops = (c.rows - 1) // c.hop
        return READ_LATENCY + edge_register + self.mac_latency + result_register + hops

    @property
    def write_latency(self) -> int:
        """From the decision on a pass's last step to its first row in the result buffer."""
        return STEP_LATENCY + self.drain_latency + (self.config.cols - 1) // self.config.hop + 1

    @property
    def read_latency(self) -> int:
        """From a result buffer address to the selected sums of a chunk."""
        return 1 if self.config.target == "generic" else 4

    @property
    def read_delay(self) -> int:
        """From a chunk request to its read of the result buffer.

        The delay lets the sums and their corrections meet.
        """
        return CORRECTION_LATENCY - 1 - self.read_latency if self.config.multiplier == "fip" else 0

    @property
    def sum_latency(self) -> int:
        """From a chunk request to its sums at the reorder buffer, corrected if need be."""
        return CORRECTION_LATENCY if self.config.multiplier == "fip" else self.read_latency

    @property
    def epilogue_latency(self) -> int:
        """From a chunk request to its results from the epilogue; 0 without an epilogue."""
        c = self.config
        if not epilogue_flags(c):
            return 0
        if c.dtype == "bf16":
            clamps = c.activation != "none"
            return max(self.sum_latency, (1 + READ_LATENCY) * clamps) + 2 * clamps + 1
        zero_points = c.b_zero_point != "none"
        inputs = max(self.sum_latency, 2 + READ_LATENCY, ROW_SUM_LATENCY * zero_points)
        table = (READ_LATENCY + 1) * (c.activation != "none")
        return inputs + 1 + zero_points + scale_latency(c.requantize, c.scale_cycles) + 5 + table

    @property
    def reorder_latency(self) -> int:
        """From a chunk's arrival at the reorder buffer to its being readable there."""
        return {"generic": 0, "ecp5": 1}.get(self.config.target, 2)

    @property
    def epilogue_lag(self) -> int:
        """Cycles by which results from the epilogue arrive later than plain sums."""
        return max(0, self.epilogue_latency - self.sum_latency)

    @property
    def reorder_depth(self) -> int:
        """Chunks in flight that keep the result stream busy; a power of two."""
        c, kind = self.config, self.config.format
        depth = -(-(self.sum_latency + self.reorder_latency + 2) // self.chunk_words(kind.acc))
        if self.epilogue_latency:
            interval = max(c.scale_cycles, self.chunk_words(kind.narrow))
            in_flight = -(-(self.epilogue_latency + self.reorder_latency + 2) // interval)
            depth = max(depth, in_flight)
        return 1 << (depth - 1).bit_length()

    @property
    def row_chunks(self) -> int:
        """Chunks of a full row of a tile."""
        return -(-self.config.cols // self.config.lanes)

    def chunk_words(self, number: Number) -> int:
        """Words of the result stream that a chunk of ``number`` occupies; one word a cycle."""
        return max(1, number.bytes * self.config.lanes // self.config.bytes_out)

    @property
    def pass_rows(self) -> int:
        """Rows of results in a pass."""
        return self.slots * self.config.rows

    @property
    def buffer_passes(self) -> int:
        """Passes that the result buffer holds.

        At least as many as are in flight at full rate.
        """
        c, kind = self.config, self.config.format
        interval = self.chunk_words(kind.acc)
        if epilogue_flags(c):
            interval = min(interval, max(c.scale_cycles, self.chunk_words(kind.narrow)))
        row = self.row_chunks * interval
        cycles = self.write_latency + self.pass_rows * row + 4  # that a pass occupies its place
        passes = -(-cycles // (self.pass_rows * row)) + 1
        return self._rows(passes) // self.pass_rows

    @property
    def buffer_rows(self) -> int:
        """Depth of the result buffer in rows; a power of two."""
        return self._rows(self.buffer_passes)

    def _rows(self, passes: int) -> int:
        """Rows of ``passes`` passes, rounded up to a power of two."""
        return 1 << (passes * self.pass_rows - 1).bit_length()
