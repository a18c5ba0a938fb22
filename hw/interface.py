"""The ports of a core: two streams, abort, registers, and activity."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.output.stream_packer import Result

__all__ = ["ACTIVITY", "CoreInterface"]

ACTIVITY = data.StructLayout(
    dict.fromkeys(("words_in", "active", "starved", "stalled", "words_out", "busy"), 1)
)


class CoreInterface(wiring.Signature):
    """The ports of a `weft.hw.core.Core`, with the directions of its user; the core flips it.

    ``docs/interfaces.md`` describes the contents of the streams.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    commands : Out, stream of ``8 * bytes_in`` bits
    results : In, stream of `weft.hw.output.stream_packer.Result`
    abort : Out, 1 bit
        Pulse: ends the running job.
    reg_address : Out, 8 bits
        Number of a register.
    reg_data : In, 32 bits
        The register; valid when ``reg_address`` was stable for `weft.registers.LATENCY` cycles.
    activity : In, `ACTIVITY`
        Events of this cycle: a command word is accepted, operands enter the array, a job is
        starved or stalled, a result word is accepted; and whether the core is busy.
    """

    def __init__(self, config):
        super().__init__({
            "commands": Out(stream.Signature(8 * config.bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=config.bytes_out))),
            "abort": Out(1),
            "reg_address": Out(8),
            "reg_data": In(32),
            "activity": In(ACTIVITY),
        })
