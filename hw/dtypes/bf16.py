"""The hardware of the data type bf16: its epilogue clamps and rounds."""

from weft.hw.dtypes.hardware import DTypeHardware
from weft.hw.output.bf16_output import Bf16Output

__all__ = ["Bf16Hardware"]


class Bf16Hardware(DTypeHardware):
    """A `Bf16Output`."""

    def epilogue(self, **common):
        return Bf16Output(target=self.config.target, **common)
