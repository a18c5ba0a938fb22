"""The latencies of the pipeline and the room that full rate needs, for hardware and cycle model."""

from dataclasses import dataclass

from weft.commands import finishes
from weft.config import Config
from weft.formats import Number

__all__ = [
    "CORRECTION_LATENCY", "MAC_LATENCY", "READ_LATENCY", "SCALE_LATENCY", "SLOTS", "Delays",
]

READ_LATENCY = 2  # cycles from an operand address to its word at the array's edge
MAC_LATENCY = {"plain": 2, "fip": 2, "bf16": 11, "bf16_ftz": 11}  # that of leaf and decoder
SLOTS = {"int8": 1, "bf16": 8}  # sums that a PE holds: tiles of a pass
CORRECTION_LATENCY = {"plain": 0, "fip": 2, "bf16": 0, "bf16_ftz": 0}  # of the Corrector, if wanted
SCALE_LATENCY = {"tflite": 4, "single": 4, "onnx": 7}  # that of the scaler of each mode


@dataclass(frozen=True)
class Delays:
    """Cycles between the stations of a result, for a leaf of ``latency`` and ``slots``."""

    config: Config
    latency: int
    slots: int = 1

    @classmethod
    def of(cls, config: Config) -> "Delays":
        """Those of the Config's own leaf."""
        return cls(config, MAC_LATENCY[config.leaf], SLOTS[config.dtype])

    @property
    def drain(self) -> int:
        """From the last step of a pass to the first cycle of its drain."""
        return READ_LATENCY + self.latency + 1 + (self.config.rows - 1) // self.config.hop

    @property
    def written(self) -> int:
        """From the last step of a pass to the cycle in which its first row can be read."""
        return self.drain + (self.config.cols - 1) // self.config.hop + 1

    @property
    def finish(self) -> int:
        """From a chunk's entry into the pipeline, if there is one, to its being shown."""
        c = self.config
        if c.dtype == "bf16":
            return (READ_LATENCY + 2) * (c.activation != "none") + 1
        if c.requantize == "none":
            return 0
        zero_points = c.b_zero_point != "none"
        table = READ_LATENCY * (c.activation != "none")
        return READ_LATENCY + 1 + zero_points + SCALE_LATENCY[c.requantize] + 1 + table

    @property
    def chunks(self) -> int:
        """Chunks of a whole row of a tile."""
        return -(-self.config.cols // self.config.lanes)

    def chunk_words(self, number: Number) -> int:
        """Words of the result stream that a chunk of results takes, each a cycle."""
        return max(1, number.bytes * self.config.lanes // self.config.bytes_out)

    @property
    def pass_rows(self) -> int:
        return self.slots * self.config.rows

    @property
    def room(self) -> int:
        """Passes that the result buffer holds: at least all that can be under way at full rate."""
        # Narrow results, where there are any, leave faster.
        kind = self.config.format
        row = self.chunks * self.chunk_words(kind.narrow if finishes(self.config) else kind.acc)
        held = self.written + self.pass_rows * row + 4
        wanted = -(-held // (self.pass_rows * row)) + 1
        return self._ring(wanted) // self.pass_rows

    @property
    def result_rows(self) -> int:
        """Depth of the result buffer in rows, a power of two."""
        return self._ring(self.room)

    def _ring(self, passes: int) -> int:
        return 1 << (passes * self.pass_rows - 1).bit_length()
