"""Block RAMs, DSP blocks and bytes of memory that a design takes."""

import math
from dataclasses import dataclass

from tools.chip_price.cost import HEADER_BYTES, PARAMETER_BYTES, NetworkCost, b_words, weight_bytes
from tools.chip_price.designs import ChipDesign
from tools.chip_price.layers import ChipLayer
from tools.chip_price.memory import map_bytes
from weft.boards.devices import Device
from weft.timing import Latencies

__all__ = ["MemoryNeed", "blocks", "device_blocks", "dsp_blocks", "memory_need"]

# Words of a block by the width of its port, in bits.
SHAPES = {
    "ecp5": {36: 512, 18: 1024, 9: 2048, 4: 4096, 2: 8192, 1: 16384},  # DP16KD
    "ice40up": {16: 256, 8: 512, 4: 1024, 2: 2048},  # SB_RAM40
}
SPRAM_BYTES, SPRAM_WIDTH = 32768, 2  # SB_SPRAM256KA: all bytes, and bytes of a word
LINK, ENGINE = 2, 4  # frames; list, log, residual maps
TABLE_BLOCKS = 2  # of the tables for ADD, in each lane
JOB_BYTES = 2 * HEADER_BYTES + 8  # descriptors of its load and of the job, entry of the log
SCALER_DSP = 4  # of a lane


def blocks(device: Device, width: int, depth: int) -> int:
    """Fewest block RAMs of a memory of ``depth`` words of ``width`` bits, in one shape."""
    return min(
        -(-width // bits) * -(-depth // words) for bits, words in SHAPES[device.target].items()
    )


def device_blocks(design: ChipDesign, network_adds: bool) -> dict[str, int]:
    """Block RAMs of the parts beside the memory."""
    c, device = design.config, design.device
    ecp5 = device.target == "ecp5"
    # A vector has its pair sum beside it: depth / 2 products of 8 bits.
    pair_sum = (c.multiplier == "fip") * (16 + math.ceil(math.log2(c.depth)))
    return {
        "A": design.buffer.banks * blocks(device, 8 * c.depth + pair_sum, 512 if ecp5 else 256),
        "B": blocks(device, 8 * c.cols * c.depth, design.b_words),
        "parameters": blocks(device, 8 * PARAMETER_BYTES * c.lanes, design.entries // c.lanes),
        # An ECP5 has LUT RAM for them, an iCE40 has none.
        "results": 0 if ecp5 else c.cols * blocks(device, 32, Latencies.of(c).buffer_rows),
        "ADD": network_adds * (design.add_passes == 2) * TABLE_BLOCKS * c.lanes,
        "link": LINK,
        "engine": ENGINE,
    }


def dsp_blocks(design: ChipDesign) -> dict[str, int]:
    """DSP blocks: columns of the array, lanes, and pair sums of the fetched bytes."""
    c = design.config
    pairs = 2 if c.multiplier == "fip" else 1
    return {
        "array": c.rows * c.dsp_cols * c.depth // pairs,
        "lanes": c.lanes * SCALER_DSP,
        "pair sums": design.port // 2 if pairs == 2 else 0,
    }


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes of the memory that a network takes, and block RAMs.

    Attributes
    ----------
    maps, weights, jobs, parameters : int
        Bytes; of ``jobs``: descriptors and log. Parameters count only if they do not stay in
        their buffer.
    memory : int
        Block RAMs of the memory, or single-port RAMs; whole memory words wide.
    others : int
        Block RAMs of the other parts.
    available : int
        Block RAMs of the device for both; with ``spram`` for the other parts.
    spram : int
        Single-port RAMs of the device, for the memory; 0: it has none.
    """

    maps: int
    weights: int
    jobs: int
    parameters: int
    memory: int
    others: int
    available: int
    spram: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the memory."""
        return self.maps + self.weights + self.jobs + self.parameters

    @property
    def fits(self) -> bool:
        """Whether the design fits the device."""
        if self.spram:
            return self.memory <= self.spram and self.others <= self.available
        return self.memory + self.others <= self.available

    @property
    def text(self) -> str:
        """Block RAMs used of available; what is missing."""
        if self.spram:
            text = f"{self.others} of {self.available}, SPRAM {self.memory} of {self.spram}"
        else:
            text = f"{self.memory} + {self.others} of {self.available}"
        return text if self.fits else f"**{text}: does not fit**"


def memory_need(layers: list[ChipLayer], cost: NetworkCost, design: ChipDesign) -> MemoryNeed:
    """Return the memory and the block RAMs that a network takes on a design."""
    c = design.config
    weights = sum(weight_bytes(layer, c) for layer in layers)
    if cost.weights == "resident":
        weights = 0
    elif cost.weights == "overlay":
        excess = sum(b_words(layer, c) for layer in layers) - design.b_words
        weights = 2 * excess * c.cols * c.depth
    columns = sum(layer.columns for layer in layers)
    need = MemoryNeed(
        maps=map_bytes(layers, design.port), weights=weights, jobs=len(layers) * JOB_BYTES,
        parameters=columns * PARAMETER_BYTES if columns > design.entries else 0,
        memory=0, others=sum(
            device_blocks(design, any(layer.residual >= 0 for layer in layers)).values()
        ),
        available=design.device.capacity["RAM"], spram=design.device.capacity.get("SPRAM", 0),
    )
    if need.spram:
        beside = design.port // SPRAM_WIDTH
        memory = beside * -(-need.bytes // (beside * SPRAM_BYTES))
    else:  # 4 bytes of a word in each block, which has a write enable for each byte
        memory = design.port // 4 * -(-need.bytes // (512 * design.port))
    return MemoryNeed(**{**vars(need), "memory": memory})
