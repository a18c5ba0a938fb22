"""The latencies of a core and its buffer depths at full rate, for hardware and cycle model."""

from dataclasses import dataclass

from weft import latencies
from weft.commands import Number, epilogue_flags
from weft.config import Config

__all__ = ["Latencies"]


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
        return cls(config, config.cell.latency_of(config.depth), config.cell.slots)

    @property
    def drain_latency(self) -> int:
        """From the last registered step of a pass to the first cycle of its drain."""
        c = self.config
        to_edge = latencies.MEMORY_READ + c.family.edge_registers
        result_register = c.drain == "overlapped"
        return to_edge + self.mac_latency + result_register + (c.rows - 1) // c.hop

    @property
    def write_latency(self) -> int:
        """From the decision on a pass's last step to its first row in the result buffer."""
        return latencies.STEP + self.drain_latency + (self.config.cols - 1) // self.config.hop + 1

    @property
    def read_latency(self) -> int:
        """From a result buffer address to the selected sums of a chunk."""
        return self.config.family.result_read_latency

    @property
    def read_delay(self) -> int:
        """From a chunk request to its read of the result buffer.

        The delay lets the sums and their corrections meet.
        """
        return latencies.CORRECTION - 1 - self.read_latency if self.config.cell.corrected else 0

    @property
    def sum_latency(self) -> int:
        """From a chunk request to its sums at the reorder buffer, corrected if need be."""
        return latencies.CORRECTION if self.config.cell.corrected else self.read_latency

    @property
    def epilogue_latency(self) -> int:
        """From a chunk request to its results from the epilogue; 0 without an epilogue."""
        c = self.config
        if not epilogue_flags(c):
            return 0
        return c.data_type.epilogue_latency(c, self.sum_latency)

    @property
    def reorder_latency(self) -> int:
        """From a chunk's arrival at the reorder buffer to its being readable there."""
        return self.config.family.reorder_latency

    @property
    def epilogue_lag(self) -> int:
        """Cycles after a chunk for the epilogue in which no other chunk may be requested.

        The sums of another chunk arrive as many cycles sooner than results from the epilogue. A
        serial epilogue must be empty.
        """
        return max(0, self.epilogue_latency - (0 if self.serial_epilogue else self.sum_latency))

    @property
    def serial_epilogue(self) -> bool:
        """Whether chunks for the epilogue are multiples of ``scale_cycles`` cycles apart."""
        return self.config.data_type.serial_epilogue(self.config)

    @property
    def reorder_depth(self) -> int:
        """Chunks in flight that keep the result stream busy; a power of two."""
        c, kind = self.config, self.config.data_type
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
        c, kind = self.config, self.config.data_type
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
