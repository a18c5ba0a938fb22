"""The latencies of the pipeline and the room that full rate needs, for hardware and cycle model."""

from dataclasses import dataclass

from weft.commands import epilogue_flags
from weft.config import Config
from weft.formats import Number

__all__ = [
    "CORRECTED_LATENCY", "MAC_LATENCY", "READ_LATENCY", "SLOTS", "STEP_LATENCY", "SUMS_LATENCY",
    "Delays", "mac_latency", "scale_latency",
]

STEP_LATENCY = 1  # cycles from the sequencer's decision on a step to the step
READ_LATENCY = 2  # cycles from an operand address to its word at the array's edge
MAC_LATENCY = {  # that of leaf and decoder, with one product
    "plain": 2, "fip": 2, "bf16": 11, "bf16_ftz": 11, "plain_ecp5": 5, "fip_ecp5": 5,
    "plain_ice40hx": 4, "fip_ice40hx": 4, "plain_ice40up": 5, "fip_ice40up": 5,
}
SLOTS = {"int8": 1, "bf16": 8}  # sums that a PE holds: tiles of a pass
CORRECTED_LATENCY = 7  # from a chunk that is asked for to its corrected sums, if they are to be
SUMS_LATENCY = 5  # from a chunk that is asked for to the sums of its row of A
_SCALE_STAGES = {"tflite": 6, "single": 5, "onnx": 12}  # before and after the product


def scale_latency(mode: str, cycles: int) -> int:
    """That of a scaler which takes a sum each ``cycles`` cycles."""
    return _SCALE_STAGES[mode] + (5 if cycles == 1 else cycles + 2 + (cycles in (4, 8)))


def mac_latency(config: Config) -> int:
    """That of the Config's leaf and decoder: where products have a tree, a cycle a level."""
    products = config.depth // 2 if config.multiplier == "fip" else config.depth
    tree = (products - 1).bit_length() if config.target != "generic" else 0
    return MAC_LATENCY[config.leaf] + tree


@dataclass(frozen=True)
class Delays:
    """Cycles between the stations of a result, for a leaf of ``latency`` and ``slots``."""

    config: Config
    latency: int
    slots: int = 1

    @classmethod
    def of(cls, config: Config) -> "Delays":
        """Those of the Config's own leaf."""
        return cls(config, mac_latency(config), SLOTS[config.dtype])

    @property
    def drain(self) -> int:
        """From the last step of a pass, when it is under way, to the first cycle of its drain."""
        c = self.config
        way, captured = c.target == "ecp5", c.drain == "overlapped"
        return READ_LATENCY + way + self.latency + captured + (c.rows - 1) // c.hop

    @property
    def written(self) -> int:
        """From the decision on a pass's last step to the cycle in which its first row is there."""
        return STEP_LATENCY + self.drain + (self.config.cols - 1) // self.config.hop + 1

    @property
    def row(self) -> int:
        """From a chunk that is asked for to its sums, out of the result buffer."""
        return 1 if self.config.target == "generic" else 4

    @property
    def wait(self) -> int:
        """That a chunk is asked for before its row is read, so that sums meet their corrections."""
        return CORRECTED_LATENCY - 1 - self.row if self.config.multiplier == "fip" else 0

    @property
    def raw(self) -> int:
        """From a chunk that is asked for to its sums at the end of the way, corrected."""
        return CORRECTED_LATENCY if self.config.multiplier == "fip" else self.row

    @property
    def finish(self) -> int:
        """From a chunk that is asked for to its results; 0 where nothing finishes sums."""
        c = self.config
        if not epilogue_flags(c):
            return 0
        if c.dtype == "bf16":
            clamps = c.activation != "none"
            return max(self.raw, (1 + READ_LATENCY) * clamps) + 2 * clamps + 1
        zero_points = c.b_zero_point != "none"
        met = max(self.raw, 2 + READ_LATENCY, SUMS_LATENCY * zero_points)
        table = (READ_LATENCY + 1) * (c.activation != "none")
        return met + 1 + zero_points + scale_latency(c.requantize, c.scale_cycles) + 5 + table

    @property
    def landing(self) -> int:
        """From a chunk's arrival at the end of its way to its being there for the sender."""
        return {"generic": 0, "ecp5": 1}.get(self.config.target, 2)

    @property
    def lag(self) -> int:
        """Cycles that finished results come later than sums."""
        return max(0, self.finish - self.raw)

    @property
    def places(self) -> int:
        """Chunks that may be under way: as many as keep the result stream busy, a power of two."""
        c, kind = self.config, self.config.format
        wanted = -(-(self.raw + self.landing + 2) // self.chunk_words(kind.acc))
        if self.finish:
            pace = max(c.scale_cycles, self.chunk_words(kind.narrow))
            wanted = max(wanted, -(-(self.finish + self.landing + 2) // pace))
        return 1 << (wanted - 1).bit_length()

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
        c, kind = self.config, self.config.format
        pace = self.chunk_words(kind.acc)
        if epilogue_flags(c):
            pace = min(pace, max(c.scale_cycles, self.chunk_words(kind.narrow)))
        row = self.chunks * pace
        held = self.written + self.pass_rows * row + 4
        wanted = -(-held // (self.pass_rows * row)) + 1
        return self._ring(wanted) // self.pass_rows

    @property
    def result_rows(self) -> int:
        """Depth of the result buffer in rows, a power of two."""
        return self._ring(self.room)

    def _ring(self, passes: int) -> int:
        return 1 << (passes * self.pass_rows - 1).bit_length()
