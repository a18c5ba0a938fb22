"""The data type int8: exact sums in int32, results requantized to 8 bits."""

import struct

from weft import latencies
from weft.commands import JobFlag
from weft.dtypes.dtype import DType, must_be
from weft.formats import Number
from weft.serial_schedule import SerialSchedule
from weft.targets import TARGETS

__all__ = ["Int8"]

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
