"""The data types of A and B, by the ``dtype`` of a Config."""

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weft import latencies
from weft.commands import JobFlag, Number
from weft.latencies import SerialSchedule
from weft.mac_cells import MAC_CELLS
from weft.registry import Registry
from weft.targets import TARGETS

if TYPE_CHECKING:
    from weft.config import Config

__all__ = ["DTYPES", "Bf16", "DType", "Int8", "Rule", "must_be"]


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


_INT8 = Number("int8", 8)


class Int8(DType):
    """int8 x int8 -> int32."""

    name = "int8"
    a = b = narrow = _INT8
    acc = Number("int32", 32)
    defaults = {"rows": 8, "cols": 8, "c_words": 0, "requantize": "tflite", "activation": "table"}
    rules = (
        must_be("flush_subnormals", False),
        must_be("c_words", 0),
        ("activation", "none or table", lambda kind: kind != "clamp"),
    )
    allows_fip = True
    # Bias, multiplier (the bits of a float32 in mode onnx), shift, zero point of B, zero point of
    # the result, lower and upper limit of the result.
    parameter = struct.Struct("<iIbbhhh")
    max_k = 0x7FFF_FFFF // (128 * 128)  # so many products always fit 32 bits

    def mac_cell(self, config):
        """One for each multiplier and FPGA family."""
        return f"{config.multiplier}{TARGETS[config.target].mac_suffix}"

    def epilogue_flags(self, config):
        if config.requantize == "none":
            return ()
        return (JobFlag.REQUANTIZE, *([JobFlag.TABLE] if config.activation == "table" else []))

    def serial_epilogue(self, config):
        return (
            config.family.serial_epilogue and config.requantize == "tflite"
            and config.scale_cycles >= 4 and config.bytes_in <= 8 and config.b_zero_point == "none"
        )

    def epilogue_latency(self, config, sum_latency):
        if self.serial_epilogue(config):
            table = latencies.TABLE * (config.activation != "none")
            return SerialSchedule(config.scale_cycles, sum_latency).latency + table
        return latencies.requantizer(
            sum_latency, mode=config.requantize, cycles=config.scale_cycles,
            zero_points=config.b_zero_point != "none", table=config.activation != "none",
        )

    def arithmetic(self, config):
        text = "sums of int8 products, exact in 32 bits"
        if config.requantize != "none":
            text += f"; requantized to 8 bits in mode `{config.requantize}`"
        return text


_BFLOAT16 = Number("bfloat16", 16)


class Bf16(DType):
    """bfloat16 x bfloat16 -> float32."""

    name = "bf16"
    a = b = narrow = _BFLOAT16
    acc = Number("float32", 32)
    defaults = {
        "rows": 4, "cols": 4, "c_words": 1024, "requantize": "none", "activation": "clamp",
    }
    rules = (
        must_be("depth", 1),
        must_be("multiplier", "plain"),
        must_be("drain", "overlapped"),
        must_be("requantize", "none"),
        must_be("scale_cycles", 1),
        ("activation", "none or clamp", lambda kind: kind != "table"),
        must_be("b_zero_point", "none"),
        ("bytes_in", "2 or more", lambda count: count >= 2),
    )
    parameter = struct.Struct("<ff")  # lower and upper limit of the result
    is_float = True

    def mac_cell(self, config):
        """One that keeps subnormal numbers, one that flushes them; an FPGA family may have both."""
        name = "bf16_ftz" if config.flush_subnormals else "bf16"
        of_family = f"{name}{TARGETS[config.target].mac_suffix}"
        return of_family if of_family in MAC_CELLS else name

    def epilogue_flags(self, config):
        return (JobFlag.ROUND, *([JobFlag.CLAMP] if config.activation == "clamp" else []))

    def epilogue_latency(self, config, sum_latency):
        return latencies.bf16_output(sum_latency, clamps=config.activation != "none")

    def arithmetic(self, config):
        return "chains of fused multiply-adds in float32, k ascending, rounded to nearest even"


# A program can add its own data type, with an object for each layer:
# DTYPES.register(MyType(), hardware=..., golden=..., driver=..., checks=..., network=...).
DTYPES = Registry[DType]("data type", Int8(), Bf16())
