"""The hardware of each data type, besides its MAC cell: its epilogue; of bf16 also the output."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from weft import latencies
from weft.commands import Region
from weft.dtypes import DTYPES
from weft.hw.buffers.operands import OperandBuffer
from weft.hw.delay import pipeline
from weft.hw.output.requantizer import Requantizer
from weft.hw.output.serial_requantizer import SerialRequantizer
from weft.hw.output.stream_packer import ResultPipeline

__all__ = ["HARDWARE", "Bf16Hardware", "Bf16Output", "DTypeHardware", "Int8Hardware", "Limits"]


class Limits(data.Struct):
    """The limits of a column in binary32, in the layout of `weft.dtypes.Bf16.parameter`."""

    low: 32
    high: 32


class Bf16Output(ResultPipeline):
    """``y = bfloat16(clamp(S, low, high))``; the job selects the clamp, the rounding, both or none.

    A clamp does not change a NaN, and turns -0 into +0. The rounding is to nearest, ties to even;
    it puts a bfloat16 into the low half of its lane. Every NaN at the input must be the canonical
    one.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        The memories of the core, by `weft.commands.Region`.
    target : str
        The target of the Config.
    chunk, acc, lanes, sum_latency, writes
        As for `ResultPipeline`. The clamp exists only if ``writes`` has ``parameters``.

    Source: IEEE 754-2019, clauses 4.3.1 and 5.10 (totalOrder).
    """

    def __init__(self, *, geometries, target, sum_latency, writes, **common):
        self.clamps = "parameters" in writes
        self.geometries = geometries
        self.target = target
        # The stage in which sums and parameters meet.
        self.join_stage = latencies.bf16_join(sum_latency, self.clamps)
        self.LATENCY = latencies.bf16_output(sum_latency, self.clamps)
        super().__init__(sum_latency=sum_latency, writes=writes, **common)

    def stages(self, m, chunk):
        wait = self.join_stage - self.sum_latency
        sums = [
            pipeline(m, self.sums[lane], wait, f"sums_{lane}") for lane in range(self.lanes)
        ]
        epilogue = pipeline(m, self.request.chunk.epilogue, self.join_stage, "epilogue")
        if self.clamps:
            sums = self._clamped(m, sums, chunk, epilogue.clamp)
            epilogue = pipeline(m, epilogue, 2, "r_epilogue")
        for lane, value in enumerate(sums):
            round_up = value[15] & (value[:15].any() | value[16])
            m.d.sync += self.results[lane].eq(Mux(epilogue.round, value[16:] + round_up, value))

    def _clamped(self, m, sums, chunk, clamp):
        geometry = self.geometries[Region.PARAMETERS]
        m.submodules.parameters = buffer = OperandBuffer(
            geometry=geometry, write=self.parameters.shape(), target=self.target
        )
        address = (chunk.b_panel * geometry.page + chunk.index)[: len(buffer.read_addr)]
        wait = self.join_stage - 1 - OperandBuffer.LATENCY
        m.d.comb += [
            buffer.write.eq(self.parameters),
            buffer.read_en.eq(1),
            buffer.read_addr.eq(pipeline(m, address, wait, "address")),
        ]
        limits = data.ArrayLayout(Limits, self.lanes)(buffer.read_data.as_value())
        results = []
        for lane, value in enumerate(sums):
            limit = limits[lane]
            enable = clamp & ~_is_nan(value)
            c_value = pipeline(m, value, 1, f"c_value_{lane}")
            c_limit = pipeline(m, limit, 1, f"c_limit_{lane}")
            c_enable, c_low, c_high = (
                Signal(name=f"c_{name}_{lane}") for name in ("enable", "low", "high")
            )
            selected = Mux(c_low, c_limit.low, Mux(c_high, c_limit.high, c_value))
            clamped = Signal(32, name=f"clamped_{lane}")
            m.d.sync += [
                c_enable.eq(enable),
                c_low.eq(enable & (_order_key(value) < _order_key(limit.low))),
                c_high.eq(enable & (_order_key(limit.high) < _order_key(value))),
                clamped.eq(Cat(selected[:31], selected[31] & ~(c_enable & ~selected[:31].any()))),
            ]
            results.append(clamped)
        return results


def _is_nan(value):
    """Whether a binary32 is a NaN; a NaN must be canonical."""
    return value[22:31].all()


def _order_key(value):
    """An unsigned number in the order of binary32 values; -0 is below +0."""
    return Mux(value[31], ~value, value | 1 << 31)


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
        """The epilogue, a `weft.hw.output.stream_packer.ResultPipeline`.

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
