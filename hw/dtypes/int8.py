"""The hardware of the data type int8: its epilogue requantizes."""

from weft.commands import Region
from weft.hw.dtypes.hardware import DTypeHardware
from weft.hw.output.requantizer import Requantizer
from weft.hw.output.serial_requantizer import SerialRequantizer

__all__ = ["Int8Hardware"]


class Int8Hardware(DTypeHardware):
    """A `Requantizer` or a `SerialRequantizer`.

    With zero points of B a Requantizer adds up the rows of A as they load.
    """

    @property
    def regions(self):
        return (*[Region.A] * self._zero_points, *super().regions)

    def epilogue(self, **common):
        c = self.config
        common |= {"cycles": c.scale_cycles, "target": c.target}
        if c.data_type.serial_epilogue(c):
            return SerialRequantizer(**common)
        return Requantizer(mode=c.requantize, zero_points=self._zero_points, **common)

    @property
    def _zero_points(self):
        return self.config.b_zero_point != "none"
