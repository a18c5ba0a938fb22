"""The hardware of each data type, besides its MAC cell: its epilogue."""

from weft.commands import Region
from weft.dtypes import DTYPES
from weft.hw.output.bf16_output import Bf16Output
from weft.hw.output.requantizer import Requantizer
from weft.hw.output.serial_requantizer import SerialRequantizer

__all__ = ["HARDWARE", "Bf16Hardware", "DTypeHardware", "Int8Hardware"]


class DTypeHardware:
    """The epilogue of a data type; this one has none.

    The MAC cell of a Config is in `weft.hw.arith.cells.MACS`, by ``Config.mac_cell``.

    Parameters
    ----------
    config : Config
    """

    def __init__(self, config):
        self.config = config

    @property
    def regions(self) -> tuple[Region, ...]:
        """The loads that the epilogue uses, if the core has a memory for them."""
        return Region.PARAMETERS, Region.TABLE

    def epilogue(self, **common):
        """The epilogue, a `weft.hw.output.result_pipeline.ResultPipeline`.

        Called if `weft.commands.epilogue_flags` has a flag. ``common`` has the parameters of a
        ResultPipeline, and ``geometries``, the memories of the core by `Region`.
        """
        raise NotImplementedError


class Bf16Hardware(DTypeHardware):
    """A `Bf16Output`."""

    def epilogue(self, **common):
        return Bf16Output(target=self.config.target, **common)


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


# Subclasses of `DTypeHardware`, by the name of the data type.
HARDWARE = DTYPES.layer("hardware", int8=Int8Hardware, bf16=Bf16Hardware)
