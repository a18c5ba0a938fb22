"""The ports of a language core, and the layouts of its descriptors and of what groups need."""

from amaranth.hdl import Mux, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.language_core.lanes import LaneControl
from weft.language_core.config import COLUMNS, GROUP_BYTES, LANES
from weft.language_core.descriptors import CoreError, Kind, OutPlace, field_shapes

__all__ = ["GROUP_LEVELS", "GroupJob", "LanguagePorts", "PassFields"]

GROUP_LEVELS = 3  # of the loops over groups


class PassFields(data.StructLayout):
    """The fields of a `weft.language_core.descriptors.Pass`, at their places.

    Parameters
    ----------
    transfers : bool
        With those of a core that has a program memory.
    int4 : bool
        With that of a core that unpacks weights.
    """

    def __init__(self, *, transfers=False, int4=False):
        super().__init__({
            name: signed(bits) if is_signed else bits
            for name, (bits, is_signed) in field_shapes(transfers=transfers, int4=int4).items()
        })


class GroupJob(data.Struct):
    """What the groups of a pass need, which the steps of the next pass may overtake."""

    further: data.ArrayLayout(12, GROUP_LEVELS)  # iterations of the loops over groups, less 1
    parameter: 16
    parameter_steps: data.ArrayLayout(16, GROUP_LEVELS)
    out: 12
    out_steps: data.ArrayLayout(12, GROUP_LEVELS)
    out_place: 2
    side: 10
    lanes: LaneControl
    unmasked: 1
    reduction: 3
    least: 15

    def assigned(self, control):
        """The assignments of the pass that a
        `weft.hw.language_core.control.PassControl` executes.
        """
        job = control.job
        product = job.kind == Kind.PRODUCT
        inner = Mux(product, COLUMNS // LANES - 1, control.further[0])
        return [
            *(further.eq(value) for further, value in zip(
                self.further, (inner, control.further[1], job.heads - 1), strict=True
            )),
            *(
                steps[n].eq(job[f"{name}_{n}"]) for n in range(GROUP_LEVELS)
                for name, steps in (
                    ("parameter", self.parameter_steps), ("out", self.out_steps),
                )
            ),
            self.parameter.eq(control.parameter), self.out.eq(control.out),
            self.out_place.eq(job.out_place), self.side.eq(job.side),
            self.unmasked.eq(job.unmasked), self.reduction.eq(job.reduction),
            self.least.eq(job.addend),
            self.lanes.operand.eq(job.lane_operand), self.lanes.factor.eq(job.factor),
            self.lanes.residual.eq(job.residual), self.lanes.shift.eq(job.shift),
            self.lanes.narrow.eq(job.out_place >= OutPlace.KEYS),
        ]


class LanguagePorts(wiring.Signature):
    """The ports of a language core; `weft.hw.language_core.core.LanguageCore` describes them."""

    def __init__(self):
        super().__init__({
            "write": In(1), "table": In(1), "group": In(16),
            "write_data": In(8 * GROUP_BYTES), "read_data": Out(8 * GROUP_BYTES),
            "start": In(1), "list": In(12), "first_position": In(12), "limit": In(12),
            "stop_token": In(16), "seed": In(32), "run_abort": In(1),
            "busy": Out(1), "error": Out(CoreError), "position": Out(12), "cycles": Out(32),
            "prompt_valid": In(1), "prompt_ready": Out(1), "prompt_token": In(16),
            "prompt_last": In(1),
            "token_valid": Out(1), "token_ready": In(1), "token": Out(16),
        })
