"""`DType`: all that Config, stream formats, cycle model and kit ask of a data type."""

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weft.commands import JobFlag
from weft.formats import Number

if TYPE_CHECKING:  # a Config has a DType
    from weft.config import Config

__all__ = ["DType", "Rule", "must_be"]

# A rule for a field of a Config: its name, the rule as text, and the rule as a predicate.
Rule = tuple[str, str, Callable[[Any], bool]]

NO_EPILOGUE = {"c_words": 0, "requantize": "none", "activation": "none"}


def must_be(name: str, value: object) -> Rule:
    """The rule that a field of a Config has one value."""
    return name, str(value), lambda given: given == value


class DType:
    """A data type of A and B; it has no state. A subclass sets the attributes.

    The defaults are right for a data type without an epilogue and without a C buffer.

    The other layers have their own object for a data type, in a table by its name:

    ========== ======================================= ===============================
    layer      object                                  table
    ========== ======================================= ===============================
    hardware   `weft.hw.dtypes.DTypeHardware`          `weft.hw.dtypes.HARDWARE`
    golden     `weft.host.golden_core.GoldenCore`      `weft.host.golden_core.CORES`
    driver     `weft.host.product.Product`             `weft.host.products.PRODUCTS`
    checks     a class of `weft.cli.selftest_cases`    `weft.cli.selftest_cases.CASES`
    network    a class of `weft.cli.sim_network`       `weft.cli.sim_network.NETWORKS`
    ========== ======================================= ===============================

    Attributes
    ----------
    name : str
        The value of ``Config.dtype``.
    a, b : Number
        Operands.
    acc : Number
        Sums.
    narrow : Number
        Results of the epilogue.
    defaults : dict
        Values of the fields of a Config whose default depends on the data type.
    rules : tuple of Rule
        Rules for other fields of a Config.
    allows_fip : bool
        Whether ``multiplier="auto"`` may select a fast inner product.
    parameter : struct.Struct or None
        The epilogue parameters of a column.
    max_k : int or None
        The largest K of which the sums always fit ``acc``; None without a limit.
    is_float : bool
        Whether sums are floating-point numbers.
    """

    name: str
    a: Number
    b: Number
    acc: Number
    narrow: Number
    defaults: Mapping[str, Any] = {"rows": 4, "cols": 4, **NO_EPILOGUE}
    rules: tuple[Rule, ...] = tuple(
        must_be(name, value)
        for name, value in {
            **NO_EPILOGUE, "b_zero_point": "none", "scale_cycles": 1, "flush_subnormals": False,
        }.items()
    )
    allows_fip = False
    parameter: struct.Struct | None = None
    max_k: int | None = None
    is_float = False

    def mac_cell(self, config: "Config") -> str:
        """The name of the MAC cell of a Config, in `weft.mac_cells.MAC_CELLS`."""
        raise NotImplementedError

    def epilogue_flags(self, config: "Config") -> tuple[JobFlag, ...]:
        """The flags that the epilogue supports; the first one selects narrow results."""
        return ()

    def epilogue_latency(self, config: "Config", sum_latency: int) -> int:
        """Cycles from a chunk request to its results from the epilogue.

        ``sum_latency`` are the cycles from the request to its sums.
        """
        raise NotImplementedError

    def serial_epilogue(self, config: "Config") -> bool:
        """Whether the epilogue takes chunks only at multiples of ``scale_cycles`` cycles.

        The first chunk after a pause as long as the latency of the epilogue comes in any cycle.
        """
        return False

    def arithmetic(self, config: "Config") -> str:
        """The arithmetic of the sums and results as text, for the data sheet."""
        raise NotImplementedError
