"""`DTypeHardware`: what the core asks of a data type."""

from weft.commands import Region

__all__ = ["DTypeHardware"]


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
