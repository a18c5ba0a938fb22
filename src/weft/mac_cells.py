"""The MAC cells by name: what a Config, the hardware and the cycle model agree on."""

import re
from dataclasses import dataclass
from typing import Any

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
    has_squares : bool
        Whether it can read squares from block RAM instead of multiplying.

    Raises
    ------
    TypeError, ValueError
        If a name or a number is not valid.
    """

    name: str
    multiplier: str
    latency: int
    decoder_latency: int = 0
    slots: int = 1
    pairs: int = 1
    has_tree: bool = False
    corrected: bool = False
    has_squares: bool = False

    def __post_init__(self):
        for text in (self.name, self.multiplier):
            if not isinstance(text, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_]*", text):
                raise ValueError(
                    "name and multiplier of a MAC cell must be lower-case letters, digits and"
                    f" underscores, not {text!r}"
                )
        for field, low in (("latency", 1), ("decoder_latency", 0), ("slots", 1), ("pairs", 1)):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(
                    f"{field} of MAC cell {self.name!r} must be an integer, not {value!r}"
                )
            if value < low:
                raise ValueError(
                    f"{field} of MAC cell {self.name!r} must be {low} or more, not {value}"
                )

    def latency_of(self, depth: int) -> int:
        """Cycles of the operand decoder and of a cell that takes ``depth`` pairs."""
        products = depth // self.pairs
        return self.decoder_latency + self.latency + self.has_tree * latencies.tree(products)


class _MacCells(Registry[MacCell]):
    """The MAC cells; each must equal the class of its hardware."""

    def register(self, item: MacCell, **layers: Any) -> None:
        """Add a MAC cell, with its object of each layer: ``hardware`` is a subclass of `Mac`.

        Raises ValueError for a name that is taken, and for a number that the class contradicts;
        TypeError for a class without LATENCY.
        """
        if "hardware" in layers:
            _check(item, layers["hardware"])
        super().register(item, **layers)


def _check(cell, mac):
    """Raise an error unless ``cell`` has the numbers of the class ``mac``."""
    latency = getattr(mac, "LATENCY", None)
    if not isinstance(latency, int):
        raise TypeError(f"LATENCY of {mac.__name__} must be an integer, not {latency!r}")
    decoder = mac.OPERAND_DECODER
    rules = [
        ("slots", "SLOTS", cell.slots, mac.SLOTS),
        ("corrected", "CORRECTED", cell.corrected, mac.CORRECTED),
        ("has_squares", "SQUARES", cell.has_squares, mac.SQUARES),
        ("decoder_latency", "OPERAND_DECODER.LATENCY", cell.decoder_latency,
         0 if decoder is None else decoder.LATENCY),
        ("latency", "LATENCY", cell.latency, latency),
    ]
    for products in (1, 2, 5):  # a tree has none, one and three levels
        depth = products * cell.pairs
        rules.append((
            f"latency with depth {depth}", f"latency({depth})",
            cell.latency_of(depth) - cell.decoder_latency, mac.latency(depth),
        ))
    for name, attribute, value, expected in rules:
        if value != expected:
            raise ValueError(
                f"{name} of MAC cell {cell.name!r} must equal {mac.__name__}.{attribute}"
                f" ({expected}), not {value}"
            )


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


# The products of an ECP5 or Gowin cell get one more register: the sum.
_TREES = {
    "_ecp5": latencies.LOGIC_MULTIPLIER + 1,
    "_ice40hx": latencies.ICE40_DSP_ACCUMULATOR,
    "_ice40up": latencies.ICE40_DSP_ACCUMULATOR,
    "_gowin": latencies.GOWIN_MULTIPLIER + 1,
}
# A program can add its own cell: MAC_CELLS.register(MacCell(...), hardware=MyMac).
MAC_CELLS = _MacCells(
    "MAC cell",
    _plain("", latencies.TWO_STAGE_MAC), _fip("", latencies.TWO_STAGE_MAC),
    *(kind(name, cycles, has_tree=True, has_squares=name == "_ecp5")
      for name, cycles in _TREES.items() for kind in (_plain, _fip)),
    *(_bf16(f"bf16{flush}{family}") for family in ("", "_ecp5") for flush in ("", "_ftz")),
)


def _multipliers():
    return list(dict.fromkeys(["auto", *(cell.multiplier for cell in MAC_CELLS.values())]))


MULTIPLIERS = Choices(_multipliers)  # the values of ``Config.multiplier``
