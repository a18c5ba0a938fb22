"""The MAC cells by name: what a Config, the hardware and the cycle model agree on."""

from dataclasses import dataclass

from weft import latencies
from weft.registry import Choices, Registry

__all__ = ["MAC_CELLS", "MULTIPLIERS", "MacCell"]


@dataclass(frozen=True, kw_only=True)
class MacCell:
    """A MAC cell; its hardware is a subclass of `weft.hw.arith.mac.Mac`.

    Parameters
    ----------
    name : str
    multiplier : str
        The value of ``Config.multiplier`` that selects it.
    latency : int
        Cycles from the operands of a step to its sum, with one product.
    decoder_latency : int
        Cycles of the operand decoder at the array's edge; 0 without one.
    slots : int
        Sums in a PE; a pass computes so many tiles.
    pairs : int
        Operand pairs of a product.
    has_tree : bool
        Whether a tree adds the products of a step, one cycle for each level.
    corrected : bool
        Whether its sums need a correction for each row of A and each column of B.
    """

    name: str
    multiplier: str
    latency: int
    decoder_latency: int = 0
    slots: int = 1
    pairs: int = 1
    has_tree: bool = False
    corrected: bool = False

    def latency_of(self, depth: int) -> int:
        """Cycles of the operand decoder and of a cell that takes ``depth`` pairs."""
        products = depth // self.pairs
        return self.decoder_latency + self.latency + self.has_tree * latencies.tree(products)


def _plain(name, latency, **more):
    return MacCell(name=f"plain{name}", multiplier="plain", latency=latency, **more)


def _fip(name, latency, **more):
    return MacCell(
        name=f"fip{name}", multiplier="fip", latency=latency, pairs=2, corrected=True, **more
    )


def _bf16(name):
    return MacCell(
        name=name, multiplier="plain", latency=latencies.BF16_MAC,
        decoder_latency=latencies.UNPACKER, slots=8,
    )


# The products of an ECP5 cell get one more register; the products of an iCE40 cell have one before
# them. The last register of both is the sum. An iCE40 without DSP blocks does not wait for one.
_TREES = {
    "_ecp5": latencies.LOGIC_MULTIPLIER + 1,
    "_ice40hx": latencies.ICE40_DSP_ACCUMULATOR,
    "_ice40up": latencies.ICE40_DSP_ACCUMULATOR + 1,
}
# A program can add its own cell: MAC_CELLS.register(MacCell(...), hardware=MyMac).
MAC_CELLS = Registry(
    "MAC cell",
    _plain("", latencies.TWO_STAGE_MAC), _fip("", latencies.TWO_STAGE_MAC),
    *(kind(name, cycles, has_tree=True) for name, cycles in _TREES.items()
      for kind in (_plain, _fip)),
    _bf16("bf16"), _bf16("bf16_ftz"),
)


def _multipliers():
    return list(dict.fromkeys(["auto", *(cell.multiplier for cell in MAC_CELLS.values())]))


MULTIPLIERS = Choices(_multipliers)  # the values of ``Config.multiplier``
